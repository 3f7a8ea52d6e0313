package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Orphans finds VMs that no Machine has any more: it composes the inventory of an
// OrphanCollector, and the VM resources by which orphans are deleted.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:categories=crossplane
type Orphans struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Inventory is the kind that looks for VMs at the cloud.
	Inventory KindBinding `json:"inventory"`

	// VirtualMachine is the kind of VM that Machines compose at the cloud.
	VirtualMachine KindBinding `json:"virtualMachine"`
}

// A KindBinding names a kind of a provider.
type KindBinding struct {
	// APIVersion of the kind.
	// +kubebuilder:validation:MinLength=1
	APIVersion string `json:"apiVersion"`

	// Kind itself.
	// +kubebuilder:validation:MinLength=1
	Kind string `json:"kind"`
}
