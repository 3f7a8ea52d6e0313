package azure

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	cloudazure "github.com/drover-dev/drover/internal/cloud/azure"
	"github.com/drover-dev/drover/internal/inventory"
)

// List lists the VMs of an installation by their tag, in all resource groups.
func (a *account) List(ctx context.Context, installation string) ([]inventory.VM, bool, error) {
	return a.selected(ctx, func(m machine) bool {
		for k, v := range m.Tags {
			if strings.EqualFold(k, machinev1alpha1.TagInstallation) {
				return ptr.Deref(v, "") == installation
			}
		}
		return false
	})
}

// Find returns the VMs with the external names.
func (a *account) Find(ctx context.Context, externalNames []string) ([]inventory.VM, bool, error) {
	return a.selected(ctx, func(m machine) bool { return slices.Contains(externalNames, tagOf(m.Tags)) })
}

// selected returns the VMs with the tag of the provider for which is returns true. Azure omits VMs that the identity may not
// read, so that the list is complete only with the right at the subscription itself.
func (a *account) selected(ctx context.Context, is func(machine) bool) ([]inventory.VM, bool, error) {
	all, err := a.listed(ctx, time.Time{}, changingFor)
	if err != nil {
		return nil, false, err
	}
	if err := a.api.subscription.RequireRights(ctx, cloudazure.ReadVM); err != nil {
		return nil, false, classify("cannot read the rights", err)
	}
	var out []inventory.VM
	for _, m := range all {
		if tagOf(m.Tags) != "" && m.provisioning() != provisioningDeleting && is(m) {
			out = append(out, a.asListed(m))
		}
	}
	return out, true, nil
}

// asListed returns a VM as an inventory lists it.
func (a *account) asListed(m machine) inventory.VM {
	n := m.name()
	vm := inventory.VM{ExternalName: tagOf(m.Tags), ProviderID: a.providerID(n), Name: n.name, Tags: textsOf(m.Tags)}
	if m.Properties != nil {
		vm.CreatedAt = ptr.Deref(m.Properties.TimeCreated, time.Time{})
	}
	vm.State, vm.StateText = cloudazure.StateOf(m.provisioning(), m.power)
	return vm
}

// ListResources lists the network interfaces, public IP addresses and disks of an installation.
func (a *account) ListResources(ctx context.Context, installation string) ([]inventory.Resource, bool, error) {
	out, complete, err := a.api.subscription.ListResources(ctx, installation)
	if err != nil {
		return nil, false, classify("cannot list the network interfaces, public IP addresses and disks", err)
	}
	for _, r := range out {
		delete(r.Tags, tagVM)
	}
	return out, complete, nil
}
