package hcloud

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/hetznercloud/hcloud-go/v2/hcloud"
)

// Ready reads a server's state of status.atProvider, in Terraform's names.
func Ready(state map[string]any) xpv2.Condition {
	s, _ := state["status"].(string)
	switch hcloud.ServerStatus(s) {
	case hcloud.ServerStatusRunning:
		return xpv2.Available()
	case hcloud.ServerStatusDeleting:
		return xpv2.Deleting()
	case hcloud.ServerStatusOff, hcloud.ServerStatusStopping, hcloud.ServerStatusRebuilding, hcloud.ServerStatusMigrating:
		// What somebody did to a server that ran. It does not come back by waiting.
		return xpv2.Unavailable().WithMessage("status: " + s)
	default:
		return xpv2.Creating().WithMessage("status: " + s)
	}
}
