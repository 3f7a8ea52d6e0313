package approver

import (
	"context"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	crcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/mr"
	"github.com/drover-dev/drover/internal/identity"
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
	// A request may be waiting for a Node that joins, or for an address of its VM.
	return c.Watch(source.TypedKind(mgr.GetCache(), &machinev1alpha1.Machine{},
		handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, m *machinev1alpha1.Machine) []Key { return waiting(ctx, pool, m) }),
		machineChanged()))
}

// machineChanged accepts new Machines, and changes of a Machine's Node or addresses.
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
		p, err := policyOf(conn.Spec.Certificates, conn.ServerNames())
		if err != nil {
			return cluster{}, fmt.Errorf("%s: %w", ref, err)
		}
		return cluster{
			kube: conn.Kube, request: conn.Request, classify: conn.Classify, client: conn.ClientCertificates, admit: conn.Admit,
			policy: p, sharing: pool.Sharing(conn), token: tokenThrough(conn),
		}, nil
	}
}

// tokenThrough returns a function that reads, through a connection, the UID of the Machine that a
// Node claims to belong to.
func tokenThrough(conn *target.Conn) func(context.Context, string) (types.UID, error) {
	return func(ctx context.Context, name string) (types.UID, error) {
		nodes, err := conn.Nodes(ctx, "", name, "")
		if err != nil || len(nodes) == 0 {
			return "", err
		}
		return types.UID(nodes[0].GetLabels()[v1alpha1.LabelJoinToken]), nil
	}
}

// requests is the source of the requests of all target clusters.
func requests(pool *target.Pool) source.TypedSource[Key] {
	return source.TypedFunc[Key](func(_ context.Context, queue workqueue.TypedRateLimitingInterface[Key]) error {
		pool.SubscribeRequests(func(ref target.Ref, name string) { queue.Add(Key{Ref: ref, Name: name}) })
		return nil
	})
}

// waiting returns the undecided requests of the Node and the bootstrap token of a Machine.
func waiting(ctx context.Context, pool *target.Pool, m *machinev1alpha1.Machine) []Key {
	conn, err := pool.For(ctx, m)
	if err != nil {
		return nil
	}
	users := []string{nodeUserPrefix + identity.NodeName(m), bootstrapUser + identity.TokenID(m)}
	if node := m.Status.NodeRef; node != nil && node.Name != identity.NodeName(m) {
		users = append(users, nodeUserPrefix+node.Name) // The cloud named it.
	}
	var out []Key
	for _, user := range users {
		for _, name := range conn.RequestsOf(user) {
			out = append(out, Key{Ref: conn.Ref, Name: name})
		}
	}
	return out
}
