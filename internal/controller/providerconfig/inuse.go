package providerconfig

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/providerconfig"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
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

// Setup adds the controllers that protect provider configs in use; users has a list for each kind of the
// objects that use them. The controllers of crossplane-runtime count users with one object for each. That
// costs four writes per VM, for a number without a reader.
func Setup(mgr ctrl.Manager, o controller.Options, configs Configs, users ...UserList) error {
	for config, obj := range configs.objects() {
		operator.Gated(mgr, o, func() error {
			name := providerconfig.ControllerName(config.GroupKind().String())
			r := &configReconciler{
				client: mgr.GetClient(),
				kind:   config.Kind,
				config: obj,
				lists:  users,
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

// objects of the kinds that the provider has.
func (configs Configs) objects() map[schema.GroupVersionKind]client.Object {
	out := map[schema.GroupVersionKind]client.Object{configs.GroupVersion.WithKind(ClusterKind): configs.Cluster}
	if configs.Namespaced != nil {
		out[configs.GroupVersion.WithKind(NamespacedKind)] = configs.Namespaced
	}
	return out
}

// Kinds that the provider has.
func (configs Configs) Kinds() []schema.GroupVersionKind {
	return slices.Collect(maps.Keys(configs.objects()))
}

// A UserList lists the managed resources that use provider configs.
type UserList interface {
	client.ObjectList
	resource.ManagedList
}

// A configReconciler protects the provider configs of a kind that VMs or other resources use.
type configReconciler struct {
	client client.Client
	kind   string
	config client.Object
	lists  []UserList
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
	if users != "" {
		r.record.Event(pc, event.Warning(clusterv1alpha1.EventInUse, fmt.Errorf("not deleted: %s use it", users)))
		return reconcile.Result{RequeueAfter: lookAgain}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(r.patch(ctx, pc, func() { meta.RemoveFinalizer(pc, finalizerInUse) }))
}

// users returns the numbers of a config's users with their kinds, "" if there are none. It is called only
// during the config's deletion.
func (r *configReconciler) users(ctx context.Context, req reconcile.Request) (string, error) {
	var out []string
	for _, list := range r.lists {
		users := list.DeepCopyObject().(UserList)
		gvk, err := apiutil.GVKForObject(users, r.client.Scheme())
		if err != nil {
			return "", err
		}
		err = r.client.List(ctx, users, client.InNamespace(req.Namespace), client.UnsafeDisableDeepCopy)
		if apimeta.IsNoMatchError(err) { // The kind is not activated, so there are none.
			continue
		}
		if err != nil {
			return "", err
		}
		if n := r.count(users, req); n > 0 {
			out = append(out, fmt.Sprintf("%d %ss", n, strings.TrimSuffix(gvk.Kind, "List")))
		}
	}
	return strings.Join(out, ", "), nil
}

// count returns how many of the users reference a config.
func (r *configReconciler) count(users UserList, req reconcile.Request) int {
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
	return n
}

func (r *configReconciler) patch(ctx context.Context, pc client.Object, change func()) error {
	was := pc.DeepCopyObject().(client.Object)
	change()
	return r.client.Patch(ctx, pc, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{}))
}
