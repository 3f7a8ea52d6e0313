package terminator

import (
	"context"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/mr"
)

const (
	backoffMin = 100 * time.Millisecond
	backoffMax = 30 * time.Second
)

// Setup adds the controllers to the manager. The views are a cache of its own whose
// scheme has AddToScheme's kinds.
func Setup(ctx context.Context, mgr ctrl.Manager, o controller.Options, views cache.Cache) error {
	for obj, indexer := range map[client.Object]client.FieldIndexer{
		&clusterv1alpha1.WorkerNode{}: mgr.GetFieldIndexer(),
		&Machine{}:                    views,
		newMetadata(v1alpha1.MachineSetGroupVersionKind): views,
	} {
		if err := indexer.IndexField(ctx, obj, byOwner, ownersOf); err != nil {
			return err
		}
	}
	if err := setupMachines(mgr, o, views); err != nil {
		return err
	}
	if err := setupParents(mgr, o, views, &parents{
		gvk: v1alpha1.MachineSetGroupVersionKind, child: v1alpha1.MachineGroupVersionKind, label: v1alpha1.LabelSet,
		children: func(ctx context.Context, set client.Object) (int, error) {
			list := &MachineList{}
			err := views.List(ctx, list, client.InNamespace(set.GetNamespace()), client.MatchingFields{byOwner: string(set.GetUID())}, client.UnsafeDisableDeepCopy)
			return len(list.Items), err
		},
	}, source.Kind(views, &Machine{}, handler.TypedEnqueueRequestsFromMapFunc(ownerOfKind[*Machine](v1alpha1.MachineSetGroupVersionKind.Kind)), gone[*Machine]())); err != nil {
		return err
	}
	return setupParents(mgr, o, views, &parents{
		gvk: v1alpha1.MachineDeploymentGroupVersionKind, child: v1alpha1.MachineSetGroupVersionKind, label: v1alpha1.LabelDeployment,
		children: func(ctx context.Context, deployment client.Object) (int, error) {
			items, err := ownedCached(ctx, views, v1alpha1.MachineSetGroupVersionKind, deployment)
			return len(items), err
		},
	}, source.Kind(views, newMetadata(v1alpha1.MachineSetGroupVersionKind),
		handler.TypedEnqueueRequestsFromMapFunc(ownerOfKind[*metav1.PartialObjectMetadata](v1alpha1.MachineDeploymentGroupVersionKind.Kind)), gone[*metav1.PartialObjectMetadata]()))
}

func setupMachines(mgr ctrl.Manager, o controller.Options, views cache.Cache) error {
	r := &machines{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), views: views, workerNodes: mgr.GetClient(),
		record: mr.RecorderFor(mgr, v1alpha1.MachineGroupVersionKind), now: time.Now,
	}
	machineOf := ownerOfKind[*metav1.PartialObjectMetadata](v1alpha1.MachineGroupVersionKind.Kind)
	c, err := ctrl.NewControllerManagedBy(mgr).
		Named("terminator/machine").
		WithOptions(options(o)).
		WatchesRawSource(source.Kind(views, &Machine{}, &handler.TypedEnqueueRequestForObject[*Machine]{})).
		WatchesRawSource(source.Kind(mgr.GetCache(), &clusterv1alpha1.WorkerNode{},
			handler.TypedEnqueueRequestsFromMapFunc(ownerOfKind[*clusterv1alpha1.WorkerNode](v1alpha1.MachineGroupVersionKind.Kind)))).
		Build(r)
	if err != nil {
		return err
	}
	r.kinds = newVMKinds(mgr.GetAPIReader(), func(gvk schema.GroupVersionKind) error {
		return c.Watch(source.Kind(views, newMetadata(gvk), handler.TypedEnqueueRequestsFromMapFunc(machineOf)))
	})
	return nil
}

func setupParents(mgr ctrl.Manager, o controller.Options, views cache.Cache, r *parents, children source.Source) error {
	r.client, r.live, r.views = mgr.GetClient(), mgr.GetAPIReader(), views
	return ctrl.NewControllerManagedBy(mgr).
		Named("terminator/" + strings.ToLower(r.gvk.Kind)).
		WithOptions(options(o)).
		WatchesRawSource(source.Kind(views, newMetadata(r.gvk), &handler.TypedEnqueueRequestForObject[*metav1.PartialObjectMetadata]{})).
		WatchesRawSource(children).
		Complete(r)
}

func options(o controller.Options) crcontroller.Options {
	co := o.ForControllerRuntime()
	co.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](backoffMin, backoffMax)
	return co
}

func gone[T client.Object]() predicate.TypedPredicate[T] {
	return predicate.TypedFuncs[T]{
		CreateFunc:  func(event.TypedCreateEvent[T]) bool { return false },
		UpdateFunc:  func(event.TypedUpdateEvent[T]) bool { return false },
		GenericFunc: func(event.TypedGenericEvent[T]) bool { return false },
	}
}
