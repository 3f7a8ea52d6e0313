package approver

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	crcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/mr"
	"github.com/drover-dev/drover/internal/target"
)

const (
	backoffMin = time.Second
	backoffMax = time.Minute
)

// Setup adds the controller to the manager. The observations are those of the Machine
// controller in the same process.
func Setup(ctx context.Context, mgr ctrl.Manager, o controller.Options, pool *target.Pool, observed Observations) error {
	if err := index(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	c, err := crcontroller.NewTyped("approver", mgr, crcontroller.TypedOptions[Key]{
		MaxConcurrentReconciles: o.MaxConcurrentReconciles,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[Key](backoffMin, backoffMax),
		Reconciler: &reconciler{
			connect:  connector(pool),
			control:  mgr.GetClient(),
			observed: observed,
			record:   mr.RecorderFor(mgr, machinev1alpha1.MachineGroupVersionKind),
			now:      time.Now,
		},
	})
	if err != nil {
		return err
	}
	if err := c.Watch(requests(pool)); err != nil {
		return err
	}
	// A Node that joined, or an address of its VM, may be all that a request waits for.
	return c.Watch(source.TypedKind(mgr.GetCache(), &machinev1alpha1.Machine{},
		handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, m *machinev1alpha1.Machine) []Key { return waiting(ctx, pool, m) }),
		machineChanged()))
}

// machineChanged lets through a Machine that is new, and one with news of its Node or its
// addresses.
func machineChanged() predicate.TypedPredicate[*machinev1alpha1.Machine] {
	return predicate.TypedFuncs[*machinev1alpha1.Machine]{
		UpdateFunc: func(e event.TypedUpdateEvent[*machinev1alpha1.Machine]) bool {
			was, is := e.ObjectOld.Status, e.ObjectNew.Status
			return !equality.Semantic.DeepEqual(was.NodeRef, is.NodeRef) || !equality.Semantic.DeepEqual(was.Addresses, is.Addresses)
		},
		DeleteFunc: func(event.TypedDeleteEvent[*machinev1alpha1.Machine]) bool { return false },
	}
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

// waiting are the undecided requests of the Node of a Machine.
func waiting(ctx context.Context, pool *target.Pool, m *machinev1alpha1.Machine) []Key {
	ref := target.RefOf(m)
	conn, err := pool.Get(ctx, ref)
	if err != nil {
		return nil
	}
	var out []Key
	for _, name := range conn.RequestsOf(nodeUserPrefix + nodeName(m)) {
		out = append(out, Key{Ref: ref, Name: name})
	}
	return out
}
