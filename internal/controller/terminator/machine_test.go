package terminator

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

var vmKind = schema.GroupVersionKind{Group: "cloud.example.org", Version: "v1", Kind: "Server"}

// world is a control cluster with one Machine.
type world struct {
	t       *testing.T
	client  client.WithWatch
	r       *machines
	deletes []metav1.DeletionPropagation
	watched []schema.GroupVersionKind
}

func newWorld(t *testing.T, objs ...client.Object) *world {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{AddToScheme, clusterv1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	s.AddKnownTypeWithName(vmKind, &unstructured.Unstructured{})
	s.AddKnownTypeWithName(vmKind.GroupVersion().WithKind("ServerList"), &unstructured.UnstructuredList{})
	s.AddKnownTypeWithName(cardKind, &unstructured.Unstructured{})
	s.AddKnownTypeWithName(cardKind.GroupVersion().WithKind("CardList"), &unstructured.UnstructuredList{})
	w := &world{t: t}
	w.client = fake.NewClientBuilder().WithScheme(s).WithObjects(objs...).WithStatusSubresource(&Machine{}).
		WithIndex(&clusterv1alpha1.WorkerNode{}, byOwner, ownersOf).
		WithInterceptorFuncs(interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			o := &client.DeleteOptions{}
			o.ApplyOptions(opts)
			if o.PropagationPolicy != nil {
				w.deletes = append(w.deletes, *o.PropagationPolicy)
			}
			return c.Delete(ctx, obj, opts...)
		}}).Build()
	w.r = &machines{
		client: w.client, live: w.client, views: w.client, workerNodes: w.client,
		record: event.NewNopRecorder(), now: func() time.Time { return time.Unix(100, 0) },
		kinds: newVMKinds(w.client, func(gvk schema.GroupVersionKind) error {
			w.watched = append(w.watched, gvk)
			return nil
		}),
	}
	return w
}

func (w *world) reconcile() error {
	_, err := w.r.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "m"}})
	return err
}

func (w *world) machine() *Machine {
	w.t.Helper()
	m := &Machine{}
	if err := w.client.Get(w.t.Context(), types.NamespacedName{Namespace: "ns", Name: "m"}, m); err != nil {
		w.t.Fatal(err)
	}
	return m
}

func (w *world) vm() *unstructured.Unstructured {
	w.t.Helper()
	v := &unstructured.Unstructured{}
	v.SetGroupVersionKind(vmKind)
	if err := w.client.Get(w.t.Context(), types.NamespacedName{Namespace: "ns", Name: "v"}, v); err != nil {
		w.t.Fatal(err)
	}
	return v
}

func aMachine(deleting bool, finalizers ...string) *Machine {
	m := &Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "uid-m", Finalizers: append([]string{"composite.apiextensions.crossplane.io"}, finalizers...)}}
	m.Spec.Crossplane.ResourceRefs = []corev1.ObjectReference{
		{APIVersion: "v1", Kind: "Secret", Name: "s"},
		{APIVersion: clusterv1alpha1.SchemeGroupVersion.String(), Kind: "WorkerNode", Name: "w"},
		{APIVersion: vmKind.GroupVersion().String(), Kind: vmKind.Kind, Name: "v"},
	}
	if deleting {
		at := metav1.Unix(50, 0)
		m.DeletionTimestamp = &at
	}
	return m
}

func owner() []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Machine", Name: "m", UID: "uid-m"}}
}

func aVM() *unstructured.Unstructured {
	v := &unstructured.Unstructured{}
	v.SetGroupVersionKind(vmKind)
	v.SetNamespace("ns")
	v.SetName("v")
	v.SetOwnerReferences(owner())
	v.SetLabels(map[string]string{v1alpha1.LabelMachine: "m"})
	v.SetAnnotations(map[string]string{annotationResourceName: v1alpha1.ResourceVM})
	v.SetFinalizers([]string{"finalizer.managedresource.crossplane.io", v1alpha1.FinalizerDrain})
	return v
}

