package machine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/finalizer"
	"github.com/drover-dev/drover/internal/plan"
)

// diskAttachment is a companion that depends on the VM.
func diskAttachment() *unstructured.Unstructured {
	a := card()
	a.SetName("v-attachment")
	a.SetAnnotations(map[string]string{
		roleAnnotation: v1alpha1.ResourceCompanionPrefix + "attachment", v1alpha1.AnnotationOrder: "1", v1alpha1.AnnotationAfterVM: "true",
	})
	return a
}

func (w *world) diskAttachment() *unstructured.Unstructured {
	w.t.Helper()
	return w.get(cardKind, "v-attachment")
}

func isHeldByDrain(o client.Object) bool {
	return slices.Contains(o.GetFinalizers(), v1alpha1.FinalizerDrain)
}

// withAttachment is a Machine that is being deleted, and whose VM has a card and an attachment.
func withAttachment() *v1alpha1.Machine {
	m := withCard()
	m.Status.CompositionRevision = "machine-cloud-1"
	m.Status.ResourceRefs = append(m.Status.ResourceRefs, v1alpha1.ComposedReference{
		Role: v1alpha1.ResourceCompanionPrefix + "attachment", APIVersion: cardKind.GroupVersion().String(), Kind: cardKind.Kind, Name: "v-attachment",
	})
	return m
}

// TestADeletionGoesFromTheDependentsToTheVMAndToTheCompanions restarts the controller before each step.
func TestADeletionGoesFromTheDependentsToTheVMAndToTheCompanions(t *testing.T) {
	w := newWorld(t, withAttachment(), aVM(), card(), diskAttachment(), revision("machine-cloud", 1, withCompanion))
	step := func(stage v1alpha1.DeletionStage, text string) {
		t.Helper()
		w.restart()
		w.step()
		m := w.machine()
		if d := m.Status.Deletion; d == nil || d.Stage != stage || !strings.Contains(m.Status.LastOperation.Description, text) {
			t.Fatalf("deletion %+v, operation %+v, want %s and %s", d, m.Status.LastOperation, stage, text)
		}
	}
	held := func(want ...bool) {
		t.Helper()
		for i, get := range []func() *unstructured.Unstructured{w.vm, w.card, w.diskAttachment}[:len(want)] {
			if o := get(); isHeldByDrain(o) != want[i] {
				t.Fatalf("%s is held: %v, want %v", o.GetName(), !want[i], want[i])
			}
		}
	}
	step(v1alpha1.DeletionDeletingDependents, "v-attachment")
	held(true, true, false)
	step(v1alpha1.DeletionDeletingDependents, "v-attachment")
	held(true, true, false)
	w.gone(w.diskAttachment())
	step(v1alpha1.DeletionDeletingVM, "the VM is deleted")
	held(false, true)
	w.gone(w.vm())
	step(v1alpha1.DeletionDeletingCompanions, "v-nic")
	if isHeldByDrain(w.card()) {
		t.Fatal("the card is held when the VM is gone")
	}
	w.gone(w.card())
	w.restart()
	w.step()
	if slices.Contains(w.machine().GetFinalizers(), v1alpha1.FinalizerTerminator) {
		t.Error("the Machine is held although nothing is left")
	}
}

