package machine

import (
	"context"
	"maps"
	"sync"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"golang.org/x/sync/singleflight"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/finalizer"
	"github.com/drover-dev/drover/internal/pipeline"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// watches are the watches of the kinds that Machines compose and require. The pipelines determine these kinds.
type watches struct {
	// start starts the watch of a kind. It does not wait for its cache.
	start func(schema.GroupVersionKind, handler.TypedEventHandler[*unstructured.Unstructured, reconcile.Request]) error
	// index indexes the resources of a kind by byMachine. It waits for the cache, and is called once per kind.
	index   func(context.Context, schema.GroupVersionKind) error
	written *overlay
	// indexing lets one caller index a kind while the other callers wait.
	indexing singleflight.Group

	mu      sync.Mutex
	started map[schema.GroupVersionKind]bool
	indexed map[schema.GroupVersionKind]bool
	// held resources by the names of the Machines that they wait for, with the UIDs of these Machines.
	held map[types.NamespacedName]map[heldResource]types.UID
	// required resources of Machines, by kind.
	required map[schema.GroupVersionKind]map[types.NamespacedName][]*fnv1.ResourceSelector
}

func newWatches(written *overlay) *watches {
	return &watches{written: written, started: map[schema.GroupVersionKind]bool{}, indexed: map[schema.GroupVersionKind]bool{}, held: map[types.NamespacedName]map[heldResource]types.UID{}, required: map[schema.GroupVersionKind]map[types.NamespacedName][]*fnv1.ResourceSelector{}}
}

// ensure watches a kind, if it is not watched yet.
func (w *watches) ensure(gvk schema.GroupVersionKind) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.started[gvk] {
		return nil
	}
	if err := w.start(gvk, w.handler(gvk)); err != nil {
		return err
	}
	w.started[gvk] = true
	return nil
}

// ensureIndex indexes a kind, if it is not indexed yet. An index cannot be added twice.
func (w *watches) ensureIndex(ctx context.Context, gvk schema.GroupVersionKind) error {
	_, err, _ := w.indexing.Do(gvk.String(), func() (any, error) {
		w.mu.Lock()
		done := w.indexed[gvk]
		w.mu.Unlock()
		if done {
			return nil, nil
		}
		if err := w.index(ctx, gvk); err != nil {
			return nil, err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.indexed[gvk] = true
		return nil, nil
	})
	return err
}

// has reports whether a kind is watched.
func (w *watches) has(gvk schema.GroupVersionKind) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.started[gvk]
}

// isIndexed reports whether a kind is indexed, so that its resources have been read.
func (w *watches) isIndexed(gvk schema.GroupVersionKind) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.indexed[gvk]
}

// require stores the requirements of a Machine's pipeline, and watches their kinds.
func (w *watches) require(machine types.NamespacedName, required []pipeline.Requirement) {
	now := map[schema.GroupVersionKind][]*fnv1.ResourceSelector{}
	for _, q := range required {
		gvk := schema.FromAPIVersionAndKind(q.Selector.GetApiVersion(), q.Selector.GetKind())
		now[gvk] = append(now[gvk], q.Selector)
	}
	for gvk := range now {
		_ = w.ensure(gvk) // A kind that cannot be watched cannot be read either, and the pipeline reports that.
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for gvk, selectors := range now {
		if w.required[gvk] == nil {
			w.required[gvk] = map[types.NamespacedName][]*fnv1.ResourceSelector{}
		}
		w.required[gvk][machine] = selectors
	}
	for gvk, by := range w.required {
		if _, still := now[gvk]; !still {
			delete(by, machine)
		}
	}
}

func (w *watches) forget(machine types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, by := range w.required {
		delete(by, machine)
	}
}

// handler enqueues the Machine that controls an object of a kind, and the Machines that require it.
func (w *watches) handler(gvk schema.GroupVersionKind) handler.TypedEventHandler[*unstructured.Unstructured, reconcile.Request] {
	enqueue := func(obj *unstructured.Unstructured, q queue) {
		if obj.GroupVersionKind().Empty() {
			obj = obj.DeepCopy()
			obj.SetGroupVersionKind(gvk)
		}
		w.noteHeld(gvk, obj, isHeld(obj))
		if name, ok := machineOf(obj); ok && !w.written.isOwn(obj, gvk.GroupKind()) {
			q.Add(reconcile.Request{NamespacedName: name})
		}
		if name := obj.GetLabels()[machinev1alpha1.LabelMachine]; name != "" && metav1.GetControllerOfNoCopy(obj) == nil {
			q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}})
		}
		for _, name := range w.requirersOf(gvk, obj) {
			q.Add(reconcile.Request{NamespacedName: name})
		}
	}
	return handler.TypedFuncs[*unstructured.Unstructured, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*unstructured.Unstructured], q queue) {
			enqueue(e.Object, q)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*unstructured.Unstructured], q queue) {
			enqueue(e.ObjectNew, q)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*unstructured.Unstructured], q queue) {
			gone := e.Object.DeepCopy()
			gone.SetGroupVersionKind(gvk)
			w.written.drop(gone)
			enqueue(e.Object, q)
			w.noteHeld(gvk, e.Object, false)
		},
	}
}

