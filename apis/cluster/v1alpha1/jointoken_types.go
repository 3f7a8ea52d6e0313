package v1alpha1

import (
	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
	xpv2 "github.com/crossplane/crossplane-runtime/v2/apis/common/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Keys of a JoinToken's connection details.
const (
	// ConnectionToken is the bootstrap token, as <id>.<secret>.
	ConnectionToken = "token"
	// ConnectionServer is the URL of the target cluster's API server.
	ConnectionServer = "server"
	// ConnectionCA is the PEM bundle that the API server's certificate is checked with.
	ConnectionCA = "ca.crt"
)

// JoinTokenParameters say what token is made.
type JoinTokenParameters struct {
	// TTL of the token: the target cluster forgets it so long after its creation,
	// whether or not the JoinToken is deleted.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:default="1h"
	TTL metav1.Duration `json:"ttl,omitempty,omitzero"`

	// Description of the token, for those who find it in the target cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Description string `json:"description,omitempty"`

	// Groups that the token authenticates as, beside system:bootstrappers.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:Pattern=`^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$`
	Groups []string `json:"groups,omitempty"`
}

// JoinTokenObservation is what is known of the token.
type JoinTokenObservation struct {
	// TokenID is the public part of the token.
	// +optional
	TokenID string `json:"tokenID,omitempty"`

	// ExpirationTime of the token.
	// +optional
	ExpirationTime *metav1.Time `json:"expirationTime,omitempty"`

	// ConfigUID is the UID of the configuration that it was made through.
	// +optional
	ConfigUID string `json:"configUID,omitempty"`
}

// JoinTokenSpec is what a JoinToken shall be.
type JoinTokenSpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	// +kubebuilder:default={}
	ForProvider JoinTokenParameters `json:"forProvider,omitempty,omitzero"`
}

// JoinTokenStatus is what is known of a JoinToken.
type JoinTokenStatus struct {
	xpv1.ResourceStatus `json:",inline"`

	// +optional
	AtProvider JoinTokenObservation `json:"atProvider,omitempty"`
}

// A JoinToken is a bootstrap token in the target cluster. Its connection details
// are all that a kubelet needs to join: token, server and CA.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=jt,categories={crossplane,managed,drover}
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=='Synced')].status`
// +kubebuilder:printcolumn:name="Token-ID",type=string,JSONPath=`.status.atProvider.tokenID`
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.status.atProvider.expirationTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type JoinToken struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   JoinTokenSpec   `json:"spec"`
	Status JoinTokenStatus `json:"status,omitempty"`
}

// A JoinTokenList is a list of JoinTokens.
//
// +kubebuilder:object:root=true
type JoinTokenList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []JoinToken `json:"items"`
}
