package lifecycle

import (
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/workernode"
)

// Observed is what the step sees.
type Observed struct {
	Machine *machinev1alpha1.Machine
	// Bootstrap and VM are the words of the steps before.
	Bootstrap step.Bootstrap
	VM        step.VM
	// WorkerNode is what is known of the Node, nil until parameters for it were decided on.
	WorkerNode *workernode.WorkerNode
	// CloudNamesNodes means that the name of the Node is not the Machine's.
	CloudNamesNodes bool
	// TargetUnreachable means that the cluster that the Machine joins cannot be
	// reached: what is known of its Node is old, and no Machine becomes Failed for it.
	TargetUnreachable bool
	// JudgeAfter is when Machines become Failed for their Nodes again, once the cluster
	// could not be reached. It is zero when there is nothing to wait for.
	JudgeAfter time.Time
}

// judges says whether the Machine may become Failed for its Node, or for having none.
func (o Observed) judges(now time.Time) bool {
	return !o.TargetUnreachable && !now.Before(o.JudgeAfter)
}

// untilJudged is how long it takes from a deadline that was missed until the Machine
// is Failed for it.
func (o Observed) untilJudged(now, deadline time.Time) time.Duration {
	if o.TargetUnreachable {
		return step.InFlight
	}
	if deadline.Before(o.JudgeAfter) {
		deadline = o.JudgeAfter
	}
	return deadline.Sub(now)
}

// problem that a user can mend, if there is one.
func (o Observed) problem() *step.Problem {
	if o.Bootstrap.Problem != nil {
		return o.Bootstrap.Problem
	}
	return o.VM.Problem
}

// Desired is what the step wants.
type Desired struct {
	// WorkerNode has what the Node shall be like. It is nil until the VM's providerID is known.
	WorkerNode *workernode.Parameters

	Status     machinev1alpha1.MachineStatus
	Conditions []step.Condition
	Events     []step.Event
	// CallAgain after so long at the latest.
	CallAgain time.Duration
}

// Plan sums up a Machine.
func Plan(now time.Time, o Observed) Desired {
	n := nodeOf(now, o.Machine, o.WorkerNode)
	updating := update(now, o, n)
	sick := unhealthiness(now, o, n, updating)
	phase, failed := decide(now, o, n, sick, updating)
	d := Desired{
		Status:    status(now, o, n, phase, failed, sick, updating),
		CallAgain: callAgain(now, o, n, phase, sick, updating),
	}
	preserved := lasts(now, d.Status.Preservation)
	if preserved {
		d.CallAgain = min(d.CallAgain, d.Status.Preservation.Until.Sub(now))
	}
	d.WorkerNode = workerNode(o, updating, phase, preserved)
	d.Conditions = conditions(now, o, n, d.Status)
	d.Events = events(o, d)
	return d
}

func callAgain(now time.Time, o Observed, n node, phase machinev1alpha1.MachinePhase, sick *machinev1alpha1.Unhealthiness, u *machinev1alpha1.UpdateStatus) time.Duration {
	switch phase {
	case machinev1alpha1.MachineRunning, machinev1alpha1.MachineFailed:
		return step.AtRest
	case machinev1alpha1.MachineUpdating:
		want := o.Machine.Spec.InPlaceUpdate
		switch {
		case u.State == machinev1alpha1.UpdateFailed && want != nil:
			return step.AtRest
		case u.State == machinev1alpha1.UpdateUpdating && want != nil:
			return min(step.InFlight, updateDeadline(*u, want).Sub(now))
		}
		return step.InFlight
	case machinev1alpha1.MachineUnknown:
		if at, _ := failsAt(o.Machine, *sick); judgesHealth(o, n) {
			return min(step.InFlight, o.untilJudged(now, at))
		}
		return step.InFlight
	}
	if end, counts := deadline(now, o, n); counts {
		return min(step.InFlight, o.untilJudged(now, end))
	}
	return step.InFlight
}
