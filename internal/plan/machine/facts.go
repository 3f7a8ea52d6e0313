package machine

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/workernode"
)

// facts of a Machine follow only from the observed state, never from a decision. They are computed
// once, and no stage changes them.
type facts struct {
	Observed
	now time.Time
	// before is the observed status.
	before machinev1alpha1.MachineStatus
	// hasRun means that the Machine had a healthy Node.
	hasRun bool
	// health has the conditions of spec.health and of its profiles.
	health machinev1alpha1.Health
	node   node
	// isNodeKnown means that the Node can be observed now.
	isNodeKnown bool
	// everJoined means that the Machine had a Node at any time.
	everJoined bool
	// providerID of the Machine's VM. The status keeps it for the time when the VM can no longer be
	// observed. It identifies the VM to users and to the cluster-autoscaler, and proves nothing: a
	// Node is claimed by the token that it joined with.
	providerID string
	// addresses that the cloud reports or last reported for the VM. The Node's own report is never
	// used.
	addresses []workernode.Address
	// problem that a user can fix, nil if there is none.
	problem *plan.Problem
	// isRefused means that the provider cannot create the VM and reports an error, and that no other instance type is tried.
	isRefused bool
	// exhaustedSince is the time since which the cloud refuses the VM for lack of room, nil if it
	// does not.
	exhaustedSince *metav1.Time
	// isInvalid means that there is no VM, and that a user must fix a problem first.
	isInvalid bool
	// refusedUntil is the time at which the last reason not to create the VM ended: now, if there
	// was a reason before.
	refusedUntil *metav1.Time
	// waitsFor describes in one line the condition that the Machine waits for.
	waitsFor string
	// mayFail means that the state or absence of the Node may make the Machine Failed.
	mayFail bool
	// skipsRemediation means that the Machine or the Node has the annotation.
	skipsRemediation bool
	// replaceRequested means that the Machine shall be replaced, and nodeRequestedReplacement that
	// its Node requested that. A request of the Node stays in force after the annotation is
	// removed: otherwise a kubelet could cause an endless series of replacements that are created
	// and deleted. The value "false" on the Machine cancels it.
	replaceRequested, nodeRequestedReplacement bool
	// untilNodeMayRequest is the time until a request of the Node counts, 0 if there is none to
	// wait for.
	untilNodeMayRequest time.Duration
	// preserve is the value of the annotation that is in force.
	preserve string
	// judgesHealth means that an unhealthy Node may make the Machine Failed. A stale observation
	// must not.
	judgesHealth bool
	// creationTimeout of the Machine, and the deadline of one that has not run. The deadline is
	// zero while the VM is refused with any error code, and while the input is invalid. A
	// replacement would request the same VM, and this Machine continues once the cloud recovers or
	// a user fixes the input.
	creationTimeout time.Duration
	deadline        time.Time
}

// capacityDeadline returns the time at which the Machine fails if the cloud still has no room. It
// is zero if the Machine has no capacityTimeout or is not refused for lack of room.
func (f facts) capacityDeadline() time.Time {
	if f.exhaustedSince == nil || f.Machine.Spec.CapacityTimeout == nil {
		return time.Time{}
	}
	return f.exhaustedSince.Add(f.Machine.Spec.CapacityTimeout.Duration)
}

// untilFailed returns the time until a Machine that misses the deadline fails.
func (f facts) untilFailed(deadline time.Time) time.Duration {
	if f.TargetUnreachable {
		return plan.InFlight
	}
	if deadline.Before(f.JudgeAfter) {
		deadline = f.JudgeAfter
	}
	return deadline.Sub(f.now)
}

// isUnhealthy reports whether the Node is unhealthy now.
func isUnhealthy(u *machinev1alpha1.Unhealthiness) bool { return u != nil && u.Until == nil }

// goneUntil returns the time until which a deleted Node may come back before its Machine fails. It is zero if the Node is not
// deleted, or if the Machine does not fail by that. An update in place may delete the Node, and so may a
// controller of the cloud while a VM reboots.
func (f facts) goneUntil() time.Time {
	if !f.mayFail || f.skipsRemediation || f.before.Phase == machinev1alpha1.MachineUpdating || f.before.Reboot.IsInProgress() || f.node.goneSince.IsZero() {
		return time.Time{}
	}
	return f.node.goneSince.Add(nodeGoneGrace)
}

// nodeGoneGrace is the time for which a Node may be missing. A Node that a user deletes is
// registered again when the kubelet restarts.
const nodeGoneGrace = 30 * time.Second

// isLossConfirmed reports whether the Node confirms the loss of the VM that the cloud reports. A
// Node that cannot be observed confirms nothing. The failure may have another reason: a
// cloud-controller-manager deletes the Node before the provider misses the VM.
func (f facts) isLossConfirmed() bool {
	return f.VM.State == plan.VMLost && f.isNodeKnown && !f.node.ready
}

// isTakenBack reports whether the recorded failure no longer applies: the Node is healthy, the
// Machine is exempt from remediation, or the cloud had room after all. This prevents the deletion
// of a working Machine.
func isTakenBack(f facts) bool {
	switch {
	case f.VM.State == plan.VMLost || f.VM.State == plan.VMFailed || f.VM.State == plan.VMCreateUnknown:
		return false
	case f.before.FailureReason == machinev1alpha1.FailureCapacityTimeout:
		return f.providerID != ""
	case f.before.FailureReason == machinev1alpha1.FailureNodeUnhealthy:
		return f.node.healthy || f.skipsRemediation || f.Machine.Spec.Health.Disabled
	case f.before.FailureReason == machinev1alpha1.FailureJoinTimeout:
		return f.node.healthy || f.skipsRemediation
	}
	return false
}

// A decision is made in the order of its fields. Each field depends on the facts and on the fields
// before it.
type decision struct {
	// update in place, nil if there is none.
	update *machinev1alpha1.UpdateStatus
	// unhealthy is nil for a Machine whose Node never was unhealthy. It ends when a reboot begins.
	unhealthy *machinev1alpha1.Unhealthiness
	// reboot that is requested or in progress, or was the last one. It is nil if there was none.
	reboot *machinev1alpha1.RebootStatus
	phase  machinev1alpha1.MachinePhase
	// failure is nil unless the Machine is Failed.
	failure *failure
	// preservation, possibly expired, nil if none was requested.
	preservation *machinev1alpha1.Preservation
}

// A failure is the reason why a Machine is Failed.
type failure struct {
	reason  machinev1alpha1.FailureReason
	code    string
	message string
}
