package native

// A State of a VM at its cloud.
type State string

// States of VMs.
const (
	// StateNone means that the cloud has no such VM, nor anything that is deleted with it.
	StateNone State = ""
	// StateCreating means that the cloud is busy with the VM, and that there is nothing to do.
	StateCreating State = "Creating"
	// StateIncomplete means that the VM exists, and that a step of its creation is left.
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

// facts are all that a decision rests on.
type facts struct {
	// deleting means that the VM shall be deleted.
	deleting bool
	// finished means that the VM ran once. It is never created again.
	finished bool
	// settling means that the result of a creation is unknown, and that the cloud may not show
	// its VM yet.
	settling bool
	// state of the VM, as it was observed.
	state State
}

// A step is the next one.
type step string

const (
	// stepCreate begins the creation.
	stepCreate step = "Create"
	// stepContinue takes the next step of a creation.
	stepContinue step = "Continue"
	// stepDelete takes the next step of a deletion.
	stepDelete step = "Delete"
	// stepWait for the cloud.
	stepWait step = "Wait"
	// stepNone means that the VM is at rest.
	stepNone step = "None"
	// stepLost means that the VM existed, and is not created again.
	stepLost step = "Lost"
	// stepGone means that there is no VM, and that there shall be none.
	stepGone step = "Gone"
)

// plan the next step. It is the same for the same facts: after a restart at any point, the next
// reconcile continues from what exists.
func plan(f facts) step {
	if f.deleting {
		return planDeletion(f)
	}
	switch f.state {
	case StateNone:
		switch {
		case f.finished:
			return stepLost
		case f.settling:
			return stepWait
		}
		return stepCreate
	case StateIncomplete:
		// A VM that ran is never changed, whatever its cloud makes of it: docs/decisions/0006.
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
		// A VM that shows later would be left behind.
		return stepWait
	case f.state == StateNone:
		return stepGone
	case f.state == StateDeleting:
		return stepWait
	}
	// A creation in progress is the cloud's to cancel, or to be waited for by it.
	return stepDelete
}
