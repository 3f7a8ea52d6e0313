// Package drover is a view of the objects in the control cluster: the fields of Machines, classes, configurations of target clusters
// and Compositions that drover-karpenter reads or sets. The types of the main module would bring its versions of the Kubernetes libraries
// along, which Karpenter is not built with: see docs/decisions. A test compares the fields with the schemas that Drover
// installs.
//
// The other fields of an object that is read are lost. So objects are created, patched and deleted, and never updated.
//
// +kubebuilder:object:generate=true
package drover

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SchemeGroupVersion of Machines and classes.
var SchemeGroupVersion = schema.GroupVersion{Group: "machine.drover.dev", Version: "v1alpha1"}

// ClusterGroupVersion of the configurations of target clusters.
var ClusterGroupVersion = schema.GroupVersion{Group: "cluster.drover.dev", Version: "v1alpha1"}

// CompositionGroupVersion of Compositions.
var CompositionGroupVersion = schema.GroupVersion{Group: "apiextensions.crossplane.io", Version: "v1"}

// AddToScheme adds the kinds in this package to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(SchemeGroupVersion, &Machine{}, &MachineList{}, &MachineClass{}, &MachineClassList{}, &ClusterMachineClass{}, &ClusterMachineClassList{})
	metav1.AddToGroupVersion(s, SchemeGroupVersion)
	s.AddKnownTypes(ClusterGroupVersion, &ProviderConfig{}, &ProviderConfigList{}, &ClusterProviderConfig{}, &ClusterProviderConfigList{})
	metav1.AddToGroupVersion(s, ClusterGroupVersion)
	s.AddKnownTypes(CompositionGroupVersion, &Composition{}, &CompositionList{})
	metav1.AddToGroupVersion(s, CompositionGroupVersion)
	return nil
}
