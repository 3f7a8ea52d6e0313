package azuretest

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// A VM that exists.
type VM struct {
	Name          string
	ResourceGroup string
	Tags          map[string]string
	CreatedAt     time.Time
	// ProvisioningState, such as Creating, Succeeded, Failed or Deleting. Default: Succeeded.
	ProvisioningState string
	// PowerState without its prefix, such as running or deallocated. "" if there is none, as of
	// a VM that could not be allocated.
	PowerState string
}

// Types of a [Resource], and that of a [VM].
const (
	NetworkInterface = "microsoft.network/networkinterfaces"
	PublicIPAddress  = "microsoft.network/publicipaddresses"
	Disk             = "microsoft.compute/disks"
	VirtualMachine   = "microsoft.compute/virtualmachines"
)

// A Resource that exists beside the VMs.
type Resource struct {
	Type          string
	Name          string
	ResourceGroup string
	Tags          map[string]string
	// CreatedAt of a disk. Azure has none for network interfaces and addresses.
	CreatedAt time.Time
	// ProvisioningState. Default: Succeeded.
	ProvisioningState string
	// AttachedTo is the ID of the VM, or of the address configuration, that uses the resource.
	AttachedTo string
}

// A State provides what exists at the moment. Its methods may be called concurrently.
type State interface {
	VMs() []VM
	Resources() []Resource
}

// Memory is a State that a test sets.
type Memory struct {
	mu        sync.Mutex
	vms       []VM
	resources []Resource
}

// Set replaces the VMs and resources.
func (m *Memory) Set(vms []VM, resources ...Resource) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.vms, m.resources = slices.Clone(vms), slices.Clone(resources)
}

// VMs that exist.
func (m *Memory) VMs() []VM {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.vms)
}

// Resources that exist.
func (m *Memory) Resources() []Resource {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.resources)
}

// spelling of the types in IDs.
var spelling = map[string]string{
	VirtualMachine:   "Microsoft.Compute/virtualMachines",
	NetworkInterface: "Microsoft.Network/networkInterfaces",
	PublicIPAddress:  "Microsoft.Network/publicIPAddresses",
	Disk:             "Microsoft.Compute/disks",
}

// ID of a resource of a type, in a subscription.
func ID(subscription, group, typ, name string) string {
	return "/subscriptions/" + subscription + "/resourceGroups/" + group + "/providers/" + spelling[typ] + "/" + name
}

// table resources of Resource Graph. Columns: see
// https://learn.microsoft.com/azure/governance/resource-graph/concepts/query-language and, of a
// VM's properties.extended.instanceView, the samples for virtual machines.
func (c *Cloud) table() []map[string]any {
	var rows []map[string]any
	for _, vm := range c.opts.State.VMs() {
		properties := map[string]any{"provisioningState": succeededUnless(vm.ProvisioningState), "timeCreated": timeText(vm.CreatedAt)}
		if vm.PowerState != "" {
			properties["extended"] = map[string]any{"instanceView": map[string]any{"powerState": map[string]any{
				"code": "PowerState/" + vm.PowerState, "displayStatus": "VM " + vm.PowerState, "level": "Info",
			}}}
		}
		rows = append(rows, c.row(VirtualMachine, vm.ResourceGroup, vm.Name, vm.Tags, properties))
	}
	for _, r := range c.opts.State.Resources() {
		properties := map[string]any{"provisioningState": succeededUnless(r.ProvisioningState)}
		row := c.row(r.Type, r.ResourceGroup, r.Name, r.Tags, properties)
		switch {
		case r.Type == Disk:
			properties["timeCreated"] = timeText(r.CreatedAt)
			row["managedBy"] = r.AttachedTo
		case r.AttachedTo != "" && r.Type == NetworkInterface:
			properties["virtualMachine"] = map[string]any{"id": r.AttachedTo}
		case r.AttachedTo != "":
			properties["ipConfiguration"] = map[string]any{"id": r.AttachedTo}
		}
		rows = append(rows, row)
	}
	return rows
}

func (c *Cloud) row(typ, group, name string, tags map[string]string, properties map[string]any) map[string]any {
	out := map[string]any{
		"id": ID(c.opts.Subscription, group, typ, name), "name": name, "type": typ, "resourceGroup": strings.ToLower(group),
		"subscriptionId": c.opts.Subscription, "tenantId": c.opts.Tenant, "location": "westeurope", "managedBy": "", "tags": nil, "properties": properties,
	}
	if len(tags) > 0 {
		values := map[string]any{}
		for k, v := range tags {
			values[k] = v
		}
		out["tags"] = values
	}
	return out
}

func succeededUnless(state string) string {
	if state == "" {
		return "Succeeded"
	}
	return state
}

func timeText(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format("2006-01-02T15:04:05.0000000+00:00")
}
