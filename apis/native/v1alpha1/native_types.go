package v1alpha1

import (
	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
)

// UserData is read by a VM at its first boot.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.userData) && has(self.userDataSecretRef))",message="set userData or userDataSecretRef, not both"
type UserData struct {
	// UserDataSecretRef names the user data, in a Secret of the VM's namespace.
	// +optional
	UserDataSecretRef *xpv1.LocalSecretKeySelector `json:"userDataSecretRef,omitempty"`
	// UserData as plain text. It is readable by all who may read the VM: use
	// userDataSecretRef for user data with a token.
	// +optional
	UserData *string `json:"userData,omitempty"`
}

// An Address of a VM.
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

// Observation is the observed state of a VM at any cloud.
type Observation struct {
	// Place is the account, cluster or region that the VM is in. The VM is never looked for in
	// another one.
	// +optional
	Place string `json:"place,omitempty"`
	// ProviderID of the VM's Node. It is set when the VM runs for the first time.
	// +optional
	ProviderID string `json:"providerID,omitempty"`
	// State of the VM: Creating, Incomplete, Stopped, Running, Failed or Deleting. It is empty if
	// the cloud has no such VM.
	// +optional
	State string `json:"state,omitempty"`
	// StateText is the state in the cloud's own words.
	// +optional
	StateText string `json:"stateText,omitempty"`
	// Addresses of the VM.
	// +optional
	Addresses []Address `json:"addresses,omitempty"`
}
