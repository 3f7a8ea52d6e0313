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
	VirtualMachine OrphanBinding `json:"virtualMachine"`
}

// An OrphanBinding names the kind of VMs, and where a VM of the kind has its place.
type OrphanBinding struct {
	KindBinding `json:",inline"`

	// RegionPath is the path of the field that has the region of a VM, such as
	// spec.forProvider.region, at clouds whose API has an endpoint per region. The inventory
	// lists the region that spec.forProvider of the collector has there.
	// +optional
	RegionPath string `json:"regionPath,omitempty"`

	// NamespacePath is the path of the field that has the namespace of a VM, at clouds where VMs
	// have one. The inventory lists the namespace that spec.forProvider of the collector has
	// there.
	// +optional
	NamespacePath string `json:"namespacePath,omitempty"`

	// NamePath is the path of the field that has the name of a VM, for a kind that finds its VM
	// by this field and not by the external name. The resource by which an orphan is deleted
	// gets the external name there.
	// +optional
	NamePath string `json:"namePath,omitempty"`
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
