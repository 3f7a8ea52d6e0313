package machinegroup

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

const (
	backoffMin = 100 * time.Millisecond
	backoffMax = 30 * time.Second
)

// byController indexes Machines by the UID of what controls them.
const byController = "drover.controller"

// Setup adds the controller to the manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.Machine{}, byController, controllerOf); err != nil {
		return err
	}
	co := o.ForControllerRuntime()
	co.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](backoffMin, backoffMax)
	return ctrl.NewControllerManagedBy(mgr).
		Named("machinegroup").
		WithOptions(co).
		For(&v1alpha1.MachineGroup{}).
		Watches(&v1alpha1.Machine{}, handler.EnqueueRequestsFromMapFunc(groupOf)).
		Complete(&reconciler{client: mgr.GetClient(), live: mgr.GetAPIReader(), pace: newPace(time.Now)})
}

func controllerOf(obj client.Object) []string {
	if by := metav1.GetControllerOfNoCopy(obj); by != nil {
		return []string{string(by.UID)}
	}
	return nil
}

// groupOf a Machine has the name of its MachineSet.
func groupOf(_ context.Context, m client.Object) []reconcile.Request {
	by := metav1.GetControllerOfNoCopy(m)
	if by == nil || by.Kind != v1alpha1.MachineSetGroupVersionKind.Kind {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: m.GetNamespace(), Name: by.Name}}}
}
