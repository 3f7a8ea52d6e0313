package machine

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/workqueue"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/installations"
	"github.com/drover-dev/drover/internal/controller/machine/nodekeeper"
	"github.com/drover-dev/drover/internal/controller/mr"
	"github.com/drover-dev/drover/internal/function"
	"github.com/drover-dev/drover/internal/jointoken"
	"github.com/drover-dev/drover/internal/pipeline"
	"github.com/drover-dev/drover/internal/target"
	"github.com/drover-dev/drover/internal/urgency"
)

const (
	backoffMin = 100 * time.Millisecond
	backoffMax = 30 * time.Second

	// revisionsKept is how many CompositionRevisions are kept decoded.
	revisionsKept = 64
)

// Options of the controller.
type Options struct {
	// Function is the name of the Function whose steps run in this process. The steps of
	// all other Functions are called by gRPC.
	Function string
	// CertsDir is the folder with the TLS client certificate for Functions.
	CertsDir string
}

// Setup adds the controller to the manager. It returns the Nodes that the controller observes.
func Setup(ctx context.Context, mgr ctrl.Manager, o controller.Options, pool *target.Pool, opts Options) (*Nodes, error) {
	if err := index(ctx, mgr.GetFieldIndexer()); err != nil {
		return nil, err
	}
	resources, err := resourcesCache(mgr)
	if err != nil {
		return nil, err
	}
	r, err := newReconciler(mgr, o, pool, resources, opts)
	if err != nil {
		return nil, err
	}
	co := o.ForControllerRuntime()
	co.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](backoffMin, backoffMax)
	co.NewQueue = urgency.NewQueue(urgency.Of(mgr.GetCache(), &machinev1alpha1.Machine{}, isStarting))
	var c interface {
		Watch(source.TypedSource[reconcile.Request]) error
	}
	// The first reconcile waits until the controller is assigned.
	built := make(chan struct{})
	r.watches.start = func(gvk schema.GroupVersionKind, h handler.TypedEventHandler[*unstructured.Unstructured, reconcile.Request]) error {
		<-built
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(gvk)
		return c.Watch(source.TypedKind(resources, obj, h))
	}
	r.inventories.start = r.watches.start
	if err := mgr.Add(r.inventories); err != nil {
		return nil, err
	}
	r.watches.index = func(ctx context.Context, gvk schema.GroupVersionKind) error {
		return indexByMachine(ctx, resources, gvk)
	}
	revisions := &unstructured.Unstructured{}
	revisions.SetGroupVersionKind(revisionKind)
	c, err = ctrl.NewControllerManagedBy(mgr).
		Named("machine").
		WithOptions(co).
		WatchesRawSource(source.TypedKind(mgr.GetCache(), &machinev1alpha1.Machine{}, machineHandler(r), changed(r.written))).
		WatchesRawSource(source.TypedKind(mgr.GetCache(), &machinev1alpha1.MachineGroup{}, handler.TypedEnqueueRequestsFromMapFunc(nodekeeper.MachinesOfGroup), nodekeeper.MarksChanged())).
		WatchesRawSource(source.TypedKind(mgr.GetCache(), &machinev1alpha1.MachineClass{}, handler.TypedEnqueueRequestsFromMapFunc(r.ofClass), createdOnly[*machinev1alpha1.MachineClass]())).
		WatchesRawSource(source.TypedKind(mgr.GetCache(), &machinev1alpha1.ClusterMachineClass{}, handler.TypedEnqueueRequestsFromMapFunc(r.ofClusterClass), specChanged[*machinev1alpha1.ClusterMachineClass]())).
		WatchesRawSource(source.TypedKind(mgr.GetCache(), &clusterv1alpha1.ClusterProviderConfig{}, handler.TypedEnqueueRequestsFromMapFunc(ofConfig[*clusterv1alpha1.ClusterProviderConfig](r)), specChanged[*clusterv1alpha1.ClusterProviderConfig]())).
		WatchesRawSource(source.TypedKind(mgr.GetCache(), &clusterv1alpha1.ProviderConfig{}, handler.TypedEnqueueRequestsFromMapFunc(ofConfig[*clusterv1alpha1.ProviderConfig](r)), specChanged[*clusterv1alpha1.ProviderConfig]())).
		WatchesRawSource(source.TypedKind(resources, revisions, handler.TypedEnqueueRequestsFromMapFunc(r.ofRevision), createdOnly[*unstructured.Unstructured]())).
		WatchesRawSource(nodesOf(mgr.GetClient(), pool)).
		WatchesRawSource(requestsOf(mgr.GetClient(), pool)).
		Build(r)
	close(built)
	if err != nil {
		return nil, err
	}
	return &Nodes{parameters: r.parameters}, jointoken.SetupSweeper(mgr, o.PollInterval, jointoken.ConnectThrough(pool), mgr.GetClient(), mgr.GetAPIReader(), r.record, o.Logger)
}

