package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/internal/stored"
)

// RolloutTurnSpec is the rollout that asks for its turn.
type RolloutTurnSpec struct {
	// MachineDeployment whose rollout it is.
	// +kubebuilder:validation:MaxLength=253
	MachineDeployment string `json:"machineDeployment"`

	// Template that is to be rolled out, by a hash.
	// +kubebuilder:validation:MaxLength=63
	Template string `json:"template"`
}

// RolloutTurnStatus is the answer of all RolloutPolicies.
type RolloutTurnStatus struct {
	// Template that the status is about. The answer counts for no other one.
	// +optional
	Template string `json:"template,omitempty"`
	// RequestedTime is when provider-drover saw the template first.
	// +optional
	RequestedTime *metav1.Time `json:"requestedTime,omitempty"`
	// AdmittedTime is when all policies let the rollout begin. It is withdrawn when a rollout of an earlier wave fails.
	// +optional
	AdmittedTime *metav1.Time `json:"admittedTime,omitempty"`
	// Held has the policy and the wave that the rollout waits for. It is absent if the rollout is admitted.
	// +optional
	Held *RolloutHold `json:"held,omitempty"`
}

// A RolloutTurn asks the RolloutPolicies whether the rollout of a MachineDeployment may begin. The MachineDeployment
// composes it during a rollout, while there are RolloutPolicies, and provider-drover writes the answer. It is not meant to
// be written by hand.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories=drover
// +kubebuilder:printcolumn:name="Deployment",type=string,JSONPath=`.spec.machineDeployment`
// +kubebuilder:printcolumn:name="Admitted",type=date,JSONPath=`.status.admittedTime`
// +kubebuilder:printcolumn:name="Held",type=string,JSONPath=`.status.held.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type RolloutTurn struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	stored.Undecoded  `json:"-"`

	Spec   RolloutTurnSpec   `json:"spec"`
	Status RolloutTurnStatus `json:"status,omitempty"`
}

// A RolloutTurnList is a list of RolloutTurns.
//
// +kubebuilder:object:root=true
type RolloutTurnList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RolloutTurn `json:"items"`
}
