package machine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/machine/deletion"
	"github.com/drover-dev/drover/internal/controller/machine/nodekeeper"
	"github.com/drover-dev/drover/internal/controller/machine/nodekeeper/nodetest"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/target"
)

// podsStay has the API server accept evictions, and no kubelet carry them out.
func (w *world) podsStay() {
	w.target.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return a.GetSubresource() == "eviction", nil, nil
	})
}

func (w *world) podGone(name string) {
	w.t.Helper()
	if err := w.target.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), "ns", name); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) hasNode(name string) bool {
	w.t.Helper()
	_, err := w.target.Tracker().Get(corev1.SchemeGroupVersion.WithResource("nodes"), "", name)
	if err != nil && !kerrors.IsNotFound(err) {
		w.t.Fatal(err)
	}
	return err == nil
}

func (w *world) isVMHeld() bool {
	w.t.Helper()
	return slices.Contains(w.vm().GetFinalizers(), v1alpha1.FinalizerDrain)
}

func (w *world) isHeld() bool {
	w.t.Helper()
	return slices.Contains(w.machine().GetFinalizers(), v1alpha1.FinalizerTerminator)
}

// dying is a Machine with a Node that is being deleted in the foreground.
func dying() *v1alpha1.Machine {
	return withNode(aMachine(true, v1alpha1.FinalizerTerminator, metav1.FinalizerDeleteDependents))
}

// TestANodeThatJoinsAfterTheDeletionBeganIsDeleted has a VM that was still starting.
func TestANodeThatJoinsAfterTheDeletionBeganIsDeleted(t *testing.T) {
	m := dying()
	m.Status.NodeRef = nil
	n := itsNode()
	w := newWorld(t, m, aVM())
	n.SetName(names.OfMachine(m.GetName(), m.GetUID()))
	w.podsStay()
	w.join(n, nodetest.PodOn("a", func(p *corev1.Pod) { p.Spec.NodeName = n.GetName() }))
	w.step()
	if !w.isVMHeld() {
		t.Error("the VM was released before its Node was drained")
	}
	w.podGone("a")
	w.step()
	if w.hasNode(n.GetName()) || !w.isVMHeld() {
		t.Error("the Node is still there, or its VM was released before it was gone")
	}
	w.step()
	if w.isVMHeld() {
		t.Error("the VM is still held")
	}
}

func TestALoneMachineGetsTheFinalizer(t *testing.T) {
	w := newWorld(t, aMachine(false), aVM())
	if got := w.step(); !slices.Equal(got, []string{"patch Machine"}) {
		t.Errorf("writes %v", got)
	}
	if f := w.machine().GetFinalizers(); !slices.Contains(f, v1alpha1.FinalizerTerminator) || len(f) != 2 {
		t.Errorf("finalizers %v", f)
	}
	if !w.isVMHeld() {
		t.Error("the VM of a living Machine was released")
	}
}

func TestAMachineGoesInOrder(t *testing.T) {
	w := newWorld(t, withNode(aMachine(true, v1alpha1.FinalizerTerminator)), aVM())
	w.podsStay()
	w.join(itsNode(), nodetest.PodOn("a"))
	if got, want := w.step(), []string{"patch Machine/status", "delete Machine"}; !slices.Equal(got, want) {
		t.Errorf("writes %v, want %v", got, want)
	}
	if !slices.Equal(w.deletes, []metav1.DeletionPropagation{metav1.DeletePropagationForeground}) {
		t.Errorf("deleted again with %v", w.deletes)
	}
	m := w.machine()
	if m.Status.Phase != v1alpha1.MachineTerminating || m.Status.LastOperation == nil || m.Status.LastOperation.Type != v1alpha1.OperationDrain {
		t.Errorf("status %+v", m.Status)
	}
	if d := m.Status.Drain; d == nil || d.Stage != v1alpha1.DrainEvictingPods || d.Remaining != 1 || m.Status.Deletion.Stage != v1alpha1.DeletionDraining {
		t.Errorf("drain %+v, deletion %+v", d, m.Status.Deletion)
	}
	if !w.isVMHeld() || !w.hasNode("n") {
		t.Fatal("the Node was deleted, or the VM was released, before the Node was drained")
	}
	if got := w.step(); len(got) > 0 {
		t.Errorf("writes %v although nothing changed", got)
	}

	w.podGone("a")
	w.step()
	if w.hasNode("n") || !w.isVMHeld() {
		t.Fatal("the Node is still there, or its VM was released in the same pass")
	}
	if got, want := w.step(), []string{"patch Machine/status", "patch Server"}; !slices.Equal(got, want) {
		t.Errorf("writes %v, want %v: the stage comes before the release", got, want)
	}
	v := w.vm()
	if w.isVMHeld() || v.GetAnnotations()[v1alpha1.AnnotationReleased] == "" {
		t.Fatalf("the VM was not released: finalizers %v, annotations %v", v.GetFinalizers(), v.GetAnnotations())
	}
	if v.GetAnnotations()[roleAnnotation] != v1alpha1.ResourceVM || len(v.GetFinalizers()) != 1 {
		t.Errorf("more than the release changed: finalizers %v, annotations %v", v.GetFinalizers(), v.GetAnnotations())
	}
	m = w.machine()
	if m.Status.LastOperation.Type != v1alpha1.OperationDelete || m.Status.Deletion.Stage != v1alpha1.DeletionDeletingVM {
		t.Errorf("operation %+v, deletion %+v", m.Status.LastOperation, m.Status.Deletion)
	}
	if got := w.step(); len(got) > 0 {
		t.Errorf("writes %v although nothing changed", got)
	}

	w.gone(v)
	w.step()
	if w.isHeld() {
		t.Error("the Machine is still held although its VM is gone")
	}
	if len(w.events.of(v1alpha1.EventNodeDeleted)) != 1 || len(w.events.of(v1alpha1.EventDraining)) != 1 {
		t.Errorf("events %v", w.events.all)
	}
}