func newReconciler(mgr ctrl.Manager, o controller.Options, pool *target.Pool, resources cache.Cache, opts Options) (*Reconciler, error) {
	discovered, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	functions := &pipeline.Functions{Revisions: resources, CertsDir: opts.CertsDir}
	if err := mgr.Add(functions); err != nil {
		return nil, err
	}
	local := function.New(logging.NewNopLogger(), time.Now)
	written := newOverlay(time.Now)
	r := &Reconciler{
		client: mgr.GetClient(), resources: resources, live: mgr.GetAPIReader(),
		steps: pipeline.NewStepCache(revisionsKept),
		runner: pipeline.New(pipeline.Options{
			Local: func(s pipeline.Step) (pipeline.RunFunc, bool) {
				return local.RunStep, s.Function == opts.Function && function.HasStep(s.Input)
			},
			Functions: functions,
			Resources: pipeline.NewClusterResources(resources),
			Schemas:   pipeline.NewOpenAPISchemas(discovered.OpenAPIV3()),
			Secrets:   mgr.GetAPIReader(),
		}),
		configs: &configKinds{mapper: mgr.GetRESTMapper()},
		watches: newWatches(written), inventories: newInventories(kindExists(mgr.GetRESTMapper())), written: written, parameters: newMemory[nodekeeper.Memory](),
		record: mr.RecorderFor(mgr, machineKind), log: o.Logger.WithValues("controller", "machine"), now: time.Now,
	}
	r.installations = func(ctx context.Context) (installations.Known, error) {
		return installations.Read(ctx, mgr.GetAPIReader())
	}
	r.tokens = jointoken.NewKeeper(jointoken.Options{
		Connect: jointoken.ConnectMachinesThrough(pool), Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Record: r.record, Now: time.Now,
	})
	r.nodes = &nodekeeper.Tools{Connect: connectThrough(pool), Record: r.record, Now: time.Now, Hooks: nodekeeper.HooksOf(mgr.GetAPIReader()), Marks: nodekeeper.MarksOfSet(mgr.GetClient())}
	return r, nil
}

// resourcesCache returns a cache for all kinds that pipelines compose and require.
func resourcesCache(mgr ctrl.Manager) (cache.Cache, error) {
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		return nil, err
	}
	return c, mgr.Add(c)
}

func connectThrough(pool *target.Pool) func(context.Context, *machinev1alpha1.Machine) (nodekeeper.Cluster, error) {
	return func(ctx context.Context, m *machinev1alpha1.Machine) (nodekeeper.Cluster, error) {
		conn, err := pool.For(ctx, m)
		if err != nil {
			return nodekeeper.Cluster{Ref: refOf(m)}, err
		}
		return nodekeeper.Cluster{
			Ref: conn.Ref, Kube: conn.Kube, Nodes: conn.Nodes, OfVM: conn.NodesOfVM, Classify: conn.Classify,
			AllowsLabel: conn.AllowsLabel, AllowsTaint: conn.AllowsTaint, Requests: conn.AllRequestsOf,
		}, nil
	}
}

func (r *Reconciler) ofClass(ctx context.Context, c *machinev1alpha1.MachineClass) []reconcile.Request {
	return requestsFor(ctx, r.client, client.InNamespace(c.GetNamespace()), client.MatchingFields{byClass: c.GetName()})
}

// ofClusterClass returns the Machines of all namespaces: those that the class serves, and those that it served
// or will serve.
func (r *Reconciler) ofClusterClass(ctx context.Context, c *machinev1alpha1.ClusterMachineClass) []reconcile.Request {
	return requestsFor(ctx, r.client, client.MatchingFields{byClass: c.AsMachineClass().Reference().Key()})
}

// ofRevision returns all Machines: any of them may follow a new revision.
func (r *Reconciler) ofRevision(ctx context.Context, _ *unstructured.Unstructured) []reconcile.Request {
	return requestsFor(ctx, r.client)
}

func ofConfig[T client.Object](r *Reconciler) func(context.Context, T) []reconcile.Request {
	return func(ctx context.Context, config T) []reconcile.Request {
		ref := target.ClusterRef(config.GetName())
		if config.GetNamespace() != "" {
			ref = target.NamespacedRef(config.GetNamespace(), config.GetName())
		}
		return requestsFor(ctx, r.client, client.MatchingFields{byCluster: ref.String()})
	}
}

