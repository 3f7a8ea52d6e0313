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

// PortReady returns the condition Ready for a port's state. A port can be attached as soon as it exists:
// it is DOWN until an instance uses it.
func PortReady(state map[string]any) xpv2.Condition {
	if id, _ := state["id"].(string); id == "" {
		return xpv2.Creating()
	}
	return xpv2.Available()
}

// FloatingIPReady returns the condition Ready for a floating IP's state. One that leads to no port was
// disassociated: the provider does not repeat the association.
func FloatingIPReady(state map[string]any) xpv2.Condition {
	if address, _ := state["address"].(string); address == "" {
		return xpv2.Creating()
	}
	if port, _ := state["port_id"].(string); port == "" {
		return xpv2.Unavailable().WithMessage("the floating IP leads to no port")
	}
	return xpv2.Available()
}
