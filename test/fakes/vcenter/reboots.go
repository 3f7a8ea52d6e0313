package vcenter

import (
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// The simulator restarts a guest whose tools run, and resets any VM by turning it off and on. A vCenter refuses both
// while another task changes the VM, and the reset of a VM that is not powered on. The source is the reference of the vSphere
// Web Services API (VirtualMachine, RebootGuest and ResetVM_Task).

// Methods that reboot a VM.
const (
	methodReset   = "ResetVM_Task"
	methodReboot  = "RebootGuest"
	methodPowerOn = "PowerOnVM_Task"
)

// checkReboot refuses a reboot that a vCenter refuses and the simulator does not.
func checkReboot(ctx *simulator.Context, m *simulator.Method) types.BaseMethodFault {
	vm, ok := ctx.Map.Get(m.This).(*simulator.VirtualMachine)
	if !ok || m.Name != methodReset && m.Name != methodReboot {
		return nil
	}
	if task := taskOf(ctx, vm.Self); task != nil {
		return &types.TaskInProgress{Task: *task}
	}
	power, _ := stateOf(ctx, vm)
	if m.Name == methodReset && power != types.VirtualMachinePowerStatePoweredOn {
		return &types.InvalidPowerState{RequestedState: types.VirtualMachinePowerStatePoweredOn, ExistingState: power}
	}
	return nil
}

// taskOf returns the task that changes a VM, or nil.
func taskOf(ctx *simulator.Context, vm types.ManagedObjectReference) (found *types.ManagedObjectReference) {
	for _, ref := range ctx.Map.AllReference("Task") {
		t, ok := ref.(*simulator.Task)
		if !ok {
			continue
		}
		ctx.WithLock(t, func() {
			if t.Info.Entity != nil && *t.Info.Entity == vm && (t.Info.State == types.TaskInfoStateQueued || t.Info.State == types.TaskInfoStateRunning) {
				found = &t.Self
			}
		})
	}
	return found
}

// stateOf returns the power state of a VM, and whether its tools run.
func stateOf(ctx *simulator.Context, vm *simulator.VirtualMachine) (power types.VirtualMachinePowerState, hasTools bool) {
	ctx.WithLock(vm, func() {
		power = vm.Runtime.PowerState
		hasTools = vm.Guest != nil && vm.Guest.ToolsRunningStatus == string(types.VirtualMachineToolsRunningStatusGuestToolsRunning)
	})
	return power, hasTools
}

// handle is the Handler of a VCenter. It records the reboots that Handle does not refuse.
func (v *VCenter) handle(ctx *simulator.Context, m *simulator.Method) (mo.Reference, types.BaseMethodFault) {
	o, f := Handle(ctx, m)
	vm, ok := ctx.Map.Get(m.This).(*simulator.VirtualMachine)
	if f != nil || !ok {
		return o, f
	}
	power, hasTools := stateOf(ctx, vm)
	isOn := power == types.VirtualMachinePowerStatePoweredOn
	if m.Name == methodReboot && isOn && !hasTools {
		// Refused here, since the simulator would restart a guest whose tools begin to run after this look, and nothing would record it.
		return nil, new(types.ToolsUnavailable)
	}
	id := vm.Self.Value
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case m.Name == methodReboot && isOn:
		v.reboots[id] = append(v.reboots[id], "Soft")
	case m.Name == methodReset && isOn, m.Name == methodPowerOn && !isOn && v.ran[id]:
		v.reboots[id] = append(v.reboots[id], "Hard")
	}
	return o, f
}

// Reboots returns the reboots of the VM with an instance UUID in their order: "Soft" if its tools were asked to restart the
// guest, "Hard" if the VM was reset, or powered on after it had stopped. The hooks Stop and Boot are called for each.
func (v *VCenter) Reboots(instanceUUID string) []string {
	vms := v.vms()
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, vm := range vms {
		if vm.InstanceUUID == instanceUUID {
			return slices.Clone(v.reboots[vm.ID])
		}
	}
	return nil
}
