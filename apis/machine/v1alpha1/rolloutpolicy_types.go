package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/internal/stored"
)

// DefaultWaveDelay is how long a rollout waits at least before the policy lets it begin, if it is of a later wave.
const DefaultWaveDelay = time.Minute

// AfterDeadline selects the effect of a wave that is not complete at its deadline.
// +kubebuilder:validation:Enum=Hold;Continue
type AfterDeadline string

// Effects of a deadline.
const (
	// AfterDeadlineHold reports the wave. The rollouts of later waves stay held.
	AfterDeadlineHold AfterDeadline = "Hold"
	// AfterDeadlineContinue reports the wave, and lets the rollouts of later waves begin, unless a rollout of the wave failed.
	AfterDeadlineContinue AfterDeadline = "Continue"
)

// A RolloutWave selects MachineDeployments whose rollouts may be in progress at the same time. All selections must hold; a
// wave without any selects all MachineDeployments that no earlier wave selects.
type RolloutWave struct {
	// Name of the wave, for users.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// MatchLabels that the MachineDeployment must all have, or the NodePool that controls it.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=32
	MatchLabels map[string]LabelValue `json:"matchLabels,omitempty"`

	// Namespaces are patterns of the namespaces of the MachineDeployments, such as team-a, team-* or *.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	Namespaces []clusterv1alpha1.NamespacePattern `json:"namespaces,omitempty"`

	// Clusters are names of the ClusterProviderConfigs of the clusters that the Machines join.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Clusters []string `json:"clusters,omitempty"`

	// Soak is for how long the wave must be complete before the next one may begin. The time starts again with
	// each rollout in the wave, and when a MachineDeployment of it misses Machines.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('8760h')",message="must be at most 8760h"
	Soak *metav1.Duration `json:"soak,omitempty"`

	// Deadline after which a wave that is not complete is reported.
	// +kubebuilder:default="24h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('8760h')",message="must be from 1m to 8760h"
	Deadline metav1.Duration `json:"deadline,omitempty,omitzero"`

	// AfterDeadline is Continue if rollouts of later waves may begin although this one is not complete at its deadline.
	// +optional
	// +kubebuilder:default=Hold
	AfterDeadline AfterDeadline `json:"afterDeadline,omitempty"`
}

// RolloutPolicySpec is the order of rollouts.
type RolloutPolicySpec struct {
	// Waves in their order. A MachineDeployment is in the first wave that selects it.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	Waves []RolloutWave `json:"waves"`

	// Delay is how long a rollout of a later wave waits at least, so that changes of earlier waves at the same time are
	// seen before it begins.
	// +kubebuilder:default="1m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="must be from 1s to 24h"
	Delay metav1.Duration `json:"delay,omitempty,omitzero"`
}

// A WaveState is the state of a wave.
type WaveState string

// States of a wave. Later waves may begin after Empty, Complete and Passed, and after Overdue if the wave allows it.
const (
	// WaveEmpty means that the wave has no member.
	WaveEmpty WaveState = "Empty"
	// WaveComplete means that all members run the template of their spec, and have for the time of soak.
	WaveComplete WaveState = "Complete"
	// WaveSoaking means that the wave is complete, but not for the time of soak yet.
	WaveSoaking WaveState = "Soaking"
	// WaveInProgress means that members are not complete.
	WaveInProgress WaveState = "InProgress"
	// WaveOverdue means that members are not complete at the deadline.
	WaveOverdue WaveState = "Overdue"
	// WaveFailed means that the rollout of a member failed, or that its template was rejected.
	WaveFailed WaveState = "Failed"
	// WavePassed means that the wave is not complete, and that who may change the policy lets later waves begin.
	WavePassed WaveState = "Passed"
)

// A MemberState is the state of a MachineDeployment in a wave.
type MemberState string

// States of a member.
const (
	// MemberNew has never been complete, so that it has no rollout. It does not count.
	MemberNew MemberState = "New"
	// MemberComplete runs the template of its spec.
	MemberComplete MemberState = "Complete"
	// MemberRollingOut has Machines of another template, or is about to.
	MemberRollingOut MemberState = "RollingOut"
	// MemberUnavailable runs the template of its spec, but misses Machines.
	MemberUnavailable MemberState = "Unavailable"
	// MemberPaused is paused in the middle of a rollout, or before it.
	MemberPaused MemberState = "Paused"
	// MemberFailed has a rejected template, a failed analysis, or a rollout without progress.
	MemberFailed MemberState = "Failed"
)

// A WaveMember is a member that a wave waits for.
type WaveMember struct {
	Namespace string      `json:"namespace"`
	Name      string      `json:"name"`
	State     MemberState `json:"state"`
}

// WaveStatus is the state of a wave.
type WaveStatus struct {
	// Name of the wave.
	Name string `json:"name"`
	// ID of the wave and of the time since which it is not complete. The annotation machine.drover.dev/pass-wave with
	// this value lets later waves begin. It is absent while the wave is complete.
	// +optional
	ID string `json:"id,omitempty"`
	// State of the wave.
	State WaveState `json:"state"`
	// Members are how many MachineDeployments count, and Complete how many of them are complete.
	Members  int32 `json:"members"`
	Complete int32 `json:"complete"`
	// Since is the time since which the wave is complete, or is not.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// Until is the end of soak, or the deadline.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
	// WaitsFor has up to ten members that are not complete, failed ones first.
	// +optional
	// +listType=atomic
	WaitsFor []WaveMember `json:"waitsFor,omitempty"`
}

// RolloutPolicyStatus is the state of the waves.
type RolloutPolicyStatus struct {
	// ObservedGeneration is the generation of the spec that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Members are how many MachineDeployments the waves select. It is 0 if the policy has no effect.
	Members int32 `json:"members"`
	// Waves in the order of the spec.
	// +optional
	// +listType=map
	// +listMapKey=name
	Waves []WaveStatus `json:"waves,omitempty"`
}

// A RolloutPolicy orders the rollouts of MachineDeployments into waves: those of a wave may begin when the waves before it
// are complete and have soaked. A failed rollout in a wave holds those of all later ones. It starts no rollout.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=rp,categories=drover
// +kubebuilder:printcolumn:name="Members",type=integer,JSONPath=`.status.members`
// +kubebuilder:printcolumn:name="Waves",type=string,JSONPath=`.status.waves[*].name`
// +kubebuilder:printcolumn:name="States",type=string,JSONPath=`.status.waves[*].state`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="the name must have at most 63 characters"
type RolloutPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	stored.Undecoded  `json:"-"`

	Spec   RolloutPolicySpec   `json:"spec"`
	Status RolloutPolicyStatus `json:"status,omitempty"`
}

// A RolloutPolicyList is a list of RolloutPolicies.
//
// +kubebuilder:object:root=true
type RolloutPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RolloutPolicy `json:"items"`
}
