package vsphere

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/types"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/apis/vsphere/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
	"github.com/drover-dev/drover/internal/reboot"
)

// reboot carries out a request for a reboot of a VM that is finished. It reports whether it did: the record replaced the
// status by that of the API server, so that the VM is observed again.
//
// It is part of an observation, because the provider may only observe and delete a VM that runs: any other right would
// let it change the VM (docs/decisions/0006).
func (x *external) reboot(ctx context.Context, vm *v1alpha1.VirtualMachine, s sight) (bool, error) {
	if _, ok := reboot.Requested(vm); !ok || !s.finished || s.vm == nil || s.task != noTask {
		return false, nil
	}
	if wait := x.note.Wait(x.now(), vm.GetGeneration(), x.vcenter); wait > 0 {
		x.again.After(vm, wait)
		return false, nil
	}
	err := reboot.CarryOut(ctx, vm, x.kube, func(ctx context.Context, mode machinev1alpha1.RebootMode) error {
		err := x.do(ctx, "cannot reboot the VM", func(c *vim25.Client) error { return x.restart(ctx, c, s, mode) })
		if err == nil {
			x.record.Event(vm, event.Normal(machinev1alpha1.EventRebootRequested, "Requested a reboot of the VM: "+string(mode)))
		}
		return err
	}, isUnsent)
	if err != nil {
		return false, x.tried(vm, err)
	}
	x.again.After(vm, whileBusy)
	return true, nil
}

// restart reboots a VM by its power state. A VM that is suspended is powered on too. It may be called twice.
func (x *external) restart(ctx context.Context, c *vim25.Client, s sight, mode machinev1alpha1.RebootMode) error {
	if !s.wantOn {
		return native.Invalid("powerState", "the VM shall be powered off")
	}
	o := object.NewVirtualMachine(c, *x.vm)
	var t *object.Task
	var err error
	switch {
	case s.vm.power != types.VirtualMachinePowerStatePoweredOn:
		t, err = o.PowerOn(ctx)
	case mode == machinev1alpha1.RebootSoft:
		return o.RebootGuest(ctx)
	default:
		t, err = o.Reset(ctx)
	}
	if err != nil {
		return err
	}
	x.note.task = t.Reference().Value
	return nil
}

// isUnsent reports whether a reboot was refused because of something that passes: another task of the VM, a power state that
// changed since it was observed, or too many requests.
func isUnsent(err error) bool {
	return is[*types.TaskInProgress](err) || is[*types.InvalidPowerState](err) || classOf(err) == fn.ErrorThrottled
}
