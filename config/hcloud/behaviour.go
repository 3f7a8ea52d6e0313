package hcloud

import (
	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
	"github.com/hetznercloud/hcloud-go/v2/hcloud"
)

// Ready reads a server's state of status.atProvider, in Terraform's names.
func Ready(state map[string]any) xpv1.Condition {
	s, _ := state["status"].(string)
	switch hcloud.ServerStatus(s) {
	case hcloud.ServerStatusRunning:
		return xpv1.Available()
	case hcloud.ServerStatusDeleting:
		return xpv1.Deleting()
	case hcloud.ServerStatusOff, hcloud.ServerStatusStopping, hcloud.ServerStatusRebuilding, hcloud.ServerStatusMigrating:
		// What somebody did to a server that ran. It does not come back by waiting.
		return xpv1.Unavailable().WithMessage("status: " + s)
	default:
		return xpv1.Creating().WithMessage("status: " + s)
	}
}