func aWorkerNode() *clusterv1alpha1.WorkerNode {
	return &clusterv1alpha1.WorkerNode{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "w", OwnerReferences: owner(), Labels: map[string]string{v1alpha1.LabelMachine: "m"},
	}}
}

func TestAWorkerNodeThatIsMadeAfterTheDeletionBeganIsDeleted(t *testing.T) {
	for name, tc := range map[string]struct {
		created int64
		kept    bool
	}{
		"BeforeIt": {created: 49, kept: true}, // The garbage collector deletes that.
		"WithIt":   {created: 50},
		"AfterIt":  {created: 51},
	} {
		t.Run(name, func(t *testing.T) {
			late := aWorkerNode()
			late.UID, late.CreationTimestamp = "uid-w", metav1.Unix(tc.created, 0)
			w := newWorld(t, aMachine(true, v1alpha1.FinalizerTerminator, metav1.FinalizerDeleteDependents), aVM(), late)
			if err := w.reconcile(); err != nil {
				t.Fatal(err)
			}
			if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(late), late); kerrors.IsNotFound(err) == tc.kept {
				t.Errorf("reading it: %v", err)
			}
			if w.vm().GetFinalizers()[1] != v1alpha1.FinalizerDrain {
				t.Error("the VM was released before it was gone")
			}
		})
	}
}

func TestALoneMachineGetsTheFinalizer(t *testing.T) {
	w := newWorld(t, aMachine(false), aVM())
	if err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if f := w.machine().GetFinalizers(); !slices.Contains(f, v1alpha1.FinalizerTerminator) || len(f) != 2 {
		t.Errorf("finalizers %v", f)
	}
	if !slices.Equal(w.watched, []schema.GroupVersionKind{vmKind}) {
		t.Errorf("watched %v, want the VM's kind alone", w.watched)
	}
	if !slices.Contains(w.vm().GetFinalizers(), v1alpha1.FinalizerDrain) {
		t.Error("the VM of a living Machine was released")
	}
}

func TestAMachineGoesInOrder(t *testing.T) {
	w := newWorld(t, aMachine(true, v1alpha1.FinalizerTerminator), aVM(), aWorkerNode())
	if err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(w.deletes, []metav1.DeletionPropagation{metav1.DeletePropagationForeground}) {
		t.Errorf("deleted again with %v", w.deletes)
	}
	m := w.machine()
	if m.Status.Phase != v1alpha1.MachineTerminating || m.Status.LastOperation == nil || m.Status.LastOperation.Type != v1alpha1.OperationDrain {
		t.Errorf("status %+v", m.Status)
	}
	if !slices.Contains(w.vm().GetFinalizers(), v1alpha1.FinalizerDrain) {
		t.Fatal("the VM was released before the WorkerNode was gone")
	}
	m.SetFinalizers(append(m.GetFinalizers(), metav1.FinalizerDeleteDependents)) // as the API server does
	if err := w.client.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}

	if err := w.client.Delete(t.Context(), aWorkerNode()); err != nil {
		t.Fatal(err)
	}
	if err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	v := w.vm()
	if slices.Contains(v.GetFinalizers(), v1alpha1.FinalizerDrain) || v.GetAnnotations()[v1alpha1.AnnotationReleased] == "" {
		t.Fatalf("the VM was not released: finalizers %v, annotations %v", v.GetFinalizers(), v.GetAnnotations())
	}
	if v.GetAnnotations()[annotationResourceName] != v1alpha1.ResourceVM || len(v.GetFinalizers()) != 1 {
		t.Errorf("more than the release changed: finalizers %v, annotations %v", v.GetFinalizers(), v.GetAnnotations())
	}
	if got := w.machine().Status.LastOperation.Type; got != v1alpha1.OperationDelete {
		t.Errorf("operation %s", got)
	}
	version := w.machine().GetResourceVersion()
	if err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if w.machine().GetResourceVersion() != version {
		t.Error("the Machine was written although nothing changed")
	}

	v.SetFinalizers(nil)
	if err := w.client.Update(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	if err := w.client.Delete(t.Context(), v); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(w.machine().GetFinalizers(), v1alpha1.FinalizerTerminator) {
		t.Error("the Machine is still held although its VM is gone")
	}
}

