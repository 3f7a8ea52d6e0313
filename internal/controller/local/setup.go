// Package local has the controllers of the local cloud's managed resources.
package local

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	tjcontroller "github.com/crossplane/upjet/v2/pkg/controller"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/local/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	config "github.com/drover-dev/drover/config/local"
	"github.com/drover-dev/drover/internal/controller/providerconfig"
	"github.com/drover-dev/drover/internal/lift"
	api "github.com/drover-dev/drover/internal/localcloud"
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
	}, behaviours(mgr.GetClient()))
}

// behaviours are those of the generated resources, with the calls that Terraform has no resource for.
func behaviours(c client.Reader) map[string]lift.Behaviour {
	out := maps.Clone(config.Behaviours)
	vm := out[config.VirtualMachine]
	vm.Reboot = func(ctx context.Context, mg resource.ModernManaged, name string, mode machinev1alpha1.RebootMode) error {
		return reboot(ctx, c, mg, name, mode)
	}
	out[config.VirtualMachine] = vm
	return out
}

// errNoSoftReboot is for a request to the operating system of a VM.
var errNoSoftReboot = errors.New("InvalidRequest: the local cloud can only cut the power of a VM")

func reboot(ctx context.Context, c client.Reader, mg resource.ModernManaged, name string, mode machinev1alpha1.RebootMode) error {
	if mode == machinev1alpha1.RebootSoft {
		return errNoSoftReboot
	}
	account, err := accountOf(ctx, c, mg)
	if err != nil {
		return err
	}
	return account.RebootVM(ctx, name)
}

func accountOf(ctx context.Context, c client.Reader, mg resource.ModernManaged) (*api.Client, error) {
	cr, err := findCredentials(ctx, c, mg)
	if err != nil {
		return nil, err
	}
	return api.NewClient(cr.Endpoint, cr.Token)
}
