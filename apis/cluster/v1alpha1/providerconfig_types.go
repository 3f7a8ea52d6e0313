package v1alpha1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
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
	// cluster is the control cluster. Only a ClusterProviderConfig that the flag
	// --injected-identity-for of provider-drover names may have it.
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

// A ClientCertificatePolicy says what is done with the client certificates that the
// kubelets of Machines ask for.
// +kubebuilder:validation:Enum=Auto;Approve;Ignore
type ClientCertificatePolicy string

// Policies for client certificates.
const (
	// ClientCertificatesAuto is ClientCertificatesApprove where the credentials have the
	// rights to approve, and ClientCertificatesIgnore where they do not.
	ClientCertificatesAuto ClientCertificatePolicy = "Auto"
	// ClientCertificatesApprove approves those by which a Machine becomes its own Node,
	// and denies others that its join token or its Node asks for.
	ClientCertificatesApprove ClientCertificatePolicy = "Approve"
	// ClientCertificatesIgnore leaves all to others.
	ClientCertificatesIgnore ClientCertificatePolicy = "Ignore"
)

// A CIDR is a range of IP addresses, such as 10.20.0.0/16 or 2001:db8::/64.
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="must be a range of IP addresses such as 10.20.0.0/16 or 2001:db8::/64"
type CIDR string

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
	// Auto approves them where the credentials have the rights of
	// rbac-target-client-certificates.yaml. status.clientCertificates reports the result.
	// A cluster that kubeadm made approves them itself, for any name of a Node.
	// +kubebuilder:default=Auto
	Client ClientCertificatePolicy `json:"client,omitempty"`
	// GuestCIDRs are the networks of VMs at clouds that do not attest the addresses of
	// their VMs, such as vSphere, where the guest reports them. A serving certificate is
	// approved for an address that only the guest reports if one of these networks has
	// it. Each VM there can get a certificate for each address of these networks that
	// is no other Machine's, so name networks that hold nothing but worker VMs.
	// +kubebuilder:validation:MaxItems=32
	// +listType=set
	// +optional
	GuestCIDRs []CIDR `json:"guestCIDRs,omitempty"`
	// ServiceCIDRs are the networks of the target cluster's Services, and others for whose
	// addresses no serving certificate must ever be approved. Drover knows the addresses
	// and names that the certificate of the API server has, and those of spec.apiServer and
	// of the kubeconfig, without this field.
	// +kubebuilder:validation:MaxItems=32
	// +listType=set
	// +optional
	ServiceCIDRs []CIDR `json:"serviceCIDRs,omitempty"`
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

// A NamespacePattern matches names of namespaces: each * stands for any number of characters.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[-a-z0-9*]+$`
type NamespacePattern string

// A KeyPattern matches keys of labels or taints: each * stands for any number of characters.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=317
// +kubebuilder:validation:Pattern=`^[-_./A-Za-z0-9*]+$`
type KeyPattern string

// ClusterProviderConfigSpec says how to reach a target cluster, and what Machines may do there.
type ClusterProviderConfigSpec struct {
	ProviderConfigSpec `json:",inline"`

	// AllowedNamespaces are those whose Machines may use the configuration, such as team-a,
	// team-* or *. Without any, none may.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1024
	AllowedNamespaces []NamespacePattern `json:"allowedNamespaces,omitempty"`

	// AllowedNodeLabels are the keys of labels that Machines may put on their Nodes. The
	// default is each key outside of kubernetes.io and k8s.io, node-role.kubernetes.io/* but
	// control-plane, master and etcd, and what a kubelet may set on its own Node. A list
	// replaces the default; the entry default adds it. An empty list allows none. Only a
	// pattern with the domain node-restriction.kubernetes.io matches keys of that domain.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	AllowedNodeLabels []KeyPattern `json:"allowedNodeLabels,omitempty"`

	// AllowedNodeTaints are the keys of taints, likewise. Of what a kubelet may set, the
	// default has the keys of the topology and of the instance type.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	AllowedNodeTaints []KeyPattern `json:"allowedNodeTaints,omitempty"`
}

// ClientCertificatesStatus reports what is done with the client certificates of kubelets.
type ClientCertificatesStatus struct {
	// Policy in force: Approve or Ignore.
	Policy ClientCertificatePolicy `json:"policy"`
	// Message reports why.
	// +optional
	Message string `json:"message,omitempty"`
}

// ProviderConfigStatus is what is known of a target cluster.
type ProviderConfigStatus struct {
	xpv2.ConditionedStatus `json:",inline"`

	// Version of the target cluster's API server.
	// +optional
	Version string `json:"version,omitempty"`

	// ClientCertificates reports what is done with the client certificates of kubelets.
	// +optional
	ClientCertificates *ClientCertificatesStatus `json:"clientCertificates,omitempty"`

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
// +kubebuilder:validation:XValidation:rule="self.spec.credentials.source != 'InjectedIdentity'",fieldPath=".spec.credentials.source",message="InjectedIdentity is refused in a ProviderConfig, since it makes the namespace's Machines Nodes of the control cluster: must be Secret"
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

// A ClusterProviderConfig says how to reach a target cluster. It serves the namespaces that it
// allows.
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

	Spec   ClusterProviderConfigSpec `json:"spec"`
	Status ProviderConfigStatus      `json:"status,omitempty"`
}

// A ClusterProviderConfigList is a list of ClusterProviderConfigs.
//
// +kubebuilder:object:root=true
type ClusterProviderConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterProviderConfig `json:"items"`
}
