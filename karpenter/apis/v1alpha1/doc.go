// Package v1alpha1 has the NodeClass of Drover's cloud provider for Karpenter.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.drover.dev
// +versionName=v1alpha1
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group of the kinds in this package, and of the labels and annotations that drover-karpenter sets.
const Group = "karpenter.drover.dev"

// SchemeGroupVersion is the group and version of the kinds in this package.
var SchemeGroupVersion = schema.GroupVersion{Group: Group, Version: "v1alpha1"}

// AddToScheme adds the kinds in this package to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(SchemeGroupVersion, &DroverNodeClass{}, &DroverNodeClassList{})
	metav1.AddToGroupVersion(s, SchemeGroupVersion)
	return nil
}
