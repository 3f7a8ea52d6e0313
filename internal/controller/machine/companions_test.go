package machine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/finalizer"
)

func TestCompanionsAreReleasedFromTheLastToTheFirstWhenTheVMIsGone(t *testing.T) {
	dying := finalizer.State{Deleting: true, Held: true, Foreground: true}
	held := func(name string, order int) vm { return vm{kind: "Card", name: name, held: true, order: order} }
	free := func(name string, order int) vm {
		return vm{kind: "Card", name: name, deleting: true, order: order}
	}
	aVM := vm{kind: "VirtualMachine", name: "v"}
	long := func(s machineState) machineState {
		s.stage, s.since, s.now = v1alpha1.DeletionDeletingCompanions, time.Unix(0, 0), time.Unix(100, 0)
		return s
	}
	cases := map[string]struct {
		machineState
		step     finalizer.Step
		release  []vm
		abandon  []vm
		stage    v1alpha1.DeletionStage
		waitsFor string
	}{
		"NotOfAMachineThatLives":    {machineState: machineState{self: finalizer.State{Held: true}, companions: []vm{held("a", 0)}}, step: finalizer.Nothing},
		"NotBeforeTheVMIsGone":      {machineState: machineState{self: dying, vms: []vm{aVM}, companions: []vm{held("a", 0)}}, step: finalizer.Nothing, stage: v1alpha1.DeletionDeletingVM, waitsFor: "VirtualMachine v"},
		"NotBeforeTheNodeIsDrained": {machineState: machineState{self: dying, node: &leavingNode{name: "n"}, companions: []vm{held("a", 0)}}, step: finalizer.Nothing, stage: v1alpha1.DeletionDraining, waitsFor: "Node n"},
		"NotWhileThereMayBeAVM":     {machineState: machineState{self: dying, unreadable: "no right", companions: []vm{held("a", 0)}}, step: finalizer.Nothing, stage: v1alpha1.DeletionDeletingVM, waitsFor: "a VM that cannot be seen"},
		"TheLastOnesFirst":          {machineState: machineState{self: dying, companions: []vm{held("a", 0), held("b", 1), held("c", 1)}}, step: finalizer.Nothing, release: []vm{held("b", 1), held("c", 1)}, stage: v1alpha1.DeletionDeletingCompanions, waitsFor: "Card c"},
		"TheOthersWaitForThem":      {machineState: machineState{self: dying, companions: []vm{held("a", 0), free("b", 1)}}, step: finalizer.Nothing, stage: v1alpha1.DeletionDeletingCompanions, waitsFor: "Card b"},
		"ThenTheFirst":              {machineState: machineState{self: dying, companions: []vm{held("a", 0)}}, step: finalizer.Nothing, release: []vm{held("a", 0)}, stage: v1alpha1.DeletionDeletingCompanions, waitsFor: "Card a"},
		"WhatTheCloudDoesNotDeleteIsWaitedFor": {machineState: long(machineState{self: dying, companions: []vm{free("a", 0)}}), step: finalizer.Nothing,
			stage: v1alpha1.DeletionDeletingCompanions, waitsFor: "Card a"},
		"ByForceAllAtOnce": {machineState: machineState{self: dying, forceDelete: true, companions: []vm{held("a", 0), held("b", 1)}}, step: finalizer.Nothing,
			release: []vm{held("a", 0), held("b", 1)}, stage: v1alpha1.DeletionDeletingCompanions, waitsFor: "Card b"},
		"ByForceTheyAreAbandonedInTheEnd": {machineState: long(machineState{self: dying, forceDelete: true, companions: []vm{free("a", 0)}}), step: finalizer.Nothing,
			abandon: []vm{free("a", 0)}, stage: v1alpha1.DeletionDeletingCompanions, waitsFor: "Card a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := planDeletion(tc.machineState)
			if p.step != tc.step {
				t.Errorf("step %s", p.step)
			}
			if d := cmp.Diff(tc.release, p.release, cmp.AllowUnexported(vm{})); d != "" {
				t.Errorf("release (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tc.abandon, p.abandon, cmp.AllowUnexported(vm{})); d != "" {
				t.Errorf("abandon (-want +got):\n%s", d)
			}
			var stage v1alpha1.DeletionStage
			if p.deletion != nil {
				stage = p.deletion.Stage
			}
			if stage != tc.stage {
				t.Errorf("stage %q, want %q", stage, tc.stage)
			}
			if tc.waitsFor != "" && (p.operation == nil || !strings.Contains(p.operation.Description, tc.waitsFor)) {
				t.Errorf("operation %+v", p.operation)
			}
		})
	}
}

