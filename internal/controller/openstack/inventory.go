package openstack

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	ctrl "sigs.k8s.io/controller-runtime"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/apis/openstack/v1alpha1"
	"github.com/drover-dev/drover/internal/inventory"
)

// setupInventories adds the controller of inventories.
func setupInventories(mgr ctrl.Manager, o controller.Options, p *projects) {
	inventory.Kind[*v1alpha1.VirtualMachineInventory]{
		Kind:    v1alpha1.VirtualMachineInventoryGroupVersionKind,
		Object:  &v1alpha1.VirtualMachineInventory{},
		List:    &v1alpha1.VirtualMachineInventoryList{},
		Connect: p.inventory,
	}.Setup(mgr, o)
}

func (p *projects) inventory(ctx context.Context, i *v1alpha1.VirtualMachineInventory) (inventory.Lister, error) {
	project, err := p.of(ctx, i)
	if err != nil {
		return nil, err
	}
	return lister{project}, nil
}

// lister lists the servers of a project, in all zones of its region.
type lister struct{ project *project }

// List reads all servers of the project: OpenStack cannot search by metadata.
func (l lister) List(ctx context.Context, installation string) ([]inventory.VM, bool, error) {
	found, err := l.project.servers(ctx, servers.ListOpts{})
	if err != nil {
		return nil, false, err
	}
	var vms []inventory.VM
	for _, s := range found {
		if s.Metadata[machinev1alpha1.TagInstallation] != installation || isDeleted(s) {
			continue
		}
		vms = append(vms, inventory.VM{ExternalName: s.ID, ProviderID: "openstack:///" + s.ID, Tags: s.Metadata, CreatedAt: s.Created})
	}
	return vms, true, nil
}

// isDeleted reports whether a server is gone, although Nova may still list it.
func isDeleted(s servers.Server) bool { return isDeletedStatus(s.Status) }
