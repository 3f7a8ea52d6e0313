package hcloud

import (
	"context"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/hetznercloud/hcloud-go/v2/hcloud"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/drover-dev/drover/apis/hcloud/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/inventory"
)

// perPage is the largest page that Hetzner Cloud returns.
const perPage = 50

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

// lister lists the servers of a project, in all locations.
type lister struct{ project *project }

func (l lister) List(ctx context.Context, installation string) ([]inventory.VM, bool, error) {
	found, err := l.project.Server.AllWithOpts(ctx, hcloud.ServerListOpts{ListOpts: hcloud.ListOpts{
		PerPage: perPage, LabelSelector: machinev1alpha1.TagInstallation + "=" + installation,
	}})
	if err != nil {
		return nil, false, err
	}
	vms := make([]inventory.VM, 0, len(found))
	for _, s := range found {
		if s.Status == hcloud.ServerStatusDeleting {
			continue
		}
		id := fmt.Sprint(s.ID)
		vms = append(vms, inventory.VM{ExternalName: id, ProviderID: "hcloud://" + id, Tags: s.Labels, CreatedAt: s.Created})
	}
	return vms, true, nil
}

// ListResources lists the placement groups that Drover created. One without servers is in use by nothing.
func (l lister) ListResources(ctx context.Context, installation string) ([]inventory.Resource, bool, error) {
	found, err := l.project.PlacementGroup.AllWithOpts(ctx, hcloud.PlacementGroupListOpts{ListOpts: hcloud.ListOpts{
		PerPage: perPage, LabelSelector: machinev1alpha1.TagInstallation + "=" + installation + "," + labelGroupPrefix,
	}})
	if err != nil {
		return nil, false, err
	}
	out := make([]inventory.Resource, 0, len(found))
	for _, g := range found {
		r := inventory.Resource{Type: "PlacementGroup", ID: fmt.Sprint(g.ID), Tags: g.Labels, CreatedAt: g.Created}
		if len(g.Servers) > 0 {
			r.AttachedTo = fmt.Sprint(g.Servers[0])
		}
		out = append(out, r)
	}
	return out, true, nil
}