func TestDependentsAreReleasedBeforeTheVM(t *testing.T) {
	dying := finalizer.State{Deleting: true, Held: true, Foreground: true}
	now := time.Unix(100_000, 0)
	held := func(name string, order int) vm {
		return vm{kind: "Attachment", name: name, held: true, order: order, afterVM: true}
	}
	free := func(name string, order int) vm {
		return vm{kind: "Attachment", name: name, deleting: true, order: order, afterVM: true}
	}
	heldVM, freeVM := vm{kind: "VirtualMachine", name: "v", held: true}, vm{kind: "VirtualMachine", name: "v", deleting: true}
	disk := vm{kind: "Disk", name: "d", held: true}
	const waiting, dependents, ofVM, companions = v1alpha1.DeletionPreTerminateHooks, v1alpha1.DeletionDeletingDependents, v1alpha1.DeletionDeletingVM, v1alpha1.DeletionDeletingCompanions
	since := func(stage v1alpha1.DeletionStage, d time.Duration, s machineState) machineState {
		s.stage, s.since = stage, now.Add(-d)
		return s
	}
	backup := []string{"backup"}
	cases := map[string]struct {
		machineState
		release, abandon, overdue []vm
		stage                     v1alpha1.DeletionStage
		waitsFor                  string
		again                     time.Duration
	}{
		"NotBeforeTheNodeIsDrained": {machineState: machineState{node: &leavingNode{name: "n"}, vms: []vm{heldVM}, dependents: []vm{held("a", 1)}},
			stage: v1alpha1.DeletionDraining, waitsFor: "Node n"},
		"NotBeforeTheHooks": {machineState: machineState{preTerminate: backup, vms: []vm{heldVM}, dependents: []vm{held("a", 1)}},
			stage: waiting, waitsFor: "pre-terminate hooks", again: time.Hour},
		"TheLastOnesFirstAndNotTheVM": {machineState: machineState{vms: []vm{heldVM}, companions: []vm{disk}, dependents: []vm{held("a", 1), held("b", 2)}},
			release: []vm{held("b", 2)}, stage: dependents, waitsFor: "Attachment b: it depends on the VM, and is deleted before it; from " + now.Add(dependentsTimeout).UTC().Format(time.RFC3339), again: dependentsTimeout},
		"ThenTheFirst": {machineState: since(dependents, time.Minute, machineState{vms: []vm{heldVM}, companions: []vm{disk}, dependents: []vm{held("a", 1)}}),
			release: []vm{held("a", 1)}, stage: dependents, waitsFor: "Attachment a", again: dependentsTimeout - time.Minute},
		"ThenTheVM": {machineState: since(dependents, time.Minute, machineState{vms: []vm{heldVM}, companions: []vm{disk}}),
			release: []vm{heldVM}, stage: ofVM, waitsFor: "VirtualMachine v"},
		"AndThenTheOtherCompanions": {machineState: since(ofVM, time.Minute, machineState{companions: []vm{disk}}),
			release: []vm{disk}, stage: companions, waitsFor: "Disk d"},
		"AHookThatComesNowIsTooLate": {machineState: since(dependents, time.Minute, machineState{preTerminate: backup, preDrain: backup, vms: []vm{heldVM}, dependents: []vm{free("a", 1)}}),
			stage: dependents, waitsFor: "Attachment a", again: dependentsTimeout - time.Minute},
		"AndAsLateWhenTheVMIsDeleted": {machineState: since(dependents, time.Minute, machineState{preTerminate: backup, vms: []vm{heldVM}}),
			release: []vm{heldVM}, stage: ofVM, waitsFor: "VirtualMachine v"},
		"OneThatHangsHoldsTheVMForALimitedTime": {machineState: since(dependents, dependentsTimeout, machineState{vms: []vm{heldVM}, dependents: []vm{held("a", 1), free("b", 2)}}),
			release: []vm{heldVM}, overdue: []vm{held("a", 1), free("b", 2)}, stage: ofVM, waitsFor: "VirtualMachine v"},
		"ThisIsReportedOnce": {machineState: since(ofVM, time.Minute, machineState{vms: []vm{freeVM}, dependents: []vm{held("a", 1), free("b", 2)}}),
			stage: ofVM, waitsFor: "VirtualMachine v"},
		"WhileTheVMIsDeletedTheNextOneIsReleased": {machineState: since(ofVM, time.Minute, machineState{vms: []vm{freeVM}, dependents: []vm{held("a", 1)}}),
			release: []vm{held("a", 1)}, stage: ofVM, waitsFor: "VirtualMachine v"},
		"TheMachineWaitsForOneThatHangs": {machineState: since(ofVM, time.Hour, machineState{companions: []vm{disk}, dependents: []vm{free("b", 2)}}),
			stage: companions, waitsFor: "Attachment b"},
		"WithoutAVMTheyComeBeforeTheOtherCompanions": {machineState: machineState{companions: []vm{disk}, dependents: []vm{held("a", 1), held("b", 2)}},
			release: []vm{held("b", 2)}, stage: companions, waitsFor: "Attachment b"},
		"NotWhileThereMayBeAVM": {machineState: machineState{unreadable: "no right", dependents: []vm{held("a", 1)}},
			stage: ofVM, waitsFor: "a VM that cannot be seen"},
		"ByForceAllAtOnceWithTheVM": {machineState: machineState{forceDelete: true, vms: []vm{heldVM}, dependents: []vm{held("a", 1), held("b", 2)}},
			release: []vm{held("a", 1), held("b", 2), heldVM}, stage: ofVM, waitsFor: "VirtualMachine v"},
		"ForceEndsTheWait": {machineState: since(dependents, time.Second, machineState{forceDelete: true, vms: []vm{heldVM}, dependents: []vm{free("a", 1)}}),
			release: []vm{heldVM}, stage: ofVM, waitsFor: "VirtualMachine v", again: forceDeleteAfter},
		"ByForceTheyAreAbandonedInTheEnd": {machineState: since(ofVM, forceDeleteAfter, machineState{forceDelete: true, vms: []vm{freeVM}, dependents: []vm{free("a", 1)}}),
			abandon: []vm{free("a", 1), freeVM}, stage: ofVM, waitsFor: "VirtualMachine v"},
		"ByForceAlsoWithoutTheVM": {machineState: since(companions, forceDeleteAfter, machineState{forceDelete: true, dependents: []vm{free("a", 1)}}),
			abandon: []vm{free("a", 1)}, stage: companions, waitsFor: "Attachment a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := tc.machineState
			s.self, s.now, s.deletedAt, s.hookTimeout = dying, now, now.Add(-time.Minute), time.Hour
			p := planDeletion(s)
			for what, lists := range map[string][2][]vm{"release": {tc.release, p.release}, "abandon": {tc.abandon, p.abandon}, "overdue": {tc.overdue, p.overdue}} {
				if d := cmp.Diff(lists[0], lists[1], cmp.AllowUnexported(vm{})); d != "" {
					t.Errorf("%s (-want +got):\n%s", what, d)
				}
			}
			if p.step != finalizer.Nothing {
				t.Errorf("step %s", p.step)
			}
			if p.deletion == nil || p.deletion.Stage != tc.stage {
				t.Errorf("deletion %+v, want the stage %s", p.deletion, tc.stage)
			}
			if p.operation == nil || !strings.Contains(p.operation.Description, tc.waitsFor) {
				t.Errorf("operation %+v", p.operation)
			}
			if p.again != tc.again {
				t.Errorf("again in %s, want %s", p.again, tc.again)
			}
		})
	}
}

