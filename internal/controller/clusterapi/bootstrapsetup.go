package clusterapi

import (
	"context"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/clusterapi/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/mr"
	"github.com/drover-dev/drover/internal/controller/providerconfig"
	"github.com/drover-dev/drover/internal/idle"
	"github.com/drover-dev/drover/internal/native"
	"github.com/drover-dev/drover/internal/operator"
)

// A connector connects Bootstraps with the cluster of their configuration.
type connector struct {
	kube  client.Client
	to    dial
	again native.Requeuer
	now   func() time.Time
	// accounts are kept until they are unused for some minutes.
	accounts *idle.Pool[*account]
}

func newConnector(kube client.Client, to dial, again native.Requeuer, now func() time.Time) *connector {
	return &connector{kube: kube, to: to, again: again, now: now, accounts: idle.NewPool(now, func(context.Context, *account) {})}
}

// Connect reads the configuration and the credentials each time, so that a change takes effect immediately. An error is
// left to the client: it is a part of the status.
func (c *connector) Connect(ctx context.Context, b *v1alpha1.Bootstrap) (managed.TypedExternalClient[*v1alpha1.Bootstrap], error) {
	x := &bootstrapper{again: c.again, now: c.now}
	if x.account, x.err = c.open(ctx, b); x.err != nil {
		x.err = fmt.Errorf("%s %q: %w", providerconfig.ClusterKind, b.GetProviderConfigReference().Name, x.err)
	}
	return x, nil
}

func (c *connector) open(ctx context.Context, b *v1alpha1.Bootstrap) (*account, error) {
	return native.Opened(ctx, c.kube, configs(), b, secretLike, c.accounts, func(pc client.Object, secret credentials) (*account, error) {
		return open(pc, secret, c.to, c.now)
	})
}

// setupBootstraps adds the controller of Bootstraps.
func setupBootstraps(mgr ctrl.Manager, o controller.Options) error {
	kind := v1alpha1.BootstrapGroupVersionKind
	again, recorder := &mr.Again{}, mr.RecorderFor(mgr, kind)
	c := newConnector(mgr.GetClient(), connect(mgr.GetConfig()), again, time.Now)
	if err := mgr.Add(c.accounts); err != nil {
		return err
	}
	operator.Gated(mgr, o, func() error {
		return mr.Controller[*v1alpha1.Bootstrap]{
			Kind: kind, Object: &v1alpha1.Bootstrap{}, List: &v1alpha1.BootstrapList{},
			Connector: c, Again: again, Recorder: recorder,
			Options: bootstrapOptions(),
		}.Setup(mgr, o)
	}, append(configs().Kinds(), kind)...)
	return nil
}

// bootstrapOptions are the options of the managed reconciler. The names of all objects follow from that of the Bootstrap,
// so that a creation can be repeated.
func bootstrapOptions() []managed.ReconcilerOption {
	return []managed.ReconcilerOption{
		managed.WithInitializers(managed.InitializerFn(mr.NameByUID)),
		managed.WithDeterministicExternalName(true),
		managed.WithCreationGracePeriod(0),
	}
}