// TestARestartNeverGoesBackToTheNode stops the process between the write of the status and the release.
func TestARestartNeverGoesBackToTheNode(t *testing.T) {
	w := newWorld(t, dying(), aVM())
	w.refuse = func(write string) error {
		if write == "patch Server" {
			return errors.New("the process was killed")
		}
		return nil
	}
	if err := w.reconcile(); err == nil {
		t.Fatal("the release was not refused")
	}
	if d := w.machine().Status.Deletion; d == nil || d.Stage != v1alpha1.DeletionDeletingVM || !w.isVMHeld() {
		t.Fatalf("deletion %+v: the stage must be recorded before the VM is released", d)
	}
	w.restart()
	w.refuse = nil
	w.podsStay()
	w.join(itsNode(), nodetest.PodOn("a")) // A late kubelet: its VM is about to go.
	w.step()
	if w.isVMHeld() || len(w.nodeWrites()) > 0 {
		t.Errorf("VM held %v, writes to the target cluster %v", w.isVMHeld(), w.nodeWrites())
	}
}

// TestARestartGoesOnWithADrain replaces the process in the middle of a drain.
func TestARestartGoesOnWithADrain(t *testing.T) {
	w := newWorld(t, dying(), aVM())
	w.podsStay()
	w.join(itsNode(), nodetest.PodOn("a"))
	w.step()
	since := w.machine().Status.Drain.StartTime
	w.restart()
	w.now = w.now.Add(2 * time.Hour)
	w.step()
	m := w.machine()
	if d := m.Status.Drain; !d.StartTime.Equal(&since) || !d.Forced || !slices.Contains(w.nodeWrites(), "delete pods") {
		t.Errorf("drain %+v, writes %v: the timeout counts from the beginning", d, w.nodeWrites())
	}
	if !w.isVMHeld() {
		t.Error("the VM was released")
	}
}

// TestNoCreationWithoutEndHoldsAMachine has a provider that stopped in the middle of a creation:
// crossplane-runtime does not even delete the VM resource then.
func TestNoCreationWithoutEndHoldsAMachine(t *testing.T) {
	for name, externalName := range map[string]string{"OfAVMThatItsCloudNames": "", "OfAVMThatItsProviderNames": "v"} {
		t.Run(name, func(t *testing.T) { noCreationWithoutEndHoldsAMachine(t, externalName) })
	}
}

func noCreationWithoutEndHoldsAMachine(t *testing.T, externalName string) {
	v := aVM()
	if externalName != "" {
		meta.SetExternalName(v, externalName)
	}
	v.SetFinalizers([]string{"finalizer.managedresource.crossplane.io"})
	meta.SetExternalCreatePending(v, time.Unix(1000, 0))
	w := newWorld(t, aMachine(true, v1alpha1.FinalizerTerminator, metav1.FinalizerDeleteDependents), v)
	if err := w.client.Delete(t.Context(), aVM()); err != nil {
		t.Fatal(err)
	}
	before := w.vm()
	w.step()
	// A provider ignores annotations about creations.
	if !resource.DesiredStateChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: w.vm()}) {
		t.Error("the provider is not woken, and has refused the deletion before")
	}
	if now := w.vm(); meta.ExternalCreateIncomplete(now) || len(now.GetFinalizers()) != 1 || now.GetAnnotations()[roleAnnotation] != v1alpha1.ResourceVM {
		t.Errorf("the creation is not forgotten, or more than that: finalizers %v, annotations %v", now.GetFinalizers(), now.GetAnnotations())
	}
}

