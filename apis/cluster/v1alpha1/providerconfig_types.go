package v1alpha1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/internal/stored"
)

// A CredentialsSource is the source of the credentials of a target cluster.
// +kubebuilder:validation:Enum=Secret;InjectedIdentity
type CredentialsSource string

// Sources of credentials.
const (
	// CredentialsSecret is a kubeconfig in a Secret of the control cluster.
	CredentialsSecret CredentialsSource = "Secret"
	// CredentialsInjectedIdentity is the provider's own identity: the target cluster is the control
	// cluster. Only a ClusterProviderConfig that is named by the flag --injected-identity-for of
	// provider-drover may have this source.
	CredentialsInjectedIdentity CredentialsSource = "InjectedIdentity"
)

// A SecretKeySelector selects a key of a Secret.
type SecretKeySelector struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`
	// Namespace of the Secret. A ClusterProviderConfig requires it. A ProviderConfig ignores it and
	// reads the Secret in its own namespace.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Key in the Secret.
	// +kubebuilder:default=kubeconfig
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key,omitempty"`
}

// Credentials of a target cluster.
//
// +kubebuilder:validation:XValidation:rule="(self.source == 'Secret') == has(self.secretRef)",message="secretRef is needed for source Secret, and only for it"
type Credentials struct {
	// Source of the credentials.
	Source CredentialsSource `json:"source"`
	// SecretRef names the Secret with the kubeconfig. It is required for source Secret, and only
	// allowed for it.
	// +optional
	SecretRef *SecretKeySelector `json:"secretRef,omitempty"`
}

