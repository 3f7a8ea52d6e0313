package machine

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/machine/nodekeeper"
)

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
	if err != nil || res.RequeueAfter == 0 || res.RequeueAfter > nodekeeper.RetryAfter || len(w.watched) > 0 || w.isVMHeld() {
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
