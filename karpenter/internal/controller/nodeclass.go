package controller

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/drover-dev/drover/karpenter/apis/v1alpha1"
	"github.com/drover-dev/drover/karpenter/internal/control"
	"github.com/drover-dev/drover/karpenter/internal/drover"
	"github.com/drover-dev/drover/karpenter/internal/offer"
)

// NodeClass writes the status of DroverNodeClasses.
type NodeClass struct {
	Target  client.Client
	Control *control.Cluster
	// Cache of the control cluster.
	Cache cache.Cache
}

// Register the controller.
func (c *NodeClass) Register(_ context.Context, m manager.Manager) error {
	return ctrl.NewControllerManagedBy(m).Named("drovernodeclass").
		For(&v1alpha1.DroverNodeClass{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Kind(c.Cache, &drover.MachineClass{}, of[*drover.MachineClass](c))).
		WatchesRawSource(source.Kind(c.Cache, &drover.ClusterMachineClass{}, of[*drover.ClusterMachineClass](c))).
		WatchesRawSource(source.Kind(c.Cache, &drover.ProviderConfig{}, of[*drover.ProviderConfig](c))).
		WatchesRawSource(source.Kind(c.Cache, &drover.ClusterProviderConfig{}, of[*drover.ClusterProviderConfig](c))).
		WatchesRawSource(source.Kind(c.Cache, &drover.Composition{}, of[*drover.Composition](c))).
		Complete(c)
}

// of maps a change in the control cluster to all DroverNodeClasses, of which there are few.
func of[T client.Object](c *NodeClass) handler.TypedEventHandler[T, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, _ T) []reconcile.Request {
		l := &v1alpha1.DroverNodeClassList{}
		if err := c.Target.List(ctx, l); err != nil {
			return nil // The cache cannot fail. Before it has started, the first events of the kind itself come.
		}
		var out []reconcile.Request
		for i := range l.Items {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&l.Items[i])})
		}
		return out
	})
}

// Reconcile a DroverNodeClass.
func (c *NodeClass) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	class := &v1alpha1.DroverNodeClass{}
	if err := c.Target.Get(ctx, r.NamespacedName, class); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	known, err := c.Control.Known(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	before := class.DeepCopy()
	report(class, offer.Of(class.Spec, known))
	if equality.Semantic.DeepEqual(before, class) {
		return reconcile.Result{}, nil
	}
	// The list of conditions is replaced as a whole.
	err = c.Target.Status().Patch(ctx, class, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictDelay}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

// report writes an offer into the status. Of several problems of a condition, the first is reported.
func report(class *v1alpha1.DroverNodeClass, o offer.Offer) {
	first := map[string]offer.Problem{}
	for _, p := range o.Problems {
		if _, ok := first[p.Condition]; !ok {
			first[p.Condition] = p
		}
	}
	set := class.StatusConditions()
	for _, t := range []string{v1alpha1.ConditionClusterFound, v1alpha1.ConditionClassesFound, v1alpha1.ConditionCapacityKnown, v1alpha1.ConditionPricesValid, v1alpha1.ConditionZonesValid} {
		if p, ok := first[t]; ok {
			set.SetFalse(t, p.Reason, p.Message)
		} else {
			set.SetTrue(t)
		}
	}
	class.Status.InstanceTypes = o.InstanceTypes()
}
