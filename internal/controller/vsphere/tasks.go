package vsphere

import (
	"context"
	"strings"
	"time"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/task"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// skew is the largest difference between the clocks of a vCenter and of Drover.
const skew = 5 * time.Minute

// A taskState is the progress of a task of a vCenter.
type taskState struct {
	running    bool
	cancelable bool
	// err is the failure, nil if the task did not fail, or if the vCenter no longer has the task.
	err error
}

func lookAtTask(ctx context.Context, c *vim25.Client, id string) (taskState, error) {
	if id == "" {
		return taskState{}, nil
	}
	var t mo.Task
	ref := types.ManagedObjectReference{Type: "Task", Value: id}
	if err := property.DefaultCollector(c).RetrieveOne(ctx, ref, []string{"info"}, &t); err != nil {
		if is[*types.ManagedObjectNotFound](err) {
			return taskState{}, nil
		}
		return taskState{}, err
	}
	out := taskState{running: runs(t.Info), cancelable: t.Info.Cancelable && !t.Info.Cancelled}
	if t.Info.State == types.TaskInfoStateError && t.Info.Error != nil {
		out.err = task.Error{LocalizedMethodFault: t.Info.Error}
	}
	return out, nil
}

func runs(i types.TaskInfo) bool {
	return i.State == types.TaskInfoStateQueued || i.State == types.TaskInfoStateRunning
}

// cloneRunsSince reports whether the vCenter runs a clone that was requested around this time. Until
// a clone is done, its task does not show the VM that it creates.
func cloneRunsSince(ctx context.Context, c *vim25.Client, began time.Time) (bool, error) {
	pc := property.DefaultCollector(c)
	var m mo.TaskManager
	if err := pc.RetrieveOne(ctx, *c.ServiceContent.TaskManager, []string{"recentTask"}, &m); err != nil {
		return false, err
	}
	for _, ref := range m.RecentTask {
		var t mo.Task
		if err := pc.RetrieveOne(ctx, ref, []string{"info"}, &t); err != nil {
			if is[*types.ManagedObjectNotFound](err) {
				continue
			}
			return false, err
		}
		if runs(t.Info) && strings.HasPrefix(t.Info.DescriptionId, "VirtualMachine.clone") && t.Info.QueueTime.Sub(began).Abs() <= skew {
			return true, nil
		}
	}
	return false, nil
}

func cancelTask(ctx context.Context, c *vim25.Client, id string) error {
	err := object.NewTask(c, types.ManagedObjectReference{Type: "Task", Value: id}).Cancel(ctx)
	// The task may have ended meanwhile, or can no longer be canceled.
	if is[*types.ManagedObjectNotFound](err) || is[types.BaseInvalidState](err) || is[types.BaseNotSupported](err) {
		return nil
	}
	return err
}
