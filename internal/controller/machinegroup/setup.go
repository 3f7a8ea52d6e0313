package machinegroup

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan/group"
)

const (
	backoffMin = 100 * time.Millisecond
	backoffMax = 30 * time.Second
)

// byController indexes Machines by the UID of their controller.
const byController = "drover.controller"

// Setup adds the controller to the manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.Machine{}, byController, controllerOf); err != nil {
		return err
	}
	co := o.ForControllerRuntime()
	co.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](backoffMin, backoffMax)
	gone := newReleases()
	return ctrl.NewControllerManagedBy(mgr).
		Named("machinegroup").
		WithOptions(co).
		For(&v1alpha1.MachineGroup{}).
		Watches(&v1alpha1.Machine{}, handler.EnqueueRequestsFromMapFunc(groupsOf(mgr.GetClient())), builder.WithPredicates(gone.watch())).
		Complete(&reconciler{client: mgr.GetClient(), live: mgr.GetAPIReader(), pace: newPace(time.Now), releases: gone})
}

func controllerOf(obj client.Object) []string {
	if by := metav1.GetControllerOfNoCopy(obj); by != nil {
		return []string{string(by.UID)}
	}
	return nil
}

// groupsOf returns the groups of a Machine: that of its MachineSet, which has the set's name, and
// those of sets whose selectors match it.
func groupsOf(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, m client.Object) []reconcile.Request {
		names := sets.New[string]()
		if by := metav1.GetControllerOfNoCopy(m); by != nil && by.Kind == v1alpha1.MachineSetGroupVersionKind.Kind {
			names.Insert(by.Name)
		}
		groups := &v1alpha1.MachineGroupList{}
		if reader.List(ctx, groups, client.InNamespace(m.GetNamespace()), client.UnsafeDisableDeepCopy) == nil { // The list fails only while the cache stops.
			for i := range groups.Items {
				if group.Matches(&groups.Items[i], m) {
					names.Insert(groups.Items[i].Name)
				}
			}
		}
		out := make([]reconcile.Request, 0, len(names))
		for _, name := range sets.List(names) {
			out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: m.GetNamespace(), Name: name}})
		}
		return out
	}
}
