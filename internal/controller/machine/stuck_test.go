package machine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/machine/deletion"
	"github.com/drover-dev/drover/internal/controller/machine/nodekeeper"
	"github.com/drover-dev/drover/internal/controller/machine/nodekeeper/nodetest"
)

// finalizersHold has the target cluster accept the deletion of Nodes with finalizers, and keep them.
func (w *world) finalizersHold() {
	nodes := corev1.SchemeGroupVersion.WithResource("nodes")
	w.target.PrependReactor("delete", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
		obj, err := w.target.Tracker().Get(nodes, "", a.(clienttesting.DeleteAction).GetName())
		if err != nil {
			return false, nil, nil //nolint:nilerr // The tracker answers the deletion of a Node that is not there.
		}
		n := obj.(*corev1.Node).DeepCopy()
		if len(n.GetFinalizers()) == 0 {
			return false, nil, nil
		}
		at := metav1.NewTime(w.now)
		n.SetDeletionTimestamp(&at)
		return true, nil, w.target.Tracker().Update(nodes, n, "")
	})
}

// TestAForeignFinalizerOfTheNodeHoldsTheVMForALimitedTime has a cluster that accepts the deletion of the Node.
func TestAForeignFinalizerOfTheNodeHoldsTheVMForALimitedTime(t *testing.T) {
	for name, tc := range map[string]struct {
		annotation string
	}{
		"AfterTheTimeoutOfTheDrain": {""},
		"ByForceAfterAMinute":       {v1alpha1.AnnotationForceDrain},
		"WithoutADrainAfterAMinute": {v1alpha1.AnnotationSkipDrain},
	} {
		t.Run(name, func(t *testing.T) {
			m := dying()
			if tc.annotation != "" {
				m.SetAnnotations(map[string]string{tc.annotation: "true"})
			}
			w := newWorld(t, m, aVM())
			w.finalizersHold()
			n := itsNode()
			n.SetFinalizers([]string{"example.org/hold"})
			w.join(n)
			w.step()
			until := w.now.Add(nodekeeper.AbandonAfter)
			if tc.annotation == "" {
				until = m.GetDeletionTimestamp().Add(m.Spec.Drain.Timeout.Duration + nodekeeper.AbandonAfter)
			}
			got := w.machine()
			if d := got.Status.Deletion; d == nil || d.Stage != v1alpha1.DeletionDeletingNode || !slices.Equal(d.Finalizers, []string{"example.org/hold"}) {
				t.Fatalf("deletion %+v: it does not name the finalizer", d)
			}
			want := "Waiting for Node n: it is deleted, and the finalizers example.org/hold of other controllers hold it; from " + until.UTC().Format(time.RFC3339) + " it is left behind"
			if got.Status.LastOperation.Description != want {
				t.Errorf("operation %q, want %q", got.Status.LastOperation.Description, want)
			}
			if e := w.events.of(v1alpha1.EventNodeHeld); len(e) != 1 || len(w.events.of(v1alpha1.EventNodeDeleted)) > 0 {
				t.Errorf("events %v: the Node is not deleted", w.events.all)
			}
			w.restart()
			w.now = until
			if w.step(); !w.isVMHeld() {
				t.Errorf("at %s the VM is not held any more", until)
			}
			w.now = until.Add(time.Second)
			w.step()
			if w.isVMHeld() || !w.hasNode("n") {
				t.Error("the VM is still held by its Node")
			}
			if e := w.events.of(v1alpha1.EventNodeAbandoned); len(e) != 1 || !strings.Contains(e[0], "example.org/hold") {
				t.Errorf("events %v", e)
			}
			w.now = w.now.Add(time.Hour)
			if w.step(); len(w.nodeWrites()) > 3 {
				t.Errorf("writes to the target cluster %v: the deletion returned to the Node", w.nodeWrites())
			}
		})
	}
}

// withoutConfig is a VM resource whose provider cannot find its configuration.
func withoutConfig(v *unstructured.Unstructured) *unstructured.Unstructured {
	_ = unstructured.SetNestedSlice(v.Object, []any{map[string]any{
		"type": "Synced", "status": "False", "reason": "ReconcileError",
		"message": `connect failed: cannot get credentials: clusterproviderconfigs.cloud.example.org "none" not found, RequestID: 0123456789ab`,
	}}, "status", "conditions")
	return v
}