func card() *unstructured.Unstructured {
	c := aVM()
	c.SetGroupVersionKind(cardKind)
	c.SetName("v-nic")
	c.SetAnnotations(map[string]string{roleAnnotation: v1alpha1.ResourceCompanionPrefix + "nic", v1alpha1.AnnotationOrder: "0"})
	return c
}

// withCard is a Machine that is being deleted, and whose VM has a network card.
func withCard() *v1alpha1.Machine {
	m := aMachine(true, v1alpha1.FinalizerTerminator, metav1.FinalizerDeleteDependents)
	m.Status.ResourceRefs = append(m.Status.ResourceRefs, v1alpha1.ComposedReference{
		Role: v1alpha1.ResourceCompanionPrefix + "nic", APIVersion: cardKind.GroupVersion().String(), Kind: cardKind.Kind, Name: "v-nic",
	})
	return m
}

func (w *world) card() *unstructured.Unstructured { w.t.Helper(); return w.get(cardKind, "v-nic") }

func TestAMachineStaysUntilTheCompanionsOfItsVMAreGone(t *testing.T) {
	deleting := withCard()
	deleting.Status.CompositionRevision = "machine-cloud-1"
	w := newWorld(t, deleting, aVM(), card(), revision("machine-cloud", 1, withCompanion))
	step := func() {
		t.Helper()
		if err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
	}
	step()
	if len(w.watched) != 2 || !slices.Contains(w.watched, vmKind) || !slices.Contains(w.watched, cardKind) {
		t.Errorf("watched %v", w.watched)
	}
	if slices.Contains(w.vm().GetFinalizers(), v1alpha1.FinalizerDrain) || !slices.Contains(w.card().GetFinalizers(), v1alpha1.FinalizerDrain) {
		t.Fatalf("finalizers of the VM %v, of its card %v", w.vm().GetFinalizers(), w.card().GetFinalizers())
	}
	w.gone(w.vm())
	step()
	c := w.card()
	if slices.Contains(c.GetFinalizers(), v1alpha1.FinalizerDrain) || c.GetAnnotations()[v1alpha1.AnnotationReleased] == "" {
		t.Fatalf("the card is not released: finalizers %v, annotations %v", c.GetFinalizers(), c.GetAnnotations())
	}
	m := w.machine()
	if d := m.Status.Deletion; d == nil || d.Stage != v1alpha1.DeletionDeletingCompanions || !slices.Contains(m.GetFinalizers(), v1alpha1.FinalizerTerminator) {
		t.Errorf("deletion %+v, finalizers %v", d, m.GetFinalizers())
	}
	w.gone(c)
	step()
	if slices.Contains(w.machine().GetFinalizers(), v1alpha1.FinalizerTerminator) {
		t.Error("the Machine is held although nothing is left")
	}
}