// TestNoCreationWithoutEndHoldsAMachine plays a provider that stopped in the middle of a
// creation: crossplane-runtime does not even delete the VM resource then.
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
	if err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if now := w.vm(); meta.ExternalCreateIncomplete(now) || len(now.GetFinalizers()) != 1 || now.GetAnnotations()[annotationResourceName] != v1alpha1.ResourceVM {
		t.Errorf("the creation is not forgotten, or more than that: finalizers %v, annotations %v", now.GetFinalizers(), now.GetAnnotations())
	}
}

func TestAVMOfAnotherMachineOfTheSameNameIsNotTouched(t *testing.T) {
	other := aVM()
	other.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Machine", Name: "m", UID: "uid-before"}})
	w := newWorld(t, aMachine(true, v1alpha1.FinalizerTerminator), other)
	if err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(w.vm().GetFinalizers(), v1alpha1.FinalizerDrain) {
		t.Error("it was released")
	}
	if slices.Contains(w.machine().GetFinalizers(), v1alpha1.FinalizerTerminator) {
		t.Error("the Machine waits for it")
	}
}

func TestSkipDrainReachesTheWorkerNode(t *testing.T) {
	m := aMachine(true, v1alpha1.FinalizerTerminator)
	m.Annotations = map[string]string{v1alpha1.AnnotationSkipDrain: "true"}
	w := newWorld(t, m, aVM(), aWorkerNode())
	if err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	wn := &clusterv1alpha1.WorkerNode{}
	if err := w.client.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "w"}, wn); err != nil || wn.GetAnnotations()[v1alpha1.AnnotationSkipDrain] != "true" {
		t.Errorf("annotations %v, error %v", wn.GetAnnotations(), err)
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
	if err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if f := w.vm().GetFinalizers(); len(f) != 1 {
		t.Errorf("finalizers %v: its provider gets a moment", f)
	}
	w.r.now = func() time.Time { return time.Unix(100, 0).Add(forceDeleteAfter) }
	if err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(v), v); !kerrors.IsNotFound(err) {
		t.Errorf("the VM resource is still there: %v", err)
	}
	if err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(w.machine().GetFinalizers(), v1alpha1.FinalizerTerminator) {
		t.Error("the Machine is still held")
	}
}

// staleReader is a cache that has not seen the WorkerNode and the VM yet.
type staleReader struct{ client.Reader }

func (r staleReader) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func TestAStaleCacheReleasesNothing(t *testing.T) {
	w := newWorld(t, aMachine(true, v1alpha1.FinalizerTerminator), aVM(), aWorkerNode())
	w.r.workerNodes = staleReader{w.client}
	if err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	w.r.views = staleReader{w.client}
	if err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(w.vm().GetFinalizers(), v1alpha1.FinalizerDrain) {
		t.Error("the VM was released while its WorkerNode is there")
	}
	if !slices.Contains(w.machine().GetFinalizers(), v1alpha1.FinalizerTerminator) {
		t.Error("the Machine was let go while its VM is there")
	}
}

// forbidden lets nobody read VMs.
type forbidden struct{ client.Reader }

func (r forbidden) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if obj.GetObjectKind().GroupVersionKind() == vmKind {
		return kerrors.NewForbidden(schema.GroupResource{Group: vmKind.Group, Resource: "servers"}, key.Name, errors.New("no right"))
	}
	return r.Reader.Get(ctx, key, obj, opts...)
}

// lagging is a cache that has an old version of the Machine.
type lagging struct {
	client.Reader
	machine *Machine
}

func (l lagging) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if m, ok := obj.(*Machine); ok {
		*m = *l.machine.DeepCopyObject().(*Machine)
		return nil
	}
	return l.Reader.Get(ctx, key, obj, opts...)
}

