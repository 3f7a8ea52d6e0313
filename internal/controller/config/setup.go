package config

import (
	"context"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/mr"
	"github.com/drover-dev/drover/internal/target"
)

// Setup adds the controllers of both kinds to the manager. The cache is the one that
// holds the metadata of Secrets.
func Setup(ctx context.Context, mgr ctrl.Manager, o controller.Options, pool *target.Pool, metadata cache.Cache) error {
	if err := index(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	for _, k := range []kind{
		{gvk: v1alpha1.ProviderConfigGroupVersionKind, object: &v1alpha1.ProviderConfig{}, list: &v1alpha1.ProviderConfigList{}},
		{gvk: v1alpha1.ClusterProviderConfigGroupVersionKind, object: &v1alpha1.ClusterProviderConfig{}, list: &v1alpha1.ClusterProviderConfigList{}},
	} {
		if err := k.setup(ctx, mgr, o, pool, metadata); err != nil {
			return err
		}
	}
	return nil
}

type kind struct {
	gvk    schema.GroupVersionKind
	object client.Object
	list   client.ObjectList
}

func (k kind) setup(ctx context.Context, mgr ctrl.Manager, o controller.Options, pool *target.Pool, metadata cache.Cache) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, k.object, bySecret, secretOf); err != nil {
		return err
	}
	r := &reconciler{
		client: mgr.GetClient(),
		empty: func() client.Object {
			obj, _ := k.object.DeepCopyObject().(client.Object)
			return obj
		},
		probe:  poolProber{pool},
		record: mr.RecorderFor(mgr, k.gvk),
		now:    time.Now,
	}
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return ctrl.NewControllerManagedBy(mgr).
		Named("config/"+strings.ToLower(k.gvk.GroupKind().String())).
		WithOptions(o.ForControllerRuntime()).
		For(k.object, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		// The deleted Machine may be the last one that used a configuration.
		WatchesRawSource(source.Kind(mgr.GetCache(), &machinev1alpha1.Machine{}, handler.TypedEnqueueRequestsFromMapFunc(k.used), gone)).
		WatchesRawSource(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			pool.SubscribeInterruptions(func(ref target.Ref, _ error) {
				if ref.Kind == k.gvk.Kind && !r.isDoubted(ref) {
					queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}})
				}
			})
			return nil
		})).
		WatchesRawSource(source.Kind(metadata, secret, handler.TypedEnqueueRequestsFromMapFunc(k.usesSecret(mgr.GetClient())))).
		Complete(r)
}

var gone = predicate.TypedFuncs[*machinev1alpha1.Machine]{
	CreateFunc:  func(event.TypedCreateEvent[*machinev1alpha1.Machine]) bool { return false },
	UpdateFunc:  func(event.TypedUpdateEvent[*machinev1alpha1.Machine]) bool { return false },
	GenericFunc: func(event.TypedGenericEvent[*machinev1alpha1.Machine]) bool { return false },
}

// used maps a Machine to its configuration.
func (k kind) used(_ context.Context, m *machinev1alpha1.Machine) []reconcile.Request {
	ref := target.RefOf(m)
	if ref.Kind != k.gvk.Kind {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}}}
}

// usesSecret maps a Secret to the configurations whose kubeconfig it holds.
func (k kind) usesSecret(reader client.Reader) handler.TypedMapFunc[*metav1.PartialObjectMetadata, reconcile.Request] {
	return func(ctx context.Context, secret *metav1.PartialObjectMetadata) []reconcile.Request {
		list, ok := k.list.DeepCopyObject().(client.ObjectList)
		if !ok || reader.List(ctx, list, client.MatchingFields{bySecret: client.ObjectKeyFromObject(secret).String()}) != nil {
			return nil
		}
		var out []reconcile.Request
		_ = apimeta.EachListItem(list, func(obj runtime.Object) error {
			if o, ok := obj.(client.Object); ok {
				out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
			}
			return nil
		})
		return out
	}
}

// poolProber probes through the connections that all controllers share.
type poolProber struct{ *target.Pool }

func (p poolProber) Probe(ctx context.Context, ref target.Ref) probe {
	conn, err := p.Get(ctx, ref)
	if err != nil {
		return probe{err: err}
	}
	version, err := conn.Probe(ctx)
	out := probe{version: version, err: err}
	// A cluster that refuses to list Nodes may still answer these requests.
	if err == nil || target.Is(err, target.Unauthorized) {
		if lacking, err := conn.Lacking(ctx); err == nil {
			out.rights = &lacking
		}
		if client, err := conn.ClientCertificates(ctx); err == nil {
			out.client = &client
		}
	}
	return out
}
