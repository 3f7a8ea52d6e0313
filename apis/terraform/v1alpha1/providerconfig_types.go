package v1alpha1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/internal/stored"
)

// A TerraformProvider is one version of a Terraform provider.
type TerraformProvider struct {
	// Source such as hetznercloud/hcloud, or example.org/hetznercloud/hcloud with the host of its
	// registry. The default host is registry.terraform.io. The source is the path in the plugin
	// directory; nothing is downloaded.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9][a-z0-9.-]*(:[0-9]+)?/)?[a-zA-Z0-9][a-zA-Z0-9_-]*/[a-zA-Z0-9][a-zA-Z0-9_-]*$`
	Source string `json:"source"`

	// Version such as 1.68.0. A VM that was created with another version is kept: the provider
	// upgrades its state.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?$`
	Version string `json:"version"`

	// SHA256 has the digests of the provider's program in hexadecimal, one per platform. A program
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
	// Key in the Secret. Its value is a JSON object of arguments of the provider, such as {"token":
	// "..."}.
	// +kubebuilder:default=credentials
	Key string `json:"key,omitempty"`
}

// Credentials of the Terraform provider.
type Credentials struct {
	// SecretRef names the Secret with the secret arguments of the provider. They replace arguments
	// of the same name in configuration.
	SecretRef SecretKeySelector `json:"secretRef"`
}

// An ArgumentBinding sets one argument of the Terraform resource.
type ArgumentBinding struct {
	// Argument to set, such as labels, or metadata[team] for one key of a map.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Argument string `json:"argument"`
	// Value is a CEL expression. It may use name, tags and failureDomain of the VM, and arguments
	// of its class. If it is null or an absent optional value, the argument keeps the value of the
	// class. A map is merged over the map of the class.
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

// A UserDataBinding is the argument that has the user data.
type UserDataBinding struct {
	// Argument that has the user data, such as user_data or metadata[user-data].
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Argument string `json:"argument"`
	// Encoding that the provider expects.
	// +kubebuilder:default=Plain
	Encoding Encoding `json:"encoding,omitempty"`
}

// Outputs are CEL expressions that read a VM. They may use state, the attributes of the Terraform
// resource, and name. Users can see the results, so no expression may read a secret attribute.
type Outputs struct {
	// ProviderID that the Node will have, byte for byte, and "" while it is unknown.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	ProviderID string `json:"providerID"`
	// Addresses is a list of {type, address} that the cloud assigned. The serving certificate of
	// the kubelet is approved for them.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Addresses string `json:"addresses,omitempty"`
	// Running is true if the VM runs. By default a VM runs once it has been created.
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
	// UserData is how the user data are passed to the resource.
	UserData UserDataBinding `json:"userData"`
	// Outputs are how the state of a VM is read.
	Outputs Outputs `json:"outputs"`
}

// ProviderConfigSpec selects a Terraform provider that creates VMs, its configuration, and the
// resources of it that are VMs.
type ProviderConfigSpec struct {
	// Provider that creates the VMs.
	Provider TerraformProvider `json:"provider"`

	// Configuration of the provider: its arguments that are not secret. If a VM is not found, it
	// counts as lost only if the configuration equals the one that the VM was created with.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Configuration *extv1.JSON `json:"configuration,omitempty"`

	// Credentials of the provider. By default it gets none.
	// +optional
	Credentials *Credentials `json:"credentials,omitempty"`

	// AllowedNamespaces are patterns of the namespaces whose VirtualMachines may use this
	// configuration: each * stands for any number of characters. The default is all.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	AllowedNamespaces []string `json:"allowedNamespaces,omitempty"`

	// VirtualMachines are the types of resources that may be created.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	VirtualMachines []VirtualMachineType `json:"virtualMachines"`
}

// ProviderConfigStatus is the status that crossplane-runtime requires of every configuration.
type ProviderConfigStatus struct {
	xpv2.ProviderConfigStatus `json:",inline"`
}

// A ClusterProviderConfig configures a Terraform provider that creates VMs. The author of one can
// run code with the rights of provider-terraform, so only platform operators may write it. For the
// same reason there is no ProviderConfig for a namespace.
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
	stored.Undecoded  `json:"-"`

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
