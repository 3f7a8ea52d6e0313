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
	// ConnectionUserData is the user data, if the JoinToken has any.
	ConnectionUserData = "userData"
)

// What a JoinToken's user data has in place of what only its controller knows.
const (
	// PlaceholderToken stands for the bootstrap token.
	PlaceholderToken = "$(token)"
	// PlaceholderServer stands for the URL of the API server.
	PlaceholderServer = "$(server)"
	// PlaceholderCA stands for the PEM bundle, encoded as base64 in one line.
	PlaceholderCA = "$(ca.crt|base64)"
	// PlaceholderUID stands for the UID of the JoinToken, PlaceholderConfigUID for that
	// of the configuration that it was made through.
	PlaceholderUID       = "$(joinToken.uid)"
	PlaceholderConfigUID = "$(config.uid)"
)

// ReasonRevoked is the reason of a JoinToken's condition Ready once its token is gone.
const ReasonRevoked xpv1.ConditionReason = "Revoked"

// JoinTokenParameters say what token is made.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.revoked) || !oldSelf.revoked || has(self.revoked) && self.revoked",message="revoked: a token that was revoked is never made again"
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

	// UserData is published among the connection details: what a VM is told at its
	// first boot. What only the controller knows is filled in: $(token), $(server),
	// $(ca.crt|base64), $(joinToken.uid) and $(config.uid).
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	UserData string `json:"userData,omitempty"`

	// UserDataEncoding is that of the published user data.
	// +optional
	// +kubebuilder:default=Plain
	UserDataEncoding UserDataEncoding `json:"userDataEncoding,omitempty"`

	// Revoked JoinTokens have no token any more: it is deleted in the target cluster,
	// and never made again. What was published stays, for a VM that reads its user
	// data whenever it starts.
	// +optional
	Revoked bool `json:"revoked,omitempty"`
}

// A UserDataEncoding says how user data is published.
// +kubebuilder:validation:Enum=Plain;Base64
type UserDataEncoding string

// Encodings of user data.
const (
	// UserDataPlain is no encoding.
	UserDataPlain UserDataEncoding = "Plain"
	// UserDataBase64 is that of RFC 4648, with padding and without line breaks.
	UserDataBase64 UserDataEncoding = "Base64"
)

// JoinTokenObservation is what is known of the token.
type JoinTokenObservation struct {
	// TokenID is the public part of the token.
	// +optional
	TokenID string `json:"tokenID,omitempty"`

	// ExpirationTime of the token, none once it is revoked.
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
// are all that a kubelet needs to join: token, server and CA, and the user data of
// its VM if it is given any.
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