// nodesOf is the source that enqueues Machines for changes of Nodes.
func nodesOf(reader client.Reader, pool *target.Pool) source.Source {
	return source.Func(func(ctx context.Context, q queue) error {
		limits := nodekeeper.NewLimits(time.Now)
		pool.Subscribe(func(ref target.Ref, n target.NodeIdentity) {
			delay := limits.Delay(nodekeeper.NodeID{Cluster: ref, Name: n.Name})
			for _, req := range ofNode(ctx, reader, ref, n) {
				q.AddAfter(req, delay)
			}
		})
		return nil
	})
}

// ofNode returns the Machines that a Node belongs to, or claims to belong to.
func ofNode(ctx context.Context, reader client.Reader, ref target.Ref, n target.NodeIdentity) []reconcile.Request {
	found := requestsFor(ctx, reader, client.MatchingFields{byNode: ref.String() + " " + n.Name})
	for index, key := range map[string]string{byToken: n.Token, byProviderID: ofCluster(ref, n.ProviderID)} {
		if key == "" {
			continue
		}
		for _, req := range requestsFor(ctx, reader, client.MatchingFields{index: key}) {
			if !slices.Contains(found, req) {
				found = append(found, req)
			}
		}
	}
	return found
}

// isStarting reports whether a Machine is on the way to its Node.
func isStarting(m *machinev1alpha1.Machine) bool {
	return m.Status.Phase.IsOnItsWay()
}

// machineHandler enqueues a Machine, and forgets the writes to a deleted one.
func machineHandler(r *Reconciler) handler.TypedEventHandler[*machinev1alpha1.Machine, reconcile.Request] {
	enqueue := func(m *machinev1alpha1.Machine, q queue) {
		q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}})
	}
	return handler.TypedFuncs[*machinev1alpha1.Machine, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*machinev1alpha1.Machine], q queue) {
			enqueue(e.Object, q)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*machinev1alpha1.Machine], q queue) {
			enqueue(e.ObjectNew, q)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*machinev1alpha1.Machine], q queue) {
			enqueue(e.Object, q)
		},
	}
}

// changed passes only changes that a Machine is reconciled for: neither changes of its status, nor the writes
// of the controller itself.
func changed(written *overlay) predicate.TypedPredicate[*machinev1alpha1.Machine] {
	return predicate.TypedFuncs[*machinev1alpha1.Machine]{UpdateFunc: func(e event.TypedUpdateEvent[*machinev1alpha1.Machine]) bool {
		was, is := e.ObjectOld, e.ObjectNew
		if written.isOwn(is, machineKind.GroupKind()) {
			return false
		}
		return was.GetUID() != is.GetUID() || was.GetGeneration() != is.GetGeneration() ||
			(was.GetDeletionTimestamp() == nil) != (is.GetDeletionTimestamp() == nil) ||
			!equality.Semantic.DeepEqual(was.GetLabels(), is.GetLabels()) ||
			!equality.Semantic.DeepEqual(was.GetAnnotations(), is.GetAnnotations()) ||
			!equality.Semantic.DeepEqual(was.GetFinalizers(), is.GetFinalizers()) ||
			!equality.Semantic.DeepEqual(was.GetOwnerReferences(), is.GetOwnerReferences())
	}}
}

func createdOnly[T client.Object]() predicate.TypedPredicate[T] {
	return predicate.TypedFuncs[T]{
		UpdateFunc: func(event.TypedUpdateEvent[T]) bool { return false },
		DeleteFunc: func(event.TypedDeleteEvent[T]) bool { return false },
	}
}

func specChanged[T client.Object]() predicate.TypedPredicate[T] {
	return predicate.TypedFuncs[T]{
		UpdateFunc: func(e event.TypedUpdateEvent[T]) bool {
			return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration()
		},
		DeleteFunc: func(event.TypedDeleteEvent[T]) bool { return false },
	}
}

// requestsOf is the source that enqueues Machines for certificate requests with their join tokens.
func requestsOf(reader client.Reader, pool *target.Pool) source.Source {
	return source.Func(func(ctx context.Context, q queue) error {
		pool.SubscribeRequests(func(ref target.Ref, name string) {
			// The call must not block, and a connection may take a moment.
			go func() {
				conn, err := pool.Get(ctx, ref)
				if err != nil {
					return
				}
				csr := conn.Request(name)
				if csr == nil {
					return
				}
				id, ok := strings.CutPrefix(csr.Spec.Username, bootstrapapi.BootstrapUserPrefix)
				if !ok {
					return
				}
				for _, req := range requestsFor(ctx, reader, client.MatchingFields{byTokenID: ref.String() + " " + id}) {
					q.AddAfter(req, nodekeeper.JoinSettles)
				}
			}()
		})
		return nil
	})
}
