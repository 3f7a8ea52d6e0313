package machine

import (
	"context"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/machine/deletion"
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
	w.now = w.now.Add(deletion.DependentsTimeout - 1)
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
