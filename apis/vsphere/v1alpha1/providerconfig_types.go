package v1alpha1

import (
	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A CredentialsSource says where the credentials of a vCenter come from.
// +kubebuilder:validation:Enum=Secret
type CredentialsSource string

// CredentialsSecret are credentials in a Secret.
const CredentialsSecret CredentialsSource = "Secret"

// A SecretKeySelector selects a key of a Secret.
type SecretKeySelector struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Namespace of the Secret. A ProviderConfig reads only its own namespace, and
	// needs none.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Key in the Secret. Its value is a JSON object, like
	// {"username": "drover@vsphere.local", "password": "..."}.
	// +kubebuilder:default=credentials
	Key string `json:"key,omitempty"`
}

// Credentials of a vCenter.
type Credentials struct {
	// Source of the credentials.
	// +kubebuilder:default=Secret
	Source CredentialsSource `json:"source,omitempty"`
	// SecretRef names the user and the password.
	SecretRef SecretKeySelector `json:"secretRef"`
}

// ProviderConfigSpec says how to reach a vCenter.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.insecureSkipVerify) && self.insecureSkipVerify && has(self.caBundle))",message="caBundle is not used with insecureSkipVerify: set one of them"
type ProviderConfigSpec struct {
	// Server is the vCenter: a host, like vcenter.example.org, with a port unless that
	// is 443. It may be a URL too; without a path, /sdk is meant.
	//
	// A VM is never looked for in another vCenter than the one that it was made in: to
	// move VMs to another, make a new configuration.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^(https?://)?[A-Za-z0-9.:\[\]-]+(/.*)?$`
	Server string `json:"server"`
	// CABundle is the PEM bundle that the vCenter's certificate is checked with. The
	// default are the roots that the provider's image trusts.
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`
	// InsecureSkipVerify does not check the vCenter's certificate: who is on the way to
	// it can read the password. Default false.
	// +optional
	InsecureSkipVerify *bool `json:"insecureSkipVerify,omitempty"`
	// Credentials of the vCenter.
	Credentials Credentials `json:"credentials"`
}

// ProviderConfigStatus is what crossplane-runtime asks of every configuration.
type ProviderConfigStatus struct {
	xpv1.ProviderConfigStatus `json:",inline"`
}

// A ProviderConfig says how to reach a vCenter. It serves its namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,providerconfig,vsphere}
// +kubebuilder:printcolumn:name="Server",type=string,JSONPath=`.spec.server`
// +kubebuilder:printcolumn:name="Secret",type=string,JSONPath=`.spec.credentials.secretRef.name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ProviderConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ProviderConfigSpec   `json:"spec"`
	Status ProviderConfigStatus `json:"status,omitempty"`
}

// A ProviderConfigList is a list of ProviderConfigs.
//
// +kubebuilder:object:root=true
type ProviderConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ProviderConfig `json:"items"`
}

// A ClusterProviderConfig says how to reach a vCenter. It serves all namespaces.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories={crossplane,providerconfig,vsphere}
// +kubebuilder:validation:XValidation:rule="has(self.spec.credentials.secretRef.__namespace__)",message="spec.credentials.secretRef.namespace is required: a ClusterProviderConfig has no namespace of its own"
// +kubebuilder:printcolumn:name="Server",type=string,JSONPath=`.spec.server`
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
