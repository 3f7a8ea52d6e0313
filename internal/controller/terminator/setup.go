package terminator

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	xpevent "github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/mr"
	"github.com/drover-dev/drover/internal/finalizer"
)

const (
	backoffMin = 100 * time.Millisecond
	backoffMax = 30 * time.Second
	// reportEvery is the interval at which a parent reports the progress of its Machines.
	reportEvery = time.Second
)

// Setup adds the controllers of MachineSets and MachineDeployments to the manager. The views are a
// cache of metadata.
func Setup(ctx context.Context, mgr ctrl.Manager, o controller.Options, views cache.Cache) error {
	for obj, indexer := range map[client.Object]client.FieldIndexer{
		&v1alpha1.Machine{}: mgr.GetFieldIndexer(),
		finalizer.NewMetadata(v1alpha1.MachineSetGroupVersionKind):        views,
		finalizer.NewMetadata(v1alpha1.MachineDeploymentGroupVersionKind): views,
	} {
		if err := indexer.IndexField(ctx, obj, byOwner, ownersOf); err != nil {
			return err
		}
	}
	machines := machinesOf(mgr.GetClient())
	if err := setupParents(mgr, o, views, &parents{
		gvk: v1alpha1.MachineSetGroupVersionKind, owner: v1alpha1.MachineDeploymentGroupVersionKind, child: v1alpha1.MachineGroupVersionKind, label: v1alpha1.LabelSet,
		children: func(ctx context.Context, set client.Object) (int, error) {
			all, err := machines(ctx, set)
			return len(all), err
		},
		reporter: &reporter{machines: machines, kind: sets{}},
	}, source.Kind(mgr.GetCache(), &v1alpha1.Machine{}, handler.TypedEnqueueRequestsFromMapFunc(ownerOfKind[*v1alpha1.Machine](v1alpha1.MachineSetGroupVersionKind.Kind)), gone[*v1alpha1.Machine]()),
		source.Kind(mgr.GetCache(), &v1alpha1.Machine{}, later(ownerOfKind[*v1alpha1.Machine](v1alpha1.MachineSetGroupVersionKind.Kind)), deleting())); err != nil {
		return err
	}
	return setupParents(mgr, o, views, &parents{
		gvk: v1alpha1.MachineDeploymentGroupVersionKind, owner: v1alpha1.NodePoolGroupVersionKind, child: v1alpha1.MachineSetGroupVersionKind, label: v1alpha1.LabelDeployment,
		children: countOf(views, v1alpha1.MachineSetGroupVersionKind),
		reporter: &reporter{kind: deployments{}, machines: below(views, v1alpha1.MachineSetGroupVersionKind, machines)},
	}, source.Kind(views, finalizer.NewMetadata(v1alpha1.MachineSetGroupVersionKind),
		handler.TypedEnqueueRequestsFromMapFunc(ownerOfKind[*metav1.PartialObjectMetadata](v1alpha1.MachineDeploymentGroupVersionKind.Kind)), gone[*metav1.PartialObjectMetadata]()),
		source.Kind(mgr.GetCache(), &v1alpha1.Machine{}, later(byLabel(v1alpha1.LabelDeployment)), deleting()))
}

// SetupPools adds the controller of NodePools. Setup must have added the controllers of the kinds
// below it. It is separate because a Configuration of an earlier release has no XRD of NodePools.
func SetupPools(mgr ctrl.Manager, o controller.Options, views cache.Cache) error {
	machines := below(views, v1alpha1.MachineSetGroupVersionKind, machinesOf(mgr.GetClient()))
	return setupParents(mgr, o, views, &parents{
		gvk: v1alpha1.NodePoolGroupVersionKind, child: v1alpha1.MachineDeploymentGroupVersionKind, label: v1alpha1.LabelNodePool,
		children: countOf(views, v1alpha1.MachineDeploymentGroupVersionKind),
		reporter: &reporter{kind: pools{}, machines: below(views, v1alpha1.MachineDeploymentGroupVersionKind, machines)},
	}, source.Kind(views, finalizer.NewMetadata(v1alpha1.MachineDeploymentGroupVersionKind),
		handler.TypedEnqueueRequestsFromMapFunc(ownerOfKind[*metav1.PartialObjectMetadata](v1alpha1.NodePoolGroupVersionKind.Kind)), gone[*metav1.PartialObjectMetadata]()),
		source.Kind(mgr.GetCache(), &v1alpha1.Machine{}, later(byLabel(v1alpha1.LabelNodePool)), deleting()))
}

// countOf returns a function that counts the children of a kind of a parent, from a cache.
func countOf(views client.Reader, child schema.GroupVersionKind) func(context.Context, client.Object) (int, error) {
	return func(ctx context.Context, parent client.Object) (int, error) {
		items, err := ownedCached(ctx, views, child, parent)
		return len(items), err
	}
}

