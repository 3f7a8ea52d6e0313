package local

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/local/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/inventory"
	api "github.com/drover-dev/drover/internal/localcloud"
)

// setupInventories adds the controller of inventories.
func setupInventories(mgr ctrl.Manager, o controller.Options) {
	inventory.Kind[*v1alpha1.VirtualMachineInventory]{
		Kind:    v1alpha1.VirtualMachineInventoryGroupVersionKind,
		Object:  &v1alpha1.VirtualMachineInventory{},
		List:    &v1alpha1.VirtualMachineInventoryList{},
		Connect: connectInventory(mgr.GetClient()),
	}.Setup(mgr, o)
}

func connectInventory(c client.Reader) inventory.Connect[*v1alpha1.VirtualMachineInventory] {
	return func(ctx context.Context, i *v1alpha1.VirtualMachineInventory) (inventory.Lister, error) {
		account, err := accountOf(ctx, c, i)
		if err != nil {
			return nil, err
		}
		return lister{account}, nil
	}
}

// lister lists the VMs of an account of the local cloud.
type lister struct{ account *api.Client }

func (l lister) List(ctx context.Context, installation string) ([]inventory.VM, bool, error) {
	found, err := l.account.FindVMs(ctx, api.ListVMsOptions{Tags: map[string]string{machinev1alpha1.TagInstallation: installation}})
	if err != nil {
		return nil, false, err
	}
	vms := make([]inventory.VM, 0, len(found.Items))
	for _, vm := range found.Items {
		vms = append(vms, inventory.VM{ExternalName: vm.ID, ProviderID: vm.ProviderID, Tags: vm.Tags, CreatedAt: vm.CreatedAt})
	}
	return vms, len(found.Unreachable) == 0, nil
}
