package runtime

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	pkgv1 "github.com/crossplane/crossplane/apis/v2/pkg/v1"
	"github.com/crossplane/crossplane/apis/v2/pkg/v1beta1"

	"github.com/drover-dev/drover/cluster/internal/apply"
	"github.com/drover-dev/drover/cluster/internal/layout"
	"github.com/drover-dev/drover/cluster/internal/process"
)

const (
	firstRetry = 200 * time.Millisecond
	maxRetry   = 10 * time.Second
	// eventBuffer is the number of state changes that are held while the manager is busy or not
	// started yet.
	eventBuffer = 1024
)

// Options of the runtime.
type Options struct {
	// Config has the rights of the cluster's own controllers.
	Config *rest.Config
	Dir    layout.Dir
	Server string
	CA     []byte
	// Group is the group that the processes are added to.
	Group *process.Group
	// OnChange is called after every change of a process.
	OnChange func(process.Status)
	Log      logr.Logger
}

// Setup returns a manager that runs packages once it is started.
func Setup(o Options) (manager.Manager, error) {
	mgr, err := ctrl.NewManager(o.Config, ctrl.Options{
		Scheme:  apply.Scheme(),
		Logger:  o.Log,
		Metrics: metricsserver.Options{BindAddress: "0"},
		// Only revisions and their configurations are few enough for a cache, and watched anyway.
		// All other objects are read when they are needed.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: uncached()}},
	})
	if err != nil {
		return nil, err
	}
	functions, providers := make(chan event.GenericEvent, eventBuffer), make(chan event.GenericEvent, eventBuffer)
	run := &runner{group: o.Group, running: map[string]*running{}, ports: map[string]ports{}}
	run.onChange = func(id identity, s process.Status) {
		o.OnChange(s)
		if id.Function {
			functions <- event.GenericEvent{Object: &pkgv1.FunctionRevision{ObjectMeta: metav1.ObjectMeta{Name: id.Revision}}}
		} else {
			providers <- event.GenericEvent{Object: &pkgv1.ProviderRevision{ObjectMeta: metav1.ObjectMeta{Name: id.Revision}}}
		}
	}
	for _, k := range []struct {
		name   string
		events chan event.GenericEvent
		parent client.Object
		empty  func() pkgv1.PackageRevisionWithRuntime
		list   func() pkgv1.PackageRevisionList
	}{
		{
			"functions", functions, &pkgv1.Function{},
			func() pkgv1.PackageRevisionWithRuntime { return &pkgv1.FunctionRevision{} },
			func() pkgv1.PackageRevisionList { return &pkgv1.FunctionRevisionList{} },
		},
		{
			"providers", providers, &pkgv1.Provider{},
			func() pkgv1.PackageRevisionWithRuntime { return &pkgv1.ProviderRevision{} },
			func() pkgv1.PackageRevisionList { return &pkgv1.ProviderRevisionList{} },
		},
	} {
		r := &reconciler{
			client: mgr.GetClient(), runner: run, dir: o.Dir, server: o.Server, ca: o.CA, empty: k.empty,
			log: func(err error) { o.Log.Error(err, "cannot renew a token") },
		}
		all := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
			return requests(ctx, mgr.GetClient(), k.list())
		})
		err := ctrl.NewControllerManagedBy(mgr).
			Named(k.name).
			For(k.empty()).
			// Objects that can change how a package is run. There are few of each kind.
			Watches(k.parent, all).
			Watches(&v1beta1.DeploymentRuntimeConfig{}, all).
			Watches(&v1beta1.ImageConfig{}, all).
			WatchesRawSource(source.Channel(k.events, &handler.EnqueueRequestForObject{})).
			WithOptions(controller.Options{
				RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, maxRetry),
			}).
			Complete(r)
		if err != nil {
			return nil, fmt.Errorf("runtime of %s: %w", k.name, err)
		}
	}
	return mgr, nil
}

// requests returns a request for each revision of a kind.
func requests(ctx context.Context, c client.Client, l pkgv1.PackageRevisionList) []reconcile.Request {
	if err := c.List(ctx, l); err != nil {
		return nil
	}
	var all []reconcile.Request
	for _, r := range l.GetRevisions() {
		all = append(all, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(r)})
	}
	return all
}
