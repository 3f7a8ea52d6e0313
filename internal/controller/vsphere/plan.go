package vsphere

import (
	"github.com/vmware/govmomi/vim25/types"
)

// A sight is all that a decision rests on.
type sight struct {
	// deleting the VM is what is wanted.
	deleting bool
	// wantOn says that the VM shall run.
	wantOn bool
	// finished says that the VM was once as it shall be.
	finished bool

	// task of this VM that runs.
	task runningTask
	// vm is nil when there is none.
	vm *found
	// cloneMayRun says that a clone was begun, that nobody knows its task, and that one
	// like it is under way.
	cloneMayRun bool
}

// A runningTask is a task that was begun for a VM and has not ended.
type runningTask string

const (
	noTask    runningTask = ""
	cloneTask runningTask = "clone"
	otherTask runningTask = "other"
)

// found is a VM that is there.
type found struct {
	power types.VirtualMachinePowerState
	// marked says that the custom attributes and tags are as they shall be.
	marked bool
	// foreign disks are not the VM's own.
	foreign int
}

// A step is what is done next.
type step string

const (
	// stepClone the template.
	stepClone step = "Clone"
	// stepMark sets custom attributes and tags.
	stepMark step = "Mark"
	// stepPowerOn and stepPowerOff change the power state.
	stepPowerOn  step = "PowerOn"
	stepPowerOff step = "PowerOff"
	// stepDetach the disks that are not the VM's own.
	stepDetach step = "Detach"
	// stepDestroy the VM with the disks that are.
	stepDestroy step = "Destroy"
	// stepCancel a clone that nobody wants any more.
	stepCancel step = "Cancel"
	// stepWait for a task.
	stepWait step = "Wait"
	// stepNone: all is as it shall be.
	stepNone step = "None"
	// stepLost: the VM was there, and is not made again.
	stepLost step = "Lost"
	// stepGone: there is no VM, and shall be none.
	stepGone step = "Gone"
)

// plan the next step. It is the same for the same sight: whatever is lost between two
// reconciles, the second goes on from what there is.
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
	// Before it runs, so that a VM that does can be found by them.
	case !s.vm.marked:
		return stepMark
	case s.powered():
		return stepNone
	case s.wantOn:
		return stepPowerOn
	}
	return stepPowerOff
}

// powered says whether the VM runs, or does not, as it shall.
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
	}
	return stepDestroy
}
