package proxmox

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	nativev1alpha1 "github.com/drover-dev/drover/apis/native/v1alpha1"
)

// interfaces are the network interfaces that the guest agent reports.
type interfaces struct {
	Result []struct {
		MAC       string `json:"hardware-address"`
		Addresses []struct {
			Address string `json:"ip-address"`
		} `json:"ip-addresses"`
	} `json:"result"`
}

// addresses returns the addresses that the guest agent reports, or nil if it does not respond. They prove
// nothing: a compromised guest can report any address.
func (a *account) addresses(ctx context.Context, node string, vmid int64, macs []string) []nativev1alpha1.Address {
	var i interfaces
	if a.client.Get(ctx, fmt.Sprintf("/nodes/%s/qemu/%d/agent/network-get-interfaces", node, vmid), &i) != nil {
		return nil
	}
	return i.of(macs)
}

// of returns the addresses of the network cards with the MAC addresses. It omits bridges and tunnels in the
// guest.
func (i interfaces) of(macs []string) []nativev1alpha1.Address {
	var out []nativev1alpha1.Address
	for _, r := range i.Result {
		if !slices.Contains(macs, strings.ToLower(r.MAC)) {
			continue
		}
		for _, text := range r.Addresses {
			a, err := netip.ParseAddr(text.Address)
			if err != nil || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsUnspecified() || a.IsMulticast() {
				continue
			}
			address := nativev1alpha1.Address{Type: nativev1alpha1.AddressInternal, Address: a.Unmap().WithZone("").String()}
			if !slices.Contains(out, address) {
				out = append(out, address)
			}
		}
	}
	return out
}
