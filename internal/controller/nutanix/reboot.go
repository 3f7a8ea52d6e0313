package nutanix

import (
	"context"
	"errors"
	"net/http"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/apis/nutanix/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// Reboot starts the task that reboots the VM. A soft reboot is requested by ACPI, which needs no Nutanix Guest Tools in the
// VM.
func (a *account) Reboot(ctx context.Context, vm *v1alpha1.VirtualMachine, mode machinev1alpha1.RebootMode) error {
	v := a.views.Recall(meta.GetExternalName(vm))
	if v.uuid == "" {
		return &native.Error{Class: fn.ErrorTransient, Err: errors.New("the VM was not observed"), Refused: true}
	}
	id, err := a.client.start(ctx, request{
		method: http.MethodPost, path: pathVMs + "/" + v.uuid + "/$actions/" + rebootAction(v.power, mode), etag: v.etag,
	})
	if err != nil {
		return classify("cannot reboot the VM", err)
	}
	vm.Status.AtProvider.Task = id
	return nil
}

// rebootAction returns the action of the API that reboots a VM in the power state. A VM that is paused runs no operating
// system, and a reset would leave it paused.
func rebootAction(power string, mode machinev1alpha1.RebootMode) string {
	switch {
	case power == powerOff:
		return "power-on"
	case power == powerPaused:
		return "power-cycle"
	case mode == machinev1alpha1.RebootSoft:
		return "reboot"
	}
	return "reset"
}
