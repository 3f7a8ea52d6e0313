package v1alpha1

import (
	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A CredentialsSource says where the credentials of a target cluster come from.
// +kubebuilder:validation:Enum=Secret;InjectedIdentity
type CredentialsSource string

// Sources of credentials.
const (
	// CredentialsSecret is a kubeconfig in a Secret of the control cluster.
	CredentialsSecret CredentialsSource = "Secret"
	// CredentialsInjectedIdentity is the provider's own identity: the target
	// cluster is the control cluster.
	CredentialsInjectedIdentity CredentialsSource = "InjectedIdentity"
)

// A SecretKeySelector selects a key of a Secret.
type SecretKeySelector struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Namespace of the Secret. A ProviderConfig reads only its own namespace, and
	// needs none.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Key in the Secret.
	// +kubebuilder:default=kubeconfig
	Key string `json:"key,omitempty"`
}

// Credentials of a target cluster.
//
// +kubebuilder:validation:XValidation:rule="(self.source == 'Secret') == has(self.secretRef)",message="secretRef is needed for source Secret, and only for it"
type Credentials struct {
	// Source of the credentials.
	Source CredentialsSource `json:"source"`
	// SecretRef names the kubeconfig.
	// +optional
	SecretRef *SecretKeySelector `json:"secretRef,omitempty"`
}

// APIServer is how Machines reach the target cluster's API server, where that
// differs from what the cluster says of itself in kube-public/cluster-info.
type APIServer struct {
	// Endpoint is the URL that kubelets use.
	// +optional
	// +kubebuilder:validation:Pattern=`^https://`
	Endpoint string `json:"endpoint,omitempty"`
	// CABundle is the PEM bundle that kubelets check the endpoint with.
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`
}

// A CertificatePolicy says what is done with the certificates that the kubelets of
// Machines ask for.
// +kubebuilder:validation:Enum=Approve;Ignore
type CertificatePolicy string

// Policies for certificates.
const (
	// CertificatesApprove approves those of a Machine's Node that hold nothing but
	// its own, and denies others that it asks for.
	CertificatesApprove CertificatePolicy = "Approve"
	// CertificatesIgnore leaves all to others.
	CertificatesIgnore CertificatePolicy = "Ignore"
)

// Certificates that the kubelets of Machines ask for in the target cluster. Requests
// that are not about a Machine of Drover are always left to others.
type Certificates struct {
	// Serving certificates (signer kubernetes.io/kubelet-serving), for the name of the
	// Node and the addresses of its VM. Nothing in Kubernetes approves these; without
	// one, a kubelet that Drover set up shows no logs.
	// +kubebuilder:default=Approve
	Serving CertificatePolicy `json:"serving,omitempty"`
	// Client certificates (signer kubernetes.io/kube-apiserver-client-kubelet), by
	// which a Machine joins as the Node that its join token was made for, and no other.
	// A cluster that kubeadm made approves them itself.
	// +kubebuilder:default=Ignore
	Client CertificatePolicy `json:"client,omitempty"`
}

// ProviderConfigSpec says how to reach a target cluster.
type ProviderConfigSpec struct {
	// Credentials that Drover uses in the target cluster.
	Credentials Credentials `json:"credentials"`
	// APIServer as Machines see it.
	// +optional
	APIServer *APIServer `json:"apiServer,omitempty"`
	// Certificates of kubelets.
	// +kubebuilder:default={}
	Certificates Certificates `json:"certificates,omitempty,omitzero"`
}

// Conditions of a configuration.
const (
	// TypeReachable tells whether the API server of the target cluster answers, and
	// takes the credentials.
	TypeReachable xpv1.ConditionType = "Reachable"
	// TypeAuthorized tells whether the credentials give all rights that Drover needs
	// there, and names those that they do not.
	TypeAuthorized xpv1.ConditionType = "Authorized"
)

// ProviderConfigStatus is what is known of a target cluster.
type ProviderConfigStatus struct {
	xpv1.ConditionedStatus `json:",inline"`

	// Version of the target cluster's API server.
	// +optional
	Version string `json:"version,omitempty"`

	// Outage is the last time that a cluster which was reachable was not.
	// +optional
	Outage *Outage `json:"outage,omitempty"`
}

// An Outage is a time in which a target cluster was not reachable.
type Outage struct {
	// Since when.
	Since metav1.Time `json:"since"`
	// Until when. It is absent while it lasts.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
}

// A ProviderConfig says how to reach a target cluster. It serves its namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,providerconfig,drover}
// +kubebuilder:printcolumn:name="Reachable",type=string,JSONPath=`.status.conditions[?(@.type=='Reachable')].status`
// +kubebuilder:printcolumn:name="Authorized",type=string,JSONPath=`.status.conditions[?(@.type=='Authorized')].status`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
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

// A ClusterProviderConfig says how to reach a target cluster. It serves all
// namespaces.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories={crossplane,providerconfig,drover}
// +kubebuilder:validation:XValidation:rule="!has(self.spec.credentials.secretRef) || has(self.spec.credentials.secretRef.__namespace__)",message="spec.credentials.secretRef.namespace is required: a ClusterProviderConfig has no namespace of its own"
// +kubebuilder:printcolumn:name="Reachable",type=string,JSONPath=`.status.conditions[?(@.type=='Reachable')].status`
// +kubebuilder:printcolumn:name="Authorized",type=string,JSONPath=`.status.conditions[?(@.type=='Authorized')].status`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
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
