package hcloud

import (
	"context"
	"fmt"
	"strconv"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/reboot"
)

// reboot requests a reboot of a server, or starts one that is off: Hetzner Cloud sends the request of a soft reboot by ACPI,
// which a server without power does not receive.
func (p *projects) reboot(ctx context.Context, mg resource.ModernManaged, name string, mode machinev1alpha1.RebootMode) error {
	id, err := strconv.ParseInt(name, 10, 64)
	if err != nil {
		return fmt.Errorf("the external name %q is not the ID of a server", name)
	}
	project, err := p.of(ctx, mg)
	if err != nil {
		return err
	}
	s, _, err := project.Server.GetByID(ctx, id)
	switch {
	case err != nil:
		return fmt.Errorf("cannot read the server: %w", hcloud.StabilizeError(err))
	case s == nil:
		return fmt.Errorf("server %d no longer exists", id)
	}
	// The client's own repetitions include calls whose response was lost, which may have rebooted the server.
	servers := project.newClient(project.transport, 0).Server
	request := servers.Reboot
	switch {
	case s.Status == hcloud.ServerStatusOff:
		request = servers.Poweron
	case mode == machinev1alpha1.RebootHard:
		request = servers.Reset
	}
	action, _, err := request(ctx, s)
	// Another action locks the server, such as a backup or the last reboot.
	isBusy := hcloud.IsError(err, hcloud.ErrorCodeConflict, hcloud.ErrorCodeLocked)
	if err == nil {
		err = action.Error()
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("cannot reboot the server: %w", hcloud.StabilizeError(err))
	if isBusy {
		return reboot.Busy(err)
	}
	return err
}
