package deletion

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
	heldVM := Resource{Kind: "VirtualMachine", Name: "v", Held: true}
	freeVM := Resource{Kind: "VirtualMachine", Name: "v"}
	n := &Node{Name: "n"}
	type op struct {
		t    v1alpha1.OperationType
		text string
	}
	cases := map[string]struct {
		State
		step    finalizer.Step
		release []Resource
		op      op
	}{
		"WhileItLivesItsVMIsKept": {State: State{Self: finalizer.State{Held: true}, VMs: []Resource{heldVM}}, step: finalizer.Nothing},
		"TheVMWaitsForTheNode": {State: State{Self: dying, Node: n, VMs: []Resource{heldVM}}, step: finalizer.Nothing,
			op: op{v1alpha1.OperationDrain, "Waiting for Node n: it is drained and deleted"}},
		"TheUserLearnsWhichPodBlocks": {State: State{Self: dying, Node: &Node{Name: "n", Stage: v1alpha1.DeletionDraining, Pods: []v1alpha1.DrainedPod{{Namespace: "a", Name: "b", Reason: "its budget"}}}, VMs: []Resource{heldVM}}, step: finalizer.Nothing,
			op: op{v1alpha1.OperationDrain, "Waiting for Node n: pod a/b: its budget"}},
		"TheVMIsReleasedWhenTheNodeIsGone": {State: State{Self: dying, VMs: []Resource{heldVM}}, step: finalizer.Nothing, release: []Resource{heldVM},
			op: op{v1alpha1.OperationDelete, "Waiting for VirtualMachine v: the VM is deleted"}},
		"AReleasedVMIsWaitedFor": {State: State{Self: dying, VMs: []Resource{freeVM}}, step: finalizer.Nothing,
			op: op{v1alpha1.OperationDelete, "Waiting for VirtualMachine v: the VM is deleted"}},
		"WithoutVMAndNodeItGoes": {State: State{Self: dying}, step: finalizer.Remove},
		"AVMThatCannotBeSeenKeepsIt": {State: State{Self: dying, Unreadable: "no right"}, step: finalizer.Nothing,
			op: op{v1alpha1.OperationDelete, "Waiting for a VM that cannot be seen: no right"}},
		"TroubleWithTheTargetClusterIsReported": {State: State{Self: dying, Node: &Node{Name: "n", Trouble: "refused"}, VMs: []Resource{heldVM}}, step: finalizer.Nothing,
			op: op{v1alpha1.OperationDrain, "Waiting for Node n: refused"}},
		"ABackgroundDeletionStillReleases": {State: State{Self: finalizer.State{Deleting: true, Held: true}, VMs: []Resource{heldVM}}, step: finalizer.DeleteAgain, release: []Resource{heldVM},
			op: op{v1alpha1.OperationDelete, "Waiting for VirtualMachine v: the VM is deleted"}},
		"WhoTookOurFinalizerOffStillGetsTheVMReleased": {State: State{Self: finalizer.State{Deleting: true}, VMs: []Resource{heldVM}}, step: finalizer.Nothing, release: []Resource{heldVM},
			op: op{v1alpha1.OperationDelete, "Waiting for VirtualMachine v: the VM is deleted"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := Plan(tc.State)
			if p.Step != tc.step {
				t.Errorf("step %s, want %s", p.Step, tc.step)
			}
			if d := cmp.Diff(tc.release, p.Release, cmp.AllowUnexported(Resource{})); d != "" {
				t.Errorf("release (-want +got):\n%s", d)
			}
			got := op{}
			if p.Operation != nil {
				got = op{p.Operation.Type, p.Operation.Description}
			}
			if got != tc.op {
				t.Errorf("operation %+v, want %+v", got, tc.op)
			}
			if want := p.Step == finalizer.Remove || len(p.Release) > 0; p.IsIrrevocable() != want {
				t.Errorf("irrevocable %v, want %v", p.IsIrrevocable(), want)
			}
		})
	}
}

