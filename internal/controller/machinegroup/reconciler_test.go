package machinegroup

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan/group"
)

var key = types.NamespacedName{Namespace: "ns", Name: "set"}

// A world is an API server with one MachineGroup, and its controller.
type world struct {
	*testing.T
	client.Client
	*reconciler
	// liveReads counts the live reads of Machines.
	liveReads atomic.Int32
	// lags means that the cache has no Machines.
	lags      bool
	writes    atomic.Int32
	refuses   string // the name of a Machine
	deletions []client.DeleteOptions
	// old is the stale group that is observed, nil if the view is current.
	old *v1alpha1.MachineGroup
	now time.Time
}

func newWorld(t *testing.T, g v1alpha1.MachineGroupSpec, machines ...client.Object) *world {
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, now: time.Unix(0, 0)}
	group := &v1alpha1.MachineGroup{Spec: g}
	group.Namespace, group.Name, group.Generation = key.Namespace, key.Name, 1
	group.OwnerReferences = []metav1.OwnerReference{{APIVersion: "machine.drover.dev/v1alpha1", Kind: "MachineSet", Name: "set", UID: "uid-of-set", Controller: ptr.To(true)}}
	set := &v1alpha1.MachineSet{}
	set.Namespace, set.Name, set.UID = key.Namespace, "set", "uid-of-set"
	w.Client = fake.NewClientBuilder().WithScheme(s).WithObjects(group, set).WithObjects(machines...).
		WithStatusSubresource(group, &v1alpha1.Machine{}).
		WithIndex(&v1alpha1.Machine{}, byController, controllerOf).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if g, ok := obj.(*v1alpha1.MachineGroup); ok && w.old != nil {
					w.old.DeepCopyInto(g)
					return nil
				}
				if _, ok := obj.(*metav1.PartialObjectMetadata); ok && obj.GetObjectKind().GroupVersionKind().Kind == "Machine" {
					w.liveReads.Add(1)
				}
				if _, ok := obj.(*v1alpha1.Machine); ok && w.lags {
					return kerrors.NewNotFound(v1alpha1.SchemeGroupVersion.WithResource("machines").GroupResource(), key.Name)
				}
				return c.Get(ctx, key, obj, opts...)
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if _, ok := list.(*v1alpha1.MachineList); ok && w.lags {
					return nil
				}
				return c.List(ctx, list, opts...)
			},
			Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
				w.writes.Add(1)
				if named, ok := obj.(interface{ GetName() string }); ok && named.GetName() == w.refuses {
					return errors.New("refused")
				}
				return c.Apply(ctx, obj, opts...)
			},
			Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
				o := client.DeleteOptions{}
				o.ApplyOptions(opts)
				w.deletions = append(w.deletions, o)
				return c.Delete(ctx, obj, opts...)
			},
			SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
				w.writes.Add(1)
				return c.SubResource(sub).Update(ctx, obj, opts...)
			},
		}).Build()
	w.reconciler = &reconciler{client: w.Client, live: w.Client, pace: newPace(func() time.Time { return w.now }), releases: newReleases()}
	return w
}

func (w *world) reconcile() (reconcile.Result, error) {
	return w.Reconcile(w.Context(), reconcile.Request{NamespacedName: key})
}

func (w *world) settle() {
	w.Helper()
	for range 3 {
		r, err := w.reconcile()
		if err != nil {
			w.Fatal(err)
		}
		w.now = w.now.Add(r.RequeueAfter)
	}
}

func (w *world) group() *v1alpha1.MachineGroup {
	w.Helper()
	g := &v1alpha1.MachineGroup{}
	if err := w.Get(w.Context(), key, g); err != nil {
		w.Fatal(err)
	}
	return g
}

func (w *world) machines() []string {
	w.Helper()
	list := &v1alpha1.MachineList{}
	if err := w.List(w.Context(), list); err != nil {
		w.Fatal(err)
	}
	var out []string
	for _, m := range list.Items {
		out = append(out, m.Name)
	}
	return out
}

