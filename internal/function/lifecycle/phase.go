package lifecycle

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
)

// defaultCreationTimeout is that of the Machine's schema.
const defaultCreationTimeout = 20 * time.Minute

// nodeGoneGrace is for how long a Node may be gone: somebody who deletes it and
// restarts the kubelet gets it back.
const nodeGoneGrace = 30 * time.Second

// A failure is why a Machine is Failed.
type failure struct {
	reason  machinev1alpha1.FailureReason
	code    string
	message string
}

// decide a Machine's phase. While it is updated in place its Node may come and go.
func decide(now time.Time, o Observed, n node, sick *machinev1alpha1.Unhealthiness, u *machinev1alpha1.UpdateStatus) (machinev1alpha1.MachinePhase, *failure) {
	before := o.Machine.Status
	f := failed(now, o, n, sick)
	switch {
	case before.Phase == machinev1alpha1.MachineFailed && !isTakenBack(o, n):
		return machinev1alpha1.MachineFailed, &failure{reason: before.FailureReason, message: before.FailureMessage}
	case f != nil:
		return machinev1alpha1.MachineFailed, f
	}
	switch {
	case begun(u):
		return machinev1alpha1.MachineUpdating, nil
	case n.healthy:
		return machinev1alpha1.MachineRunning, nil
	case hasRun(before):
		return machinev1alpha1.MachineUnknown, nil
	case n.joined || o.VM.State == step.VMRunning:
		return machinev1alpha1.MachineJoining, nil
	case o.VM.State == step.VMCreating:
		return machinev1alpha1.MachineProvisioning, nil
	}
	return machinev1alpha1.MachinePending, nil
}

// isTakenBack says whether a failure is that was the Node's: it is healthy after all,
// or shall not be judged. Nobody shall delete a Machine that works.
func isTakenBack(o Observed, n node) bool {
	switch before := o.Machine.Status; {
	case o.VM.State == step.VMLost || o.VM.State == step.VMFailed || o.VM.State == step.VMCreateUnknown:
		return false
	case before.FailureReason == machinev1alpha1.FailureNodeUnhealthy:
		return n.healthy || skipsRemediation(o, n) || o.Machine.Spec.Health.Disabled
	case before.FailureReason == machinev1alpha1.FailureJoinTimeout:
		return n.healthy || skipsRemediation(o, n)
	}
	return false
}

// hasRun means that the Machine had a healthy Node.
func hasRun(s machinev1alpha1.MachineStatus) bool {
	switch s.Phase {
	case machinev1alpha1.MachineRunning, machinev1alpha1.MachineUpdating, machinev1alpha1.MachineUnknown:
		return true
	case machinev1alpha1.MachineFailed:
		return s.FailureReason == machinev1alpha1.FailureNodeUnhealthy
	default:
		return false
	}
}

func failed(now time.Time, o Observed, n node, sick *machinev1alpha1.Unhealthiness) *failure {
	switch o.VM.State {
	case step.VMLost:
		return &failure{machinev1alpha1.FailureVMLost, "", o.VM.Message}
	case step.VMFailed:
		if providerID(o) == "" {
			return &failure{machinev1alpha1.FailureCreateFailed, o.VM.ErrorCode, o.VM.Message}
		}
		return &failure{machinev1alpha1.FailureVMFailed, o.VM.ErrorCode, o.VM.Message}
	case step.VMCreateUnknown:
		return &failure{machinev1alpha1.FailureCreateUnknown, "", o.VM.Message}
	}
	if !o.judges(now) || skipsRemediation(o, n) {
		return nil
	}
	if before := o.Machine.Status.Phase; before != machinev1alpha1.MachineUpdating && !n.goneSince.IsZero() && !now.Before(n.goneSince.Add(nodeGoneGrace)) {
		return &failure{machinev1alpha1.FailureNodeDeleted, "", n.message}
	}
	if hasRun(o.Machine.Status) {
		return ofNode(now, o, n, sick)
	}
	return ofCreation(now, o, n)
}

