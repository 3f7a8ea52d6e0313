package metalstack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/apis/metalstack/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

var errNoSoftReboot = &native.Error{
	Class: fn.ErrorInvalidRequest, Err: errors.New("metal-stack cannot ask the operating system of a machine to restart, it can only reset the machine"),
}

// Reboot resets the machine, if it is still allocated for the VM, or powers it on if it was powered off: the management
// controller ignores a reset of a machine without power.
func (a *account) Reboot(ctx context.Context, vm *v1alpha1.VirtualMachine, mode machinev1alpha1.RebootMode) error {
	ctx, cancel := context.WithTimeout(ctx, actWithin)
	defer cancel()
	m, err := a.read(ctx, meta.GetExternalName(vm))
	if err == nil && m == nil {
		err = &native.Error{Class: fn.ErrorTransient, Err: errors.New("the machine is no longer allocated for the VM")}
	}
	if err != nil {
		return native.Refused(err)
	}
	command := "reset"
	switch {
	case m.newest().isOff():
		command = "on"
	case mode == machinev1alpha1.RebootSoft:
		return errNoSoftReboot
	}
	err = a.call(ctx, http.MethodPost, "/v1/machine/"+url.PathEscape(m.ID)+"/power/"+command, struct{}{}, &struct{}{})
	return classify(fmt.Sprintf("cannot reboot machine %s", m.ID), err)
}
