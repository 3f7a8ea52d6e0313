package v1alpha1

import (
	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
	xpv2 "github.com/crossplane/crossplane-runtime/v2/apis/common/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	inventoryv1alpha1 "github.com/drover-dev/drover/apis/inventory/v1alpha1"
)

// VirtualMachineInventorySpec says which VMs are looked for.
type VirtualMachineInventorySpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	ForProvider inventoryv1alpha1.InventoryParameters `json:"forProvider"`
}

// VirtualMachineInventoryStatus is what was seen.
type VirtualMachineInventoryStatus struct {
	xpv1.ResourceStatus `json:",inline"`

	// +optional
	AtProvider inventoryv1alpha1.InventoryObservation `json:"atProvider,omitempty"`
}

// A VirtualMachineInventory looks for the VMs of an installation of Drover that no
// VirtualMachine claims. It changes nothing at the cloud.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,openstack}
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=='Synced')].status`
// +kubebuilder:printcolumn:name="Unclaimed",type=integer,JSONPath=`.status.atProvider.unclaimedCount`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type VirtualMachineInventory struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   VirtualMachineInventorySpec   `json:"spec"`
	Status VirtualMachineInventoryStatus `json:"status,omitempty"`
}

// A VirtualMachineInventoryList is a list of VirtualMachineInventories.
//
// +kubebuilder:object:root=true
type VirtualMachineInventoryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VirtualMachineInventory `json:"items"`
}

// VirtualMachineInventoryGroupVersionKind is the kind of inventories.
var VirtualMachineInventoryGroupVersionKind = CRDGroupVersion.WithKind(inventoryv1alpha1.Kind)

// Asked returns what the inventory is asked.
func (i *VirtualMachineInventory) Asked() inventoryv1alpha1.InventoryParameters {
	return i.Spec.ForProvider
}

// Seen returns what the inventory says, to be read and set.
func (i *VirtualMachineInventory) Seen() *inventoryv1alpha1.InventoryObservation {
	return &i.Status.AtProvider
}

func init() {
	SchemeBuilder.Register(&VirtualMachineInventory{}, &VirtualMachineInventoryList{})
}
