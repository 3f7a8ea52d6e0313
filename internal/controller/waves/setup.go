package waves

import (
	"context"
	"maps"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	xpevent "github.com/crossplane/crossplane-runtime/v2/pkg/event"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/mr"
	"github.com/drover-dev/drover/internal/plan/deployment"
)

// Setup adds the controller to the manager.
func Setup(mgr ctrl.Manager, o controller.Options) error {
	const name = "rolloutpolicy"
	r := &reconciler{client: mgr.GetClient(), live: mgr.GetAPIReader(), record: mr.NewRecorder(xpevent.NewAPIRecorder(mgr.GetEventRecorderFor(name))), now: time.Now}
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: "all"}}}
	})
	pools := &metav1.PartialObjectMetadata{}
	pools.SetGroupVersionKind(machinev1alpha1.NodePoolGroupVersionKind)
	co := o.ForControllerRuntime()
	co.MaxConcurrentReconciles = 1
	return ctrl.NewControllerManagedBy(mgr).
		Named(name).
		WithOptions(co).
		Watches(&machinev1alpha1.RolloutPolicy{}, all, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&machinev1alpha1.RolloutTurn{}, all, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&machinev1alpha1.MachineDeployment{}, all, builder.WithPredicates(predicate.Funcs{UpdateFunc: changesMember})).
		Watches(pools, all, builder.OnlyMetadata, builder.WithPredicates(predicate.LabelChangedPredicate{})).
		Complete(r)
}

// changesMember reports whether an update changes what waves see of a MachineDeployment. Most updates do not.
func changesMember(e event.UpdateEvent) bool {
	was, ok := e.ObjectOld.(*machinev1alpha1.MachineDeployment)
	is, ok2 := e.ObjectNew.(*machinev1alpha1.MachineDeployment)
	if !ok || !ok2 {
		return true
	}
	before, completed := deployment.MemberState(was)
	now, completedNow := deployment.MemberState(is)
	return before != now || !completed.Equal(completedNow) || !maps.Equal(was.Labels, is.Labels) ||
		was.Spec.Template.Spec.ClusterRef != is.Spec.Template.Spec.ClusterRef || (was.DeletionTimestamp == nil) != (is.DeletionTimestamp == nil)
}
