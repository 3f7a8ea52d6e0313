package nutanix

import (
	"context"
	"net/url"
	"strings"
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/inventory"
	"github.com/drover-dev/drover/internal/native"
)

// listingFor is how long a list of VMs is used: inventories and searches at the same time share one list.
const listingFor = 2 * time.Second

// listed are the fields of a VM in a list.
const listed = "extId,name,description,powerState,createTime"

// listVMs lists all VMs that the user may read. The list is not older than since. The second value is false if a
// VM may be missing.
func (a *account) listVMs(ctx context.Context, since time.Time) ([]machine, bool, error) {
	return a.vms.Get(ctx, a.now, since, listingFor, func() ([]machine, bool, error) {
		vms, complete, err := list(ctx, a.client, pathVMs, url.Values{"$select": {listed}}, func(m machine) string { return m.ExtID })
		return vms, complete, classify("cannot list VMs", err)
	})
}

// findByName returns the VM with the external name among the VMs with a name, or nil.
func (a *account) findByName(ctx context.Context, name, externalName string) (*machine, error) {
	query := url.Values{"$filter": {"name eq " + quote(name)}}
	vms, _, err := list(ctx, a.client, pathVMs, query, func(m machine) string { return m.ExtID })
	if err != nil {
		return nil, classify("cannot search for the VM", err)
	}
	return pick(vms, externalName), nil
}

// pick returns the VM with the external name, or nil.
func pick(vms []machine, externalName string) *machine {
	for i := range vms {
		if name, _ := native.ReadNotes(vms[i].Description); strings.EqualFold(name, externalName) {
			return &vms[i]
		}
	}
	return nil
}

// List lists the VMs of an installation by their descriptions.
func (a *account) List(ctx context.Context, installation string) ([]inventory.VM, bool, error) {
	vms, complete, err := a.listVMs(ctx, time.Time{})
	if err != nil {
		return nil, false, err
	}
	var out []inventory.VM
	for _, m := range vms {
		name, attributes := native.ReadNotes(m.Description)
		if name != "" && attributes[machinev1alpha1.TagInstallation] == installation {
			out = append(out, asListed(m, name, attributes))
		}
	}
	return out, complete, nil
}

// Find finds VMs by their external names, which are in the description or are the UUIDs of the VMs.
func (a *account) Find(ctx context.Context, externalNames []string) ([]inventory.VM, bool, error) {
	vms, complete, err := a.listVMs(ctx, time.Time{})
	if err != nil {
		return nil, false, err
	}
	wanted := map[string]string{}
	for _, n := range externalNames {
		wanted[strings.ToLower(n)] = n
	}
	var out []inventory.VM
	for _, m := range vms {
		name, attributes := native.ReadNotes(m.Description)
		for _, key := range []string{strings.ToLower(name), strings.ToLower(m.ExtID)} {
			if n, ok := wanted[key]; ok && key != "" {
				out = append(out, asListed(m, n, attributes))
				break
			}
		}
	}
	return out, complete, nil
}

func asListed(m machine, externalName string, attributes map[string]string) inventory.VM {
	vm := inventory.VM{
		ExternalName: externalName, ProviderID: providerID(m.ExtID), Name: m.Name, Tags: attributes, CreatedAt: m.CreateTime,
		StateText: m.PowerState,
	}
	switch m.PowerState {
	case powerOn:
		vm.State = inventory.StateRunning
	case powerOff, powerPaused:
		vm.State = inventory.StateStopped
	}
	return vm
}