func TestADependentThatHangsHoldsItsVMFiveMinutesAndItsMachineUntilItIsGone(t *testing.T) {
	w := newWorld(t, withAttachment(), aVM(), card(), diskAttachment(), revision("machine-cloud", 1, withCompanion))
	w.step()
	w.now = w.now.Add(dependentsTimeout - 1)
	w.step()
	if !isHeldByDrain(w.vm()) || len(w.events.of(v1alpha1.EventDependentTimeout)) > 0 {
		t.Fatalf("before the timeout: the VM is held: %v, events %v", isHeldByDrain(w.vm()), w.events.all)
	}
	w.now = w.now.Add(1)
	for range 3 {
		w.restart()
		w.step()
	}
	if isHeldByDrain(w.vm()) {
		t.Error("the VM is held after the timeout")
	}
	if reported := w.events.of(v1alpha1.EventDependentTimeout); len(reported) != 1 || !strings.Contains(reported[0], "Card v-attachment still exist: their deletion took longer than 5m0s") {
		t.Errorf("events %v", reported)
	}
	w.gone(w.vm())
	w.step()
	if !isHeldByDrain(w.card()) || !slices.Contains(w.machine().GetFinalizers(), v1alpha1.FinalizerTerminator) {
		t.Error("the attachment still exists: neither the card nor the Machine may go")
	}
	w.gone(w.diskAttachment())
	w.step()
	if isHeldByDrain(w.card()) {
		t.Error("the card is held when the attachment is gone")
	}
}

// composing is a pipeline that desires the VM of the fixture and its attachment, if it is named.
func composing(t *testing.T, roles ...string) func(context.Context, *fnRequest) (*fnResponse, error) {
	t.Helper()
	return func(_ context.Context, req *fnRequest) (*fnResponse, error) {
		resources := map[string]map[string]any{}
		for _, role := range roles {
			resource := desiredVM(machineIn(t, req), "small")
			meta, _ := resource["metadata"].(map[string]any)
			meta["name"] = "v"
			if v1alpha1.IsCompanion(role) {
				resource["apiVersion"], resource["kind"] = cardKind.ToAPIVersionAndKind()
				meta["finalizers"] = []any{v1alpha1.FinalizerDrain, plan.FinalizerManaged}
				meta["name"], meta["annotations"] = "v-attachment", map[string]any{v1alpha1.AnnotationOrder: "1", v1alpha1.AnnotationAfterVM: "true"}
			}
			resources[role] = resource
		}
		return answer(t, req, answered{resources: resources}), nil
	}
}

func TestADependentThatAUserDeletesIsReleasedAndMadeAgain(t *testing.T) {
	alive := withAttachment()
	alive.DeletionTimestamp = nil
	w := newWorld(t, alive, aVM(), diskAttachment(), revision("machine-cloud", 1, withCompanion))
	w.script = composing(t, v1alpha1.ResourceVM, v1alpha1.ResourceCompanionPrefix+"attachment")
	w.step()
	if !isHeldByDrain(w.diskAttachment()) {
		t.Fatal("it is released although no user deleted it")
	}
	if err := w.client.Delete(t.Context(), w.diskAttachment()); err != nil {
		t.Fatal(err)
	}
	w.restart()
	w.step()
	if isHeldByDrain(w.diskAttachment()) {
		t.Fatal("its provider may not delete it")
	}
	before := w.diskAttachment().GetUID()
	w.gone(w.diskAttachment())
	w.restart()
	w.step()
	if again := w.diskAttachment(); again.GetUID() == before || again.GetDeletionTimestamp() != nil {
		t.Error("it is not made again")
	}
	if !isHeldByDrain(w.vm()) {
		t.Error("the VM is released")
	}
}

// TestADependentOfADeletedMachineStaysUntilTheDrain has a cache that does not show the deletion of the Machine yet,
// and a garbage collector that was faster.
func TestADependentOfADeletedMachineStaysUntilTheDrain(t *testing.T) {
	deleted := withAttachment()
	a := diskAttachment()
	at := metav1.Unix(60, 0)
	a.SetDeletionTimestamp(&at)
	w := newWorld(t, deleted, aVM(), a, revision("machine-cloud", 1, withCompanion))
	w.stale = deleted.DeepCopy()
	w.stale.DeletionTimestamp = nil
	w.script = composing(t, v1alpha1.ResourceVM, v1alpha1.ResourceCompanionPrefix+"attachment")
	_ = w.reconcile()
	if !isHeldByDrain(w.diskAttachment()) {
		t.Error("it is released before the Node is drained")
	}
}

