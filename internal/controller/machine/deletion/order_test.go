package deletion

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/finalizer"
)

func TestCompanionsAreReleasedFromTheLastToTheFirstWhenTheVMIsGone(t *testing.T) {
	dying := finalizer.State{Deleting: true, Held: true, Foreground: true}
	held := func(name string, order int) Resource {
		return Resource{Kind: "Card", Name: name, Held: true, Order: order}
	}
	free := func(name string, order int) Resource {
		return Resource{Kind: "Card", Name: name, Deleting: true, Order: order}
	}
	aVM := Resource{Kind: "VirtualMachine", Name: "v"}
	long := func(s State) State {
		s.Stage, s.Since, s.Now = v1alpha1.DeletionDeletingCompanions, time.Unix(0, 0), time.Unix(100, 0)
		return s
	}
	cases := map[string]struct {
		State
		step     finalizer.Step
		release  []Resource
		abandon  []Resource
		stage    v1alpha1.DeletionStage
		waitsFor string
	}{
		"NotOfAMachineThatLives":    {State: State{Self: finalizer.State{Held: true}, Companions: []Resource{held("a", 0)}}, step: finalizer.Nothing},
		"NotBeforeTheVMIsGone":      {State: State{Self: dying, VMs: []Resource{aVM}, Companions: []Resource{held("a", 0)}}, step: finalizer.Nothing, stage: v1alpha1.DeletionDeletingVM, waitsFor: "VirtualMachine v"},
		"NotBeforeTheNodeIsDrained": {State: State{Self: dying, Node: &Node{Name: "n"}, Companions: []Resource{held("a", 0)}}, step: finalizer.Nothing, stage: v1alpha1.DeletionDraining, waitsFor: "Node n"},
		"NotWhileThereMayBeAVM":     {State: State{Self: dying, Unreadable: "no right", Companions: []Resource{held("a", 0)}}, step: finalizer.Nothing, stage: v1alpha1.DeletionDeletingVM, waitsFor: "a VM that cannot be seen"},
		"TheLastOnesFirst":          {State: State{Self: dying, Companions: []Resource{held("a", 0), held("b", 1), held("c", 1)}}, step: finalizer.Nothing, release: []Resource{held("b", 1), held("c", 1)}, stage: v1alpha1.DeletionDeletingCompanions, waitsFor: "Card c"},
		"TheOthersWaitForThem":      {State: State{Self: dying, Companions: []Resource{held("a", 0), free("b", 1)}}, step: finalizer.Nothing, stage: v1alpha1.DeletionDeletingCompanions, waitsFor: "Card b"},
		"ThenTheFirst":              {State: State{Self: dying, Companions: []Resource{held("a", 0)}}, step: finalizer.Nothing, release: []Resource{held("a", 0)}, stage: v1alpha1.DeletionDeletingCompanions, waitsFor: "Card a"},
		"WhatTheCloudDoesNotDeleteIsWaitedFor": {State: long(State{Self: dying, Companions: []Resource{free("a", 0)}}), step: finalizer.Nothing,
			stage: v1alpha1.DeletionDeletingCompanions, waitsFor: "Card a"},
		"ByForceAllAtOnce": {State: State{Self: dying, ForceDelete: true, Companions: []Resource{held("a", 0), held("b", 1)}}, step: finalizer.Nothing,
			release: []Resource{held("a", 0), held("b", 1)}, stage: v1alpha1.DeletionDeletingCompanions, waitsFor: "Card b"},
		"ByForceTheyAreAbandonedInTheEnd": {State: long(State{Self: dying, ForceDelete: true, Companions: []Resource{free("a", 0)}}), step: finalizer.Nothing,
			abandon: []Resource{free("a", 0)}, stage: v1alpha1.DeletionDeletingCompanions, waitsFor: "Card a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := Plan(tc.State)
			if p.Step != tc.step {
				t.Errorf("step %s", p.Step)
			}
			if d := cmp.Diff(tc.release, p.Release, cmp.AllowUnexported(Resource{})); d != "" {
				t.Errorf("release (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tc.abandon, p.Abandon, cmp.AllowUnexported(Resource{})); d != "" {
				t.Errorf("abandon (-want +got):\n%s", d)
			}
			var stage v1alpha1.DeletionStage
			if p.Deletion != nil {
				stage = p.Deletion.Stage
			}
			if stage != tc.stage {
				t.Errorf("stage %q, want %q", stage, tc.stage)
			}
			if tc.waitsFor != "" && (p.Operation == nil || !strings.Contains(p.Operation.Description, tc.waitsFor)) {
				t.Errorf("operation %+v", p.Operation)
			}
		})
	}
}

