package vsphere

import (
	"slices"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
	corev1 "k8s.io/api/core/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/apis/vsphere/v1alpha1"
)

// rebootCalls are the calls by which the provider may reboot a VM.
var rebootCalls = []string{"RebootGuest", "ResetVM_Task", "PowerOnVM_Task"}

// ready brings the VM to the point at which its Machine may request a reboot.
func (w *world) ready() {
	w.t.Helper()
	w.create()
	w.untilReady()
	w.edit(func(vm *simulator.VirtualMachine) {
		vm.Guest.ToolsRunningStatus = string(types.VirtualMachineToolsRunningStatusGuestToolsRunning)
	})
}

// request requests a reboot as a Machine does, which may only observe and delete its VM by then.
func (w *world) request(mode machinev1alpha1.RebootMode, id string) {
	w.t.Helper()
	w.change(func(vm *v1alpha1.VirtualMachine) {
		vm.SetManagementPolicies(xpv2.ManagementPolicies{xpv2.ManagementActionObserve, xpv2.ManagementActionDelete})
		meta.AddAnnotations(vm, map[string]string{machinev1alpha1.AnnotationReboot: machinev1alpha1.RebootRequest(mode, id)})
	})
}

// untilAnswered reconciles until the cloud answered the last request, and returns the condition.
func (w *world) untilAnswered(status corev1.ConditionStatus) xpv2.Condition {
	w.t.Helper()
	return w.until("answered", func(vm *v1alpha1.VirtualMachine) bool {
		w.clock.pass(10 * time.Second)
		return vm.GetCondition(machinev1alpha1.ConditionRebooted).Status == status
	}).GetCondition(machinev1alpha1.ConditionRebooted)
}

func TestAReboot(t *testing.T) {
	cases := map[string]struct {
		before func(*world)
		mode   machinev1alpha1.RebootMode
		status corev1.ConditionStatus
		want   string
		// calls are the numbers of calls, in the order of rebootCalls.
		calls []int
	}{
		"IsRequestedFromTheTools": {
			mode: machinev1alpha1.RebootSoft, status: corev1.ConditionTrue, want: "Soft/one: the cloud accepted the request", calls: []int{1, 0, 0},
		},
		"IsRefusedWithoutTools": {
			before: func(w *world) {
				w.edit(func(vm *simulator.VirtualMachine) {
					vm.Guest.ToolsRunningStatus = string(types.VirtualMachineToolsRunningStatusGuestToolsNotRunning)
				})
			},
			mode: machinev1alpha1.RebootSoft, status: corev1.ConditionFalse,
			want: `Soft/one: ClusterProviderConfig "default": InvalidRequest: cannot reboot the VM: ToolsUnavailable`, calls: []int{1, 0, 0},
		},
		"ResetsTheVM": {
			mode: machinev1alpha1.RebootHard, status: corev1.ConditionTrue, want: "Hard/one: the cloud accepted the request", calls: []int{0, 1, 0},
		},
		"StartsAVMThatIsPoweredOff": {
			before: func(w *world) { w.done(w.vm(vmName).PowerOff(w.t.Context())) },
			mode:   machinev1alpha1.RebootSoft, status: corev1.ConditionTrue, want: "Soft/one: the cloud accepted the request", calls: []int{0, 0, 1},
		},
		"IsRequestedAgainWhileAnotherTaskRuns": {
			before: func(w *world) { w.fault("ResetVM_Task", &types.TaskInProgress{}, 2) },
			mode:   machinev1alpha1.RebootHard, status: corev1.ConditionTrue, want: "Hard/one: the cloud accepted the request", calls: []int{0, 3, 0},
		},
		"WithoutThePrivilegeIsRefused": {
			before: func(w *world) {
				w.fault("ResetVM_Task", &types.NoPermission{PrivilegeId: "VirtualMachine.Interact.Reset"}, 1)
			},
			mode: machinev1alpha1.RebootHard, status: corev1.ConditionFalse,
			want: `Hard/one: ClusterProviderConfig "default": PermissionDenied: cannot reboot the VM: Fault injected by simulator (needs the privilege VirtualMachine.Interact.Reset)`, calls: []int{0, 1, 0},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ready()
			if tc.before != nil {
				tc.before(w)
			}
			before := w.calledEach()
			w.request(tc.mode, "one")
			if c := w.untilAnswered(tc.status); c.Message != tc.want {
				t.Errorf("%q, want %q", c.Message, tc.want)
			}
			w.restart()
			if tc.status == corev1.ConditionTrue {
				w.untilReady()
			}
			w.reconcile()
			for i, n := range w.calledEach() {
				if n -= before[i]; n != tc.calls[i] {
					t.Errorf("%d calls of %s, want %d", n, rebootCalls[i], tc.calls[i])
				}
			}
			requested := slices.ContainsFunc(*w.reported, func(e event.Event) bool { return e.Reason == machinev1alpha1.EventRebootRequested })
			if accepted := tc.status == corev1.ConditionTrue; requested != accepted {
				t.Errorf("the event of a request that was accepted: %t, want %t", requested, accepted)
			}
		})
	}
}

func (w *world) calledEach() []int {
	var out []int
	for _, name := range rebootCalls {
		out = append(out, w.called(name))
	}
	return out
}

// A failingVM is reset by a task that fails.
type failingVM struct{ *simulator.VirtualMachine }

// ResetVMTask is called by the simulator, which finds it by its name.
func (vm *failingVM) ResetVMTask(ctx *simulator.Context, _ *types.ResetVM_Task) soap.HasFault {
	task := simulator.CreateTask(vm.VirtualMachine, "reset", func(*simulator.Task) (types.AnyType, types.BaseMethodFault) {
		return nil, &types.InsufficientMemoryResourcesFault{}
	})
	return &methods.ResetVM_TaskBody{Res: &types.ResetVM_TaskResponse{Returnval: task.Run(ctx)}}
}

// TestAResetWhoseTaskFailsIsReported: the Machine does not wait for its Node then.
func TestAResetWhoseTaskFailsIsReported(t *testing.T) {
	w := newWorld(t)
	w.ready()
	m := w.model.Map()
	vm := m.Get(w.clone().Self).(*simulator.VirtualMachine)
	m.Put(&failingVM{vm})
	t.Cleanup(func() { m.Put(vm) })
	w.request(machinev1alpha1.RebootHard, "one")
	want := `Hard/one: ClusterProviderConfig "default": CapacityExhausted: a task of the VM failed: *types.InsufficientMemoryResourcesFault`
	if c := w.untilAnswered(corev1.ConditionFalse); c.Message != want {
		t.Errorf("%q, want %q", c.Message, want)
	}
	if w.untilReady(); w.called("ResetVM_Task") != 1 {
		t.Errorf("%d resets, want 1", w.called("ResetVM_Task"))
	}
}
