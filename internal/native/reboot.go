package native

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/reboot"
)

// reboot carries out a request for a reboot of a VM that ran. It reports whether it did: the record replaced the
// status by that of the API server, so that the VM is observed again.
//
// It is part of an observation, because the provider may only observe and delete a VM that runs: any other right would
// let it change the VM (docs/decisions/0006).
func (x *external[T, C]) reboot(ctx context.Context, vm T, seen VM) (bool, error) {
	if _, ok := reboot.Requested(vm); !ok || x.step != stepNone || seen.State != StateRunning && seen.State != StateStopped {
		return false, nil
	}
	if wait := x.note.Wait(x.now(), vm.GetGeneration(), x.account); wait > 0 {
		x.again.After(vm, wait)
		return false, nil
	}
	err := reboot.CarryOut(ctx, vm, x.kube, func(ctx context.Context, mode machinev1alpha1.RebootMode) error {
		err := x.do("cannot reboot the VM", func() error { return x.account.Reboot(ctx, vm, mode) })
		if err == nil {
			x.record.Event(vm, event.Normal(machinev1alpha1.EventRebootRequested, "Requested a reboot of the VM: "+string(mode)))
		}
		return err
	}, isUnsent)
	x.note.changed = x.now()
	if err != nil {
		return false, x.tried(vm, err)
	}
	x.again.After(vm, soonest)
	return true, nil
}

// isUnsent reports whether a call certainly had no effect and may be repeated.
func isUnsent(err error) bool {
	e := asError("", err)
	return e.Class == fn.ErrorThrottled || e.Class == fn.ErrorTransient && e.Refused
}