// APIServer is how Machines reach the target cluster's API server, if this differs from the address
// in the ConfigMap kube-public/cluster-info of the cluster.
type APIServer struct {
	// Endpoint is the URL that kubelets use. It must begin with https://.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^https://[A-Za-z0-9.:\[\]-]+(/[A-Za-z0-9._~/-]*)?$`
	Endpoint string `json:"endpoint,omitempty"`
	// CABundle is the PEM bundle that kubelets verify the certificate of the endpoint with.
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`
}

// A CertificatePolicy decides about the certificates that the kubelets of Machines request.
// +kubebuilder:validation:Enum=Approve;Ignore
type CertificatePolicy string

// Policies for certificates.
const (
	// CertificatesApprove approves requests of a Machine's Node that have only its own names and
	// addresses, and denies its other requests.
	CertificatesApprove CertificatePolicy = "Approve"
	// CertificatesIgnore leaves all requests to other approvers.
	CertificatesIgnore CertificatePolicy = "Ignore"
)

// A ClientCertificatePolicy decides about the client certificates that the kubelets of Machines
// request.
// +kubebuilder:validation:Enum=Auto;Approve;Ignore
type ClientCertificatePolicy string

// Policies for client certificates.
const (
	// ClientCertificatesAuto is ClientCertificatesApprove where the credentials have the
	// rights to approve, and ClientCertificatesIgnore where they do not.
	ClientCertificatesAuto ClientCertificatePolicy = "Auto"
	// ClientCertificatesApprove approves requests by which a Machine becomes its own Node, and
	// denies other requests of its join token or its Node.
	ClientCertificatesApprove ClientCertificatePolicy = "Approve"
	// ClientCertificatesIgnore leaves all requests to other approvers.
	ClientCertificatesIgnore ClientCertificatePolicy = "Ignore"
)

// A CIDR is a range of IP addresses, such as 10.20.0.0/16 or 2001:db8::/64.
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="must be a range of IP addresses such as 10.20.0.0/16 or 2001:db8::/64"
type CIDR string

// Certificates that the kubelets of Machines request in the target cluster. Drover ignores requests
// that are not about one of its Machines, so that other approvers decide about them.
type Certificates struct {
	// Serving certificates (signer kubernetes.io/kubelet-serving), for the name of the Node and the
	// addresses of its VM. Nothing in Kubernetes approves these. Without one, a kubelet that
	// Drover set up cannot serve logs.
	// +kubebuilder:default=Approve
	Serving CertificatePolicy `json:"serving,omitempty"`
	// Client certificates (signer kubernetes.io/kube-apiserver-client-kubelet), by which a Machine
	// joins as the Node that its join token was minted for, and as no other. Auto approves them if
	// the credentials have the rights of rbac-target-client-certificates.yaml, and ignores them if
	// not. status.clientCertificates reports the result. A cluster that was set up by kubeadm
	// approves them itself, for any name of a Node.
	// +kubebuilder:default=Auto
	Client ClientCertificatePolicy `json:"client,omitempty"`
	// GuestCIDRs are the networks of VMs at clouds that do not attest the addresses of their VMs,
	// such as vSphere, where the guest reports them. If only the guest reports an address, a
	// serving certificate is approved for it only if one of these networks contains it. Each VM
	// there can get a certificate for each address of these networks that no other Machine has.
	// Therefore name only networks that contain nothing but worker VMs.
	// +kubebuilder:validation:MaxItems=32
	// +listType=set
	// +optional
	GuestCIDRs []CIDR `json:"guestCIDRs,omitempty"`
	// ServiceCIDRs are the networks of the target cluster's Services, and any other networks for
	// whose addresses no serving certificate must ever be approved. Without this field, Drover
	// already knows the addresses and names in the certificate of the API server, in spec.apiServer
	// and in the kubeconfig.
	// +kubebuilder:validation:MaxItems=32
	// +listType=set
	// +optional
	ServiceCIDRs []CIDR `json:"serviceCIDRs,omitempty"`
}

// ProviderConfigSpec is how to reach a target cluster.
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

// ClusterProviderConfigSpec is how to reach a target cluster, and which rights Machines have there.
type ClusterProviderConfigSpec struct {
	ProviderConfigSpec `json:",inline"`

	// AllowedNamespaces are patterns of the namespaces whose Machines may use the configuration,
	// such as team-a, team-* or *. The default is none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1024
	AllowedNamespaces []NamespacePattern `json:"allowedNamespaces,omitempty"`

	// AllowedNodeLabels are patterns of the label keys that Machines may put on their Nodes. The
	// default is each key outside of kubernetes.io and k8s.io, node-role.kubernetes.io/* except
	// control-plane, master and etcd, and the keys that a kubelet may set on its own Node. A list
	// replaces the default; the entry "default" adds it. An empty list allows none. Only a pattern
	// with the domain node-restriction.kubernetes.io matches keys of that domain.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	AllowedNodeLabels []KeyPattern `json:"allowedNodeLabels,omitempty"`

	// AllowedNodeTaints are patterns of the taint keys that Machines may put on their Nodes, with
	// the rules of allowedNodeLabels. Of the keys that a kubelet may set, the default has only the
	// keys of the topology and of the instance type.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	AllowedNodeTaints []KeyPattern `json:"allowedNodeTaints,omitempty"`
}

// ClientCertificatesStatus reports how requests of kubelets for client certificates are decided.
type ClientCertificatesStatus struct {
	// Policy in force: Approve or Ignore.
	Policy ClientCertificatePolicy `json:"policy"`
	// Message is why this policy is in force.
	// +optional
	Message string `json:"message,omitempty"`
}

// ProviderConfigStatus is the observed state of a target cluster.
type ProviderConfigStatus struct {
	xpv2.ConditionedStatus `json:",inline"`

	// Version of the target cluster's API server.
	// +optional
	Version string `json:"version,omitempty"`

	// ClientCertificates reports how requests of kubelets for client certificates are decided.
	// +optional
	ClientCertificates *ClientCertificatesStatus `json:"clientCertificates,omitempty"`

	// Outage is the last time in which the cluster could not be reached after it could be before.
	// +optional
	Outage *Outage `json:"outage,omitempty"`
}

// An Outage is a period in which a target cluster could not be reached.
type Outage struct {
	// Since is the start of the outage.
	Since metav1.Time `json:"since"`
	// Until is the end of the outage. It is absent while the outage lasts.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
}

// A ProviderConfig is how to reach a target cluster, for Machines of its own namespace.
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
	stored.Undecoded  `json:"-"`

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

// A ClusterProviderConfig is how to reach a target cluster, for Machines of the namespaces that it
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
	stored.Undecoded  `json:"-"`

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
