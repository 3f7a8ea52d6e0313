package machine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/finalizer"
)

func TestPlanOfAMachine(t *testing.T) {
	dying := finalizer.State{Deleting: true, Held: true, Foreground: true}
	heldVM := vm{kind: "VirtualMachine", name: "v", held: true}
	freeVM := vm{kind: "VirtualMachine", name: "v"}
	n := &leavingNode{name: "n"}
	type op struct {
		t    v1alpha1.OperationType
		text string
	}
	cases := map[string]struct {
		machineState
		step    finalizer.Step
		release []vm
		op      op
	}{
		"WhileItLivesItsVMIsKept": {machineState: machineState{self: finalizer.State{Held: true}, vms: []vm{heldVM}}, step: finalizer.Nothing},
		"TheVMWaitsForTheNode": {machineState: machineState{self: dying, node: n, vms: []vm{heldVM}}, step: finalizer.Nothing,
			op: op{v1alpha1.OperationDrain, "Waiting for Node n: it is drained and deleted"}},
		"TheUserLearnsWhichPodBlocks": {machineState: machineState{self: dying, node: &leavingNode{name: "n", stage: v1alpha1.DeletionDraining, pods: []v1alpha1.DrainedPod{{Namespace: "a", Name: "b", Reason: "its budget"}}}, vms: []vm{heldVM}}, step: finalizer.Nothing,
			op: op{v1alpha1.OperationDrain, "Waiting for Node n: pod a/b: its budget"}},
		"TheVMIsReleasedWhenTheNodeIsGone": {machineState: machineState{self: dying, vms: []vm{heldVM}}, step: finalizer.Nothing, release: []vm{heldVM},
			op: op{v1alpha1.OperationDelete, "Waiting for VirtualMachine v: the VM is deleted"}},
		"AReleasedVMIsWaitedFor": {machineState: machineState{self: dying, vms: []vm{freeVM}}, step: finalizer.Nothing,
			op: op{v1alpha1.OperationDelete, "Waiting for VirtualMachine v: the VM is deleted"}},
		"WithoutVMAndNodeItGoes": {machineState: machineState{self: dying}, step: finalizer.Remove},
		"AVMThatCannotBeSeenKeepsIt": {machineState: machineState{self: dying, unreadable: "no right"}, step: finalizer.Nothing,
			op: op{v1alpha1.OperationDelete, "Waiting for a VM that cannot be seen: no right"}},
		"TroubleWithTheTargetClusterIsReported": {machineState: machineState{self: dying, node: &leavingNode{name: "n", trouble: "refused"}, vms: []vm{heldVM}}, step: finalizer.Nothing,
			op: op{v1alpha1.OperationDrain, "Waiting for Node n: refused"}},
		"ABackgroundDeletionStillReleases": {machineState: machineState{self: finalizer.State{Deleting: true, Held: true}, vms: []vm{heldVM}}, step: finalizer.DeleteAgain, release: []vm{heldVM},
			op: op{v1alpha1.OperationDelete, "Waiting for VirtualMachine v: the VM is deleted"}},
		"WhoTookOurFinalizerOffStillGetsTheVMReleased": {machineState: machineState{self: finalizer.State{Deleting: true}, vms: []vm{heldVM}}, step: finalizer.Nothing, release: []vm{heldVM},
			op: op{v1alpha1.OperationDelete, "Waiting for VirtualMachine v: the VM is deleted"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := planDeletion(tc.machineState)
			if p.step != tc.step {
				t.Errorf("step %s, want %s", p.step, tc.step)
			}
			if d := cmp.Diff(tc.release, p.release, cmp.AllowUnexported(vm{})); d != "" {
				t.Errorf("release (-want +got):\n%s", d)
			}
			got := op{}
			if p.operation != nil {
				got = op{p.operation.Type, p.operation.Description}
			}
			if got != tc.op {
				t.Errorf("operation %+v, want %+v", got, tc.op)
			}
			if want := p.step == finalizer.Remove || len(p.release) > 0; p.isIrrevocable() != want {
				t.Errorf("irrevocable %v, want %v", p.isIrrevocable(), want)
			}
		})
	}
}

