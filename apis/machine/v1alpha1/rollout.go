package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// An Approval selects who lets a rollout continue after a step.
// +kubebuilder:validation:Enum=Manual
type Approval string

// ApprovalManual means that a user approves a step, by kubectl drover rollout approve.
const ApprovalManual Approval = "Manual"

// A RolloutStep is a part of a rollout, and the conditions under which the next part begins.
//
// +kubebuilder:validation:XValidation:rule="has(self.soak) || has(self.approval) || has(self.analyses)",message="must have soak, approval or analyses: otherwise the step holds nothing"
type RolloutStep struct {
	// Updated is how many Machines of the new template there may be in the step: a number, or a
	// percentage of replicas, rounded up. A step whose number reaches replicas holds nothing.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 10000 : self.matches('^(100|[1-9][0-9]?)%$')",message="must be a number from 1 to 10000, or a percentage from 1% to 100%"
	Updated intstr.IntOrString `json:"updated"`

	// Soak is for how long all Machines of the step must be available before the next step. The time
	// starts again when fewer of them are available.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	Soak *metav1.Duration `json:"soak,omitempty"`

	// Approval is Manual if a user must approve the step before the next one.
	// +optional
	Approval Approval `json:"approval,omitempty"`

	// Analyses are names of RolloutAnalyses in the namespace. All of them must pass before the next step. They begin
	// when all Machines of the step are available, at the same time as soak.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Analyses []string `json:"analyses,omitempty"`
}

// A TimeWindow is a time that comes again and again.
type TimeWindow struct {
	// Schedule of the times at which it begins, in the five fields of cron: minute, hour, day of
	// month, month, day of week.
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z*/,?-]+( +[0-9A-Za-z*/,?-]+){4}$`
	Schedule string `json:"schedule"`

	// Duration of it, at most 8760h.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	Duration metav1.Duration `json:"duration"`

	// TimeZone of the schedule, by its name in the IANA database, like Europe/Berlin. The default is UTC.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`
}

// A FailurePolicy selects the effect of a rollout that fails.
// +kubebuilder:validation:Enum=Hold;Rollback
type FailurePolicy string

// Policies of failed rollouts.
const (
	// FailureHold reports the failure. The rollout goes no further than its step and its bounds.
	FailureHold FailurePolicy = "Hold"
	// FailureRollback rejects the template, and goes back to the last revision that was complete.
	FailureRollback FailurePolicy = "Rollback"
)

// RejectionAborted is the reason of a rejection by a user. The other ones are ReasonProgressDeadlineExceeded and
// ReasonAnalysisFailed.
const RejectionAborted = "Aborted"

// RolloutStatus is the state of a rollout that has steps, is held, or was rejected.
type RolloutStatus struct {
	// ID of the rollout: its revision and a hash of the template. Approvals name it.
	// +optional
	ID string `json:"id,omitempty"`
	// Step that the rollout is at, from 1. It is one more than there are steps after the last one.
	// +optional
	Step int32 `json:"step,omitempty"`
	// ReachedTime is the time since which all Machines of the step are available.
	// +optional
	ReachedTime *metav1.Time `json:"reachedTime,omitempty"`
	// Held has the cause for which the rollout does not continue now.
	// +optional
	Held *RolloutHold `json:"held,omitempty"`
	// Rejected is the template in the spec that is not rolled out any more.
	// +optional
	Rejected *RejectedTemplate `json:"rejected,omitempty"`
}

// A RolloutHold is the cause for which a rollout does not continue.
type RolloutHold struct {
	// Reason of the condition Progressing.
	Reason string `json:"reason"`
	// Message for users.
	Message string `json:"message"`
	// Until is the time at which it ends by itself, absent if it does not.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
}

// A RejectedTemplate is a template that failed, or whose rollout a user aborted. As long as it is
// in the spec, the last revision that was complete is rolled out instead.
type RejectedTemplate struct {
	// ID of its rollout. The annotation machine.drover.dev/rollout-retry with this value lets the
	// template be rolled out again.
	ID string `json:"id"`
	// Hash of the template in the spec.
	Hash string `json:"hash"`
	// Revision that was rejected.
	Revision int64 `json:"revision"`
	// Reason is Aborted, ProgressDeadlineExceeded or AnalysisFailed.
	Reason string `json:"reason"`
	// Message has the cause and the numbers.
	Message string `json:"message"`
	// Time of the rejection.
	Time metav1.Time `json:"time"`
}
