package packageguard

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"k8s.io/apimachinery/pkg/fields"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

const (
	backoffMin = time.Second
	backoffMax = 5 * time.Minute
)

// request is the only one: there is one guard in a cluster.
var request = reconcile.Request{NamespacedName: client.ObjectKey{Name: UsageName}}

// Setup adds the controller to the manager. The cache must hold typed Machines of all
// namespaces.
func Setup(mgr ctrl.Manager, o controller.Options, machines cache.Cache) error {
	requeue := &requeuer{}
	crd, err := newView(mgr, machineCRD, requeue)
	if err != nil {
		return err
	}
	usage, err := newView(mgr, UsageName, requeue)
	if err != nil {
		return err
	}
	co := o.ForControllerRuntime()
	co.MaxConcurrentReconciles = 1
	co.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](backoffMin, backoffMax)
	return ctrl.NewControllerManagedBy(mgr).
		Named("packageguard").
		WithOptions(co).
		WatchesRawSource(source.Kind(machines, &v1alpha1.Machine{},
			handler.TypedEnqueueRequestsFromMapFunc(func(context.Context, *v1alpha1.Machine) []reconcile.Request { return []reconcile.Request{request} }),
			createdOrDeleted())).
		WatchesRawSource(source.Func(requeue.start)).
		Complete(&reconciler{
			machines: machines,
			provider: &providerFinder{crd: crd, live: mgr.GetAPIReader()},
			usage:    usage,
			client:   mgr.GetClient(),
			log:      o.Logger.WithValues("controller", "packageguard"),
			now:      time.Now,
		})
}

// newView returns a view of the object of this name. It has a cache of its own: an entry
// per kind in a common cache would fail here when the API server lacks the kind.
func newView(mgr ctrl.Manager, name string, requeue *requeuer) (*view, error) {
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultTransform:     cache.TransformStripManagedFields(),
		DefaultFieldSelector: fields.OneTermEqualSelector("metadata.name", name),
	})
	if err != nil {
		return nil, wrap(err, "make the cache of %s", name)
	}
	watch := func(ctx context.Context, obj client.Object) error { return requeue.watch(ctx, c, obj) }
	return &view{live: mgr.GetAPIReader(), cached: c, watch: watch}, mgr.Add(c)
}

// createdOrDeleted passes the events that can change whether a Machine exists.
func createdOrDeleted() predicate.TypedPredicate[*v1alpha1.Machine] {
	return predicate.TypedFuncs[*v1alpha1.Machine]{
		UpdateFunc:  func(event.TypedUpdateEvent[*v1alpha1.Machine]) bool { return false },
		GenericFunc: func(event.TypedGenericEvent[*v1alpha1.Machine]) bool { return false },
	}
}

// A requeuer enqueues the request for events of objects whose watches the reconciler
// starts. A watch of the builder would fail the manager when its kind is missing.
type requeuer struct {
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// start is a source, so that it runs before the first reconcile. The request that it adds
// deletes a guard whose last Machine was deleted while no process ran.
func (q *requeuer) start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	q.queue = queue
	queue.Add(request)
	return nil
}

// watch starts the watch of an object without waiting for it.
func (q *requeuer) watch(ctx context.Context, c cache.Cache, obj client.Object) error {
	informer, err := c.GetInformer(ctx, obj, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	enqueue := func(any) { q.queue.Add(request) }
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, obj any) { enqueue(obj) }, DeleteFunc: enqueue,
	})
	return err
}
