package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/analysis"
	"github.com/drover-dev/drover/internal/controller/approver"
	"github.com/drover-dev/drover/internal/controller/config"
	"github.com/drover-dev/drover/internal/controller/installations"
	"github.com/drover-dev/drover/internal/controller/machine"
	"github.com/drover-dev/drover/internal/controller/machinegroup"
	"github.com/drover-dev/drover/internal/controller/nodeinventory"
	"github.com/drover-dev/drover/internal/controller/packageguard"
	"github.com/drover-dev/drover/internal/controller/terminator"
	"github.com/drover-dev/drover/internal/controller/waves"
	"github.com/drover-dev/drover/internal/metrics"
	"github.com/drover-dev/drover/internal/operator"
	"github.com/drover-dev/drover/internal/pipeline"
	"github.com/drover-dev/drover/internal/target"
)

// envFunction names the Function whose steps run in this process. The default is the Function that
// Drover's Configuration installs.
const (
	envFunction     = "DROVER_FUNCTION"
	defaultFunction = "drover-function-drover"
)

func addToScheme(s *runtime.Scheme) error {
	return errors.Join(clusterv1alpha1.AddToScheme(s), machinev1alpha1.AddToScheme(s))
}

func (f *flags) setup(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	views, err := newViews(mgr)
	if err != nil {
		return fmt.Errorf("cannot make the cache of metadata: %w", err)
	}
	networks, err := f.networks(mgr.GetConfig().Host)
	if err != nil {
		return err
	}
	pool := target.NewPool(target.Readers{
		Configs: mgr.GetClient(), Metadata: views, Live: mgr.GetAPIReader(), Self: mgr.GetConfig(),
		InjectedIdentityFor: f.InjectedIdentityFor, Networks: networks,
	})
	function := cmp.Or(os.Getenv(envFunction), defaultFunction)
	operator.Gated(mgr, o, func() error {
		// Set up the indexes before the controllers that read through them.
		if err := config.Setup(ctx, mgr, o, pool, views); err != nil {
			return err
		}
		nodes, err := machine.Setup(ctx, mgr, o, pool, machine.Options{
			Function: function, CertsDir: os.Getenv(pipeline.EnvCertsDir),
		})
		if err != nil {
			return err
		}
		if err := approver.Setup(ctx, mgr, o, pool, nodes); err != nil {
			return err
		}
		if err := machinegroup.Setup(ctx, mgr, o); err != nil {
			return err
		}
		return packageguard.Setup(ctx, mgr, o, mgr.GetCache(), function)
	},
		clusterv1alpha1.ProviderConfigGroupVersionKind,
		clusterv1alpha1.ClusterProviderConfigGroupVersionKind,
		machinev1alpha1.MachineGroupVersionKind,
		machinev1alpha1.MachineClassGroupVersionKind,
		machinev1alpha1.ClusterMachineClassGroupVersionKind,
		machinev1alpha1.MachineGroupGroupVersionKind,
	)
	// The XRDs of sets are installed by another package, which may come later.
	operator.Gated(mgr, o, func() error {
		if err := terminator.Setup(ctx, mgr, o, views); err != nil {
			return err
		}
		operator.Gated(mgr, o, func() error { return terminator.SetupPools(mgr, o, views) }, machinev1alpha1.NodePoolGroupVersionKind)
		return metrics.Setup(ctx, mgr, views)
	},
		machinev1alpha1.MachineGroupVersionKind,
		machinev1alpha1.MachineSetGroupVersionKind,
		machinev1alpha1.MachineDeploymentGroupVersionKind,
	)
	operator.Gated(mgr, o, func() error { return nodeinventory.Setup(mgr, o, pool) },
		clusterv1alpha1.ProviderConfigGroupVersionKind,
		clusterv1alpha1.ClusterProviderConfigGroupVersionKind,
		clusterv1alpha1.NodeInventoryGroupVersionKind,
	)
	operator.Gated(mgr, o, func() error { return analysis.Setup(mgr, o, pool, networks) },
		clusterv1alpha1.ProviderConfigGroupVersionKind,
		clusterv1alpha1.ClusterProviderConfigGroupVersionKind,
		machinev1alpha1.MachineGroupVersionKind,
		machinev1alpha1.RolloutAnalysisGroupVersionKind,
		machinev1alpha1.RolloutAnalysisRunGroupVersionKind,
	)
	operator.Gated(mgr, o, func() error { return waves.Setup(mgr, o) },
		machinev1alpha1.MachineDeploymentGroupVersionKind,
		machinev1alpha1.NodePoolGroupVersionKind,
		machinev1alpha1.RolloutPolicyGroupVersionKind,
		machinev1alpha1.RolloutTurnGroupVersionKind,
	)
	operator.Gated(mgr, o, func() error { return metrics.SetupOrphans(ctx, mgr, views) }, machinev1alpha1.OrphanCollectorGroupVersionKind)
	return installations.Setup(mgr, o.Logger)
}

// networks returns the networks that ProviderConfigs may connect to. host is the API server that
// this process uses.
func (f *flags) networks(host string) (out target.Networks, err error) {
	if out.Allowed, err = target.ParseNetworks("--allow-target-networks", f.AllowTargetNetworks); err != nil {
		return out, err
	}
	denied := slices.Clone(f.DenyTargetNetworks)
	for _, self := range []string{os.Getenv("KUBERNETES_SERVICE_HOST"), hostOf(host)} {
		if addr, err := netip.ParseAddr(self); err == nil {
			denied = append(denied, addr.Unmap().WithZone("").String())
		}
	}
	out.Denied, err = target.ParseNetworks("--deny-target-networks", denied)
	return out, err
}

func hostOf(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// newViews returns a cache that holds only metadata and parts of objects, because there may be very
// many Secrets.
func newViews(mgr ctrl.Manager) (cache.Cache, error) {
	s := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(s); err != nil {
		return nil, err
	}
	if err := metrics.AddToScheme(s); err != nil {
		return nil, err
	}
	views, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme: s, Mapper: mgr.GetRESTMapper(), DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		return nil, err
	}
	return views, mgr.Add(views)
}
