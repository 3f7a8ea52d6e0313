package nodeinventory

import (
	"context"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/internal/target"
)

// settle is how long a change of a Node waits for further changes. A kubelet may change its Node many
// times a second, and each reconcile is a list request to the target cluster's API server.
const settle = time.Second

// Setup adds the controller to the manager.
func Setup(mgr ctrl.Manager, o controller.Options, pool *target.Pool) error {
	r := &reconciler{client: mgr.GetClient(), connect: connectThrough(pool)}
	return ctrl.NewControllerManagedBy(mgr).
		Named("nodeinventory").
		WithOptions(o.ForControllerRuntime()).
		For(&clusterv1alpha1.NodeInventory{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Func(func(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			pool.Subscribe(func(_ target.Ref, n target.NodeIdentity) {
				for _, req := range asking(ctx, mgr.GetClient(), n) {
					q.AddAfter(req, settle)
				}
			})
			return nil
		})).
		Complete(r)
}

// asking returns the NodeInventories that query the VM of a Node. There are few of them.
func asking(ctx context.Context, reader client.Reader, n target.NodeIdentity) []reconcile.Request {
	list := &clusterv1alpha1.NodeInventoryList{}
	if reader.List(ctx, list, client.UnsafeDisableDeepCopy) != nil {
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if slices.ContainsFunc(list.Items[i].Spec.VirtualMachines, func(q clusterv1alpha1.NodeQuery) bool { return isAbout(q, n) }) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}

func isAbout(q clusterv1alpha1.NodeQuery, n target.NodeIdentity) bool {
	return q.NodeName == n.Name || q.MachineUID != "" && q.MachineUID == n.Token || q.ProviderID != "" && q.ProviderID == n.ProviderID
}

func connectThrough(pool *target.Pool) func(context.Context, target.Ref) (cluster, error) {
	return func(ctx context.Context, ref target.Ref) (cluster, error) {
		conn, err := pool.Get(ctx, ref)
		if err != nil {
			return cluster{}, err
		}
		return cluster{kube: conn.Kube, nodes: conn.Nodes, ofVM: conn.NodesOfVM, classify: conn.Classify}, nil
	}
}
