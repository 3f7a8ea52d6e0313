package machine

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/pipeline"
)

// woken returns the names of the Machines that a handler enqueues.
func woken(t *testing.T, call func(queue)) []string {
	t.Helper()
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	call(q)
	var out []string
	for q.Len() > 0 {
		req, _ := q.Get()
		out = append(out, req.Name)
		q.Done(req)
	}
	slices.Sort(out)
	return out
}

func watching() (*watches, *[]schema.GroupVersionKind) {
	var started []schema.GroupVersionKind
	w := newWatches(newOverlay(time.Now))
	w.start = func(gvk schema.GroupVersionKind, _ handler.TypedEventHandler[*unstructured.Unstructured, reconcile.Request]) error {
		started = append(started, gvk)
		return nil
	}
	return w, &started
}

type (
	created = event.TypedCreateEvent[*unstructured.Unstructured]
	updated = event.TypedUpdateEvent[*unstructured.Unstructured]
	removed = event.TypedDeleteEvent[*unstructured.Unstructured]
)

func TestWritesOfOthersWakeTheMachine(t *testing.T) {
	w, _ := watching()
	h := w.handler(vmKind)
	w.written.put(version("10", "a"))
	unowned := version("11", "a")
	unowned.SetOwnerReferences(nil)
	ofAnotherKind := version("11", "a")
	owners := owner()
	owners[0].APIVersion = "other.example.org/v1"
	ofAnotherKind.SetOwnerReferences(owners)
	for name, tc := range map[string]struct {
		obj  *unstructured.Unstructured
		want []string
	}{
		"ItsOwnWriteEnqueuesNothing": {version("10", "a"), nil},
		"AnEarlierVersion":           {version("9", "a"), []string{"m"}},
		"AWriteOfTheProvider":        {version("11", "a"), []string{"m"}},
		"WithoutOwner":               {unowned, []string{"m"}},
		"OfAnotherKindOfTheName":     {ofAnotherKind, nil},
	} {
		got := woken(t, func(q queue) { h.Update(t.Context(), updated{ObjectOld: version("1", "a"), ObjectNew: tc.obj}, q) })
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s, updated: woken %v", name, got)
		}
		if got := woken(t, func(q queue) { h.Create(t.Context(), created{Object: tc.obj}, q) }); !slices.Equal(got, tc.want) {
			t.Errorf("%s, created: woken %v", name, got)
		}
	}
	if got := woken(t, func(q queue) { h.Delete(t.Context(), removed{Object: version("10", "a")}, q) }); !slices.Equal(got, []string{"m"}) {
		t.Errorf("deleted: woken %v", got)
	}
	if _, ok := w.written.get(overlayKeyOf(version("10", "a")), nil); ok {
		t.Error("a deleted object is still taken for one that the cache lacks")
	}
}

func TestRequiredResourcesWakeTheMachinesThatRequireThem(t *testing.T) {
	w, started := watching()
	namespace := "ns"
	byName := func(name string, ns *string) pipeline.Requirement {
		return pipeline.Requirement{Selector: &fnv1.ResourceSelector{ApiVersion: "net.example.org/v1", Kind: "Card", Namespace: ns, Match: &fnv1.ResourceSelector_MatchName{MatchName: name}}}
	}
	byLabel := func(key, value string) pipeline.Requirement {
		return pipeline.Requirement{Selector: &fnv1.ResourceSelector{ApiVersion: "net.example.org/v1", Kind: "Card", Match: &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{Labels: map[string]string{key: value}}}}}
	}
	all := pipeline.Requirement{Selector: &fnv1.ResourceSelector{ApiVersion: "net.example.org/v1", Kind: "Card"}}
	of := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: name} }
	w.require(of("by-name"), []pipeline.Requirement{byName("a", &namespace), byName("x", nil)})
	w.require(of("by-label"), []pipeline.Requirement{byLabel("tier", "gold")})
	w.require(of("all"), []pipeline.Requirement{all, byName("a", nil)})
	w.require(of("none"), nil)
	if !slices.Equal(*started, []schema.GroupVersionKind{cardKind}) {
		t.Errorf("watched %v", *started)
	}
	h := w.handler(cardKind)
	card := func(ns, name, tier string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(cardKind)
		u.SetNamespace(ns)
		u.SetName(name)
		u.SetLabels(map[string]string{"tier": tier})
		return u
	}
	check := func(when string, obj *unstructured.Unstructured, want ...string) {
		t.Helper()
		if got := woken(t, func(q queue) { h.Create(t.Context(), created{Object: obj}, q) }); !slices.Equal(got, want) {
			t.Errorf("%s: woken %v, want %v", when, got, want)
		}
	}
	check("of the name", card("ns", "a", ""), "all", "by-name")
	check("of the name elsewhere", card("other", "a", ""), "all")
	check("of a name in any namespace", card("other", "x", ""), "all", "by-name")
	check("of the label", card("ns", "b", "gold"), "all", "by-label")
	check("of none", card("ns", "b", "tin"), "all")
	mine := card("ns", "a", "")
	mine.SetOwnerReferences(owner())
	w.written.put(mine)
	check("an own write wakes those that require it", mine, "all", "by-name")

	w.require(of("all"), []pipeline.Requirement{byName("b", nil)})
	w.require(of("by-label"), nil)
	check("what is not required any more", card("ns", "a", "gold"), "by-name")
	w.forget(of("by-name"))
	check("a Machine that is gone", card("ns", "a", "gold"))
	if len(*started) != 1 {
		t.Errorf("watched %v", *started)
	}
}