func TestAVMOfAnotherMachineOfTheSameNameIsNotTouched(t *testing.T) {
	other := aVM()
	owners := owner()
	owners[0].UID = "uid-before"
	other.SetOwnerReferences(owners)
	w := newWorld(t, aMachine(true, v1alpha1.FinalizerTerminator), other)
	w.step()
	if !w.isVMHeld() {
		t.Error("it was released")
	}
	if w.isHeld() {
		t.Error("the Machine waits for it")
	}
}

// TestAVMThatTheMachineDoesNotControlIsNotTouched has an owner that is not the controller.
func TestAVMThatTheMachineDoesNotControlIsNotTouched(t *testing.T) {
	other := aVM()
	owners := owner()
	owners[0].Controller = nil
	other.SetOwnerReferences(owners)
	w := newWorld(t, aMachine(true, v1alpha1.FinalizerTerminator), other)
	w.step()
	if !w.isVMHeld() || w.isHeld() {
		t.Errorf("VM held %v, Machine held %v", w.isVMHeld(), w.isHeld())
	}
}

func TestSkipDrainDeletesTheNodeWithItsPods(t *testing.T) {
	m := dying()
	m.Annotations = map[string]string{v1alpha1.AnnotationSkipDrain: "true"}
	w := newWorld(t, m, aVM())
	w.join(itsNode(), nodetest.PodOn("a"))
	w.step()
	if d := cmp.Diff([]string{"delete nodes"}, w.nodeWrites()); d != "" || !w.isVMHeld() {
		t.Errorf("VM held %v, writes (-want +got):\n%s", w.isVMHeld(), d)
	}
}

// TestWithoutFinalizerTheVMIsReleasedAllTheSame has a user who removed it: the VM, which blocks the deletion of
// its owner in the foreground, would stay for ever.
func TestWithoutFinalizerTheVMIsReleasedAllTheSame(t *testing.T) {
	w := newWorld(t, withNode(aMachine(true, metav1.FinalizerDeleteDependents)), aVM())
	w.join(itsNode())
	w.step()
	if w.hasNode("n") || !w.isVMHeld() {
		t.Error("the Node comes first all the same")
	}
	w.step()
	if w.isVMHeld() {
		t.Error("the VM is still held")
	}
}

func TestAForcedDeletionLetsGoOfAVMThatItsProviderCannotDelete(t *testing.T) {
	m := aMachine(true, v1alpha1.FinalizerTerminator, metav1.FinalizerDeleteDependents)
	m.Annotations = map[string]string{v1alpha1.AnnotationForceDelete: "true"}
	m.Status.Phase = v1alpha1.MachineTerminating
	m.Status.Deletion = &v1alpha1.DeletionStatus{Stage: v1alpha1.DeletionDeletingVM, Since: metav1.Unix(100, 0).Rfc3339Copy()}
	v := aVM()
	v.SetFinalizers([]string{"finalizer.managedresource.crossplane.io"})
	w := newWorld(t, m, v)
	if err := w.client.Delete(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	w.step()
	if f := w.vm().GetFinalizers(); len(f) != 1 {
		t.Errorf("finalizers %v: its provider gets a moment", f)
	}
	w.now = w.now.Add(deletion.ForceDeleteAfter)
	w.step()
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(v), v); !kerrors.IsNotFound(err) {
		t.Errorf("the VM resource is still there: %v", err)
	}
	w.step()
	if w.isHeld() {
		t.Error("the Machine is still held")
	}
}

// staleReader is a cache that has not seen the VM yet.
type staleReader struct{ client.Reader }

func (r staleReader) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func TestAStaleCacheReleasesNothing(t *testing.T) {
	w := newWorld(t, dying(), aVM())
	w.podsStay()
	w.join(itsNode(), nodetest.PodOn("a"))
	// A kind that is not watched is read live.
	if err := w.r.watches.ensure(vmKind); err != nil {
		t.Fatal(err)
	}
	w.r.resources = staleReader{w.client}
	w.step()
	if !w.isVMHeld() {
		t.Error("the VM was released while its Node is there")
	}
	if !w.isHeld() {
		t.Error("the Machine was let go while its VM is there")
	}
	w.podGone("a")
	w.step()
	w.step()
	if !w.isHeld() || w.isVMHeld() {
		t.Error("the VM is found by a live read, and is the next to go")
	}
}