// machinesFunc returns the Machines of a parent, from a cache.
type machinesFunc = func(context.Context, client.Object) ([]*v1alpha1.Machine, error)

// below returns a function for the Machines of all children of a kind.
func below(views client.Reader, child schema.GroupVersionKind, machines machinesFunc) machinesFunc {
	return func(ctx context.Context, parent client.Object) ([]*v1alpha1.Machine, error) {
		items, err := ownedCached(ctx, views, child, parent)
		var out []*v1alpha1.Machine
		for i := range items {
			of, merr := machines(ctx, &items[i])
			out, err = append(out, of...), errors.Join(err, merr)
		}
		return out, err
	}
}

// machinesOf returns a function for the Machines of a MachineSet, from the cache.
func machinesOf(cached client.Reader) machinesFunc {
	return func(ctx context.Context, set client.Object) ([]*v1alpha1.Machine, error) {
		list := &v1alpha1.MachineList{}
		err := cached.List(ctx, list, client.InNamespace(set.GetNamespace()), client.MatchingFields{byOwner: string(set.GetUID())}, client.UnsafeDisableDeepCopy)
		out := make([]*v1alpha1.Machine, 0, len(list.Items))
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
		return out, err
	}
}

// byLabel maps a Machine to the parent that its label names: a wrong label only causes a useless
// reconcile.
func byLabel(label string) func(context.Context, *v1alpha1.Machine) []reconcile.Request {
	return func(_ context.Context, m *v1alpha1.Machine) []reconcile.Request {
		name := m.Labels[label]
		if name == "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: m.Namespace, Name: name}}}
	}
}

// later enqueues with a delay of a second, in which more Machines of the same parent change.
func later(parentOf func(context.Context, *v1alpha1.Machine) []reconcile.Request) handler.TypedEventHandler[*v1alpha1.Machine, reconcile.Request] {
	return handler.TypedFuncs[*v1alpha1.Machine, reconcile.Request]{
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*v1alpha1.Machine], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			for _, req := range parentOf(ctx, e.ObjectNew) {
				q.AddAfter(req, reportEvery)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[*v1alpha1.Machine], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			for _, req := range parentOf(ctx, e.Object) {
				q.AddAfter(req, reportEvery)
			}
		},
	}
}

// deleting accepts changes of the deletion of a Machine.
func deleting() predicate.TypedPredicate[*v1alpha1.Machine] {
	return predicate.TypedFuncs[*v1alpha1.Machine]{
		CreateFunc: func(event.TypedCreateEvent[*v1alpha1.Machine]) bool { return false },
		UpdateFunc: func(e event.TypedUpdateEvent[*v1alpha1.Machine]) bool {
			return e.ObjectNew.DeletionTimestamp != nil && (e.ObjectOld.DeletionTimestamp == nil ||
				!equality.Semantic.DeepEqual(e.ObjectOld.Status, e.ObjectNew.Status) || !equality.Semantic.DeepEqual(e.ObjectOld.Spec.Drain, e.ObjectNew.Spec.Drain))
		},
		GenericFunc: func(event.TypedGenericEvent[*v1alpha1.Machine]) bool { return false },
	}
}

func setupParents(mgr ctrl.Manager, o controller.Options, views cache.Cache, r *parents, children ...source.Source) error {
	r.client, r.live, r.views = mgr.GetClient(), mgr.GetAPIReader(), views
	name := "terminator/" + strings.ToLower(r.gvk.Kind)
	rep := r.reporter
	rep.client, rep.live, rep.views, rep.now = r.client, r.live, r.views, time.Now
	rep.record = mr.NewRecorder(xpevent.NewAPIRecorder(mgr.GetEventRecorderFor(name)))
	b := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		WithOptions(options(o)).
		WatchesRawSource(source.Kind(views, finalizer.NewMetadata(r.gvk), &handler.TypedEnqueueRequestForObject[*metav1.PartialObjectMetadata]{}))
	for _, s := range children {
		b = b.WatchesRawSource(s)
	}
	return b.Complete(r)
}

func options(o controller.Options) crcontroller.Options {
	co := o.ForControllerRuntime()
	co.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](backoffMin, backoffMax)
	return co
}

func gone[T client.Object]() predicate.TypedPredicate[T] {
	return predicate.TypedFuncs[T]{
		CreateFunc:  func(event.TypedCreateEvent[T]) bool { return false },
		UpdateFunc:  func(event.TypedUpdateEvent[T]) bool { return false },
		GenericFunc: func(event.TypedGenericEvent[T]) bool { return false },
	}
}
