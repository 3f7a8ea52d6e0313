package machine

import (
	"fmt"
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

// nodeGoneGrace is the time for which a Node may be missing. A Node that a user deletes is
// registered again when the kubelet restarts.
const nodeGoneGrace = 30 * time.Second

// A failure is the reason why a Machine is Failed.
type failure struct {
	reason  machinev1alpha1.FailureReason
	code    string
	message string
}

// decide returns the phase of a Machine. During an update in place, the Node may be deleted and
// registered again.
func decide(f facts, d decision) (machinev1alpha1.MachinePhase, *failure) {
	why := failed(f, d.unhealthy)
	switch {
	case f.before.Phase == machinev1alpha1.MachineFailed && !isTakenBack(f):
		return machinev1alpha1.MachineFailed, &failure{reason: f.before.FailureReason, message: f.before.Failure()}
	case why != nil:
		return machinev1alpha1.MachineFailed, why
	case begun(d.update):
		return machinev1alpha1.MachineUpdating, nil
	case f.hasRun && isReboot(f, d.reboot):
		return machinev1alpha1.MachineRebooting, nil
	case f.node.healthy:
		return machinev1alpha1.MachineRunning, nil
	case f.hasRun:
		return machinev1alpha1.MachineUnknown, nil
	case f.node.joined || f.VM.State == plan.VMRunning:
		return machinev1alpha1.MachineJoining, nil
	case f.VM.State == plan.VMCreating:
		return machinev1alpha1.MachineProvisioning, nil
	}
	return machinev1alpha1.MachinePending, nil
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

func failed(f facts, sick *machinev1alpha1.Unhealthiness) *failure {
	switch f.VM.State {
	case plan.VMLost:
		return &failure{machinev1alpha1.FailureVMLost, "", f.VM.Message}
	case plan.VMFailed:
		if f.providerID == "" {
			return &failure{machinev1alpha1.FailureCreateFailed, f.VM.ErrorCode, f.VM.Message}
		}
		message := f.VM.Message
		if shown := f.describeConsole(); shown != "" {
			message += "; " + shown
		}
		return &failure{machinev1alpha1.FailureVMFailed, f.VM.ErrorCode, message}
	case plan.VMCreateUnknown:
		return &failure{machinev1alpha1.FailureCreateUnknown, "", f.VM.Message}
	}
	if why := ofCapacity(f); why != nil {
		return why
	}
	if !f.mayFail || f.skipsRemediation {
		return nil
	}
	if gone := f.goneUntil(); !gone.IsZero() && !f.now.Before(gone) {
		return &failure{machinev1alpha1.FailureNodeDeleted, "", f.node.message}
	}
	if f.hasRun {
		return ofNode(f, sick)
	}
	return ofCreation(f)
}

// goneUntil returns the time until which a deleted Node may come back before its Machine fails. It is zero if the Node is not
// deleted, or if the Machine does not fail by that. An update in place may delete the Node, and so may a
// controller of the cloud while a VM reboots.
func (f facts) goneUntil() time.Time {
	if !f.mayFail || f.skipsRemediation || f.before.Phase == machinev1alpha1.MachineUpdating || f.before.Reboot.IsInProgress() || f.node.goneSince.IsZero() {
		return time.Time{}
	}
	return f.node.goneSince.Add(nodeGoneGrace)
}

// isLossConfirmed reports whether the Node confirms the loss of the VM that the cloud reports. A
// Node that cannot be observed confirms nothing. The failure may have another reason: a
// cloud-controller-manager deletes the Node before the provider misses the VM.
func (f facts) isLossConfirmed() bool {
	return f.VM.State == plan.VMLost && f.isNodeKnown && !f.node.ready
}

// ofNode returns the failure of a Machine whose Node is unhealthy for too long, and which is not rebooted for it.
func ofNode(f facts, sick *machinev1alpha1.Unhealthiness) *failure {
	if !isUnhealthy(sick) || !f.judgesHealth {
		return nil
	}
	why, ok := f.replacedFor(*sick)
	if !ok {
		return nil
	}
	message := fmt.Sprintf("%s, for longer than %s", describeBad(sick.Conditions), timeoutOf(f.health, why))
	if actionOn(f.health, why) == machinev1alpha1.HealthActionReboot {
		message += "; it is not rebooted: " + f.noReboot()
	}
	return &failure{machinev1alpha1.FailureNodeUnhealthy, "", message}
}

// ofCapacity returns the failure of a Machine for whose VM the cloud has no room. For some
// Machines, the set knows that before a VM is requested.
func ofCapacity(f facts) *failure {
	if code := f.Machine.Annotations[machinev1alpha1.AnnotationExhausted]; code != "" && f.VM.State == plan.VMAbsent && f.providerID == "" {
		return &failure{machinev1alpha1.FailureCapacityTimeout, code, "the cloud had no room for another Machine of the set, so that no VM was requested"}
	}
	at := f.capacityDeadline()
	if at.IsZero() || f.now.Before(at) {
		return nil
	}
	message := fmt.Sprintf("the cloud had no room for the VM for %s: %s", f.Machine.Spec.CapacityTimeout.Duration, f.waitsFor)
	return &failure{machinev1alpha1.FailureCapacityTimeout, f.VM.ErrorCode, message}
}

// ofCreation returns the failure of a Machine that does not run before its deadline.
func ofCreation(f facts) *failure {
	if f.deadline.IsZero() || f.now.Before(f.deadline) {
		return nil
	}
	message := fmt.Sprintf("no Node joined within %s", f.creationTimeout)
	switch {
	case f.VM.AwaitsCompanion:
		message = fmt.Sprintf("the VM was not complete within %s", f.creationTimeout)
	case f.everJoined:
		message = fmt.Sprintf("the Node was not healthy within %s", f.creationTimeout)
	}
	return &failure{machinev1alpha1.FailureJoinTimeout, "", message + ": " + f.waitsFor + describeJoin(f)}
}
