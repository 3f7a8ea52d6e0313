package vcd

import (
	"context"
	"strings"
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/inventory"
)

// listingFor is how long a list of VMs is used: inventories and searches at the same time share one list.
const listingFor = 2 * time.Second

// tags are the metadata of a VM that name its Machine.
var tags = []string{
	machinev1alpha1.TagInstallation, machinev1alpha1.TagCluster, machinev1alpha1.TagNamespace, machinev1alpha1.TagMachine, machinev1alpha1.TagMachineUID,
}

// listed returns the fields of a VM in a query.
func listed() []string {
	out := []string{"name", "description", "status", "dateCreated", "vdc"}
	for _, t := range tags {
		out = append(out, "metadata:"+t)
	}
	return out
}

// queryVMs returns the VMs that meet the conditions, without those of templates.
func (a *account) queryVMs(ctx context.Context, filters ...filter) ([]record, bool, error) {
	filters = append([]filter{{"isVAppTemplate", "false"}}, filters...)
	return query(ctx, a.client, "vm", filters, listed(), func(r *records) []record { return r.VMs }, func(r record) string { return r.HREF })
}

// listVMs lists all VMs that the user may read. The list is not older than since. The second value is false if a VM may be
// missing.
func (a *account) listVMs(ctx context.Context, since time.Time) ([]record, bool, error) {
	return a.vms.Get(ctx, a.now, since, listingFor, func() ([]record, bool, error) {
		vms, complete, err := a.queryVMs(ctx)
		return vms, complete, classify("cannot list VMs", err)
	})
}

// findByName returns the VMs with a name whose description has the external name.
func (a *account) findByName(ctx context.Context, name, externalName string) ([]record, error) {
	all, _, err := a.queryVMs(ctx, filter{"name", name})
	if err != nil {
		return nil, classify("cannot search for the VM", err)
	}
	return described(all, externalName), nil
}

// described returns the VMs whose description has the external name.
func described(all []record, externalName string) []record {
	var out []record
	for _, r := range all {
		if name, _ := readDescription(r.Description); name != "" && strings.EqualFold(name, externalName) {
			out = append(out, r)
		}
	}
	return out
}

// tagsOf returns the metadata of a VM. A VM whose creation was interrupted has none yet: its description has the
// installation.
func tagsOf(r record) map[string]string {
	out := map[string]string{}
	for _, e := range r.Metadata.Entries {
		out[e.Key] = e.Value.Value
	}
	if _, installation := readDescription(r.Description); installation != "" && out[machinev1alpha1.TagInstallation] == "" {
		out[machinev1alpha1.TagInstallation] = installation
	}
	return out
}

// List lists the VMs of an installation by their descriptions and metadata.
func (a *account) List(ctx context.Context, installation string) ([]inventory.VM, bool, error) {
	vms, complete, err := a.listVMs(ctx, time.Time{})
	if err != nil {
		return nil, false, err
	}
	var out []inventory.VM
	for _, r := range vms {
		name, _ := readDescription(r.Description)
		if tags := tagsOf(r); name != "" && tags[machinev1alpha1.TagInstallation] == installation {
			out = append(out, asListed(r, name, tags))
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
	for _, r := range vms {
		name, _ := readDescription(r.Description)
		for _, key := range []string{strings.ToLower(name), r.uuid()} {
			if n, ok := wanted[key]; ok && key != "" {
				out = append(out, asListed(r, n, tagsOf(r)))
				break
			}
		}
	}
	return out, complete, nil
}

func asListed(r record, externalName string, tags map[string]string) inventory.VM {
	vm := inventory.VM{ExternalName: externalName, ProviderID: providerID(r.uuid()), Name: r.Name, Tags: tags, StateText: r.Status}
	if t, err := time.Parse(time.RFC3339, r.Created); err == nil {
		vm.CreatedAt = t
	}
	switch r.Status {
	case statusText[statusPoweredOn]:
		vm.State = inventory.StateRunning
	case statusText[statusPoweredOff], statusText[statusSuspended], statusText[statusPartlyOff]:
		vm.State = inventory.StateStopped
	}
	return vm
}
