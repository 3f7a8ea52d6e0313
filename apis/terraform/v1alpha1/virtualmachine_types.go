package v1alpha1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/internal/stored"
)

// VirtualMachineParameters are the parameters that a VM is created with. An existing VM is never
// changed.
type VirtualMachineParameters struct {
	// Type of the Terraform resource, such as hcloud_server. It must be in spec.virtualMachines of
	// the configuration. If the configuration has exactly one type, that is the default.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Type string `json:"type,omitempty"`

	// Name of the VM, which is its host name. The configuration selects the argument that has it.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// Tags that the VM is found by. The configuration selects the argument that has them.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Tags map[string]string `json:"tags,omitempty"`

	// FailureDomain of the VM. The configuration selects the argument that has it.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	FailureDomain string `json:"failureDomain,omitempty"`

	// UserDataSecretRef names the Secret in the VM's namespace, and its key, with the user data.
	// The configuration selects the argument that has them.
	// +optional
	UserDataSecretRef *xpv2.LocalSecretKeySelector `json:"userDataSecretRef,omitempty"`

	// Arguments of the Terraform resource, with names and types as documented by the provider. A
	// block is a list of objects. Arguments that the configuration sets replace arguments of the
	// same name here. Before a VM is created, the provider validates all of them.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Arguments *extv1.JSON `json:"arguments,omitempty"`
}

// An Address of a VM.
type Address struct {
	// Type of the address: InternalIP, ExternalIP, InternalDNS, ExternalDNS or Hostname.
	Type string `json:"type"`
	// Address itself.
	Address string `json:"address"`
}

// VirtualMachineObservation is the observed state of the VM: the outputs of the configuration,
// evaluated on the Terraform state. The state itself may contain user data and credentials. It is
// in a Secret in the provider's own namespace.
type VirtualMachineObservation struct {
	// Provider that the VM was last observed with, and its version.
	// +optional
	Provider string `json:"provider,omitempty"`
	// Type of the Terraform resource.
	// +optional
	Type string `json:"type,omitempty"`
	// ProviderID of the VM's Node.
	// +optional
	ProviderID string `json:"providerID,omitempty"`
	// Addresses that the cloud assigned to the VM.
	// +optional
	Addresses []Address `json:"addresses,omitempty"`
	// Running reports whether the VM runs.
	// +optional
	Running bool `json:"running,omitempty"`
	// Failed is why the VM will never run, for example because only a part of it was created.
	// +optional
	Failed string `json:"failed,omitempty"`
}

// VirtualMachineSpec is the desired state of a VirtualMachine.
type VirtualMachineSpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	ForProvider VirtualMachineParameters `json:"forProvider"`
}

// VirtualMachineStatus is the observed state of a VirtualMachine.
type VirtualMachineStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// +optional
	AtProvider VirtualMachineObservation `json:"atProvider,omitempty"`
}

// A VirtualMachine is a VM that is a resource of a Terraform provider. Its external name is the
// ID that the provider imports the resource by.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,terraform}
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=='Synced')].status`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.status.atProvider.type`
// +kubebuilder:printcolumn:name="External-Name",type=string,JSONPath=`.metadata.annotations.crossplane\.io/external-name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type VirtualMachine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	stored.Undecoded  `json:"-"`

	Spec   VirtualMachineSpec   `json:"spec"`
	Status VirtualMachineStatus `json:"status,omitempty"`
}

// A VirtualMachineList is a list of VirtualMachines.
//
// +kubebuilder:object:root=true
type VirtualMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VirtualMachine `json:"items"`
}
