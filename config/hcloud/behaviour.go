package hcloud

import (
	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
	"github.com/hetznercloud/hcloud-go/v2/hcloud"
)

// Ready returns the condition Ready for a server's state in status.atProvider, with Terraform's
// names.
func Ready(state map[string]any) xpv1.Condition {
	s, _ := state["status"].(string)
	switch hcloud.ServerStatus(s) {
	case hcloud.ServerStatusRunning:
		return xpv1.Available()
	case hcloud.ServerStatusDeleting:
		return xpv1.Deleting()
	case hcloud.ServerStatusOff, hcloud.ServerStatusStopping, hcloud.ServerStatusRebuilding, hcloud.ServerStatusMigrating:
		// A user or the cloud did this to a server that ran. It does not end without another
		// action.
		return xpv1.Unavailable().WithMessage("status: " + s)
	default:
		return xpv1.Creating().WithMessage("status: " + s)
	}
}
