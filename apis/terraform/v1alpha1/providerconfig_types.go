package v1alpha1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A TerraformProvider is one version of a Terraform provider.
type TerraformProvider struct {
	// Source like hetznercloud/hcloud, or example.org/hetznercloud/hcloud with the host of its
	// registry. The default host is registry.terraform.io. It is the place in the plugin
	// directory; nothing is downloaded.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9][a-z0-9.-]*(:[0-9]+)?/)?[a-zA-Z0-9][a-zA-Z0-9_-]*/[a-zA-Z0-9][a-zA-Z0-9_-]*$`
	Source string `json:"source"`

	// Version like 1.68.0. A VM that was made with another one is kept: the provider upgrades
	// its state.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?$`
	Version string `json:"version"`

	// SHA256 has the digests of the program, one for each platform, in hexadecimal. A program
	// with another digest is not started.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Pattern=`^[0-9a-fA-F]{64}$`
	SHA256 []string `json:"sha256"`
}

// A SecretKeySelector selects a key of a Secret.
type SecretKeySelector struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Namespace of the Secret.
	// +kubebuilder:validation:MinLength=1
	Namespace string `json:"namespace"`
	// Key in the Secret. Its value is a JSON object of arguments of the provider, like
	// {"token": "..."}.
	// +kubebuilder:default=credentials
	Key string `json:"key,omitempty"`
}

// Credentials of the Terraform provider.
type Credentials struct {
	// SecretRef names arguments of the provider that are secret. They replace those of
	// configuration.
	SecretRef SecretKeySelector `json:"secretRef"`
}

// An ArgumentBinding sets one argument of the Terraform resource.
type ArgumentBinding struct {
	// Argument that is set, like labels, or metadata[team] for one key of a map.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Argument string `json:"argument"`
	// Value is a CEL expression. It may use name, tags and failureDomain of the VM, and arguments
	// of its class. Null, or an absent optional value, leaves the argument as the class
	// has it. A map is merged over the class's.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Value string `json:"value"`
}

// An Encoding of user data.
// +kubebuilder:validation:Enum=Plain;Base64
type Encoding string

// Encodings of user data.
const (
	EncodingPlain  Encoding = "Plain"
	EncodingBase64 Encoding = "Base64"
)

// A UserDataBinding says which argument has the user data.
type UserDataBinding struct {
	// Argument that has them, like user_data or metadata[user-data].
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Argument string `json:"argument"`
	// Encoding that the provider expects.
	// +kubebuilder:default=Plain
	Encoding Encoding `json:"encoding,omitempty"`
}

// Outputs are CEL expressions that read a VM. They may use state, the attributes of the Terraform
// resource, and name. What they read is visible to users: an attribute that is secret must not
// be read.
type Outputs struct {
	// ProviderID that the Node will have, byte for byte, and "" while it is not known.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	ProviderID string `json:"providerID"`
	// Addresses is a list of {type, address} that the cloud assigned. Serving certificates of
	// kubelets are approved for them.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Addresses string `json:"addresses,omitempty"`
	// Running is true when the VM runs. The default is that the VM has been created.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Running string `json:"running,omitempty"`
	// Failed is why the VM will never run, and "" otherwise.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Failed string `json:"failed,omitempty"`
	// ExternalName is the ID that the provider imports the resource by. The default is state.id.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	ExternalName string `json:"externalName,omitempty"`
}

// A VirtualMachineType is a type of Terraform resource that VirtualMachines may have.
type VirtualMachineType struct {
	// Type of the Terraform resource, like hcloud_server.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Type string `json:"type"`
	// Arguments that Drover sets.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Arguments []ArgumentBinding `json:"arguments"`
	// UserData says where the user data go.
	UserData UserDataBinding `json:"userData"`
	// Outputs say how a VM is read.
	Outputs Outputs `json:"outputs"`
}

// ProviderConfigSpec says which Terraform provider makes VMs, with which configuration, and which
// of its resources are VMs.
type ProviderConfigSpec struct {
	// Provider that is started.
	Provider TerraformProvider `json:"provider"`

	// Configuration of the provider: its arguments that are not secret. A VM that is not
	// found counts as lost only if the configuration is the one that the VM was created with.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Configuration *extv1.JSON `json:"configuration,omitempty"`

	// Credentials of the provider. The default is that it needs none.
	// +optional
	Credentials *Credentials `json:"credentials,omitempty"`

	// AllowedNamespaces are patterns of the namespaces whose VirtualMachines may use this
	// configuration: each * stands for any number of characters. The default is all.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	AllowedNamespaces []string `json:"allowedNamespaces,omitempty"`

	// VirtualMachines are the types of resources that may be created. No others are.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	VirtualMachines []VirtualMachineType `json:"virtualMachines"`
}

// ProviderConfigStatus is what crossplane-runtime asks of every configuration.
type ProviderConfigStatus struct {
	xpv2.ProviderConfigStatus `json:",inline"`
}

// A ClusterProviderConfig says which Terraform provider makes VMs. Whoever writes one runs code
// with the rights of provider-terraform, so that only platform operators may. There is no
// ProviderConfig of a namespace for this reason.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories={crossplane,providerconfig,terraform}
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.spec.provider.source`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.provider.version`
// +kubebuilder:printcolumn:name="Secret",type=string,JSONPath=`.spec.credentials.secretRef.name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterProviderConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ProviderConfigSpec   `json:"spec"`
	Status ProviderConfigStatus `json:"status,omitempty"`
}

// A ClusterProviderConfigList is a list of ClusterProviderConfigs.
//
// +kubebuilder:object:root=true
type ClusterProviderConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterProviderConfig `json:"items"`
}
