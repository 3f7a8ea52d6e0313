package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// Pool composes the MachineDeployments of a NodePool, one per failure domain, from the classes and
// versions that the platform offers.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:categories=crossplane
type Pool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Classes that are offered.
	// +kubebuilder:validation:MinItems=1
	// +listType=map
	// +listMapKey=name
	Classes []OfferedClass `json:"classes"`

	// Versions of the kubelet that are offered. A NodePool without a version gets the first one.
	// +kubebuilder:validation:MinItems=1
	// +listType=set
	Versions []string `json:"versions"`

	// ClusterRef names the cluster that the Machines join.
	// +kubebuilder:default={kind: ClusterProviderConfig, name: default}
	ClusterRef machinev1alpha1.ClusterReference `json:"clusterRef,omitempty,omitzero"`

	// MaxSize is the largest size of a NodePool: of spec.size, or of spec.autoscaling.max. A class
	// may have a smaller limit. The default is the limit of the schema, 10000.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	MaxSize *int32 `json:"maxSize,omitempty"`

	// Drain configures how Nodes are emptied before their VMs are deleted.
	// +optional
	Drain *machinev1alpha1.Drain `json:"drain,omitempty"`

	// Health defines when a Node is unhealthy, and for how long it may be.
	// +optional
	Health *machinev1alpha1.Health `json:"health,omitempty"`

	// Remediation configures how Failed Machines are replaced, in each failure domain.
	// +optional
	Remediation *machinev1alpha1.Remediation `json:"remediation,omitempty"`
}

// OfferedClass is a class that NodePools may select.
type OfferedClass struct {
	// Name by which NodePools select the class.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// ClassRef names the class of the Machines. To offer another VM under the same name, create
	// another class and name it here. All pools of the name then roll over to it.
	ClassRef machinev1alpha1.ClassReference `json:"classRef"`

	// FailureDomains that are offered. Without any, the class or the provider decides where VMs are
	// placed, and a NodePool cannot select a failure domain.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	FailureDomains []machinev1alpha1.FailureDomain `json:"failureDomains,omitempty"`

	// MaxSize is the largest size of a NodePool of the class.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	MaxSize *int32 `json:"maxSize,omitempty"`

	// Labels of all Nodes of the class. A NodePool cannot change them.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Taints of all Nodes of the class. A NodePool cannot change them.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	Taints []machinev1alpha1.Taint `json:"taints,omitempty"`

	// StartupTaints that the Nodes register with, and that another controller removes.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	StartupTaints []machinev1alpha1.Taint `json:"startupTaints,omitempty"`
}
