package aws

import (
	"context"

	"github.com/drover-dev/drover/internal/inventory"
)

// List lists the instances of an installation by their tag, in all zones of the region.
func (a *account) List(ctx context.Context, installation string) ([]inventory.VM, bool, error) {
	vms, complete, err := a.lister.List(ctx, installation)
	return withoutOwnTag(vms), complete, classify("cannot list instances", err)
}

// Find returns the instances with the IDs that exist.
func (a *account) Find(ctx context.Context, externalNames []string) ([]inventory.VM, bool, error) {
	vms, complete, err := a.lister.Find(ctx, externalNames)
	return withoutOwnTag(vms), complete, classify("cannot find instances", err)
}

func withoutOwnTag(vms []inventory.VM) []inventory.VM {
	for _, vm := range vms {
		delete(vm.Tags, tagVM)
	}
	return vms
}

// ListResources lists the network interfaces, the volumes and the addresses of an installation. EC2 gives interfaces and
// volumes the tags of the instance that they were created with.
func (a *account) ListResources(ctx context.Context, installation string) ([]inventory.Resource, bool, error) {
	resources, complete, err := a.lister.ListResources(ctx, installation)
	for _, r := range resources {
		delete(r.Tags, tagVM)
	}
	return resources, complete, classify("cannot list resources", err)
}
