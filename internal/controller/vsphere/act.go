package vsphere

import (
	"context"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/types"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/apis/vsphere/v1alpha1"
)

// act carries out the planned step. It may be called twice.
func (x *external) act(ctx context.Context, c *vim25.Client, vm *v1alpha1.VirtualMachine) error {
	x.again.After(vm, whileBusy)
	switch x.step {
	case stepCancel:
		x.again.After(vm, whileCloning)
		if !x.task.cancelable {
			return nil
		}
		return cancelTask(ctx, c, vm.GetAnnotations()[v1alpha1.AnnotationCloneTask])
	case stepMark:
		return x.mark(ctx, c, vm)
	}
	if x.vm == nil {
		return nil
	}
	step := x.step
	// The next step follows at once: it does not depend on the memory of this one.
	switch step {
	case stepJoin:
		if err := x.join(ctx, c, vm); err != nil || !x.note.hasJoined || vm.Spec.ForProvider.PowerState == v1alpha1.PowerOff {
			return err
		}
		step = stepPowerOn
	case stepLeave:
		if err := x.leave(ctx, c, vm); err != nil || !x.note.hasLeft {
			return err
		}
		step = stepDestroy
	}
	o := object.NewVirtualMachine(c, *x.vm)
	var t *object.Task
	var err error
	switch step {
	case stepPowerOn:
		t, err = o.PowerOn(ctx)
	case stepPowerOff:
		t, err = o.PowerOff(ctx)
	case stepDetach:
		t, err = x.detach(ctx, o, vm)
	case stepDestroy:
		t, err = o.Destroy(ctx)
	default:
		return nil
	}
	switch {
	// The requested state is reached already, or a running task leads to it.
	case is[*types.TaskInProgress](err), is[*types.InvalidPowerState](err), is[*types.ManagedObjectNotFound](err):
		return nil
	case err != nil:
		return err
	}
	x.note.task = t.Reference().Value
	return nil
}

// mark sets the missing custom attributes and tags of the VM.
func (x *external) mark(ctx context.Context, c *vim25.Client, vm *v1alpha1.VirtualMachine) error {
	if x.vm == nil {
		return nil
	}
	if err := setAttributes(ctx, c, *x.vm, x.attributes); err != nil {
		return err
	}
	if len(vm.Spec.ForProvider.Tags) == 0 {
		return nil
	}
	missing, err := x.tagsMissing(ctx, c, vm.Spec.ForProvider.Tags)
	if err != nil || len(missing) == 0 {
		return err
	}
	return x.attachTags(ctx, c, missing)
}

// detach removes the foreign disks without a file operation: their files stay.
func (x *external) detach(ctx context.Context, o *object.VirtualMachine, vm *v1alpha1.VirtualMachine) (*object.Task, error) {
	spec := types.VirtualMachineConfigSpec{}
	var files []string
	for _, d := range x.foreign {
		spec.DeviceChange = append(spec.DeviceChange, &types.VirtualDeviceConfigSpec{Operation: types.VirtualDeviceConfigSpecOperationRemove, Device: d})
		files = append(files, backingOf(d).file)
	}
	t, err := o.Reconfigure(ctx, spec)
	if err == nil {
		x.record.Event(vm, event.Normal(machinev1alpha1.EventDisksDetached, fmt.Sprintf("Disks that are not the VM's own are detached from it, and stay: %q", files)))
	}
	return t, err
}