// released is a Machine whose VM resource is released and deleted.
func released() (*v1alpha1.Machine, *unstructured.Unstructured) {
	m := aMachine(true, v1alpha1.FinalizerTerminator, metav1.FinalizerDeleteDependents)
	v := aVM()
	v.SetFinalizers([]string{"finalizer.managedresource.crossplane.io"})
	at := metav1.Unix(60, 0)
	v.SetDeletionTimestamp(&at)
	return m, v
}

// TestAMachineThatNeverHadAVMIsDeletedWithoutItsProvider has a provider that lacks its configuration.
func TestAMachineThatNeverHadAVMIsDeletedWithoutItsProvider(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.Machine, *unstructured.Unstructured)
		goes   bool
	}{
		"NothingWasBegun": {func(*v1alpha1.Machine, *unstructured.Unstructured) {}, true},
		"TheProviderChoseTheName": {func(_ *v1alpha1.Machine, v *unstructured.Unstructured) {
			meta.SetExternalName(v, v.GetName())
		}, true},
		"ACreationBegan": {func(_ *v1alpha1.Machine, v *unstructured.Unstructured) {
			meta.SetExternalCreatePending(v, time.Unix(40, 0))
			meta.SetExternalCreateFailed(v, time.Unix(41, 0))
		}, false},
		"ItHasAVM": {func(_ *v1alpha1.Machine, v *unstructured.Unstructured) { meta.SetExternalName(v, "vm-1") }, false},
		"TheMachineHadAVM": {func(m *v1alpha1.Machine, _ *unstructured.Unstructured) {
			m.Spec.ProviderID = new(nodetest.ID)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m, v := released()
			tc.change(m, v)
			w := newWorld(t, m, withoutConfig(v))
			w.step()
			w.now = w.now.Add(deletion.UnmadeAfter - time.Second)
			w.step()
			if _, ok := w.find(vmKind, "v"); !ok {
				t.Fatal("its provider had no moment")
			}
			w.now = w.now.Add(2 * time.Second)
			w.step()
			if _, there := w.find(vmKind, "v"); there == tc.goes {
				t.Fatalf("the VM resource is there: %v", there)
			}
			if got := len(w.events.of(v1alpha1.EventNeverCreated)) > 0; got != tc.goes {
				t.Errorf("events %v", w.events.all)
			}
			if tc.goes {
				if w.step(); w.isHeld() {
					t.Error("the Machine is not let go")
				}
				return
			}
			w.step()
			want := `Waiting for Server v: the VM is deleted; its provider reports: connect failed: cannot get credentials: clusterproviderconfigs.cloud.example.org "none" not found, ...; create the clusterproviderconfig none again, or, if nothing of it exists at the cloud, set the annotation drover.dev/force-delete=true`
			if got := w.machine().Status.LastOperation.Description; got != want {
				t.Errorf("operation %q, want %q", got, want)
			}
		})
	}
}

// TestTheErrorOfAProviderIsReportedWithoutAnEvent has an error that the provider reported before the VM was released.
func TestTheErrorOfAProviderIsReportedWithoutAnEvent(t *testing.T) {
	v := withoutConfig(aVM())
	meta.SetExternalName(v, "vm-1")
	w := newWorld(t, aMachine(true, v1alpha1.FinalizerTerminator, metav1.FinalizerDeleteDependents), v)
	result, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: nameOfM})
	if err != nil || result.RequeueAfter <= 0 || result.RequeueAfter > providerErrorAfter || w.isVMHeld() {
		t.Fatalf("requeued after %s, error %v", result.RequeueAfter, err)
	}
	if err := w.client.Delete(t.Context(), w.vm()); err != nil {
		t.Fatal(err)
	}
	w.step()
	if got := w.machine().Status.LastOperation.Description; !strings.Contains(got, `clusterproviderconfigs.cloud.example.org "none" not found`) {
		t.Errorf("operation %q", got)
	}
}