func ordered(names ...string) v1alpha1.MachineGroupSpec {
	s := v1alpha1.MachineGroupSpec{Templates: []v1alpha1.GroupTemplate{{
		Name:     "t",
		Metadata: v1alpha1.GroupMetadata{Labels: map[string]string{"pool": "a"}},
		Spec:     runtime.RawExtension{Raw: []byte(`{"classRef": {"name": "small"}, "version": "v1.35.4", "clusterRef": {}}`)},
	}}}
	for _, n := range names {
		s.Machines = append(s.Machines, v1alpha1.GroupMember{Name: n, Template: "t", Create: true})
	}
	return s
}

func TestMachinesThatAreOrderedAreMadeOnce(t *testing.T) {
	w := newWorld(t, ordered("a", "b"))
	w.settle()
	if got := w.machines(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("there are %v", got)
	}
	m := &v1alpha1.Machine{}
	if err := w.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "a"}, m); err != nil {
		t.Fatal(err)
	}
	if by := metav1.GetControllerOf(m); by == nil || by.Name != "set" || m.Labels["pool"] != "a" || m.Spec.Version != "v1.35.4" {
		t.Errorf("got %+v", m)
	}
	g := w.group()
	if !slices.Equal(g.Status.Created, []string{"a", "b"}) || g.Status.Digest == "" || g.Status.Conditions[0].Status != metav1.ConditionTrue {
		t.Errorf("status %+v", g.Status)
	}
	before := w.writes.Load()
	w.settle()
	if n := w.writes.Load() - before; n > 0 {
		t.Errorf("%d writes at rest", n)
	}

	if err := w.Delete(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if got := w.machines(); !slices.Equal(got, []string{"b"}) {
		t.Errorf("there are %v after somebody deleted one", got)
	}
	if g := w.group(); !slices.Equal(g.Status.Gone, []string{"a"}) {
		t.Errorf("status %+v", g.Status)
	}
}

// TestACreatedMachineThatTheCacheLacksIsNotChanged has a process that ended after it created a Machine, and before it reported that.
// The template changes, and the next process orders the Machine again from a cache without it.
func TestACreatedMachineThatTheCacheLacksIsNotChanged(t *testing.T) {
	w := newWorld(t, ordered("a"))
	w.settle()
	g := w.group()
	g.Spec.Templates[0].Spec.Raw = []byte(`{"classRef": {"name": "small"}, "version": "v1.36.0", "clusterRef": {}}`)
	if err := w.Update(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	g.Status.Created = nil
	if err := w.Status().Update(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	version := func() string {
		w.lags = false
		m := &v1alpha1.Machine{}
		if err := w.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "a"}, m); err != nil {
			t.Fatal(err)
		}
		return m.Spec.Version
	}
	w.lags = true
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if got := version(); got != "v1.35.4" {
		t.Errorf("a Machine that was not seen has %s", got)
	}
	if got := w.group().Status.Created; !slices.Equal(got, []string{"a"}) {
		t.Errorf("created %v", got)
	}
}

func TestNothingIsMadeByAnOldViewOfTheGroup(t *testing.T) {
	w := newWorld(t, ordered("a"))
	ordered := w.group()
	w.settle()
	if err := w.Delete(t.Context(), &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "a"}}); err != nil {
		t.Fatal(err)
	}
	w.old = ordered
	if got, err := w.reconcile(); err != nil || got.RequeueAfter != afterConflict {
		t.Errorf("got %+v, %v, want another look", got, err)
	}
	if got := w.machines(); len(got) > 0 {
		t.Errorf("%v were made again", got)
	}
	w.old = nil
	w.settle()
	if g := w.group(); !slices.Equal(g.Status.Gone, []string{"a"}) {
		t.Errorf("status %+v", g.Status)
	}
}

func TestWhatShallGoGoesBeforeAnythingIsCreated(t *testing.T) {
	old := &v1alpha1.Machine{}
	old.Namespace, old.Name, old.UID = "ns", "old", "uid-of-old"
	old.OwnerReferences = []metav1.OwnerReference{{APIVersion: "machine.drover.dev/v1alpha1", Kind: "MachineSet", Name: "set", UID: "uid-of-set", Controller: ptr.To(true)}}
	spec := ordered("new")
	spec.Delete = []string{"old"}
	w := newWorld(t, spec, old)
	w.settle()
	if got := w.machines(); !slices.Equal(got, []string{"new"}) {
		t.Errorf("there are %v", got)
	}
	// In the foreground, so that the garbage collector leaves the VM to the Machine's controller, and with the UID, so
	// that a younger Machine of the name stays.
	if len(w.deletions) != 1 {
		t.Fatalf("%d deletions", len(w.deletions))
	}
	d := w.deletions[0]
	if d.PropagationPolicy == nil || *d.PropagationPolicy != metav1.DeletePropagationForeground || d.Preconditions == nil || d.Preconditions.UID == nil || *d.Preconditions.UID != "uid-of-old" {
		t.Errorf("deleted with %+v", d)
	}
}

