package vcenter

import (
	"slices"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// A Refusal makes clones fail.
type Refusal struct {
	// Match selects clones by the names of the folder and of the new VM.
	Match func(folder, name string) bool
	Fault types.BaseMethodFault
	// ByTask means that the clone starts, and its task fails.
	ByTask bool
}

// Refuse adds a refusal of clones. The returned function removes it.
func (v *VCenter) Refuse(r Refusal) (mend func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.refusals = append(v.refusals, &r)
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.refusals = slices.DeleteFunc(v.refusals, func(other *Refusal) bool { return other == &r })
	}
}

// Handle is a Handler of the simulator, which calls it before each method and answers with the
// returned fault. Handle refuses changes of rules and reboots that a vCenter refuses. It also refuses to destroy a VM that is
// being cloned, as a vCenter does. The simulator lists this VM before the clone is complete, and would panic.
func Handle(ctx *simulator.Context, m *simulator.Method) (mo.Reference, types.BaseMethodFault) {
	if m.Name == "Destroy_Task" && cloning(ctx) {
		return nil, &types.TaskInProgress{}
	}
	if f := checkRules(ctx, m); f != nil {
		return nil, f
	}
	if f := checkReboot(ctx, m); f != nil {
		return nil, f
	}
	return nil, nil
}

// cloning reports whether a clone is in progress.
func cloning(ctx *simulator.Context) bool {
	return slices.ContainsFunc(ctx.Map.AllReference("Task"), func(ref mo.Reference) (running bool) {
		if t, ok := ref.(*simulator.Task); ok {
			ctx.WithLock(t, func() {
				running = strings.HasPrefix(t.Info.DescriptionId, "VirtualMachine.clone") &&
					(t.Info.State == types.TaskInfoStateQueued || t.Info.State == types.TaskInfoStateRunning)
			})
		}
		return running
	})
}

// A refusable template is cloned unless a Refusal matches.
type refusable struct {
	*simulator.VirtualMachine
	refusal func(ctx *simulator.Context, clone *types.CloneVM_Task) *Refusal
}

// CloneVMTask is called by the simulator, which finds it by its name.
func (vm *refusable) CloneVMTask(ctx *simulator.Context, req *types.CloneVM_Task) soap.HasFault {
	r := vm.refusal(ctx, req)
	switch {
	case r == nil:
		return vm.VirtualMachine.CloneVMTask(ctx, req)
	case !r.ByTask:
		return &methods.CloneVM_TaskBody{Fault_: simulator.Fault("the clone is refused", r.Fault)}
	}
	task := simulator.CreateTask(vm.VirtualMachine, "cloneVm", func(*simulator.Task) (types.AnyType, types.BaseMethodFault) {
		return nil, r.Fault
	})
	return &methods.CloneVM_TaskBody{Res: &types.CloneVM_TaskResponse{Returnval: task.Run(ctx)}}
}

func (v *VCenter) refusal(ctx *simulator.Context, clone *types.CloneVM_Task) *Refusal {
	f, ok := ctx.Map.Get(clone.Folder).(*simulator.Folder)
	if !ok {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, r := range v.refusals {
		if r.Match(f.Name, clone.Name) {
			return r
		}
	}
	return nil
}