func TestDependentsAreReleasedBeforeTheVM(t *testing.T) {
	dying := finalizer.State{Deleting: true, Held: true, Foreground: true}
	now := time.Unix(100_000, 0)
	held := func(name string, order int) Resource {
		return Resource{Kind: "Attachment", Name: name, Held: true, Order: order, AfterVM: true}
	}
	free := func(name string, order int) Resource {
		return Resource{Kind: "Attachment", Name: name, Deleting: true, Order: order, AfterVM: true}
	}
	heldVM, freeVM := Resource{Kind: "VirtualMachine", Name: "v", Held: true}, Resource{Kind: "VirtualMachine", Name: "v", Deleting: true}
	disk := Resource{Kind: "Disk", Name: "d", Held: true}
	const waiting, dependents, ofVM, companions = v1alpha1.DeletionPreTerminateHooks, v1alpha1.DeletionDeletingDependents, v1alpha1.DeletionDeletingVM, v1alpha1.DeletionDeletingCompanions
	since := func(stage v1alpha1.DeletionStage, d time.Duration, s State) State {
		s.Stage, s.Since = stage, now.Add(-d)
		return s
	}
	backup := []string{"backup"}
	cases := map[string]struct {
		State
		release, abandon, overdue []Resource
		stage                     v1alpha1.DeletionStage
		waitsFor                  string
		again                     time.Duration
	}{
		"NotBeforeTheNodeIsDrained": {State: State{Node: &Node{Name: "n"}, VMs: []Resource{heldVM}, Dependents: []Resource{held("a", 1)}},
			stage: v1alpha1.DeletionDraining, waitsFor: "Node n"},
		"NotBeforeTheHooks": {State: State{PreTerminate: backup, VMs: []Resource{heldVM}, Dependents: []Resource{held("a", 1)}},
			stage: waiting, waitsFor: "pre-terminate hooks", again: time.Hour},
		"TheLastOnesFirstAndNotTheVM": {State: State{VMs: []Resource{heldVM}, Companions: []Resource{disk}, Dependents: []Resource{held("a", 1), held("b", 2)}},
			release: []Resource{held("b", 2)}, stage: dependents, waitsFor: "Attachment b: it depends on the VM, and is deleted before it; from " + now.Add(DependentsTimeout).UTC().Format(time.RFC3339), again: DependentsTimeout},
		"ThenTheFirst": {State: since(dependents, time.Minute, State{VMs: []Resource{heldVM}, Companions: []Resource{disk}, Dependents: []Resource{held("a", 1)}}),
			release: []Resource{held("a", 1)}, stage: dependents, waitsFor: "Attachment a", again: DependentsTimeout - time.Minute},
		"ThenTheVM": {State: since(dependents, time.Minute, State{VMs: []Resource{heldVM}, Companions: []Resource{disk}}),
			release: []Resource{heldVM}, stage: ofVM, waitsFor: "VirtualMachine v"},
		"AndThenTheOtherCompanions": {State: since(ofVM, time.Minute, State{Companions: []Resource{disk}}),
			release: []Resource{disk}, stage: companions, waitsFor: "Disk d"},
		"AHookThatComesNowIsTooLate": {State: since(dependents, time.Minute, State{PreTerminate: backup, PreDrain: backup, VMs: []Resource{heldVM}, Dependents: []Resource{free("a", 1)}}),
			stage: dependents, waitsFor: "Attachment a", again: DependentsTimeout - time.Minute},
		"AndAsLateWhenTheVMIsDeleted": {State: since(dependents, time.Minute, State{PreTerminate: backup, VMs: []Resource{heldVM}}),
			release: []Resource{heldVM}, stage: ofVM, waitsFor: "VirtualMachine v"},
		"OneThatHangsHoldsTheVMForALimitedTime": {State: since(dependents, DependentsTimeout, State{VMs: []Resource{heldVM}, Dependents: []Resource{held("a", 1), free("b", 2)}}),
			release: []Resource{heldVM}, overdue: []Resource{held("a", 1), free("b", 2)}, stage: ofVM, waitsFor: "VirtualMachine v"},
		"ThisIsReportedOnce": {State: since(ofVM, time.Minute, State{VMs: []Resource{freeVM}, Dependents: []Resource{held("a", 1), free("b", 2)}}),
			stage: ofVM, waitsFor: "VirtualMachine v"},
		"WhileTheVMIsDeletedTheNextOneIsReleased": {State: since(ofVM, time.Minute, State{VMs: []Resource{freeVM}, Dependents: []Resource{held("a", 1)}}),
			release: []Resource{held("a", 1)}, stage: ofVM, waitsFor: "VirtualMachine v"},
		"TheMachineWaitsForOneThatHangs": {State: since(ofVM, time.Hour, State{Companions: []Resource{disk}, Dependents: []Resource{free("b", 2)}}),
			stage: companions, waitsFor: "Attachment b"},
		"WithoutAVMTheyComeBeforeTheOtherCompanions": {State: State{Companions: []Resource{disk}, Dependents: []Resource{held("a", 1), held("b", 2)}},
			release: []Resource{held("b", 2)}, stage: companions, waitsFor: "Attachment b"},
		"NotWhileThereMayBeAVM": {State: State{Unreadable: "no right", Dependents: []Resource{held("a", 1)}},
			stage: ofVM, waitsFor: "a VM that cannot be seen"},
		"ByForceAllAtOnceWithTheVM": {State: State{ForceDelete: true, VMs: []Resource{heldVM}, Dependents: []Resource{held("a", 1), held("b", 2)}},
			release: []Resource{held("a", 1), held("b", 2), heldVM}, stage: ofVM, waitsFor: "VirtualMachine v"},
		"ForceEndsTheWait": {State: since(dependents, time.Second, State{ForceDelete: true, VMs: []Resource{heldVM}, Dependents: []Resource{free("a", 1)}}),
			release: []Resource{heldVM}, stage: ofVM, waitsFor: "VirtualMachine v", again: ForceDeleteAfter},
		"ByForceTheyAreAbandonedInTheEnd": {State: since(ofVM, ForceDeleteAfter, State{ForceDelete: true, VMs: []Resource{freeVM}, Dependents: []Resource{free("a", 1)}}),
			abandon: []Resource{free("a", 1), freeVM}, stage: ofVM, waitsFor: "VirtualMachine v"},
		"ByForceAlsoWithoutTheVM": {State: since(companions, ForceDeleteAfter, State{ForceDelete: true, Dependents: []Resource{free("a", 1)}}),
			abandon: []Resource{free("a", 1)}, stage: companions, waitsFor: "Attachment a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := tc.State
			s.Self, s.Now, s.DeletedAt, s.HookTimeout = dying, now, now.Add(-time.Minute), time.Hour
			p := Plan(s)
			for what, lists := range map[string][2][]Resource{"release": {tc.release, p.Release}, "abandon": {tc.abandon, p.Abandon}, "overdue": {tc.overdue, p.Overdue}} {
				if d := cmp.Diff(lists[0], lists[1], cmp.AllowUnexported(Resource{})); d != "" {
					t.Errorf("%s (-want +got):\n%s", what, d)
				}
			}
			if p.Step != finalizer.Nothing {
				t.Errorf("step %s", p.Step)
			}
			if p.Deletion == nil || p.Deletion.Stage != tc.stage {
				t.Errorf("deletion %+v, want the stage %s", p.Deletion, tc.stage)
			}
			if p.Operation == nil || !strings.Contains(p.Operation.Description, tc.waitsFor) {
				t.Errorf("operation %+v", p.Operation)
			}
			if p.Again != tc.again {
				t.Errorf("again in %s, want %s", p.Again, tc.again)
			}
		})
	}
}
