package v1alpha1

import (
	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A CredentialsSource says where the credentials of OpenStack come from.
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
	// {"applicationCredentialID": "...", "applicationCredentialSecret": "..."}, or with
	// username, password, userDomainName, projectName and projectDomainName.
	// +kubebuilder:default=credentials
	Key string `json:"key,omitempty"`
}

// Credentials of OpenStack.
type Credentials struct {
	// Source of the credentials.
	// +kubebuilder:default=Secret
	Source CredentialsSource `json:"source,omitempty"`
	// SecretRef names the credentials.
	SecretRef SecretKeySelector `json:"secretRef"`
}

// ProviderConfigSpec says how to reach a project of an OpenStack.
type ProviderConfigSpec struct {
	// AuthURL is the address of Keystone, the identity service, in version 3, like
	// https://keystone.example.org/v3.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^https?://[A-Za-z0-9.:\[\]/_-]+$`
	AuthURL string `json:"authURL"`
	// Region of the instances, if the cloud has several.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Region string `json:"region,omitempty"`
	// CABundle is the PEM bundle that the cloud's certificates are checked with. The
	// default are the roots that the provider's image trusts.
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`
	// Credentials of a project of an OpenStack.
	Credentials Credentials `json:"credentials"`
}

// ProviderConfigStatus is what crossplane-runtime asks of every configuration.
type ProviderConfigStatus struct {
	xpv1.ProviderConfigStatus `json:",inline"`
}

// A ProviderConfig says how to reach OpenStack. It serves its namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,providerconfig,openstack}
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

// A ClusterProviderConfig says how to reach OpenStack. It serves all
// namespaces.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories={crossplane,providerconfig,openstack}
// +kubebuilder:validation:XValidation:rule="has(self.spec.credentials.secretRef.__namespace__)",message="spec.credentials.secretRef.namespace is required: a ClusterProviderConfig has no namespace of its own"
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

// Kinds, as references name them.
const (
	ProviderConfigKind        = "ProviderConfig"
	ClusterProviderConfigKind = "ClusterProviderConfig"
)

func init() {
	SchemeBuilder.Register(
		&ProviderConfig{}, &ProviderConfigList{},
		&ClusterProviderConfig{}, &ClusterProviderConfigList{},
	)
}