// noteHeld stores the resources that wait for a Machine while they are being deleted.
func (w *watches) noteHeld(gvk schema.GroupVersionKind, obj *unstructured.Unstructured, held bool) {
	owner, ok := finalizer.ControllerOf(obj, machineKind)
	if !ok {
		return
	}
	machine, s := types.NamespacedName{Namespace: obj.GetNamespace(), Name: owner.Name}, heldResource{gvk: gvk, name: obj.GetName()}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case held && w.held[machine] == nil:
		w.held[machine] = map[heldResource]types.UID{s: owner.UID}
	case held:
		w.held[machine][s] = owner.UID
	default:
		delete(w.held[machine], s)
		if len(w.held[machine]) == 0 {
			delete(w.held, machine)
		}
	}
}

// heldOf returns the resources that wait for a Machine, with the UID of their controller.
func (w *watches) heldOf(machine types.NamespacedName) map[heldResource]types.UID {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.held[machine])
}

func (w *watches) requirersOf(gvk schema.GroupVersionKind, obj *unstructured.Unstructured) []types.NamespacedName {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []types.NamespacedName
	for machine, selectors := range w.required[gvk] {
		for _, s := range selectors {
			if selects(s, obj) {
				out = append(out, machine)
				break
			}
		}
	}
	return out
}

func selects(s *fnv1.ResourceSelector, obj *unstructured.Unstructured) bool {
	if s.Namespace != nil && s.GetNamespace() != obj.GetNamespace() {
		return false
	}
	switch m := s.GetMatch().(type) {
	case *fnv1.ResourceSelector_MatchName:
		return m.MatchName == obj.GetName()
	case *fnv1.ResourceSelector_MatchLabels:
		return labels.SelectorFromSet(m.MatchLabels.GetLabels()).Matches(labels.Set(obj.GetLabels()))
	}
	return true
}

// machineOf returns the Machine that controls an object.
func machineOf(obj metav1.Object) (types.NamespacedName, bool) {
	owner, ok := finalizer.ControllerOf(obj, machineKind)
	return types.NamespacedName{Namespace: obj.GetNamespace(), Name: owner.Name}, ok
}

// A heldResource is the VM, or a companion, of a Machine that does not exist: the Machine's finalizers were removed by
// hand, or the resource was restored from a backup and has the UID of a Machine of another control cluster. The
// garbage collector deletes the held resource, and FinalizerDrain would hold it for ever, with a VM that no object
// reports.
type heldResource struct {
	gvk  schema.GroupVersionKind
	name string
}

// isHeld reports whether a resource is being deleted and waits for its Machine.
func isHeld(obj *unstructured.Unstructured) bool {
	return obj.GetDeletionTimestamp() != nil && controllerutil.ContainsFinalizer(obj, machinev1alpha1.FinalizerDrain)
}