func TestOneThatIsRefusedHoldsUpNoOtherAndIsReported(t *testing.T) {
	w := newWorld(t, ordered("a", "b", "c"))
	w.refuses = "b"
	if _, err := w.reconcile(); err == nil {
		t.Error("want an error, so that it is tried again")
	}
	if got := w.machines(); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("there are %v", got)
	}
	g := w.group()
	if c := g.Status.Conditions[0]; c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, `cannot apply Machine "b": refused`) {
		t.Errorf("condition %+v", c)
	}
	if !slices.Equal(g.Status.Created, []string{"a", "c"}) {
		t.Errorf("status %+v", g.Status)
	}
	w.refuses = ""
	w.settle()
	if c := w.group().Status.Conditions[0]; c.Status != metav1.ConditionTrue || len(w.machines()) != 3 {
		t.Errorf("there are %v, condition %+v", w.machines(), c)
	}
}

func TestNewsOfMachinesAreReportedInBatches(t *testing.T) {
	w := newWorld(t, ordered("a"))
	w.settle()
	news := func(phase string) reconcile.Result {
		m := &v1alpha1.Machine{}
		if err := w.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "a"}, m); err != nil {
			t.Fatal(err)
		}
		m.Status.ProviderID = phase
		m.Spec.ProviderID = ptr.To(phase)
		if err := w.Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		if err := w.Client.Status().Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		r, err := w.reconcile()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	reported := w.group().Status.Digest
	for i := range 10 {
		r := news(strings.Repeat("x", i+1))
		if r.RequeueAfter <= 0 || r.RequeueAfter > group.NotifyEvery || w.group().Status.Digest != reported {
			t.Fatalf("change %d is reported at once: %+v", i, r)
		}
	}
	w.now = w.now.Add(group.NotifyEvery)
	w.settle()
	if w.group().Status.Digest == reported {
		t.Error("what waited for its turn was not reported then")
	}
}

// TestWhetherAMachineIsGoneIsReadOncePerReport, not at each change of other Machines.
func TestWhetherAMachineIsGoneIsReadOncePerReport(t *testing.T) {
	w := newWorld(t, v1alpha1.MachineGroupSpec{})
	w.settle()
	g := w.group()
	g.Spec.Delete = []string{"a", "b"}
	if err := w.Update(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if r, err := w.reconcile(); err != nil || r.RequeueAfter == 0 || w.liveReads.Load() > 0 {
			t.Fatalf("read %d times, and waits for %s: %v", w.liveReads.Load(), r.RequeueAfter, err)
		}
	}
	w.settle()
	if g := w.group(); !slices.Equal(g.Status.Gone, []string{"a", "b"}) {
		t.Errorf("gone are %v", g.Status.Gone)
	}
	if w.liveReads.Load() != 2 {
		t.Errorf("read %d times, want once per Machine", w.liveReads.Load())
	}
}

