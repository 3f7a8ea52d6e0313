package terminator

import (
	"context"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/finalizer"
)

const (
	backoffMin = 100 * time.Millisecond
	backoffMax = 30 * time.Second
)

// Setup adds the controllers to the manager. The views are a cache of metadata.
func Setup(ctx context.Context, mgr ctrl.Manager, o controller.Options, views cache.Cache) error {
	for obj, indexer := range map[client.Object]client.FieldIndexer{
		&v1alpha1.Machine{}: mgr.GetFieldIndexer(),
		finalizer.NewMetadata(v1alpha1.MachineSetGroupVersionKind): views,
	} {
		if err := indexer.IndexField(ctx, obj, byOwner, ownersOf); err != nil {
			return err
		}
	}
	if err := setupParents(mgr, o, views, &parents{
		gvk: v1alpha1.MachineSetGroupVersionKind, child: v1alpha1.MachineGroupVersionKind, label: v1alpha1.LabelSet,
		children: func(ctx context.Context, set client.Object) (int, error) {
			list := &v1alpha1.MachineList{}
			err := mgr.GetClient().List(ctx, list, client.InNamespace(set.GetNamespace()), client.MatchingFields{byOwner: string(set.GetUID())}, client.UnsafeDisableDeepCopy)
			return len(list.Items), err
		},
	}, source.Kind(mgr.GetCache(), &v1alpha1.Machine{}, handler.TypedEnqueueRequestsFromMapFunc(ownerOfKind[*v1alpha1.Machine](v1alpha1.MachineSetGroupVersionKind.Kind)), gone[*v1alpha1.Machine]())); err != nil {
		return err
	}
	return setupParents(mgr, o, views, &parents{
		gvk: v1alpha1.MachineDeploymentGroupVersionKind, child: v1alpha1.MachineSetGroupVersionKind, label: v1alpha1.LabelDeployment,
		children: func(ctx context.Context, deployment client.Object) (int, error) {
			items, err := ownedCached(ctx, views, v1alpha1.MachineSetGroupVersionKind, deployment)
			return len(items), err
		},
	}, source.Kind(views, finalizer.NewMetadata(v1alpha1.MachineSetGroupVersionKind),
		handler.TypedEnqueueRequestsFromMapFunc(ownerOfKind[*metav1.PartialObjectMetadata](v1alpha1.MachineDeploymentGroupVersionKind.Kind)), gone[*metav1.PartialObjectMetadata]()))
}

func setupParents(mgr ctrl.Manager, o controller.Options, views cache.Cache, r *parents, children source.Source) error {
	r.client, r.live, r.views = mgr.GetClient(), mgr.GetAPIReader(), views
	return ctrl.NewControllerManagedBy(mgr).
		Named("terminator/" + strings.ToLower(r.gvk.Kind)).
		WithOptions(options(o)).
		WatchesRawSource(source.Kind(views, finalizer.NewMetadata(r.gvk), &handler.TypedEnqueueRequestForObject[*metav1.PartialObjectMetadata]{})).
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
