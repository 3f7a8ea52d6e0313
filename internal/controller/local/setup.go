// Package local has the controllers of the local cloud's managed resources.
package local

import (
	"context"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	tjcontroller "github.com/crossplane/upjet/v2/pkg/controller"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/drover-dev/drover/apis/local/v1alpha1"
	config "github.com/drover-dev/drover/config/local"
	"github.com/drover-dev/drover/internal/controller/providerconfig"
	"github.com/drover-dev/drover/internal/lift"
)

// Setup adds all controllers of the provider.
func Setup(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	pc, err := config.Provider(ctx)
	if err != nil {
		return err
	}
	if err := providerconfig.Setup(mgr, o, configs, &v1alpha1.VirtualMachineList{}); err != nil {
		return fmt.Errorf("cannot set up the controllers of provider configs: %w", err)
	}
	setupInventories(mgr, o)
	return lift.Setup(mgr, tjcontroller.Options{
		Options:               o,
		Provider:              pc,
		OperationTrackerStore: tjcontroller.NewOperationStore(o.Logger),
		SetupFn:               lift.Namespaced(terraformSetup),
	}, config.Behaviours)
}
