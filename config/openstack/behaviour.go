package openstack

import (
	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
)

// Ready reads an instance's state of status.atProvider, in Terraform's names.
func Ready(state map[string]any) xpv1.Condition {
	switch s, _ := state["power_state"].(string); s {
	case "active":
		return xpv1.Available()
	case "", "build":
		return xpv1.Creating().WithMessage("power state: " + s)
	default:
		// What somebody did to an instance that ran, or what it failed with. It does
		// not come back by waiting.
		return xpv1.Unavailable().WithMessage("power state: " + s)
	}
}
