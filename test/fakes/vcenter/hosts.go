package vcenter

import (
	"context"
	"time"

	"github.com/vmware/govmomi/fault"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"
)

// running is a VM that its host runs.
type running struct {
	// off is closed when the VM shall stop, and ended once it has stopped. restarts gets a value when the VM is rebooted.
	off, ended, restarts chan struct{}
	// reboots is the number of reboots before it ran, or for which Reboot was called.
	reboots int
}

// runVMs runs the powered-on VMs until ctx is done.
func (v *VCenter) runVMs(ctx context.Context) {
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			v.look(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// look for changes of the power states, and boot and stop guests accordingly.
func (v *VCenter) look(ctx context.Context) {
	vms := v.vms()
	v.mu.Lock()
	defer v.mu.Unlock()
	on := map[string]bool{}
	for _, vm := range vms {
		if !vm.runs {
			continue
		}
		on[vm.ID] = true
		if v.running[vm.ID] == nil {
			r := &running{off: make(chan struct{}), ended: make(chan struct{}), restarts: make(chan struct{}, 1), reboots: len(v.reboots[vm.ID])}
			v.running[vm.ID], v.ran[vm.ID] = r, true
			v.hosts.Go(func() { v.run(ctx, vm.Booted, r) })
		}
	}
	for id, r := range v.running {
		if n := len(v.reboots[id]); on[id] && n > r.reboots && v.opts.Reboot != nil && !closed(r.off) {
			select {
			case r.restarts <- struct{}{}:
				r.reboots = n
			default: // The guest has not restarted yet.
			}
			continue
		}
		if (!on[id] || len(v.reboots[id]) > r.reboots) && !closed(r.off) {
			close(r.off)
		}
		// Forget an ended VM, so that it can boot again.
		if closed(r.ended) {
			delete(v.running, id)
		}
	}
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// run a VM until it is off.
func (v *VCenter) run(ctx context.Context, vm Booted, r *running) {
	defer close(r.ended)
	ip := v.opts.Boot(vm)
	for {
		if ip != "" {
			if err := v.report(ctx, vm, ip); err != nil && ctx.Err() == nil {
				v.failed(err)
			}
		}
		select {
		case <-r.restarts:
			v.opts.Reboot(vm)
			continue
		case <-r.off:
			v.opts.Stop(vm)
		case <-ctx.Done():
		}
		return
	}
}

// report the address of a guest like its tools, by the keys that the simulator has for this
// purpose.
func (v *VCenter) report(ctx context.Context, vm Booted, ip string) error {
	o := object.NewVirtualMachine(v.admin.Client, types.ManagedObjectReference{Type: "VirtualMachine", Value: vm.ID})
	err := done(ctx)(o.Reconfigure(ctx, types.VirtualMachineConfigSpec{ExtraConfig: []types.BaseOptionValue{
		&types.OptionValue{Key: "SET.guest.hostName", Value: vm.Name},
		&types.OptionValue{Key: "SET.guest.ipAddress", Value: ip},
		&types.OptionValue{Key: "SET.guest.toolsRunningStatus", Value: string(types.VirtualMachineToolsRunningStatusGuestToolsRunning)},
	}}))
	var gone *types.ManagedObjectNotFound
	if _, ok := fault.As(err, &gone); ok {
		return nil
	}
	return err
}

// awaitEnd of a VM that is off.
func (v *VCenter) awaitEnd(ctx context.Context, id string) error {
	v.mu.Lock()
	r := v.running[id]
	v.mu.Unlock()
	if r == nil {
		return nil
	}
	select {
	case <-r.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
