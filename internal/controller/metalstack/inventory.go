package metalstack

import (
	"context"
	"slices"
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/inventory"
	"github.com/drover-dev/drover/internal/native"
)

// listingFor is how long a list of machines is used: inventories at the same time share one list.
const listingFor = 2 * time.Second

// listed returns all machines of the project. The metal-api returns a list without pages.
func (a *account) listed(ctx context.Context) ([]machine, error) {
	all, _, err := a.machines.Get(ctx, a.now, time.Time{}, listingFor, func() ([]machine, bool, error) {
		out, err := a.search(ctx)
		return out, true, err
	})
	return all, err
}

func asListed(m machine) inventory.VM {
	vm := inventory.VM{
		ExternalName: m.externalName(), ProviderID: m.providerID(), Name: m.Allocation.Name, Tags: m.attributes(),
		CreatedAt: m.Allocation.Created, StateText: m.text(),
	}
	delete(vm.Tags, tagVM)
	switch stateOf(m, false) {
	case native.StateRunning:
		vm.State = inventory.StateRunning
	case native.StateCreating:
		vm.State = inventory.StatePending
	default:
		vm.State = inventory.StateStopped
	}
	return vm
}

// List lists the VMs of an installation by their tags.
func (a *account) List(ctx context.Context, installation string) ([]inventory.VM, bool, error) {
	return a.listIf(ctx, func(vm inventory.VM) bool { return vm.Tags[machinev1alpha1.TagInstallation] == installation })
}

// Find finds VMs by their external names.
func (a *account) Find(ctx context.Context, names []string) ([]inventory.VM, bool, error) {
	return a.listIf(ctx, func(vm inventory.VM) bool { return slices.Contains(names, vm.ExternalName) })
}

func (a *account) listIf(ctx context.Context, wanted func(inventory.VM) bool) ([]inventory.VM, bool, error) {
	all, err := a.listed(ctx)
	if err != nil {
		return nil, false, err
	}
	var out []inventory.VM
	for _, m := range all {
		if vm := asListed(m); wanted(vm) {
			out = append(out, vm)
		}
	}
	return out, true, nil
}
