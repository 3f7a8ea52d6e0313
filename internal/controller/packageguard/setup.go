package packageguard

import (
	"context"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

const (
	backoffMin = time.Second
	backoffMax = 5 * time.Minute
)

func request(usage string) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Name: usage}}
}

// fixed are the requests for the guards that each Machine needs.
var fixed = []reconcile.Request{request(ProviderUsage), request(ConfigurationUsage), request(FunctionUsage)}

// Setup adds the controller to the manager. The cache must hold typed Machines of all
// namespaces. function is the name of the Function whose steps run in this process.
func Setup(ctx context.Context, mgr ctrl.Manager, o controller.Options, machines cache.Cache, function string) error {
	if err := machines.IndexField(ctx, &v1alpha1.Machine{}, byGroup, groupsOf); err != nil {
		return err
	}
	requeue := &requeuer{}
	usages, err := newView(mgr, cache.Options{DefaultLabelSelector: labels.SelectorFromSet(guardLabels)},
		func(ctx context.Context, c cache.Cache, obj client.Object) error {
			return requeue.watch(ctx, c, obj, func(o client.Object) []reconcile.Request { return []reconcile.Request{request(o.GetName())} })
		})
	if err != nil {
		return err
	}
	r := &reconciler{machines: machines, usages: usages, client: mgr.GetClient(), log: o.Logger.WithValues("controller", "packageguard"), now: time.Now}
	if r.guards, r.newGroup, err = newGuards(mgr, requeue, machines, function); err != nil {
		return err
	}
	co := o.ForControllerRuntime()
	co.MaxConcurrentReconciles = 1
	co.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](backoffMin, backoffMax)
	return ctrl.NewControllerManagedBy(mgr).
		Named("packageguard").
		WithOptions(co).
		WatchesRawSource(source.Kind(machines, &v1alpha1.Machine{}, machineHandler())).
		WatchesRawSource(source.Func(requeue.start)).
		Complete(r)
}

// newGuards returns the guards that each Machine needs, and a constructor of the guards of API
// groups.
func newGuards(mgr ctrl.Manager, requeue *requeuer, machines client.Reader, function string) (map[string]*guard, func(group string) *guard, error) {
	// one returns a view of the object of this name. It has a cache of its own: an entry per
	// kind in a common cache would fail here when the API server lacks the kind.
	one := func(name, usage string) (*view, error) {
		return newView(mgr, cache.Options{DefaultFieldSelector: fields.OneTermEqualSelector("metadata.name", name)},
			func(ctx context.Context, c cache.Cache, obj client.Object) error {
				return requeue.watch(ctx, c, obj, func(client.Object) []reconcile.Request { return []reconcile.Request{request(usage)} })
			})
	}
	definition := func(gvk schema.GroupVersionKind, name, kind, usage string) (*definitionFinder, error) {
		v, err := one(name, usage)
		return &definitionFinder{definition: gvk, name: name, kind: kind, view: v, live: mgr.GetAPIReader()}, err
	}
	provider, err := definition(crdGroupVersionKind, machineCRD, providerKind, ProviderUsage)
	if err != nil {
		return nil, nil, err
	}
	configuration, err := definition(xrdGroupVersionKind, machineSetXRD, configurationKind, ConfigurationUsage)
	if err != nil {
		return nil, nil, err
	}
	functions, err := one(function, FunctionUsage)
	if err != nil {
		return nil, nil, err
	}
	guards := map[string]*guard{}
	for _, g := range []*guard{
		{usage: ProviderUsage, kind: providerKind, reason: ProviderReason, finder: provider},
		{usage: ConfigurationUsage, kind: configurationKind, reason: ConfigurationReason, finder: configuration},
		{usage: FunctionUsage, kind: functionKind, reason: FunctionReason, finder: &functionFinder{name: function, view: functions}},
	} {
		guards[g.usage] = g
	}
	return guards, func(group string) *guard {
		usage := GroupUsage(group)
		return newGroupGuard(group, &groupFinder{
			group: group, machines: machines, mapper: mgr.GetRESTMapper(), kinds: map[string]*definitionFinder{},
			provider: func(crd string) (*definitionFinder, error) {
				return definition(crdGroupVersionKind, crd, providerKind, usage)
			},
		})
	}, nil
}

func newGroupGuard(group string, f finder) *guard {
	return &guard{
		usage: GroupUsage(group), kind: providerKind, reason: GroupReason(group), finder: f,
		machines: []client.ListOption{client.MatchingFields{byGroup: group}},
	}
}

// newView returns a view of the objects that its cache selects.
func newView(mgr ctrl.Manager, o cache.Options, watch func(context.Context, cache.Cache, client.Object) error) (*view, error) {
	o.HTTPClient, o.Scheme, o.Mapper = mgr.GetHTTPClient(), mgr.GetScheme(), mgr.GetRESTMapper()
	o.DefaultTransform = cache.TransformStripManagedFields()
	c, err := cache.New(mgr.GetConfig(), o)
	if err != nil {
		return nil, wrap(err, "make a cache")
	}
	return &view{
		live: mgr.GetAPIReader(), cached: c,
		watch: func(ctx context.Context, obj client.Object) error { return watch(ctx, c, obj) },
	}, mgr.Add(c)
}

// machineHandler enqueues the guards for which a Machine may have become the first one, or the last.
func machineHandler() handler.TypedEventHandler[*v1alpha1.Machine, reconcile.Request] {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	all := func(m *v1alpha1.Machine, q queue) {
		for _, r := range fixed {
			q.Add(r)
		}
		addGroups(q, groupsOf(m))
	}
	return handler.TypedFuncs[*v1alpha1.Machine, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*v1alpha1.Machine], q queue) { all(e.Object, q) },
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*v1alpha1.Machine], q queue) { all(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*v1alpha1.Machine], q queue) {
			if before, after := groupsOf(e.ObjectOld), groupsOf(e.ObjectNew); !slices.Equal(before, after) {
				addGroups(q, before)
				addGroups(q, after)
			}
		},
	}
}

func addGroups(q workqueue.TypedRateLimitingInterface[reconcile.Request], groups []string) {
	for _, g := range groups {
		q.Add(request(GroupUsage(g)))
	}
}

// A requeuer enqueues requests for events of objects whose watches the reconciler starts. A
// watch of the builder would fail the manager when its kind is missing.
type requeuer struct {
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// start is a source, so that it runs before the first reconcile. The requests that it adds delete
// guards whose last Machine was deleted while no process ran: the first read of a ClusterUsage starts
// the watch of all ClusterUsages.
func (q *requeuer) start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	q.queue = queue
	for _, r := range fixed {
		queue.Add(r)
	}
	return nil
}

// watch starts the watch of an object without waiting for it.
func (q *requeuer) watch(ctx context.Context, c cache.Cache, obj client.Object, requests func(client.Object) []reconcile.Request) error {
	informer, err := c.GetInformer(ctx, obj, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	enqueue := func(obj any) {
		if d, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
			obj = d.Obj
		}
		if o, ok := obj.(client.Object); ok {
			for _, r := range requests(o) {
				q.queue.Add(r)
			}
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, obj any) { enqueue(obj) }, DeleteFunc: enqueue,
	})
	return err
}
