package machine

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/machine/nodekeeper/nodetest"
	"github.com/drover-dev/drover/internal/names"
)

// strayVM is the VM of a Machine with the UID, in the middle of its deletion.
func strayVM(uid types.UID) *unstructured.Unstructured {
	v := aVM()
	owners := owner()
	owners[0].UID = uid
	v.SetOwnerReferences(owners)
	v.SetAnnotations(map[string]string{roleAnnotation: v1alpha1.ResourceVM, "crossplane.io/external-name": "vm-1"})
	_ = unstructured.SetNestedStringSlice(v.Object, []string{"Observe", "Delete"}, "spec", managementPolicies)
	return v
}

// seeDeleted deletes the VM, and has the controller's watch observe that.
func (w *world) seeDeleted() {
	w.t.Helper()
	if err := w.client.Delete(w.t.Context(), w.vm()); err != nil {
		w.t.Fatal(err)
	}
	woken(w.t, func(q queue) {
		w.r.watches.handler(vmKind).Update(w.t.Context(), updated{ObjectOld: w.vm(), ObjectNew: w.vm()}, q)
	})
}

func (w *world) policies() []string {
	w.t.Helper()
	p, _, err := unstructured.NestedStringSlice(w.vm().Object, "spec", managementPolicies)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func TestAVMWithoutItsMachineIsLetGoAndKept(t *testing.T) {
	has := aVM()
	has.SetName(names.OfMachine("m", "uid-m"))
	going := aMachine(true, v1alpha1.FinalizerTerminator)
	going.Status.Deletion = &v1alpha1.DeletionStatus{Stage: v1alpha1.DeletionDraining}
	for name, machines := range map[string][]client.Object{
		"NoMachineOfItsName":                        nil,
		"AnotherMachineOfItsNameThatHasAVM":         {aMachine(false, v1alpha1.FinalizerTerminator), has},
		"AnotherMachineWhoseDeletionHasBegunBefore": {going},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(machines, strayVM("uid-before"))...)
			w.seeDeleted()
			_ = w.reconcile() // The other Machine has no Composition here.
			if w.isVMHeld() || !slices.Equal(w.policies(), []string{"Observe"}) {
				t.Errorf("finalizers %v, policies %v", w.vm().GetFinalizers(), w.policies())
			}
			events := w.events.of(v1alpha1.EventKeptWithoutMachine)
			if len(events) != 1 || !strings.Contains(events[0], `its Machine ns/m with the UID uid-before does not exist: this resource goes, and Server "vm-1" is kept at its cloud`) {
				t.Errorf("events %v", w.events.all)
			}
			if i, j := slices.Index(w.writes, "patch Server"), len(w.writes); i < 0 || j-i < 2 {
				t.Errorf("writes %v: the right to delete goes in a write before the finalizer", w.writes)
			}
		})
	}
}

func TestAVMWhoseMachineExistsIsNoStray(t *testing.T) {
	m := dying()
	w := newWorld(t, m, strayVM(m.GetUID()))
	w.podsStay()
	w.join(itsNode(), nodetest.PodOn("a"))
	w.seeDeleted()
	w.step()
	if !w.isVMHeld() || !slices.Equal(w.policies(), []string{"Observe", "Delete"}) {
		t.Errorf("finalizers %v, policies %v", w.vm().GetFinalizers(), w.policies())
	}
	// The cache may lack a Machine that is new.
	stale := aMachine(false, v1alpha1.FinalizerTerminator)
	stale.SetUID("uid-before")
	w.stale = stale
	_ = w.reconcile()
	if !w.isVMHeld() || !slices.Equal(w.policies(), []string{"Observe", "Delete"}) {
		t.Errorf("by an old view: finalizers %v, policies %v", w.vm().GetFinalizers(), w.policies())
	}
}

func TestAVMThatItsProviderWouldDeleteIsNotLetGo(t *testing.T) {
	t.Run("TheRightToDeleteCannotBeTaken", func(t *testing.T) {
		w := newWorld(t, strayVM("uid-before"))
		w.seeDeleted()
		w.refuse = func(string) error { return errors.New("refused") }
		if err := w.reconcile(); err == nil || !w.isVMHeld() {
			t.Errorf("error %v, finalizers %v", err, w.vm().GetFinalizers())
		}
		w.refuse = nil
		w.step()
		if w.isVMHeld() {
			t.Error("it is held although nothing refuses its release any more")
		}
	})
	t.Run("ItWasLetGoMeanwhile", func(t *testing.T) {
		w := newWorld(t, strayVM("uid-before"))
		w.seeDeleted()
		v := w.vm()
		v.SetFinalizers([]string{"provider"})
		w.update(v)
		if got := w.step(); len(got) > 0 {
			t.Errorf("writes %v", got)
		}
	})
}

func TestTheHeldResourcesOfAMachineAreForgotten(t *testing.T) {
	w := newWorld(t, strayVM("uid-before"))
	w.seeDeleted()
	if got := w.r.watches.heldOf(nameOfM); len(got) != 1 {
		t.Fatalf("held: %v", got)
	}
	w.step()
	woken(t, func(q queue) {
		w.r.watches.handler(vmKind).Update(t.Context(), updated{ObjectOld: w.vm(), ObjectNew: w.vm()}, q)
	})
	if got := w.r.watches.held; len(got) > 0 {
		t.Errorf("remembered: %v", got)
	}
	v := strayVM("uid-before")
	v.SetDeletionTimestamp(w.vm().GetDeletionTimestamp())
	h := w.r.watches.handler(vmKind)
	woken(t, func(q queue) {
		h.Create(t.Context(), created{Object: v}, q)
		h.Delete(t.Context(), removed{Object: v}, q)
	})
	if got := w.r.watches.held; len(got) > 0 {
		t.Errorf("remembered of one that is gone: %v", got)
	}
}
