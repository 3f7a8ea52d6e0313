package approver

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	crcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/mr"
	"github.com/drover-dev/drover/internal/target"
)

const (
	backoffMin = time.Second
	backoffMax = time.Minute
)

// Setup adds the controller to the manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o controller.Options, pool *target.Pool) error {
	if err := index(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	c, err := crcontroller.NewTyped("approver", mgr, crcontroller.TypedOptions[Key]{
		MaxConcurrentReconciles: o.MaxConcurrentReconciles,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[Key](backoffMin, backoffMax),
		Reconciler: &reconciler{
			connect: connector(pool),
			control: mgr.GetClient(),
			record:  mr.RecorderFor(mgr, v1alpha1.WorkerNodeGroupVersionKind),
			now:     time.Now,
		},
	})
	if err != nil {
		return err
	}
	if err := c.Watch(requests(pool)); err != nil {
		return err
	}
	// A Node that was found may make good what waits.
	return c.Watch(source.TypedKind(mgr.GetCache(), &v1alpha1.WorkerNode{},
		handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, wn *v1alpha1.WorkerNode) []Key { return waiting(ctx, pool, wn) })))
}

func connector(pool *target.Pool) func(context.Context, target.Ref) (cluster, error) {
	return func(ctx context.Context, ref target.Ref) (cluster, error) {
		conn, err := pool.Get(ctx, ref)
		if err != nil {
			return cluster{}, err
		}
		return cluster{kube: conn.Kube, request: conn.Request, classify: conn.Classify}, nil
	}
}

// requests is the source of the requests of all target clusters.
func requests(pool *target.Pool) source.TypedSource[Key] {
	return source.TypedFunc[Key](func(_ context.Context, queue workqueue.TypedRateLimitingInterface[Key]) error {
		pool.SubscribeRequests(func(ref target.Ref, name string) { queue.Add(Key{Ref: ref, Name: name}) })
		return nil
	})
}

// waiting are the requests of a WorkerNode's Node that nobody has decided on.
func waiting(ctx context.Context, pool *target.Pool, wn *v1alpha1.WorkerNode) []Key {
	ref := target.RefOf(wn)
	conn, err := pool.Get(ctx, ref)
	if err != nil {
		return nil
	}
	var out []Key
	for _, name := range conn.RequestsOf(nodeUserPrefix + wn.GetName()) {
		out = append(out, Key{Ref: ref, Name: name})
	}
	return out
}
