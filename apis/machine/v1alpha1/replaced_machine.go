package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// A ReplacementReason classifies why a Machine with a Node was deleted although its MachineDeployment or
// NodePool did not shrink. Later releases may add reasons.
type ReplacementReason string

// Reasons of replacements.
const (
	// ReplacedFailed means that the Machine was Failed, and that its set replaced it within
	// spec.remediation. failureReason has the reason of the failure.
	ReplacedFailed ReplacementReason = "Failed"
	// ReplacedRequested means that the annotation machine.drover.dev/replace of the Machine or of its
	// Node requested the replacement. requestedBy has the user, if that is known.
	ReplacedRequested ReplacementReason = "Requested"
	// ReplacedRollout means that a rollout replaced the Machine. revision has the number of the
	// revision that was rolled out.
	ReplacedRollout ReplacementReason = "Rollout"
	// ReplacedAged means that the Machine was due by spec.rollout.maxAge.
	ReplacedAged ReplacementReason = "Aged"
	// ReplacedDeleted means that a user or another controller deleted the Machine itself. Kubernetes
	// does not record who: the audit log of the API server has the user.
	ReplacedDeleted ReplacementReason = "Deleted"
	// ReplacedRebooted means that the Machine was not replaced but rebooted, and that its Node proved it. For a
	// reboot that the health of the Node caused, failureReason is NodeUnhealthy, and message has the condition.
	ReplacedRebooted ReplacementReason = "Rebooted"
	// ReplacedRebootFailed means that a reboot of the Machine failed. message has the cause.
	ReplacedRebootFailed ReplacementReason = "RebootFailed"
)

// IsReboot reports whether the Machine was not replaced but rebooted, or was to be.
func (r ReplacementReason) IsReboot() bool {
	return r == ReplacedRebooted || r == ReplacedRebootFailed
}

// MaxReplacedMachines is the number of replacements that a status lists.
const MaxReplacedMachines = 10

// A ReplacedMachine is a Machine with a Node that was deleted although the number of desired Machines
// was not lowered for it, or one that was rebooted. It stays in the status after its events expired.
type ReplacedMachine struct {
	// Time at which the set decided to delete the Machine, at which another client deleted it, or at which its
	// reboot was requested.
	Time metav1.Time `json:"time"`
	// Machine that was replaced or rebooted.
	// +kubebuilder:validation:MaxLength=253
	Machine string `json:"machine"`
	// Node of the Machine.
	// +optional
	// +kubebuilder:validation:MaxLength=260
	Node string `json:"node,omitempty"`
	// Reason of the replacement: Failed, Requested, Rollout, Aged or Deleted. Rebooted and RebootFailed are Machines that
	// were not replaced but rebooted. Later releases may add reasons.
	// +kubebuilder:validation:MaxLength=63
	Reason ReplacementReason `json:"reason"`
	// FailureReason of the Machine, if it was Failed, or NodeUnhealthy if its health caused a reboot.
	// +optional
	// +kubebuilder:validation:MaxLength=70
	FailureReason FailureReason `json:"failureReason,omitempty"`
	// RequestedBy is the name of the user who requested the replacement with kubectl drover. It is
	// absent if it is not known.
	// +optional
	// +kubebuilder:validation:MaxLength=260
	RequestedBy string `json:"requestedBy,omitempty"`
	// Revision of the MachineDeployment that was rolled out, if the reason is Rollout.
	// +optional
	Revision int64 `json:"revision,omitempty"`
	// Message for people: the failure of the Machine, or the change cause of the revision.
	// +optional
	// +kubebuilder:validation:MaxLength=260
	Message string `json:"message,omitempty"`
	// DrainDuration is the time from the start of the drain, hooks included, until the Node was
	// deleted. It is absent while the Node is drained, and if there was nothing to drain because the
	// Node did not exist any more.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=63
	DrainDuration *metav1.Duration `json:"drainDuration,omitempty"`
}
