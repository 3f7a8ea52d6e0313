package v1alpha1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// UserData is the source of the user data, which a VM reads at its first boot.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.userData) && has(self.userDataSecretRef))",message="set userData or userDataSecretRef, not both"
type UserData struct {
	// UserDataSecretRef names the key of a Secret with the user data, in the namespace of the VM resource.
	// +optional
	UserDataSecretRef *xpv2.LocalSecretKeySelector `json:"userDataSecretRef,omitempty"`
	// UserData as plain text. Every user who may read the VM resource can read it: use userDataSecretRef
	// for user data with a token.
	// +optional
	UserData *string `json:"userData,omitempty"`
}

// An Address is an address of a VM.
type Address struct {
	// Type of the address: InternalIP or ExternalIP.
	Type string `json:"type"`
	// Address itself.
	Address string `json:"address"`
}

// Types of addresses.
const (
	AddressInternal = "InternalIP"
	AddressExternal = "ExternalIP"
)

// Observation is the observed state of a VM in any cloud.
type Observation struct {
	// Place is the account, cluster or region of the VM. The provider never searches for the VM in
	// another place.
	// +optional
	Place string `json:"place,omitempty"`
	// ProviderID of the VM's Node. It is set when the VM is first observed to run.
	// +optional
	ProviderID string `json:"providerID,omitempty"`
	// State of the VM: Creating, Incomplete, Stopped, Running, Failed or Deleting. It is empty if the
	// cloud has no such VM.
	// +optional
	State string `json:"state,omitempty"`
	// StateText is the state in the cloud's own words.
	// +optional
	StateText string `json:"stateText,omitempty"`
	// Addresses of the VM.
	// +optional
	Addresses []Address `json:"addresses,omitempty"`
}
