package azure

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/inventory"
)

const resourceColumns = "name, type, tags, managedBy, provisioningState = tostring(properties.provisioningState), createdAt = tostring(properties.timeCreated), " +
	"ofMachine = tostring(properties.virtualMachine.id), ofEndpoint = tostring(properties.privateEndpoint.id), ofService = tostring(properties.privateLinkService.id), " +
	"ofConfiguration = tostring(properties.ipConfiguration.id), ofGateway = tostring(properties.natGateway.id)"

// A kind of resource beside the VMs.
type kind struct{ typ, name, read string }

var kinds = []kind{
	{"microsoft.network/networkinterfaces", "NetworkInterface", "Microsoft.Network/networkInterfaces/read"},
	{"microsoft.network/publicipaddresses", "PublicIPAddress", "Microsoft.Network/publicIPAddresses/read"},
	{"microsoft.compute/disks", "Disk", "Microsoft.Compute/disks/read"},
}

// ListResources lists the network interfaces, public IP addresses and disks of the subscription, in
// all resource groups. Resources that are being deleted are left out.
func (a *Subscription) ListResources(ctx context.Context, installation string) ([]inventory.Resource, bool, error) {
	var types, rights []string
	for _, k := range kinds {
		types, rights = append(types, k.typ), append(rights, k.read)
	}
	condition, err := tagged(types, installation)
	if err != nil {
		return nil, false, err
	}
	rows, complete, err := a.rows(ctx, queryFor(condition, resourceColumns))
	if err != nil || !complete {
		return nil, false, err
	}
	if err := a.RequireRights(ctx, rights...); err != nil {
		return nil, false, err
	}
	resources := make([]inventory.Resource, 0, len(rows))
	for _, r := range rows {
		i := slices.IndexFunc(kinds, func(k kind) bool { return strings.EqualFold(k.typ, r.Type) })
		if i < 0 || strings.EqualFold(r.ProvisioningState, provisioningDeleting) {
			continue
		}
		resources = append(resources, inventory.Resource{
			Type:       kinds[i].name,
			ID:         r.ID,
			Tags:       r.Tags,
			CreatedAt:  timeOf(r.CreatedAt),
			AttachedTo: cmp.Or(r.OfMachine, r.OfConfiguration, r.ManagedBy, r.OfGateway, r.OfEndpoint, r.OfService),
		})
	}
	return resources, true, nil
}
