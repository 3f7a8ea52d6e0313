package openstack

import (
	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
)

// Ready returns the condition Ready for an instance's state in status.atProvider, with Terraform's
// names.
func Ready(state map[string]any) xpv1.Condition {
	switch s, _ := state["power_state"].(string); s {
	case "active":
		return xpv1.Available()
	case "", "build":
		return xpv1.Creating().WithMessage("power state: " + s)
	default:
		// A user did this to an instance that ran, or the instance failed. It does not end without
		// another action.
		return xpv1.Unavailable().WithMessage("power state: " + s)
	}
}