func TestACreationWithoutEndIsForgottenWhenTheVMIsBeingDeleted(t *testing.T) {
	dying := finalizer.State{Deleting: true, Held: true, Foreground: true}
	uncertain := vm{kind: "VirtualMachine", name: "v", deleting: true, uncertain: true}
	with := func(change func(*vm)) []vm {
		v := uncertain
		change(&v)
		return []vm{v}
	}
	cases := map[string]struct {
		machineState
		forget []vm
	}{
		"WhenItIsReleased":              {machineState{self: dying, vms: []vm{uncertain}}, []vm{uncertain}},
		"NotBefore":                     {machineState{self: dying, vms: with(func(v *vm) { v.held = true })}, nil},
		"NotWhileItsNodeIsThere":        {machineState{self: dying, vms: []vm{uncertain}, node: &leavingNode{name: "n"}}, nil},
		"NotWhileItCouldBeCreatedAgain": {machineState{self: dying, vms: with(func(v *vm) { v.deleting = false })}, nil},
		"NotWhenItsEndIsKnown":          {machineState{self: dying, vms: with(func(v *vm) { v.uncertain = false })}, nil},
		"NotOfAMachineThatIsNotDeleted": {machineState{self: finalizer.State{Held: true}, vms: []vm{uncertain}}, nil},
		"NotOfOneThatGoesWithoutItsVM":  {machineState{self: dying, vms: []vm{uncertain}, forceDelete: true}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.forget, planDeletion(tc.machineState).forget, cmp.AllowUnexported(vm{})); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestStagesOfADeletion(t *testing.T) {
	const timeout = time.Hour
	now := time.Unix(100_000, 0)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	heldVM, dyingVM := vm{name: "v", held: true, deleting: true}, vm{name: "v", deleting: true}
	draining := func(stage v1alpha1.DeletionStage, since time.Duration) *leavingNode {
		return &leavingNode{name: "n", stage: stage, since: ago(since)}
	}
	backup := []string{"backup"}
	type want struct {
		stage    v1alpha1.DeletionStage // in the status, "" for no change
		since    time.Time
		released bool
		dropped  bool
		timedOut []string
		again    time.Duration
	}
	cases := map[string]struct {
		machineState
		want
	}{
		"ItBeginsWithTheDrain": {
			machineState{node: draining("", 0), vms: []vm{heldVM}},
			want{stage: "Draining", since: now},
		},
		"AStageKeepsItsTime": {
			machineState{stage: "Draining", since: ago(time.Minute), node: draining("Draining", time.Minute), vms: []vm{heldVM}},
			want{stage: "Draining", since: ago(time.Minute)},
		},
		"AHookOfTheMachineIsReportedAtOnce": {
			machineState{preDrain: backup, node: draining("", 0), vms: []vm{heldVM}},
			want{stage: "WaitingForPreDrainHooks", since: now},
		},
		"TheDrainGoesOnWhenItsHooksLetGo": {
			machineState{stage: "WaitingForPreDrainHooks", since: ago(time.Minute), preDrain: backup, node: draining("Draining", 0), vms: []vm{heldVM}},
			want{stage: "Draining", since: now},
		},
		"VolumesAreReported": {
			machineState{stage: "Draining", since: ago(time.Minute), node: draining("DetachingVolumes", 0), vms: []vm{heldVM}},
			want{stage: "DetachingVolumes", since: now},
		},
		"ANodeThatGoesAtOnceIsNotReported": {
			machineState{stage: "Draining", since: ago(time.Minute), node: draining("DeletingNode", time.Second), vms: []vm{heldVM}},
			want{again: reportNodeAfter - time.Second},
		},
		"OneThatDoesNotIs": {
			machineState{stage: "Draining", since: ago(time.Minute), node: draining("DeletingNode", reportNodeAfter), vms: []vm{heldVM}},
			want{stage: "DeletingNode", since: now},
		},
		"WithoutNodeTheVMGoes": {
			machineState{vms: []vm{heldVM}},
			want{stage: "DeletingVM", since: now, released: true},
		},
		"UnlessAPreDrainHookHoldsIt": {
			machineState{preDrain: backup, vms: []vm{heldVM}},
			want{stage: "WaitingForPreDrainHooks", since: now, again: timeout - time.Minute},
		},
		"WhichItDoesNotForEver": {
			machineState{preDrain: backup, deletedAt: ago(timeout), stage: "WaitingForPreDrainHooks", since: ago(timeout), vms: []vm{heldVM}},
			want{stage: "DeletingVM", since: now, released: true, timedOut: backup},
		},
		"NorTwice": {
			machineState{preDrain: backup, stage: "Draining", vms: []vm{heldVM}},
			want{stage: "DeletingVM", since: now, released: true},
		},
		"APreTerminateHookHoldsTheVM": {
			machineState{preTerminate: backup, stage: "Draining", vms: []vm{heldVM}},
			want{stage: "WaitingForPreTerminateHooks", since: now, again: timeout},
		},
		"FromThenOnItsTimeoutCounts": {
			machineState{preTerminate: backup, stage: "WaitingForPreTerminateHooks", since: ago(10 * time.Minute), vms: []vm{heldVM}},
			want{stage: "WaitingForPreTerminateHooks", since: ago(10 * time.Minute), again: timeout - 10*time.Minute},
		},
		"AfterItTheVMGoes": {
			machineState{preTerminate: backup, stage: "WaitingForPreTerminateHooks", since: ago(timeout), vms: []vm{heldVM}},
			want{stage: "DeletingVM", since: now, released: true, timedOut: backup},
		},
		"AHookThatComesWhenTheVMGoesIsTooLate": {
			machineState{preTerminate: backup, stage: "DeletingVM", since: ago(time.Minute), vms: []vm{dyingVM}},
			want{stage: "DeletingVM", since: ago(time.Minute)},
		},
		"ByForceItsProviderHasAMoment": {
			machineState{forceDelete: true, stage: "DeletingVM", since: ago(time.Second), vms: []vm{dyingVM}},
			want{stage: "DeletingVM", since: ago(time.Second), again: forceDeleteAfter},
		},
		"AndNoMore": {
			machineState{forceDelete: true, stage: "DeletingVM", since: ago(forceDeleteAfter), vms: []vm{dyingVM}},
			want{stage: "DeletingVM", since: ago(forceDeleteAfter), dropped: true},
		},
		"ForceDoesNotSpareTheDrain": {
			machineState{forceDelete: true, stage: "Draining", since: ago(time.Hour), node: draining("Draining", time.Hour), vms: []vm{heldVM}},
			want{stage: "Draining", since: ago(time.Hour)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := tc.machineState
			s.self, s.now, s.hookTimeout = finalizer.State{Deleting: true, Held: true, Foreground: true}, now, timeout
			if s.deletedAt.IsZero() {
				s.deletedAt = ago(time.Minute)
			}
			p := planDeletion(s)
			got := want{released: len(p.release) > 0, dropped: len(p.abandon) > 0, timedOut: p.timedOut, again: p.again}
			if p.deletion != nil {
				got.stage, got.since = p.deletion.Stage, p.deletion.Since.Time.Local()
			}
			if d := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if (p.deletion == nil) != (p.operation == nil) {
				t.Errorf("operation %v, deletion %v", p.operation, p.deletion)
			}
		})
	}
}

func TestADeletionRecordsWhenItLeftTheNode(t *testing.T) {
	now, before := time.Unix(100_000, 0).UTC(), metav1.NewTime(time.Unix(90_000, 0).UTC())
	at := metav1.NewTime(now)
	held := vm{name: "v", held: true, deleting: true}
	cases := map[string]struct {
		machineState
		want *metav1.Time
	}{
		"NotWhileTheNodeIsDrained":     {machineState{node: &leavingNode{name: "n", stage: "Draining"}, vms: []vm{held}}, nil},
		"WhenTheVMIsDeleted":           {machineState{stage: "Draining", since: before.Time, vms: []vm{held}}, &at},
		"WhenAHookHoldsTheVM":          {machineState{stage: "Draining", since: before.Time, preTerminate: []string{"backup"}, vms: []vm{held}}, &at},
		"AndKeepsTheTimeInLaterStages": {machineState{stage: "WaitingForPreTerminateHooks", since: now, nodeDeleted: &before, vms: []vm{held}}, &before},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := tc.machineState
			s.self, s.now, s.hookTimeout, s.deletedAt = finalizer.State{Deleting: true, Held: true, Foreground: true}, now, time.Hour, before.Time
			if d := cmp.Diff(tc.want, planDeletion(s).deletion.NodeDeletedTime); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
