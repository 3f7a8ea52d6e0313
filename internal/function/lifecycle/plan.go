package lifecycle

import (
	"time"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
)

// Observed is what the step sees.
type Observed struct {
	Machine *machinev1alpha1.Machine
	// Bootstrap and VM are the words of the steps before.
	Bootstrap step.Bootstrap
	VM        step.VM
	// WorkerNode is nil while there is none.
	WorkerNode *clusterv1alpha1.WorkerNode
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
	// WorkerNode is nil until the VM's providerID is known.
	WorkerNode *clusterv1alpha1.WorkerNode
	// NodeReady is the readiness of the WorkerNode.
	NodeReady bool

	Status     machinev1alpha1.MachineStatus
	Conditions []step.Condition
	Events     []step.Event
	// CallAgain after so long at the latest.
	CallAgain time.Duration
}

// Plan sums up a Machine.
func Plan(now time.Time, o Observed) Desired {
	n := nodeOf(o.WorkerNode)
	phase, failed := decide(now, o, n)
	d := Desired{
		WorkerNode: workerNode(o),
		NodeReady:  n.ready,
		Status:     status(now, o, n, phase, failed),
		Conditions: conditions(o, n),
		CallAgain:  callAgain(now, o, n, phase),
	}
	d.Events = events(o, d)
	return d
}

func callAgain(now time.Time, o Observed, n node, phase machinev1alpha1.MachinePhase) time.Duration {
	switch phase {
	case machinev1alpha1.MachineRunning, machinev1alpha1.MachineFailed:
		return step.AtRest
	}
	after := step.InFlight
	if left := deadline(o.Machine).Sub(now); !everJoined(o, n) && left < after {
		after = left
	}
	return after
}