// TestWhatKeepsADeletionIsNamedAlthoughNoProviderReportsIt has a VM resource that a user paused, and an annotation that would
// shorten the deletion if its value were right.
func TestWhatKeepsADeletionIsNamedAlthoughNoProviderReportsIt(t *testing.T) {
	m, v := released()
	meta.SetExternalName(v, "vm-1")
	meta.AddAnnotations(v, map[string]string{"crossplane.io/paused": "true"})
	meta.AddAnnotations(m, map[string]string{v1alpha1.AnnotationForceDelete: "True"})
	w := newWorld(t, m, v)
	w.step()
	w.step()
	want := `Waiting for Server v: the VM is deleted; its annotation crossplane.io/paused keeps its provider from deleting it; drover.dev/force-delete: "True" of the Machine must be true or false, and is passed over`
	if got := w.machine().Status.LastOperation.Description; got != want {
		t.Errorf("operation %q, want %q", got, want)
	}
}

// TestFinalizersOfOthersAreNamedAtEachStage has finalizers that hold the VM resource, and then the Machine.
func TestFinalizersOfOthersAreNamedAtEachStage(t *testing.T) {
	m, v := released()
	meta.SetExternalName(v, "vm-1")
	v.SetFinalizers(append(v.GetFinalizers(), "example.org/backup"))
	w := newWorld(t, m, v)
	w.step()
	if got := w.machine().Status; !slices.Equal(got.Deletion.Finalizers, []string{"example.org/backup"}) || got.LastOperation.Description != "Waiting for Server v: the VM is deleted; the finalizers example.org/backup of other controllers hold it" {
		t.Errorf("deletion %+v, operation %+v", got.Deletion, got.LastOperation)
	}
	w.gone(w.vm())
	w.step()
	got := w.machine().Status
	if got.Deletion.Stage != v1alpha1.DeletionFinalizers || !slices.Equal(got.Deletion.Finalizers, []string{"example.org/other"}) {
		t.Errorf("deletion %+v", got.Deletion)
	}
	if got.LastOperation.Description != "Everything is deleted, and the finalizers example.org/other of other controllers hold the Machine" {
		t.Errorf("operation %+v", got.LastOperation)
	}
	if w.isHeld() {
		t.Error("the Machine is not let go")
	}
	if w.step(); len(w.writes) > 0 {
		t.Errorf("writes %v although nothing changed", w.writes)
	}
}

func TestAMachineThatIsBeingDeletedIsNotReady(t *testing.T) {
	m := dying()
	m.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Available"}}
	w := newWorld(t, m, aVM())
	w.podsStay()
	w.join(itsNode(), nodetest.PodOn("a"))
	w.step()
	if c := apimeta.FindStatusCondition(w.machine().Status.Conditions, "Ready"); c.Status != metav1.ConditionFalse || c.Reason != "Deleting" {
		t.Errorf("Ready is %+v", c)
	}
}

// TestAPausedDeletionIsReported pauses a deletion before it begins, and while the Node is drained.
func TestAPausedDeletionIsReported(t *testing.T) {
	const paused = "Paused: nothing is drained or deleted until the annotation crossplane.io/paused is removed"
	m := dying()
	m.SetAnnotations(map[string]string{"crossplane.io/paused": "true"})
	w := newWorld(t, m, aVM())
	w.podsStay()
	w.join(itsNode(), nodetest.PodOn("a"))
	w.step()
	got := w.machine().Status
	if got.Deletion == nil || got.Deletion.Stage != v1alpha1.DeletionPaused || got.LastOperation.Description != paused || got.Phase != v1alpha1.MachineTerminating {
		t.Fatalf("deletion %+v, operation %+v", got.Deletion, got.LastOperation)
	}
	if w.step(); len(w.writes) > 0 || len(w.nodeWrites()) > 0 {
		t.Errorf("writes %v, %v", w.writes, w.nodeWrites())
	}
	pause := func(value string) {
		m := w.machine()
		m.SetAnnotations(map[string]string{"crossplane.io/paused": value})
		w.update(m)
		w.step()
	}
	pause("false")
	if got := w.machine().Status; got.Deletion.Stage != v1alpha1.DeletionDraining || got.LastOperation.Description == paused {
		t.Errorf("deletion %+v, operation %+v", got.Deletion, got.LastOperation)
	}
	pause("true")
	if got := w.machine().Status; got.Deletion.Stage != v1alpha1.DeletionDraining || got.LastOperation.Description != paused {
		t.Errorf("deletion %+v, operation %+v", got.Deletion, got.LastOperation)
	}
}