func TestACreationWithoutEndIsForgottenWhenTheVMIsBeingDeleted(t *testing.T) {
	dying := finalizer.State{Deleting: true, Held: true, Foreground: true}
	uncertain := Resource{Kind: "VirtualMachine", Name: "v", Deleting: true, Uncertain: true}
	with := func(change func(*Resource)) []Resource {
		v := uncertain
		change(&v)
		return []Resource{v}
	}
	cases := map[string]struct {
		State
		forget []Resource
	}{
		"WhenItIsReleased":              {State{Self: dying, VMs: []Resource{uncertain}}, []Resource{uncertain}},
		"NotBefore":                     {State{Self: dying, VMs: with(func(v *Resource) { v.Held = true })}, nil},
		"NotWhileItsNodeIsThere":        {State{Self: dying, VMs: []Resource{uncertain}, Node: &Node{Name: "n"}}, nil},
		"NotWhileItCouldBeCreatedAgain": {State{Self: dying, VMs: with(func(v *Resource) { v.Deleting = false })}, nil},
		"NotWhenItsEndIsKnown":          {State{Self: dying, VMs: with(func(v *Resource) { v.Uncertain = false })}, nil},
		"NotOfAMachineThatIsNotDeleted": {State{Self: finalizer.State{Held: true}, VMs: []Resource{uncertain}}, nil},
		"NotOfOneThatGoesWithoutItsVM":  {State{Self: dying, VMs: []Resource{uncertain}, ForceDelete: true}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.forget, Plan(tc.State).Forget, cmp.AllowUnexported(Resource{})); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestStagesOfADeletion(t *testing.T) {
	const timeout = time.Hour
	now := time.Unix(100_000, 0)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	heldVM, dyingVM := Resource{Name: "v", Held: true, Deleting: true}, Resource{Name: "v", Deleting: true}
	draining := func(stage v1alpha1.DeletionStage, since time.Duration) *Node {
		return &Node{Name: "n", Stage: stage, Since: ago(since)}
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
		State
		want
	}{
		"ItBeginsWithTheDrain": {
			State{Node: draining("", 0), VMs: []Resource{heldVM}},
			want{stage: "Draining", since: now},
		},
		"AStageKeepsItsTime": {
			State{Stage: "Draining", Since: ago(time.Minute), Node: draining("Draining", time.Minute), VMs: []Resource{heldVM}},
			want{stage: "Draining", since: ago(time.Minute)},
		},
		"AHookOfTheMachineIsReportedAtOnce": {
			State{PreDrain: backup, Node: draining("", 0), VMs: []Resource{heldVM}},
			want{stage: "WaitingForPreDrainHooks", since: now},
		},
		"TheDrainGoesOnWhenItsHooksLetGo": {
			State{Stage: "WaitingForPreDrainHooks", Since: ago(time.Minute), PreDrain: backup, Node: draining("Draining", 0), VMs: []Resource{heldVM}},
			want{stage: "Draining", since: now},
		},
		"VolumesAreReported": {
			State{Stage: "Draining", Since: ago(time.Minute), Node: draining("DetachingVolumes", 0), VMs: []Resource{heldVM}},
			want{stage: "DetachingVolumes", since: now},
		},
		"ANodeThatGoesAtOnceIsNotReported": {
			State{Stage: "Draining", Since: ago(time.Minute), Node: draining("DeletingNode", time.Second), VMs: []Resource{heldVM}},
			want{again: reportNodeAfter - time.Second},
		},
		"OneThatDoesNotIs": {
			State{Stage: "Draining", Since: ago(time.Minute), Node: draining("DeletingNode", reportNodeAfter), VMs: []Resource{heldVM}},
			want{stage: "DeletingNode", since: now},
		},
		"WithoutNodeTheVMGoes": {
			State{VMs: []Resource{heldVM}},
			want{stage: "DeletingVM", since: now, released: true},
		},
		"UnlessAPreDrainHookHoldsIt": {
			State{PreDrain: backup, VMs: []Resource{heldVM}},
			want{stage: "WaitingForPreDrainHooks", since: now, again: timeout - time.Minute},
		},
		"WhichItDoesNotForEver": {
			State{PreDrain: backup, DeletedAt: ago(timeout), Stage: "WaitingForPreDrainHooks", Since: ago(timeout), VMs: []Resource{heldVM}},
			want{stage: "DeletingVM", since: now, released: true, timedOut: backup},
		},
		"NorTwice": {
			State{PreDrain: backup, Stage: "Draining", VMs: []Resource{heldVM}},
			want{stage: "DeletingVM", since: now, released: true},
		},
		"APreTerminateHookHoldsTheVM": {
			State{PreTerminate: backup, Stage: "Draining", VMs: []Resource{heldVM}},
			want{stage: "WaitingForPreTerminateHooks", since: now, again: timeout},
		},
		"FromThenOnItsTimeoutCounts": {
			State{PreTerminate: backup, Stage: "WaitingForPreTerminateHooks", Since: ago(10 * time.Minute), VMs: []Resource{heldVM}},
			want{stage: "WaitingForPreTerminateHooks", since: ago(10 * time.Minute), again: timeout - 10*time.Minute},
		},
		"AfterItTheVMGoes": {
			State{PreTerminate: backup, Stage: "WaitingForPreTerminateHooks", Since: ago(timeout), VMs: []Resource{heldVM}},
			want{stage: "DeletingVM", since: now, released: true, timedOut: backup},
		},
		"AHookThatComesWhenTheVMGoesIsTooLate": {
			State{PreTerminate: backup, Stage: "DeletingVM", Since: ago(time.Minute), VMs: []Resource{dyingVM}},
			want{stage: "DeletingVM", since: ago(time.Minute)},
		},
		"ByForceItsProviderHasAMoment": {
			State{ForceDelete: true, Stage: "DeletingVM", Since: ago(time.Second), VMs: []Resource{dyingVM}},
			want{stage: "DeletingVM", since: ago(time.Second), again: ForceDeleteAfter},
		},
		"AndNoMore": {
			State{ForceDelete: true, Stage: "DeletingVM", Since: ago(ForceDeleteAfter), VMs: []Resource{dyingVM}},
			want{stage: "DeletingVM", since: ago(ForceDeleteAfter), dropped: true},
		},
		"ForceDoesNotSpareTheDrain": {
			State{ForceDelete: true, Stage: "Draining", Since: ago(time.Hour), Node: draining("Draining", time.Hour), VMs: []Resource{heldVM}},
			want{stage: "Draining", since: ago(time.Hour)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := tc.State
			s.Self, s.Now, s.HookTimeout = finalizer.State{Deleting: true, Held: true, Foreground: true}, now, timeout
			if s.DeletedAt.IsZero() {
				s.DeletedAt = ago(time.Minute)
			}
			p := Plan(s)
			got := want{released: len(p.Release) > 0, dropped: len(p.Abandon) > 0, timedOut: p.TimedOut, again: p.Again}
			if p.Deletion != nil {
				got.stage, got.since = p.Deletion.Stage, p.Deletion.Since.Time.Local()
			}
			if d := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if (p.Deletion == nil) != (p.Operation == nil) {
				t.Errorf("operation %v, deletion %v", p.Operation, p.Deletion)
			}
		})
	}
}

func TestADeletionRecordsWhenItLeftTheNode(t *testing.T) {
	now, before := time.Unix(100_000, 0).UTC(), metav1.NewTime(time.Unix(90_000, 0).UTC())
	at := metav1.NewTime(now)
	held := Resource{Name: "v", Held: true, Deleting: true}
	cases := map[string]struct {
		State
		want *metav1.Time
	}{
		"NotWhileTheNodeIsDrained":     {State{Node: &Node{Name: "n", Stage: "Draining"}, VMs: []Resource{held}}, nil},
		"WhenTheVMIsDeleted":           {State{Stage: "Draining", Since: before.Time, VMs: []Resource{held}}, &at},
		"WhenAHookHoldsTheVM":          {State{Stage: "Draining", Since: before.Time, PreTerminate: []string{"backup"}, VMs: []Resource{held}}, &at},
		"AndKeepsTheTimeInLaterStages": {State{Stage: "WaitingForPreTerminateHooks", Since: now, NodeDeleted: &before, VMs: []Resource{held}}, &before},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := tc.State
			s.Self, s.Now, s.HookTimeout, s.DeletedAt = finalizer.State{Deleting: true, Held: true, Foreground: true}, now, time.Hour, before.Time
			if d := cmp.Diff(tc.want, Plan(s).Deletion.NodeDeletedTime); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
