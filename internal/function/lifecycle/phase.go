package lifecycle

import (
	"fmt"
	"time"

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
func decide(now time.Time, o Observed, n node, u *machinev1alpha1.UpdateStatus) (machinev1alpha1.MachinePhase, *failure) {
	before := o.Machine.Status
	if before.Phase == machinev1alpha1.MachineFailed {
		return machinev1alpha1.MachineFailed, &failure{reason: before.FailureReason, message: before.FailureMessage}
	}
	if f := failed(now, o, n); f != nil {
		return machinev1alpha1.MachineFailed, f
	}
	switch {
	case begun(u):
		return machinev1alpha1.MachineUpdating, nil
	case n.ready:
		return machinev1alpha1.MachineRunning, nil
	case ran(before.Phase):
		return machinev1alpha1.MachineUnknown, nil
	case n.joined || o.VM.State == step.VMRunning:
		return machinev1alpha1.MachineJoining, nil
	case o.VM.State == step.VMCreating:
		return machinev1alpha1.MachineProvisioning, nil
	}
	return machinev1alpha1.MachinePending, nil
}

// ran means that a Machine in this phase had a Ready Node.
func ran(p machinev1alpha1.MachinePhase) bool {
	switch p {
	case machinev1alpha1.MachineRunning, machinev1alpha1.MachineUpdating, machinev1alpha1.MachineUnknown:
		return true
	default:
		return false
	}
}

func failed(now time.Time, o Observed, n node) *failure {
	switch o.VM.State {
	case step.VMLost:
		return &failure{machinev1alpha1.FailureVMLost, "", o.VM.Message}
	case step.VMFailed:
		return &failure{machinev1alpha1.FailureVMFailed, o.VM.ErrorCode, o.VM.Message}
	case step.VMCreateUnknown:
		return &failure{machinev1alpha1.FailureCreateUnknown, "", o.VM.Message}
	}
	if !o.judges(now) {
		return nil
	}
	if before := o.Machine.Status.Phase; before != machinev1alpha1.MachineUpdating && !n.goneSince.IsZero() && !now.Before(n.goneSince.Add(nodeGoneGrace)) {
		return &failure{machinev1alpha1.FailureNodeDeleted, "", n.message}
	}
	if everJoined(o, n) || now.Before(deadline(o.Machine)) {
		return nil
	}
	message := fmt.Sprintf("no Node joined within %s", creationTimeout(o.Machine))
	if w := waitsFor(o, n); w != "" {
		message += ": " + w
	}
	if o.VM.ProviderID == "" && o.VM.ErrorCode != "" {
		return &failure{machinev1alpha1.FailureCreateFailed, o.VM.ErrorCode, message}
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

func deadline(m *machinev1alpha1.Machine) time.Time {
	return m.CreationTimestamp.Add(creationTimeout(m))
}

func creationTimeout(m *machinev1alpha1.Machine) time.Duration {
	if d := m.Spec.CreationTimeout.Duration; d > 0 {
		return d
	}
	return defaultCreationTimeout
}
