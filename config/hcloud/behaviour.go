package hcloud

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/hetznercloud/hcloud-go/v2/hcloud"
)

// Ready returns the condition Ready for a server's state in status.atProvider, with Terraform's
// names.
func Ready(state map[string]any) xpv2.Condition {
	s, _ := state["status"].(string)
	switch hcloud.ServerStatus(s) {
	case hcloud.ServerStatusRunning:
		return xpv2.Available()
	case hcloud.ServerStatusDeleting:
		return xpv2.Deleting()
	case hcloud.ServerStatusOff, hcloud.ServerStatusStopping, hcloud.ServerStatusRebuilding, hcloud.ServerStatusMigrating:
		// A user or the cloud did this to a server that ran. It does not end without another
		// action.
		return xpv2.Unavailable().WithMessage("status: " + s)
	default:
		return xpv2.Creating().WithMessage("status: " + s)
	}
}
