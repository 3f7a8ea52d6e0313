package openstack

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
)

// consoleLines is how many lines of a server's console are requested. It is more than are shown,
// since the cause of a failure may be further up.
const consoleLines = 500

// console returns the end of a server's console output.
func (p *projects) console(ctx context.Context, mg resource.ModernManaged, id string) (string, error) {
	project, err := p.of(ctx, mg)
	if err != nil {
		return "", err
	}
	c, err := project.compute()
	if err != nil {
		return "", err
	}
	return servers.ShowConsoleOutput(ctx, c, id, servers.ShowConsoleOutputOpts{Length: consoleLines}).Extract()
}
