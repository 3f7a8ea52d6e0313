package vcd

import (
	"context"
	"errors"
	"net/http"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/apis/vcd/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// Power actions of a VM.
const (
	powerOn     = "/power/action/powerOn"
	powerReboot = "/power/action/reboot"
	powerReset  = "/power/action/reset"
)

// Reboot starts the task that reboots the VM. VMware Tools carry out a soft reboot: without them the task fails, and the
// VM runs on. The task is not recorded in the status, because a VM with a task counts as busy, and its Node proves the
// reboot.
func (a *account) Reboot(ctx context.Context, vm *v1alpha1.VirtualMachine, mode machinev1alpha1.RebootMode) error {
	v := a.views.Recall(meta.GetExternalName(vm))
	if v.vm == nil {
		return &native.Error{Class: fn.ErrorTransient, Err: errors.New("the VM was not read before its reboot"), Refused: true}
	}
	_, err := a.client.start(ctx, request{method: http.MethodPost, path: pathVM + v.vm.uuid() + rebootOf(*v.vm, mode)})
	return classify("cannot reboot the VM", err)
}

// rebootOf returns the power action that reboots a VM. Cloud Director reboots and resets only a VM that is powered on.
func rebootOf(m machine, mode machinev1alpha1.RebootMode) string {
	switch {
	case m.Status != statusPoweredOn:
		return powerOn
	case mode == machinev1alpha1.RebootHard:
		return powerReset
	}
	return powerReboot
}