// ofNode is the failure of a Machine whose Node is unhealthy for too long.
func ofNode(now time.Time, o Observed, n node, sick *machinev1alpha1.Unhealthiness) *failure {
	if !isUnhealthy(sick) || !judgesHealth(o, n) {
		return nil
	}
	at, why := failsAt(o.Machine, *sick)
	if now.Before(at) {
		return nil
	}
	message := fmt.Sprintf("%s, for longer than %s", describeBad(sick.Conditions), timeoutOf(o.Machine, why))
	return &failure{machinev1alpha1.FailureNodeUnhealthy, "", message}
}

// ofCreation is the failure of a Machine that does not come to run in time.
func ofCreation(now time.Time, o Observed, n node) *failure {
	if end, counts := deadline(now, o, n); !counts || now.Before(end) {
		return nil
	}
	message := fmt.Sprintf("no Node joined within %s", creationTimeout(o.Machine))
	if everJoined(o, n) {
		message = fmt.Sprintf("the Node was not healthy within %s", creationTimeout(o.Machine))
	}
	if w := waitsFor(o, n); w != "" {
		message += ": " + w
	}
	return &failure{machinev1alpha1.FailureJoinTimeout, "", message}
}

// waitsFor says in a line what a Machine that does not run waits for.
func waitsFor(o Observed, n node) string {
	switch {
	case o.problem() != nil:
		return o.problem().Message
	case o.VM.State == step.VMAbsent && o.Bootstrap.Waiting != "":
		return o.Bootstrap.Waiting
	case o.VM.State == step.VMAbsent:
		return "waiting for user data"
	case o.VM.State == step.VMCreating && o.Bootstrap.Waiting != "":
		return o.Bootstrap.Waiting
	case o.VM.State == step.VMCreating && o.VM.Message != "":
		return o.VM.Message
	case o.VM.State == step.VMCreating:
		return fmt.Sprintf("waiting for VM %s to run", o.VM.Name)
	case n.message != "":
		return n.message
	}
	return fmt.Sprintf("waiting for the Node of VM %s", o.VM.ProviderID)
}

// everJoined says whether the Machine had a Node at any time.
func everJoined(o Observed, n node) bool {
	return n.joined || o.Machine.Status.NodeRef != nil
}

// deadline is until when a Machine that has not run may take until it does. It does not
// count while its VM is refused, of whatever class the error is, nor while what it is to be
// made from is invalid: a replacement would only ask for the same, and what recovers, or is
// mended, lets the Machine go on as it is.
func deadline(now time.Time, o Observed, n node) (end time.Time, counts bool) {
	if n.healthy || refused(o) || invalid(o) || skipsRemediation(o, n) {
		return time.Time{}, false
	}
	since := o.Machine.CreationTimestamp.Time
	if r := refusedUntil(now, o); r != nil && r.After(since) {
		since = r.Time
	}
	return since.Add(creationTimeout(o.Machine)), true
}

// refused means that the provider does not create the VM, and says why.
func refused(o Observed) bool {
	return o.VM.State == step.VMCreating && o.VM.ErrorCode != "" && providerID(o) == ""
}

// invalid means that there is no VM, since a user has to mend something first.
func invalid(o Observed) bool {
	return o.problem() != nil && o.VM.State == step.VMAbsent && providerID(o) == ""
}

// refusedUntil is when there last ceased to be a reason not to create the VM: now, if there
// was one before.
func refusedUntil(now time.Time, o Observed) *metav1.Time {
	before := o.Machine.Status
	op := before.LastOperation
	isTold := before.ProviderID == "" && op != nil && op.Type == machinev1alpha1.OperationCreate && op.State == machinev1alpha1.OperationProcessing
	had := isTold && (op.ErrorCode != "" || meta.IsStatusConditionFalse(before.Conditions, TypeValid))
	if refused(o) || invalid(o) || !had {
		return before.RefusedUntil
	}
	return whole(now)
}

// whole seconds are what a status has.
func whole(t time.Time) *metav1.Time {
	w := metav1.NewTime(t.UTC().Truncate(time.Second))
	return &w
}

func creationTimeout(m *machinev1alpha1.Machine) time.Duration {
	if d := m.Spec.CreationTimeout.Duration; d > 0 {
		return d
	}
	return defaultCreationTimeout
}