// TestARequiredResourceWakesTheMachineOfARun covers the requirements of a pipeline.
func TestARequiredResourceWakesTheMachineOfARun(t *testing.T) {
	w := running(t)
	w.script = func(ctx context.Context, req *fnRequest) (*fnResponse, error) {
		rsp, err := drover(t)(ctx, req)
		rsp.Requirements = &fnv1.Requirements{Resources: map[string]*fnv1.ResourceSelector{
			"card": {ApiVersion: "net.example.org/v1", Kind: "Card", Match: &fnv1.ResourceSelector_MatchName{MatchName: "a"}},
		}}
		return rsp, err
	}
	w.step()
	if !slices.Contains(w.watched, cardKind) {
		t.Errorf("watched %v", w.watched)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(cardKind)
	u.SetName("a")
	if got := w.r.watches.requirersOf(cardKind, u); !slices.Equal(got, []types.NamespacedName{nameOfM}) {
		t.Errorf("woken %v", got)
	}
}

func TestAKindThatCannotBeWatchedIsTriedAgain(t *testing.T) {
	w, started := watching()
	start, fails := w.start, true
	w.start = func(gvk schema.GroupVersionKind, h handler.TypedEventHandler[*unstructured.Unstructured, reconcile.Request]) error {
		if fails {
			return errors.New("no such kind")
		}
		return start(gvk, h)
	}
	if err := w.ensure(vmKind); err == nil {
		t.Error("no error")
	}
	fails = false
	for range 2 {
		if err := w.ensure(vmKind); err != nil {
			t.Error(err)
		}
	}
	if len(*started) != 1 {
		t.Errorf("watched %v", *started)
	}
}

func TestWhatAMachineIsReconciledFor(t *testing.T) {
	written := newOverlay(time.Now)
	was := aMachine(false)
	was.SetResourceVersion("1")
	change := func(f func(*v1alpha1.Machine)) *v1alpha1.Machine {
		m := was.DeepCopy()
		m.SetResourceVersion("2")
		f(m)
		return m
	}
	own := change(func(m *v1alpha1.Machine) { m.SetGeneration(2); m.SetResourceVersion("3") })
	own.SetGroupVersionKind(machineKind)
	written.put(own)
	now := metav1.Now()
	for name, tc := range map[string]struct {
		is   *v1alpha1.Machine
		want bool
	}{
		"NotForItsStatus":     {change(func(m *v1alpha1.Machine) { m.Status.Phase = "Running" }), false},
		"NotForItsOwnWrite":   {own, false},
		"ForItsSpec":          {change(func(m *v1alpha1.Machine) { m.SetGeneration(2) }), true},
		"ForItsDeletion":      {change(func(m *v1alpha1.Machine) { m.SetDeletionTimestamp(&now) }), true},
		"ForItsLabels":        {change(func(m *v1alpha1.Machine) { m.SetLabels(map[string]string{"a": "b"}) }), true},
		"ForItsAnnotations":   {change(func(m *v1alpha1.Machine) { m.SetAnnotations(map[string]string{"a": "b"}) }), true},
		"ForItsFinalizers":    {change(func(m *v1alpha1.Machine) { m.SetFinalizers(nil) }), true},
		"ForItsOwner":         {change(func(m *v1alpha1.Machine) { m.SetOwnerReferences(owner()) }), true},
		"ForAnotherOfItsName": {change(func(m *v1alpha1.Machine) { m.SetUID("x") }), true},
	} {
		if got := changed(written).Update(event.TypedUpdateEvent[*v1alpha1.Machine]{ObjectOld: was, ObjectNew: tc.is}); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
