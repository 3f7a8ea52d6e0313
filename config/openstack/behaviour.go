package openstack

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// Ready reads an instance's state of status.atProvider, in Terraform's names.
func Ready(state map[string]any) xpv2.Condition {
	switch s, _ := state["power_state"].(string); s {
	case "active":
		return xpv2.Available()
	case "", "build":
		return xpv2.Creating().WithMessage("power state: " + s)
	default:
		// What somebody did to an instance that ran, or what it failed with. It does
		// not come back by waiting.
		return xpv2.Unavailable().WithMessage("power state: " + s)
	}
}
