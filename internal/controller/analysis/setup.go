package analysis

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/target"
)

// Setup adds the controller to the manager. networks limit the addresses of Prometheus servers.
func Setup(mgr ctrl.Manager, o controller.Options, pool *target.Pool, networks target.Networks) error {
	r := &reconciler{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), connect: connectThrough(pool), networks: networks,
		now: time.Now, tried: map[types.NamespacedName]map[string]time.Time{},
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("rolloutanalysis").
		WithOptions(o.ForControllerRuntime()).
		For(&machinev1alpha1.RolloutAnalysisRun{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&machinev1alpha1.RolloutAnalysis{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
			return runsIn(ctx, mgr.GetClient(), o.GetNamespace())
		}), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(r)
}

// runsIn returns the runs of a namespace. There is one for each MachineDeployment that names analyses. Those that look for
// an analysis that appears, or list those that there are, have no reference to it.
func runsIn(ctx context.Context, reader client.Reader, namespace string) []reconcile.Request {
	list := &machinev1alpha1.RolloutAnalysisRunList{}
	if reader.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy) != nil {
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}

func connectThrough(pool *target.Pool) func(context.Context, *machinev1alpha1.Machine) (cluster, error) {
	return func(ctx context.Context, m *machinev1alpha1.Machine) (cluster, error) {
		conn, err := pool.For(ctx, m)
		if err != nil {
			return cluster{}, err
		}
		node := func(ctx context.Context, name, uid string) (*corev1.Node, error) {
			nodes, err := conn.Nodes(ctx, string(m.UID), name, uid)
			if err != nil {
				return nil, err
			}
			for _, n := range nodes {
				if n.Name == name {
					return n, nil
				}
			}
			return nil, nil
		}
		return cluster{kube: conn.Kube, node: node, classify: conn.Classify}, nil
	}
}