// withOptional adds an optional companion of another kind. provider-drover may not read it.
func withOptional(r *unstructured.Unstructured) {
	pipeline, _, _ := unstructured.NestedSlice(r.Object, "spec", "pipeline")
	input := pipeline[0].(map[string]any)["input"].(map[string]any)
	input["companions"] = []any{map[string]any{"name": "attachment", "optional": true, "afterVM": true, "apiVersion": cardKind.GroupVersion().String(), "kind": cardKind.Kind}}
	_ = unstructured.SetNestedSlice(r.Object, pipeline, "spec", "pipeline")
}

// TestAnOptionalCompanionThatNoMachineHasIsNotRead: its kind may not be installed, and the rights for it may be
// missing.
func TestAnOptionalCompanionThatNoMachineHasIsNotRead(t *testing.T) {
	for name, deleting := range map[string]bool{"OfAMachineThatLives": false, "OfAMachineThatIsDeleted": true} {
		t.Run(name, func(t *testing.T) {
			m := aMachine(deleting, v1alpha1.FinalizerTerminator)
			m.Status.CompositionRevision = "machine-cloud-1"
			w := newWorld(t, m, aVM(), revision("machine-cloud", 1, withOptional))
			w.script = composing(t, v1alpha1.ResourceVM)
			w.step()
			if !slices.Equal(w.watched, []schema.GroupVersionKind{vmKind}) {
				t.Errorf("watched %v", w.watched)
			}
		})
	}
}

// TestAnOptionalCompanionThatTheStatusForgotIsDeleted: the VM names the companions that it was created with.
func TestAnOptionalCompanionThatTheStatusForgotIsDeleted(t *testing.T) {
	m := aMachine(true, v1alpha1.FinalizerTerminator, metav1.FinalizerDeleteDependents)
	m.Status.CompositionRevision = "machine-cloud-1"
	v := aVM()
	annotate(v, v1alpha1.AnnotationCompanions, "attachment")
	w := newWorld(t, m, v, diskAttachment(), revision("machine-cloud", 1, withOptional))
	w.step()
	if isHeldByDrain(w.diskAttachment()) || !isHeldByDrain(w.vm()) {
		t.Errorf("the attachment is held: %v, the VM is held: %v", isHeldByDrain(w.diskAttachment()), isHeldByDrain(w.vm()))
	}
}

// TestAnOptionalCompanionOfARestoredMachineIsTakenOver by the annotation of its VM.
func TestAnOptionalCompanionOfARestoredMachineIsTakenOver(t *testing.T) {
	m := aMachine(false, v1alpha1.FinalizerTerminator)
	m.Spec.Version, m.Status = "v1.35.4", v1alpha1.MachineStatus{}
	v, a := aVM(), diskAttachment()
	for _, o := range []*unstructured.Unstructured{v, a} {
		o.SetOwnerReferences(nil)
	}
	for key, value := range map[string]string{
		v1alpha1.AnnotationCompanions: "attachment", v1alpha1.AnnotationMachineUID: "uid-before", v1alpha1.AnnotationNodeName: "n",
		v1alpha1.AnnotationInstallation: "here", "crossplane.io/external-name": "i-1",
	} {
		annotate(v, key, value)
	}
	w := newWorld(t, m, aClass(), v, a, revision("machine-cloud", 1, withOptional))
	w.script = drover(t)
	w.steps(3)
	for _, o := range []*unstructured.Unstructured{w.vm(), w.diskAttachment()} {
		if !metav1.IsControlledBy(o, w.machine()) {
			t.Errorf("%s is not taken over", o.GetName())
		}
	}
}