func TestAGroupThatIsBeingDeletedMakesNothing(t *testing.T) {
	w := newWorld(t, ordered("a"))
	g := w.group()
	g.Finalizers = []string{"somebody/else"}
	if err := w.Update(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	if err := w.Delete(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if got := w.machines(); len(got) > 0 {
		t.Errorf("there are %v", got)
	}
}

// TestASetThatIsBeingDeletedGetsNoMachine, although its function ordered one: it observed the
// deletion of the set's Machine before that of the set.
func TestASetThatIsBeingDeletedGetsNoMachine(t *testing.T) {
	for name, end := range map[string]func(w *world, set *v1alpha1.MachineSet) error{
		"InTheForeground": func(w *world, set *v1alpha1.MachineSet) error {
			set.Finalizers = []string{metav1.FinalizerDeleteDependents}
			return errors.Join(w.Update(w.Context(), set), w.Delete(w.Context(), set))
		},
		"Gone": func(w *world, set *v1alpha1.MachineSet) error { return w.Delete(w.Context(), set) },
		"AndAnotherHasItsName": func(w *world, set *v1alpha1.MachineSet) error {
			other := &v1alpha1.MachineSet{}
			other.Namespace, other.Name, other.UID = set.Namespace, set.Name, "uid-of-another"
			return errors.Join(w.Delete(w.Context(), set), w.Create(w.Context(), other))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, ordered("a"))
			set := &v1alpha1.MachineSet{}
			if err := w.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "set"}, set); err != nil {
				t.Fatal(err)
			}
			if err := end(w, set); err != nil {
				t.Fatal(err)
			}
			w.settle()
			if got := w.machines(); len(got) > 0 {
				t.Errorf("there are %v", got)
			}
		})
	}
}

func TestAMachineThatASelectorMatchesIsReported(t *testing.T) {
	spec := ordered("a")
	spec.MatchLabels = map[string]string{"pool": "a"}
	w := newWorld(t, spec)
	w.settle()
	reported := w.group().Status.Digest
	stranger := &v1alpha1.Machine{}
	stranger.Namespace, stranger.Name, stranger.Labels = key.Namespace, "stranger", map[string]string{"pool": "b"}
	if err := w.Create(t.Context(), stranger); err != nil {
		t.Fatal(err)
	}
	if got := groupsOf(w.Client)(t.Context(), stranger); len(got) > 0 {
		t.Errorf("wakes %v", got)
	}
	w.settle()
	if w.group().Status.Digest != reported {
		t.Error("one that it does not match is reported")
	}
	stranger.Labels["pool"] = "a"
	if err := w.Update(t.Context(), stranger); err != nil {
		t.Fatal(err)
	}
	if got := groupsOf(w.Client)(t.Context(), stranger); !slices.Equal(got, []reconcile.Request{{NamespacedName: key}}) {
		t.Errorf("wakes %v", got)
	}
	w.settle()
	if w.group().Status.Digest == reported {
		t.Error("it is not reported")
	}
	if got := w.machines(); !slices.Equal(got, []string{"a", "stranger"}) {
		t.Errorf("there are %v", got)
	}
}

func TestWhatIsUrgentDoesNotWaitForItsTurn(t *testing.T) {
	condition := func(s metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: v1alpha1.ConditionApplied, Status: s}}
	}
	for name, tc := range map[string]struct {
		was, is v1alpha1.MachineGroupStatus
		want    bool
	}{
		"AMachineThatChanged":              {v1alpha1.MachineGroupStatus{Digest: "a"}, v1alpha1.MachineGroupStatus{Digest: "b"}, false},
		"ASpecThatWasCarriedOut":           {v1alpha1.MachineGroupStatus{ObservedGeneration: 1}, v1alpha1.MachineGroupStatus{ObservedGeneration: 2}, false},
		"AMachineThatWasCreated":           {v1alpha1.MachineGroupStatus{Created: []string{"a"}}, v1alpha1.MachineGroupStatus{Created: []string{"b"}}, true},
		"ACreationThatNeedNotBeRemembered": {v1alpha1.MachineGroupStatus{Created: []string{"a", "b"}}, v1alpha1.MachineGroupStatus{Created: []string{"b"}}, false},
		"AMachineThatIsGone":               {v1alpha1.MachineGroupStatus{}, v1alpha1.MachineGroupStatus{Gone: []string{"a"}}, false},
		"OneThatIsGoneAndNeedNotBeAnyMore": {v1alpha1.MachineGroupStatus{Gone: []string{"a"}}, v1alpha1.MachineGroupStatus{}, false},
		"SomethingThatCannotBeDone":        {v1alpha1.MachineGroupStatus{Conditions: condition("True")}, v1alpha1.MachineGroupStatus{Conditions: condition("False")}, true},
		"ThatEverythingCanBeDoneAsBefore":  {v1alpha1.MachineGroupStatus{Conditions: condition("True")}, v1alpha1.MachineGroupStatus{Conditions: condition("True"), Digest: "b"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isUrgent(tc.was, tc.is); got != tc.want {
				t.Errorf("%v", got)
			}
		})
	}
}
