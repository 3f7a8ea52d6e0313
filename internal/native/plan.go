package native

// A State is the state of a VM in its cloud.
type State string

// States of VMs.
const (
	// StateNone means that the cloud has neither the VM nor a resource that is deleted with it.
	StateNone State = ""
	// StateCreating means that the cloud creates the VM, and that there is nothing to do.
	StateCreating State = "Creating"
	// StateIncomplete means that the VM exists, and that its creation needs another step.
	StateIncomplete State = "Incomplete"
	// StateStopped means that the VM is complete and powered off.
	StateStopped State = "Stopped"
	// StateRunning means that the VM is complete and powered on.
	StateRunning State = "Running"
	// StateFailed means that the cloud has an entry for the VM, and that it never runs.
	StateFailed State = "Failed"
	// StateDeleting means that the cloud deletes the VM, and that there is nothing to do.
	StateDeleting State = "Deleting"
)

// facts are the input of the plan.
type facts struct {
	// deleting reports whether the VM is to be deleted.
	deleting bool
	// finished reports whether the VM ran once. Then it is never created again.
	finished bool
	// settling reports whether the result of a creation is unknown, and the cloud may not show its VM
	// yet.
	settling bool
	// repeatable reports whether the cloud creates no second VM if a creation is repeated.
	repeatable bool
	// state is the observed state of the VM.
	state State
}

// A step is the next action.
type step string

const (
	// stepCreate starts the creation.
	stepCreate step = "Create"
	// stepContinue carries out the next step of a creation.
	stepContinue step = "Continue"
	// stepDelete carries out the next step of a deletion.
	stepDelete step = "Delete"
	// stepWait waits for the cloud.
	stepWait step = "Wait"
	// stepNone: there is nothing to do.
	stepNone step = "None"
	// stepLost: the VM existed, and is not created again.
	stepLost step = "Lost"
	// stepGone: there is no VM, as desired.
	stepGone step = "Gone"
)

// plan returns the next step. It depends on the facts only: after a restart at any point, the next
// reconcile continues from the observed state.
func plan(f facts) step {
	if f.deleting {
		return planDeletion(f)
	}
	switch f.state {
	case StateNone:
		switch {
		case f.finished:
			return stepLost
		case f.settling && !f.repeatable:
			return stepWait
		}
		return stepCreate
	case StateIncomplete:
		// A VM that ran is never changed: docs/decisions/0006.
		if f.finished {
			return stepNone
		}
		return stepContinue
	case StateCreating, StateDeleting:
		return stepWait
	}
	return stepNone
}

func planDeletion(f facts) step {
	switch {
	case f.state == StateNone && f.settling:
		// If the VM shows later, it would be left behind.
		return stepWait
	case f.state == StateNone:
		return stepGone
	case f.state == StateDeleting:
		return stepWait
	}
	// A creation in progress: the account cancels it, or waits for its end.
	return stepDelete
}
