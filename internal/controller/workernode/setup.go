package workernode

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/mr"
	"github.com/drover-dev/drover/internal/target"
)

// byNode indexes WorkerNodes by their configuration and by what finds their Node.
const byNode = "drover.node"

// Setup adds the controller to the manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o controller.Options, pool *target.Pool) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.WorkerNode{}, byNode, func(obj client.Object) []string {
		wn, ok := obj.(*v1alpha1.WorkerNode)
		if !ok {
			return nil
		}
		ref, p := target.RefOf(wn), wn.Spec.ForProvider
		keys := []string{nodeKey(ref, p.ProviderID)}
		if p.NodeName != "" {
			keys = append(keys, nodeKey(ref, target.WithoutProviderID(p.NodeName)))
		}
		return keys
	}); err != nil {
		return err
	}
	recorder, again := mr.RecorderFor(mgr, v1alpha1.WorkerNodeGroupVersionKind), &mr.Again{}
	return mr.Controller[*v1alpha1.WorkerNode]{
		Kind:      v1alpha1.WorkerNodeGroupVersionKind,
		Object:    &v1alpha1.WorkerNode{},
		List:      &v1alpha1.WorkerNodeList{},
		Connector: &connector{pool: pool, shared: &shared{again: again, record: recorder, now: time.Now, rivals: rivals(mgr.GetClient()), hooks: hooksOfOwner(mgr.GetAPIReader()), marks: marksOfSet(mgr.GetClient())}},
		Again:     again,
		Recorder:  recorder,
		Sources: []source.Source{
			nodes(mgr.GetClient(), pool),
			source.Kind(mgr.GetCache(), client.Object(&machinev1alpha1.MachineGroup{}), ofGroup(mgr.GetClient()), marksChanged()),
		},
	}.Setup(mgr, o)
}

func rivals(reader client.Reader) func(context.Context, *v1alpha1.WorkerNode) ([]v1alpha1.WorkerNode, error) {
	return func(ctx context.Context, wn *v1alpha1.WorkerNode) ([]v1alpha1.WorkerNode, error) {
		list := &v1alpha1.WorkerNodeList{}
		err := reader.List(ctx, list, client.MatchingFields{byNode: nodeKey(target.RefOf(wn), wn.Spec.ForProvider.ProviderID)}, client.UnsafeDisableDeepCopy)
		return list.Items, err
	}
}

func nodeKey(ref target.Ref, providerID string) string { return ref.String() + " " + providerID }

// nodes is the source of reconciles that changes of Nodes cause.
func nodes(reader client.Reader, pool *target.Pool) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		pool.Subscribe(func(ref target.Ref, providerID string) {
			list := &v1alpha1.WorkerNodeList{}
			if reader.List(ctx, list, client.MatchingFields{byNode: nodeKey(ref, providerID)}) != nil {
				return // Only while the cache stops. The poll interval catches up.
			}
			for i := range list.Items {
				queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: list.Items[i].GetNamespace(), Name: list.Items[i].GetName()}})
			}
		})
		return nil
	})
}
