package terminator

import (
	"fmt"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// self is what a decision over a MachineDeployment, MachineSet or Machine depends on.
type self struct {
	deleting   bool
	held       bool // has FinalizerTerminator
	foreground bool // is deleted in the foreground
}

// A step is what is done to the object itself.
type step string

const (
	nothing     step = "Nothing"
	hold        step = "Hold"        // add FinalizerTerminator
	deleteAgain step = "DeleteAgain" // in the foreground
	letGo       step = "LetGo"       // take FinalizerTerminator off
)

func (s self) next(somethingLeft bool) step {
	switch {
	case !s.deleting && !s.held:
		return hold
	case !s.deleting, !s.held:
		return nothing
	case !somethingLeft:
		return letGo
	case !s.foreground:
		return deleteAgain
	}
	return nothing
}

// machineState is what is known of a Machine and of what it composes.
type machineState struct {
	self
	skipDrain   bool
	workerNodes []workerNode
	vms         []vm
	// unreadable says why VMs may be left that cannot be seen.
	unreadable string
}

type workerNode struct {
	name      string
	skipDrain bool
	blocked   string // the pod that the drain waits for, and why
}

type vm struct {
	kind string
	name string
	held bool // has FinalizerDrain
}

// machinePlan is what to do to a Machine and to what it composes.
type machinePlan struct {
	step
	skip    []string // WorkerNodes that shall not drain
	release []vm
	// operation is what the Machine's status shall say, nil if nothing new.
	operation *v1alpha1.LastOperation
}

// irrevocable plans must not come from an old view.
func (p machinePlan) irrevocable() bool { return p.step == letGo || len(p.release) > 0 }

func plan(s machineState) machinePlan {
	p := machinePlan{step: s.next(len(s.workerNodes)+len(s.vms) > 0 || s.unreadable != "")}
	if !s.deleting {
		return p
	}
	if s.skipDrain {
		for _, wn := range s.workerNodes {
			if !wn.skipDrain {
				p.skip = append(p.skip, wn.name)
			}
		}
	}
	if len(s.workerNodes) == 0 {
		for _, v := range s.vms {
			if v.held {
				p.release = append(p.release, v)
			}
		}
	}
	p.operation = operation(s)
	return p
}

// operation says what a Machine that is being deleted waits for.
func operation(s machineState) *v1alpha1.LastOperation {
	op := func(t v1alpha1.OperationType, format string, args ...any) *v1alpha1.LastOperation {
		return &v1alpha1.LastOperation{Type: t, State: v1alpha1.OperationProcessing, Description: fmt.Sprintf(format, args...)}
	}
	switch {
	case len(s.workerNodes) > 0 && s.workerNodes[0].blocked != "":
		return op(v1alpha1.OperationDrain, "Waiting for WorkerNode %s: %s", s.workerNodes[0].name, s.workerNodes[0].blocked)
	case len(s.workerNodes) > 0:
		return op(v1alpha1.OperationDrain, "Waiting for WorkerNode %s: its Node is drained and deleted", s.workerNodes[0].name)
	case len(s.vms) > 0:
		return op(v1alpha1.OperationDelete, "Waiting for %s %s: the VM is deleted", s.vms[0].kind, s.vms[0].name)
	case s.unreadable != "":
		return op(v1alpha1.OperationDelete, "Waiting for a VM that cannot be seen: %s", s.unreadable)
	}
	return nil
}