// withCompanion adds a network card to the VMs of a Composition.
func withCompanion(r *unstructured.Unstructured) {
	pipeline, _, _ := unstructured.NestedSlice(r.Object, "spec", "pipeline")
	input := pipeline[0].(map[string]any)["input"].(map[string]any)
	input["companions"] = []any{map[string]any{"name": "nic", "apiVersion": cardKind.GroupVersion().String(), "kind": cardKind.Kind}}
	_ = unstructured.SetNestedSlice(r.Object, pipeline, "spec", "pipeline")
}

// TestWithoutItsPipelineADeletionIsLookedAfter: only the status refers to the VM, so that its kind is not
// watched.
func TestWithoutItsPipelineADeletionIsLookedAfter(t *testing.T) {
	w := newWorld(t, withCard(), aVM(), card())
	res, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: nameOfM})
	if err != nil || res.RequeueAfter == 0 || res.RequeueAfter > retryAfter || len(w.watched) > 0 || w.isVMHeld() {
		t.Errorf("result %+v, error %v, watched %v, VM held %v", res, err, w.watched, w.isVMHeld())
	}
}

// TestACompanionWithoutVMGoesWithItsMachine deletes a Machine while its network interface is being created:
// there is no VM yet, and there will be none.
func TestACompanionWithoutVMGoesWithItsMachine(t *testing.T) {
	w := newWorld(t, withCard(), card())
	if err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(w.card().GetFinalizers(), v1alpha1.FinalizerDrain) {
		t.Error("it is not released")
	}
	if !slices.Contains(w.machine().GetFinalizers(), v1alpha1.FinalizerTerminator) {
		t.Error("the Machine does not wait for it")
	}
}

// TestAResourceOfAnotherStepIsLeftToTheGarbageCollector has a resource that is neither VM nor companion,
// whatever its reference in the status is.
func TestAResourceOfAnotherStepIsLeftToTheGarbageCollector(t *testing.T) {
	for name, role := range map[string]string{"AsItself": "dns-record", "AsACompanion": v1alpha1.ResourceCompanionPrefix + "nic"} {
		t.Run(name, func(t *testing.T) {
			other := card()
			other.SetAnnotations(map[string]string{roleAnnotation: "dns-record"})
			m := withCard()
			m.Status.ResourceRefs[1].Role, m.Status.CompositionRevision = role, "machine-cloud-1"
			w := newWorld(t, m, aVM(), other, revision("machine-cloud", 1))
			for range 3 {
				w.step()
			}
			if !slices.Equal(w.watched, []schema.GroupVersionKind{vmKind}) {
				t.Errorf("watched %v", w.watched)
			}
			if !slices.Contains(w.card().GetFinalizers(), v1alpha1.FinalizerDrain) {
				t.Error("it was released")
			}
			w.gone(w.vm())
			w.step()
			if slices.Contains(w.machine().GetFinalizers(), v1alpha1.FinalizerTerminator) {
				t.Error("the Machine waits for it")
			}
		})
	}
}
