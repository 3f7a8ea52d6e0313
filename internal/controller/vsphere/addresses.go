package vsphere

import (
	"net/netip"
	"path"
	"slices"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/drover-dev/drover/apis/vsphere/v1alpha1"
)

// notACard is the device of an interface that the guest created itself, such as the bridge of its
// pods.
const notACard = -1

// addressesOf returns the addresses of a guest's network cards, as its tools report them. networks
// has the address types by network. The guest decides what its tools report, so the addresses prove
// nothing. The host name is omitted: no user needs it, as the VM has the name of its Node.
func addressesOf(guest *types.GuestInfo, networks []v1alpha1.Network) []v1alpha1.Address {
	if guest == nil {
		return nil
	}
	types := map[string]v1alpha1.AddressType{}
	for _, n := range networks {
		types[path.Base(n.Name)] = n.AddressType
	}
	var out []v1alpha1.Address
	add := func(a v1alpha1.Address) {
		if !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	for _, card := range guest.Net {
		if card.DeviceConfigId == notACard {
			continue
		}
		t := v1alpha1.AddressInternal
		if of := types[card.Network]; of != "" {
			t = of
		}
		for _, text := range card.IpAddress {
			a, err := netip.ParseAddr(text)
			if err != nil || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsUnspecified() || a.IsMulticast() {
				continue
			}
			add(v1alpha1.Address{Type: string(t), Address: a.Unmap().WithZone("").String()})
		}
	}
	return out
}
