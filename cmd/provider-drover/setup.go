package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/approver"
	"github.com/drover-dev/drover/internal/controller/config"
	"github.com/drover-dev/drover/internal/controller/jointoken"
	"github.com/drover-dev/drover/internal/controller/machinegroup"
	"github.com/drover-dev/drover/internal/controller/terminator"
	"github.com/drover-dev/drover/internal/controller/workernode"
	"github.com/drover-dev/drover/internal/metrics"
	"github.com/drover-dev/drover/internal/operator"
	"github.com/drover-dev/drover/internal/target"
)

func addToScheme(s *runtime.Scheme) error {
	return errors.Join(clusterv1alpha1.AddToScheme(s), machinev1alpha1.AddToScheme(s))
}

func setup(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	views, err := newViews(mgr)
	if err != nil {
		return fmt.Errorf("cannot make the cache of metadata: %w", err)
	}
	pool := target.NewPool(target.Readers{
		Configs: mgr.GetClient(), Metadata: views, Live: mgr.GetAPIReader(), Self: mgr.GetConfig(),
	})
	operator.Gated(mgr, o, func() error {
		// First the indexes and then what reads through them.
		if err := config.Setup(ctx, mgr, o, pool, views); err != nil {
			return err
		}
		if err := workernode.Setup(ctx, mgr, o, pool); err != nil {
			return err
		}
		if err := jointoken.Setup(ctx, mgr, o, pool); err != nil {
			return err
		}
		return approver.Setup(ctx, mgr, o, pool)
	},
		clusterv1alpha1.WorkerNodeGroupVersionKind,
		clusterv1alpha1.JoinTokenGroupVersionKind,
		clusterv1alpha1.ProviderConfigGroupVersionKind,
		clusterv1alpha1.ClusterProviderConfigGroupVersionKind,
	)
	// The XRDs of Machines come with another package, and later.
	operator.Gated(mgr, o, func() error {
		if err := terminator.Setup(ctx, mgr, o, views); err != nil {
			return err
		}
		return metrics.Setup(ctx, mgr, views)
	},
		clusterv1alpha1.WorkerNodeGroupVersionKind,
		machinev1alpha1.MachineGroupVersionKind,
		machinev1alpha1.MachineSetGroupVersionKind,
		machinev1alpha1.MachineDeploymentGroupVersionKind,
	)
	operator.Gated(mgr, o, func() error { return machinegroup.Setup(ctx, mgr, o) },
		machinev1alpha1.MachineGroupGroupVersionKind,
		machinev1alpha1.MachineGroupVersionKind,
	)
	operator.Gated(mgr, o, func() error { return metrics.SetupOrphans(ctx, mgr, views) }, machinev1alpha1.OrphanCollectorGroupVersionKind)
	return nil
}

// newViews returns a cache of metadata and of parts of objects: of Secrets, Machines
// and VMs there may be very many.
func newViews(mgr ctrl.Manager) (cache.Cache, error) {
	s := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(s); err != nil {
		return nil, err
	}
	for _, add := range []func(*runtime.Scheme) error{terminator.AddToScheme, metrics.AddToScheme} {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	views, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme: s, Mapper: mgr.GetRESTMapper(), DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		return nil, err
	}
	return views, mgr.Add(views)
}
