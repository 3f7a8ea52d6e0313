package vsphere

import (
	"github.com/vmware/govmomi/vim25/types"
)

// A sight is the input of the plan.
type sight struct {
	// deleting reports whether the VM is to be deleted.
	deleting bool
	// wantOn reports whether the VM shall run.
	wantOn bool
	// finished reports whether the VM was once completely set up.
	finished bool

	// task of this VM that is running.
	task runningTask
	// vm is nil if there is none.
	vm *found
	// cloneMayRun reports whether a clone was started whose task is unknown, and a similar clone is
	// running.
	cloneMayRun bool
}

// A runningTask is a task that was started for a VM and has not ended.
type runningTask string

const (
	noTask    runningTask = ""
	cloneTask runningTask = "clone"
	otherTask runningTask = "other"
)

// found is a VM that exists.
type found struct {
	power types.VirtualMachinePowerState
	// marked reports whether the custom attributes and tags are as desired.
	marked bool
	// isInRule reports whether the VM is in its anti-affinity rule, if it has one.
	isInRule bool
	// mustLeave reports whether the VM may be the last one in its anti-affinity rule.
	mustLeave bool
	// foreign is the number of disks that are not the VM's own.
	foreign int
}

// A step is the next action.
type step string

const (
	// stepClone clones the template.
	stepClone step = "Clone"
	// stepMark sets custom attributes and tags.
	stepMark step = "Mark"
	// stepJoin brings the VM into its anti-affinity rule.
	stepJoin step = "Join"
	// stepPowerOn and stepPowerOff change the power state.
	stepPowerOn  step = "PowerOn"
	stepPowerOff step = "PowerOff"
	// stepDetach detaches the disks that are not the VM's own.
	stepDetach step = "Detach"
	// stepLeave removes the anti-affinity rule of which the VM is the last one.
	stepLeave step = "Leave"
	// stepDestroy deletes the VM with its own disks.
	stepDestroy step = "Destroy"
	// stepCancel cancels the clone of a VM that is to be deleted.
	stepCancel step = "Cancel"
	// stepWait waits for a task.
	stepWait step = "Wait"
	// stepNone: the VM is as desired.
	stepNone step = "None"
	// stepLost: the VM existed, and is not created again.
	stepLost step = "Lost"
	// stepGone: there is no VM, as desired.
	stepGone step = "Gone"
)

// plan returns the next step. It depends on the sight only: if a result is lost between two
// reconciles, the second one continues from the observed state.
func plan(s sight) step {
	if s.deleting {
		return planDeletion(s)
	}
	switch {
	case s.task != noTask:
		return stepWait
	case s.vm == nil && s.finished:
		return stepLost
	case s.vm == nil:
		return stepClone
	// The VM is marked before it runs, so that a running VM can be found by its marks.
	case !s.vm.marked:
		return stepMark
	// DRS chooses the host when the VM is powered on.
	case !s.vm.isInRule:
		return stepJoin
	case s.powered():
		return stepNone
	case s.wantOn:
		return stepPowerOn
	}
	return stepPowerOff
}

// powered reports whether the power state of the VM is as desired.
func (s sight) powered() bool {
	return s.vm != nil && s.wantOn == (s.vm.power == types.VirtualMachinePowerStatePoweredOn)
}

func planDeletion(s sight) step {
	switch {
	case s.task == cloneTask:
		return stepCancel
	case s.task != noTask:
		return stepWait
	case s.vm == nil && s.cloneMayRun:
		return stepWait
	case s.vm == nil:
		return stepGone
	case s.vm.power != types.VirtualMachinePowerStatePoweredOff:
		return stepPowerOff
	// A disk that is attached when its VM is destroyed is destroyed with it.
	case s.vm.foreign > 0:
		return stepDetach
	case s.vm.mustLeave:
		return stepLeave
	}
	return stepDestroy
}