// TestInAnyHistoryADeletionKeepsItsOrder plays providers that delete or hang, hooks that come and go, a user who
// forces the deletion, and a controller that has only the status.
func TestInAnyHistoryADeletionKeepsItsOrder(t *testing.T) {
	order := []v1alpha1.DeletionStage{
		v1alpha1.DeletionPreDrainHooks, v1alpha1.DeletionPreTerminateHooks, v1alpha1.DeletionDeletingDependents, v1alpha1.DeletionDeletingVM, v1alpha1.DeletionDeletingCompanions,
	}
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 0))
		now := time.Unix(100_000, 0)
		s := machineState{self: finalizer.State{Deleting: true, Held: true, Foreground: true}, deletedAt: now, hookTimeout: time.Hour}
		for i := range r.IntN(2) {
			s.vms = append(s.vms, vm{kind: "VM", name: fmt.Sprint(i), held: true})
		}
		for i := range r.IntN(3) {
			s.companions = append(s.companions, vm{kind: "Card", name: fmt.Sprint(i), held: true, order: i})
		}
		for i := range r.IntN(4) {
			s.dependents = append(s.dependents, vm{kind: "Attachment", name: fmt.Sprint(i), held: true, order: 3 + i, afterVM: true})
		}
		var dependentsSince time.Time
		overdue := 0
		for step := 0; len(s.vms)+len(s.companions)+len(s.dependents) > 0; step++ {
			isCalm := step > 40
			if step > 400 {
				t.Fatalf("seed %d: the deletion does not end: %+v", seed, s)
			}
			s.now, s.preTerminate, s.preDrain = now, nil, nil
			if !isCalm && r.IntN(4) == 0 {
				s.preTerminate = []string{"backup"}
			}
			if !isCalm && r.IntN(4) == 0 {
				s.preDrain = []string{"backup"}
			}
			s.forceDelete = s.forceDelete || !isCalm && r.IntN(60) == 0
			p := planDeletion(s)
			if p.step == finalizer.Remove {
				t.Fatalf("seed %d, step %d: the Machine goes although something is left", seed, step)
			}
			stage := p.deletion.Stage
			if slices.Index(order, stage) < slices.Index(order, s.stage) {
				t.Fatalf("seed %d, step %d: from %s back to %s", seed, step, s.stage, stage)
			}
			if stage == v1alpha1.DeletionDeletingDependents && s.stage != stage {
				dependentsSince = now
			}
			overdue += min(len(p.overdue), 1)
			for _, v := range p.release {
				switch {
				case s.forceDelete:
				case v.kind == "VM" && len(s.dependents) > 0 && (dependentsSince.IsZero() || now.Sub(dependentsSince) < dependentsTimeout):
					t.Fatalf("seed %d, step %d: the VM is released before %+v", seed, step, s.dependents)
				case v.kind == "Card" && len(s.vms)+len(s.dependents) > 0:
					t.Fatalf("seed %d, step %d: a companion is released before %+v and %+v", seed, step, s.vms, s.dependents)
				case v.kind != "VM" && slices.ContainsFunc(slices.Concat(s.companions, s.dependents), func(o vm) bool { return o.order > v.order && o.afterVM == v.afterVM }):
					t.Fatalf("seed %d, step %d: %+v is released before one that was created later", seed, step, v)
				}
			}
			if s.stage != stage {
				s.stage, s.since = stage, p.deletion.Since.Time
			}
			released := func(list []vm) []vm {
				var out []vm
				for _, v := range list {
					if slices.Contains(p.release, v) {
						v.held, v.deleting = false, true
					} else if !v.held && (isCalm || r.IntN(4) == 0) || slices.Contains(p.abandon, v) {
						continue
					}
					out = append(out, v)
				}
				return out
			}
			s.vms, s.companions, s.dependents = released(s.vms), released(s.companions), released(s.dependents)
			now = now.Add(time.Duration(r.IntN(120)) * time.Second)
			if isCalm {
				now = now.Add(time.Hour)
			}
		}
		if overdue > 1 {
			t.Errorf("seed %d: %d events of one timeout", seed, overdue)
		}
	}
}
