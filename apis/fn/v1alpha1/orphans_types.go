package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Orphans finds VMs that have no Machine any more: it composes the inventory of an OrphanCollector,
// and the VM resources by which orphans are deleted.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:categories=crossplane
type Orphans struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Inventory is the kind that looks for VMs at the cloud.
	Inventory KindBinding `json:"inventory"`

	// VirtualMachine is the kind of VM resource that Machines compose for the cloud.
	VirtualMachine OrphanBinding `json:"virtualMachine"`
}

// An OrphanBinding names the kind of VM resources, and the paths of fields that locate a VM.
type OrphanBinding struct {
	KindBinding `json:",inline"`

	// RegionPath is the path of the field that has the region of a VM, such as
	// spec.forProvider.region, at clouds whose API has an endpoint per region. The inventory lists
	// the region at the same path of the collector's spec.forProvider.
	// +optional
	RegionPath string `json:"regionPath,omitempty"`

	// NamespacePath is the path of the field that has the namespace of a VM, at clouds whose VMs
	// have one. The inventory lists the namespace at the same path of the collector's
	// spec.forProvider.
	// +optional
	NamespacePath string `json:"namespacePath,omitempty"`

	// Fields are set in the resource by which an orphan is deleted, for a kind that finds its VM by
	// more than the external name, such as its resource group.
	// +optional
	Fields []OrphanField `json:"fields,omitempty"`
}

// An OrphanField sets one field of the resource by which an orphan is deleted.
type OrphanField struct {
	// Path of the field, like spec.forProvider.resourceGroupName. It must be below
	// spec.forProvider.
	// +kubebuilder:validation:MinLength=1
	Path string `json:"path"`

	// Value is a CEL expression of the variables externalName and providerID, as the inventory
	// lists the VM. It overrides the field of the collector's spec.forProvider. A null or absent
	// optional value leaves the field as the collector has it.
	// +kubebuilder:validation:MinLength=1
	Value string `json:"value"`
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
