package machine

import (
	"fmt"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

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
