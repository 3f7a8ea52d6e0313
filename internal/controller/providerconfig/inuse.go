package providerconfig

import (
	"context"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/providerconfig"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/mr"
	"github.com/drover-dev/drover/internal/operator"
)

const (
	// finalizerInUse is the finalizer that crossplane-runtime sets on provider configs.
	finalizerInUse = "in-use.crossplane.io"
	// lookAgain is the interval between checks of a deleted config that is still used.
	lookAgain = 10 * time.Second
)

// Setup adds the controllers that protect provider configs in use; users is a list of the objects
// that use them. The controllers of crossplane-runtime count users with one object for each. That
// costs four writes per VM, for a number without a reader.
func Setup(mgr ctrl.Manager, o controller.Options, configs Configs, users UserList) error {
	for kind, obj := range map[string]client.Object{
		NamespacedKind: configs.Namespaced,
		ClusterKind:    configs.Cluster,
	} {
		if obj == nil {
			continue
		}
		config := configs.GroupVersion.WithKind(kind)
		operator.Gated(mgr, o, func() error {
			name := providerconfig.ControllerName(config.GroupKind().String())
			r := &configReconciler{
				client: mgr.GetClient(),
				kind:   kind,
				config: obj,
				list:   users,
				record: mr.NewRecorder(event.NewAPIRecorder(mgr.GetEventRecorderFor(name))),
			}
			return ctrl.NewControllerManagedBy(mgr).
				Named(name).
				WithOptions(o.ForControllerRuntime()).
				For(obj).
				Complete(ratelimiter.NewReconciler(name, r, o.GlobalRateLimiter))
		}, config)
	}
	return nil
}

// Configs are the two kinds of provider configs that a provider has. The objects are empty, and must
// not be changed.
type Configs struct {
	GroupVersion schema.GroupVersion
	// Namespaced is nil if the provider has only configurations for all namespaces.
	Namespaced, Cluster client.Object
}

// A UserList lists the managed resources that use provider configs.
type UserList interface {
	client.ObjectList
	resource.ManagedList
}

// A configReconciler protects the provider configs of a kind that VMs use.
type configReconciler struct {
	client client.Client
	kind   string
	config client.Object
	list   UserList
	record event.Recorder
}

func (r *configReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	pc := r.config.DeepCopyObject().(client.Object)
	if err := r.client.Get(ctx, req.NamespacedName, pc); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	held := meta.FinalizerExists(pc, finalizerInUse)
	if !meta.WasDeleted(pc) {
		if held {
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, r.patch(ctx, pc, func() { meta.AddFinalizer(pc, finalizerInUse) })
	}
	if !held {
		return reconcile.Result{}, nil
	}
	users, err := r.users(ctx, req)
	if err != nil {
		return reconcile.Result{}, err
	}
	if users > 0 {
		r.record.Event(pc, event.Warning(clusterv1alpha1.EventInUse, fmt.Errorf("not deleted: %d VirtualMachines use it", users)))
		return reconcile.Result{RequeueAfter: lookAgain}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(r.patch(ctx, pc, func() { meta.RemoveFinalizer(pc, finalizerInUse) }))
}

// users counts the users of a config. It is called only during the config's deletion.
func (r *configReconciler) users(ctx context.Context, req reconcile.Request) (int, error) {
	users := r.list.DeepCopyObject().(UserList)
	if err := r.client.List(ctx, users, client.InNamespace(req.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return 0, err
	}
	n := 0
	for _, mg := range users.GetItems() {
		u, ok := mg.(resource.ModernManaged)
		if !ok {
			continue
		}
		if ref := u.GetProviderConfigReference(); ref != nil && ref.Kind == r.kind && ref.Name == req.Name {
			n++
		}
	}
	return n, nil
}

func (r *configReconciler) patch(ctx context.Context, pc client.Object, change func()) error {
	was := pc.DeepCopyObject().(client.Object)
	change()
	return r.client.Patch(ctx, pc, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{}))
}
