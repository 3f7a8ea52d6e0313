package terraform

import (
	"context"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/terraform/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/mr"
	"github.com/drover-dev/drover/internal/controller/providerconfig"
	"github.com/drover-dev/drover/internal/creation"
	"github.com/drover-dev/drover/internal/operator"
	"github.com/drover-dev/drover/internal/terraform/plugin"
)

// Options of the controller.
type Options struct {
	// Plugins is the directory of the Terraform providers.
	Plugins string
	// Namespace of the Secrets with the states.
	Namespace string
}

// Setup adds all controllers of the provider.
func (s Options) Setup(_ context.Context, mgr ctrl.Manager, o controller.Options) error {
	if err := providerconfig.Setup(mgr, o, configs, &v1alpha1.VirtualMachineList{}); err != nil {
		return fmt.Errorf("cannot set up the controller of provider configs: %w", err)
	}
	pool := plugin.NewPool(plugin.Mirror(s.Plugins), time.Now)
	if err := mgr.Add(pool); err != nil {
		return err
	}
	kind := v1alpha1.VirtualMachineGroupVersionKind
	operator.Gated(mgr, o, func() error { return s.setupVirtualMachines(mgr, o, pool) }, kind,
		configs.GroupVersion.WithKind(providerconfig.ClusterKind))
	return nil
}

func (s Options) setupVirtualMachines(mgr ctrl.Manager, o controller.Options, pool *plugin.Pool) error {
	kind := v1alpha1.VirtualMachineGroupVersionKind
	again := &mr.Again{}
	c := newConnector(mgr.GetClient(), s.Namespace, pool, again)
	return mr.Controller[*v1alpha1.VirtualMachine]{
		Kind:      kind,
		Object:    &v1alpha1.VirtualMachine{},
		List:      &v1alpha1.VirtualMachineList{},
		Connector: c,
		Again:     again,
		Recorder:  mr.RecorderFor(mgr, kind),
		Options:   c.options(mgr.GetClient()),
	}.Setup(mgr, o)
}

func newConnector(kube client.Client, namespace string, pool *plugin.Pool, again *mr.Again) *connector {
	return &connector{
		shared: &shared{
			kube: kube, store: &store{kube: kube, namespace: namespace}, again: again, now: time.Now,
			records: creation.New(managed.NewRetryingCriticalAnnotationUpdater(kube)),
		},
		resolver: &resolver{kube: kube, compiled: lru.New(bindingsKept)},
		pool:     pool,
	}
}

// options of the managed reconciler.
func (c *connector) options(kube client.Client) []managed.ReconcilerOption {
	return []managed.ReconcilerOption{
		managed.WithInitializers(managed.InitializerFn(c.findSaved), managed.InitializerFn(c.records.Initialize)),
		managed.WithCriticalAnnotationUpdater(c.records),
		managed.WithFinalizer(finalizer{Finalizer: resource.NewAPIFinalizer(kube, managed.FinalizerName), store: c.store}),
		// Calls have timeouts of their own, and a creation may take long.
		managed.WithTimeout(applyTimeout + observeTimeout),
		// A VM that is in the state and not in the cloud is lost.
		managed.WithCreationGracePeriod(0),
	}
}

// findSaved records a creation whose state was saved and whose end was not recorded, because the
// controller was killed in between.
func (c *connector) findSaved(ctx context.Context, mg resource.Managed) error {
	if meta.GetExternalName(mg) != "" || !meta.ExternalCreateIncomplete(mg) {
		return nil
	}
	r, err := c.store.load(ctx, mg)
	if err != nil || r == nil {
		return err
	}
	return c.records.Succeeded(ctx, mg, r.ExternalName)
}