func TestAStaleCacheTellsNothingTwice(t *testing.T) {
	w := newWorld(t, aMachine(true, v1alpha1.FinalizerTerminator, metav1.FinalizerDeleteDependents), aVM(), aWorkerNode())
	w.r.views = lagging{Reader: w.client, machine: w.machine()}
	second := int64(100)
	w.r.now = func() time.Time { second++; return time.Unix(second, 0) }
	reconcile := func() string {
		t.Helper()
		if err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
		return w.machine().GetResourceVersion()
	}
	first := reconcile()
	if again := reconcile(); again != first {
		t.Errorf("the same was told again of version %s, in version %s", first, again)
	}
	m := w.machine()
	since := m.Status.Deletion.Since
	w.r.views = lagging{Reader: w.client, machine: m}
	if again := reconcile(); again != first {
		t.Error("the same was told again when the cache had it")
	}
	m.Status.Phase = v1alpha1.MachineRunning
	if err := w.client.Status().Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	w.r.views = w.client
	reconcile()
	if m = w.machine(); m.Status.Phase != v1alpha1.MachineTerminating || !m.Status.Deletion.Since.Equal(&since) {
		t.Errorf("status %+v: what somebody else wrote over it is told again, since %s", m.Status, since)
	}
}

func TestAMachineWhoseVMCannotBeReadStaysAndSaysWhy(t *testing.T) {
	w := newWorld(t, aMachine(true, v1alpha1.FinalizerTerminator), aVM())
	w.r.kinds.live = forbidden{w.client}
	if err := w.reconcile(); err == nil {
		t.Error("no error, so that nobody tries again")
	}
	m := w.machine()
	if !slices.Contains(m.GetFinalizers(), v1alpha1.FinalizerTerminator) || m.Status.LastOperation == nil || m.Status.LastOperation.Description == "" {
		t.Errorf("finalizers %v, status %+v", m.GetFinalizers(), m.Status)
	}
}

func TestParentsStayUntilTheLastChildIsGone(t *testing.T) {
	at := metav1.Unix(50, 0)
	gvk := v1alpha1.MachineSetGroupVersionKind
	set := newMetadata(gvk)
	set.SetNamespace("ns")
	set.SetName("set")
	set.SetUID("uid-set")
	set.SetFinalizers([]string{v1alpha1.FinalizerTerminator, metav1.FinalizerDeleteDependents, "other/one"})
	set.SetDeletionTimestamp(&at)
	child := aMachine(false)
	child.Labels = map[string]string{v1alpha1.LabelSet: "set"}
	child.OwnerReferences = []metav1.OwnerReference{{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: "set", UID: "uid-set"}}

	for name, tc := range map[string]struct {
		cached int
		live   []client.Object
		held   bool
	}{
		"AChildInTheCacheKeepsIt":        {cached: 1, held: true},
		"AChildThatTheCacheLacksKeepsIt": {live: []client.Object{child}, held: true},
		"WithoutChildrenItGoes":          {},
	} {
		t.Run(name, func(t *testing.T) {
			s := runtime.NewScheme()
			if err := AddToScheme(s); err != nil {
				t.Fatal(err)
			}
			s.AddKnownTypeWithName(gvk, &metav1.PartialObjectMetadata{})
			c := fake.NewClientBuilder().WithScheme(s).WithObjects(append(tc.live, set.DeepCopy())...).Build()
			r := &parents{gvk: gvk, child: v1alpha1.MachineGroupVersionKind, label: v1alpha1.LabelSet, client: c, live: c, views: c,
				children: func(context.Context, client.Object) (int, error) { return tc.cached, nil }}
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "set"}}); err != nil {
				t.Fatal(err)
			}
			got := newMetadata(gvk)
			if err := c.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "set"}, got); err != nil {
				t.Fatal(err)
			}
			if held := slices.Contains(got.GetFinalizers(), v1alpha1.FinalizerTerminator); held != tc.held {
				t.Errorf("held %v, want %v", held, tc.held)
			}
		})
	}
}
