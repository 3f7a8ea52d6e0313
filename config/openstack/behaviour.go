package openstack

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// Ready returns the condition Ready for an instance's state in status.atProvider, with Terraform's
// names.
func Ready(state map[string]any) xpv2.Condition {
	switch s, _ := state["power_state"].(string); s {
	case "active":
		return xpv2.Available()
	case "", "build":
		return xpv2.Creating().WithMessage("power state: " + s)
	default:
		// A user did this to an instance that ran, or the instance failed. It does not end without
		// another action.
		return xpv2.Unavailable().WithMessage("power state: " + s)
	}
}