func TestAStaleCacheWritesNothingTwice(t *testing.T) {
	w := newWorld(t, dying(), aVM())
	w.podsStay()
	w.join(itsNode(), nodetest.PodOn("a"))
	w.stale = w.machine()
	run := func() string {
		t.Helper()
		w.now = w.now.Add(time.Second)
		w.step()
		return w.machine().GetResourceVersion()
	}
	first := run()
	if again := run(); again != first {
		t.Errorf("the same was written again of version %s, in version %s", first, again)
	}
	m := w.machine()
	since := m.Status.Deletion.Since
	w.stale = m
	if again := run(); again != first {
		t.Error("the same was written again when the cache had it")
	}
	w.stale = nil
	m.Status.Phase = v1alpha1.MachineRunning
	if err := w.client.Status().Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	run()
	if m = w.machine(); m.Status.Phase != v1alpha1.MachineTerminating || !m.Status.Deletion.Since.Equal(&since) {
		t.Errorf("status %+v: what another client wrote over it is written again, since %s", m.Status, since)
	}
}

// forbidden has no right to list VMs.
type forbidden struct{ client.Reader }

func (r forbidden) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if list.GetObjectKind().GroupVersionKind().Group == vmKind.Group {
		return kerrors.NewForbidden(schema.GroupResource{Group: vmKind.Group, Resource: "servers"}, "", errors.New("no right"))
	}
	return r.Reader.List(ctx, list, opts...)
}

func TestAMachineWhoseVMCannotBeReadStaysAndReportsWhy(t *testing.T) {
	w := newWorld(t, aMachine(true, v1alpha1.FinalizerTerminator, metav1.FinalizerDeleteDependents), aVM())
	w.r.resources, w.r.live = forbidden{w.client}, forbidden{w.client}
	res, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: nameOfM})
	if err != nil || res.RequeueAfter == 0 {
		t.Errorf("result %+v, error %v: nothing tries again", res, err)
	}
	m := w.machine()
	if !w.isHeld() || m.Status.LastOperation == nil || !strings.Contains(m.Status.LastOperation.Description, "cannot list Server") || len(w.events.of(v1alpha1.EventVMUnreadable)) == 0 {
		t.Errorf("finalizers %v, status %+v, events %v", m.GetFinalizers(), m.Status, w.events.all)
	}
}

func TestTheJoinTokenIsRevokedBeforeItsMachineGoes(t *testing.T) {
	w := newWorld(t, aMachine(true, v1alpha1.FinalizerTerminator, metav1.FinalizerDeleteDependents))
	w.unreachable = &target.Error{Kind: target.Unreachable, Detail: "refused"}
	w.now = time.Unix(51, 0)
	for _, tc := range []struct {
		after  time.Duration // since the deletion
		held   bool
		events int
	}{{time.Second, true, 0}, {tokenFor - time.Second, true, 0}, {tokenFor + time.Second, false, 1}} {
		w.now = time.Unix(50, 0).Add(tc.after)
		res, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: nameOfM})
		if err != nil || w.isHeld() != tc.held || len(w.events.of(v1alpha1.EventTokenAbandoned)) != tc.events {
			t.Errorf("after %s: held %v, events %v, error %v", tc.after, w.isHeld(), w.events.all, err)
		}
		if tc.held && (res.RequeueAfter == 0 || res.RequeueAfter > nodekeeper.RetryAfter) {
			t.Errorf("after %s: the next attempt is in %s", tc.after, res.RequeueAfter)
		}
	}
}

// TestADeletionDoesNotWaitForATokenWhileItsVMIsThere: the token is no reason to keep a VM.
func TestADeletionDoesNotWaitForATokenWhileItsVMIsThere(t *testing.T) {
	w := newWorld(t, aMachine(true, v1alpha1.FinalizerTerminator), aVM())
	w.unreachable = &target.Error{Kind: target.Unreachable, Detail: "refused"}
	w.now = time.Unix(51, 0)
	w.step()
	if w.isVMHeld() || len(w.deletes) != 1 {
		t.Errorf("VM held %v, deleted again %d times", w.isVMHeld(), len(w.deletes))
	}
}

// TestAClusterThatIsGoneHoldsNoMachineForEver has a cluster in which no Node can be read or drained.
func TestAClusterThatIsGoneHoldsNoMachineForEver(t *testing.T) {
	w := newWorld(t, dying(), aVM())
	w.unreachable = &target.Error{Kind: target.Unreachable, Detail: "refused"}
	w.step()
	m := w.machine()
	if !w.isVMHeld() || m.Status.LastOperation == nil || !strings.Contains(m.Status.LastOperation.Description, "refused") {
		t.Errorf("VM held %v, operation %+v", w.isVMHeld(), m.Status.LastOperation)
	}
	w.now = time.Unix(50, 0).Add(time.Hour + time.Second)
	w.step()
	if w.isVMHeld() || len(w.events.of(v1alpha1.EventNodeAbandoned)) != 1 {
		t.Errorf("VM held %v, events %v", w.isVMHeld(), w.events.all)
	}
	w.step()
	if len(w.events.of(v1alpha1.EventNodeAbandoned)) != 1 {
		t.Errorf("events %v", w.events.all)
	}
}
