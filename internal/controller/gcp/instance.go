package gcp

import (
	"net/netip"
	"slices"

	"google.golang.org/api/compute/v1"

	nativev1alpha1 "github.com/drover-dev/drover/apis/native/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// Statuses of instances: https://cloud.google.com/compute/docs/instances/instance-lifecycle.
const (
	statusPending        = "PENDING"
	statusProvisioning   = "PROVISIONING"
	statusStaging        = "STAGING"
	statusRunning        = "RUNNING"
	statusRepairing      = "REPAIRING"
	statusStopping       = "STOPPING"
	statusTerminated     = "TERMINATED"
	statusStopped        = "STOPPED"
	statusDeprovisioning = "DEPROVISIONING"
)

const modelSpot = "SPOT"

// textOf returns the status of an instance in the words of Compute Engine.
func textOf(i *compute.Instance) string {
	if i.StatusMessage != "" {
		return i.Status + ": " + i.StatusMessage
	}
	return i.Status
}

// stateOf returns the state of an instance. Compute Engine starts an instance that this provider created: one that is
// stopped before it ran is incomplete.
func stateOf(status string, created, finished bool) native.State {
	switch status {
	case statusRunning:
		return native.StateRunning
	case statusPending, statusProvisioning, statusStaging, statusRepairing:
		return native.StateCreating
	}
	if isStopped(status) && created && !finished {
		return native.StateIncomplete
	}
	return native.StateStopped
}

// isStopped reports whether an instance with the status can be started.
func isStopped(status string) bool { return status == statusTerminated || status == statusStopped }

// mayBePreempted reports whether the instance is one that Compute Engine may have taken back.
func mayBePreempted(i *compute.Instance) bool {
	return isSpot(i) && (isStopped(i.Status) || i.Status == statusStopping)
}

func isSpot(i *compute.Instance) bool {
	return i.Scheduling != nil && i.Scheduling.ProvisioningModel == modelSpot
}

// addresses returns the addresses that Compute Engine assigned to the instance.
func addresses(i *compute.Instance) []nativev1alpha1.Address {
	var out []nativev1alpha1.Address
	add := func(kind, text string) {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			return
		}
		address := nativev1alpha1.Address{Type: kind, Address: ip.String()}
		if !slices.Contains(out, address) {
			out = append(out, address)
		}
	}
	for _, n := range i.NetworkInterfaces {
		add(nativev1alpha1.AddressInternal, n.NetworkIP)
		add(nativev1alpha1.AddressInternal, n.Ipv6Address)
	}
	for _, n := range i.NetworkInterfaces {
		for _, c := range n.AccessConfigs {
			add(nativev1alpha1.AddressExternal, c.NatIP)
		}
		for _, c := range n.Ipv6AccessConfigs {
			add(nativev1alpha1.AddressExternal, c.ExternalIpv6)
		}
	}
	return out
}
