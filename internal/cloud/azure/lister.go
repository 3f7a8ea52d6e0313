package azure

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/drover-dev/drover/internal/inventory"
)

const (
	typeVM = "microsoft.compute/virtualmachines"
	// ReadVM is the right to read VMs.
	ReadVM = "Microsoft.Compute/virtualMachines/read"

	vmColumns = "name, tags, provisioningState = tostring(properties.provisioningState), powerState = tostring(properties.extended.instanceView.powerState.code), createdAt = tostring(properties.timeCreated)"
)

// Provisioning states of a resource, in lower case.
const (
	provisioningCreating = "creating"
	provisioningFailed   = "failed"
	provisioningDeleting = "deleting"
)

// List lists the VMs of the subscription, in all resource groups. A VM that is being deleted is
// left out.
func (a *Subscription) List(ctx context.Context, installation string) ([]inventory.VM, bool, error) {
	condition, err := tagged([]string{typeVM}, installation)
	if err != nil {
		return nil, false, err
	}
	vms, complete, err := a.vms(ctx, condition)
	if err != nil || !complete {
		return nil, false, err
	}
	if err := unique(vms); err != nil {
		return nil, false, err
	}
	return vms, true, nil
}

// vmName matches the name of a VM. No such text needs to be escaped in a query.
var vmName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// perQuery is how many names one query has.
const perQuery = 200

// Find returns the VMs with these names, regardless of their tags, in all resource groups. Several
// VMs can have one name. A text that cannot be the name of a VM is left out.
func (a *Subscription) Find(ctx context.Context, externalNames []string) ([]inventory.VM, bool, error) {
	names := slices.DeleteFunc(slices.Clone(externalNames), func(n string) bool { return !vmName.MatchString(n) })
	var all []inventory.VM
	for part := range slices.Chunk(names, perQuery) {
		vms, complete, err := a.vms(ctx, fmt.Sprintf("type in~ ('%s') and name in~ (%s)", typeVM, quoted(part)))
		if err != nil || !complete {
			return nil, false, err
		}
		all = append(all, vms...)
	}
	return all, true, nil
}

func (a *Subscription) vms(ctx context.Context, condition string) ([]inventory.VM, bool, error) {
	rows, complete, err := a.rows(ctx, queryFor(condition, vmColumns))
	if err != nil || !complete {
		return nil, false, err
	}
	if err := a.RequireRights(ctx, ReadVM); err != nil {
		return nil, false, err
	}
	vms := make([]inventory.VM, 0, len(rows))
	for _, r := range rows {
		if strings.EqualFold(r.ProvisioningState, provisioningDeleting) {
			continue
		}
		id := strings.Split(r.ID, "/")
		if len(id) != idParts || r.Name == "" {
			return nil, false, fmt.Errorf("cannot read the answer of Azure Resource Graph: %q is not the ID of a VM", r.ID)
		}
		vms = append(vms, asListed(r, id))
	}
	return vms, true, nil
}

// unique returns an error if two VMs have one name, in two resource groups. A managed resource
// has only the name: it is not known which VM it claims, and an orphan could be deleted in place
// of the other VM. In Azure, upper and lower case of a name are the same.
func unique(vms []inventory.VM) error {
	ids := make(map[string]string, len(vms))
	for _, vm := range vms {
		name := strings.ToLower(vm.ExternalName)
		if other, ok := ids[name]; ok {
			return fmt.Errorf("%s and %s have the same name, by which their managed resources find them: nothing is concluded until one of them is deleted or loses its tags", other, vm.ProviderID)
		}
		ids[name] = vm.ProviderID
	}
	return nil
}

// idParts of /subscriptions/x/resourceGroups/y/providers/Microsoft.Compute/virtualMachines/z.
const idParts = 9

// ProviderID returns the providerID of a VM as the cloud-controller-manager writes it, in whatever case the subscription and
// the resource group are given.
func ProviderID(subscription, group, name string) string {
	return "azure:///subscriptions/" + strings.ToLower(subscription) + "/resourceGroups/" + strings.ToLower(group) + "/providers/Microsoft.Compute/virtualMachines/" + name
}

// asListed has the providerID as machine-upjet-azure.yaml and the cloud-controller-manager write it,
// whatever case Resource Graph writes the ID in. The external name is the VM's name.
func asListed(r row, id []string) inventory.VM {
	vm := inventory.VM{
		ExternalName: r.Name,
		ProviderID:   ProviderID(id[2], id[4], r.Name),
		Tags:         r.Tags,
		CreatedAt:    timeOf(r.CreatedAt),
	}
	vm.State, vm.StateText = StateOf(r.ProvisioningState, r.PowerState)
	return vm
}

// timeOf is zero if the text is empty or is not understood.
func timeOf(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return t
}

// StateOf returns the state of a VM. If its allocation failed, the provisioning state is Failed and
// the VM is not powered on. If only an update failed, such as that of an extension, the
// provisioning state is Failed too, and the VM runs.
func StateOf(provisioning, power string) (inventory.State, string) {
	power = strings.TrimPrefix(power, "PowerState/")
	text := "provisioning state " + cmp.Or(provisioning, "unknown") + ", power state " + cmp.Or(power, "unknown")
	state := powerStates[strings.ToLower(power)]
	switch provisioning := strings.ToLower(provisioning); {
	case provisioning == provisioningFailed && state != inventory.StateRunning && state != inventory.StatePending:
		state = inventory.StateFailed
	case provisioning == provisioningCreating && state == inventory.StateUnknown:
		state = inventory.StatePending
	}
	return state, text
}

// powerStates: see https://learn.microsoft.com/azure/virtual-machines/states-billing.
var powerStates = map[string]inventory.State{
	"starting":     inventory.StatePending,
	"running":      inventory.StateRunning,
	"stopping":     inventory.StateStopped,
	"stopped":      inventory.StateStopped,
	"deallocating": inventory.StateStopped,
	"deallocated":  inventory.StateStopped,
	"hibernating":  inventory.StateStopped,
	"hibernated":   inventory.StateStopped,
}
