package proxmox

import (
	"context"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/apis/proxmox/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

const (
	// shutdownFor is how long a soft reboot waits for the guest to shut down. The task locks the configuration of the VM for
	// this time, so that it must end before a hard reboot follows. The default of Proxmox VE, a minute, is shorter than
	// the 90 seconds that systemd gives a service to stop.
	shutdownFor = 3 * time.Minute
	// lockSuspended is the lock of a VM that is hibernated. Unlike other locks, it does not prevent a start.
	lockSuspended = "suspended"
)

// Reboot starts the task that shuts the guest down and starts the VM again, or that resets the VM.
//
// A tag may be copied to another VM, so it proves less than a change of the VM needs: the configuration is read.
func (a *account) Reboot(ctx context.Context, vm *v1alpha1.VirtualMachine, mode machinev1alpha1.RebootMode) error {
	v := a.views.Recall(meta.GetExternalName(vm))
	if v.vmid == 0 {
		return refused("the VM was not observed")
	}
	c, there, err := a.readConfig(ctx, v.node, v.vmid)
	switch {
	case err != nil:
		return native.Refused(err)
	case !there:
		return refused("the VM with the VMID %d is no longer on node %s", v.vmid, v.node)
	case !c.isOf(meta.GetExternalName(vm)):
		return &native.Error{Class: fn.ErrorInvalidRequest, Err: fmt.Errorf("the VM with the VMID %d has the tag of this VM, and another UUID", v.vmid)}
	}
	if lock := c["lock"]; lock != "" && lock != lockSuspended {
		return refused("VM is locked (%s)", lock)
	}
	status, err := a.powerState(ctx, v.node, v.vmid)
	if err != nil {
		return native.Refused(err)
	}
	action, params := rebootAction(status, mode)
	return a.begin(vm, "cannot reboot the VM", func(upid any) error {
		return a.client.Post(ctx, fmt.Sprintf("/nodes/%s/qemu/%d/status/%s", v.node, v.vmid, action), params, upid)
	})
}

// rebootAction returns the call of the API that reboots a VM with the status, and its parameters.
func rebootAction(status string, mode machinev1alpha1.RebootMode) (action string, params any) {
	switch {
	case status != "running":
		return "start", nil
	case mode == machinev1alpha1.RebootSoft:
		return "reboot", map[string]int64{"timeout": int64(shutdownFor / time.Second)}
	}
	return "reset", nil
}

// refused returns an error that has no effect, so that the reboot is requested again.
func refused(format string, args ...any) error {
	return &native.Error{Class: fn.ErrorTransient, What: "cannot reboot the VM", Err: fmt.Errorf(format, args...), Refused: true}
}
