package azure

import (
	"context"
	"errors"
	"fmt"

	"github.com/drover-dev/drover/apis/azure/v1alpha1"
	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

var errEphemeral = &native.Error{
	Class: fn.ErrorInvalidRequest, Err: errors.New("a hard reboot of Azure moves the VM to another host, where a VM with an ephemeral OS disk would begin anew without its bootstrap token: request a soft reboot, or replace the Machine"),
}

// Reboot asks the operating system of a running VM to restart, or moves the VM to another host, which resets it. It starts a
// VM that is stopped.
func (a *account) Reboot(ctx context.Context, vm *v1alpha1.VirtualMachine, mode machinev1alpha1.RebootMode) error {
	at := &vm.Status.AtProvider
	if at.ID == "" {
		return native.Refused(errUnknown)
	}
	m, err := a.own(ctx, vm)
	if err == nil && m == nil {
		err = &native.Error{Class: fn.ErrorTransient, Err: fmt.Errorf("VM %s does not exist", at.VMName)}
	}
	if err != nil {
		return native.Refused(err)
	}
	n := m.name()
	switch {
	case isStopped(m.power):
		_, err = a.api.vms.BeginStart(ctx, n.group, n.name, nil)
	case m.power != powerRunning:
		return &native.Error{Class: fn.ErrorTransient, Refused: true, Err: fmt.Errorf("VM %s has the %s", n.name, textOf(*m))}
	case mode == machinev1alpha1.RebootSoft:
		_, err = a.api.vms.BeginRestart(ctx, n.group, n.name, nil)
	case m.isEphemeral():
		return errEphemeral
	default:
		_, err = a.api.vms.BeginRedeploy(ctx, n.group, n.name, nil)
	}
	return classify("cannot reboot the VM", err)
}
