package cloud

import (
	"fmt"

	"github.com/drover-dev/drover/internal/localcloud"
)

// maxNetworks is the maximum number of VMs: no more addresses exist.
const maxNetworks = 1 << 14

// ip returns a VM's address, in 10.200.0.0/16 and the following networks. They do not overlap with
// the usual ranges of services and pods.
func ip(network int) string {
	n := network + 10
	return fmt.Sprintf("10.%d.%d.%d", 200+n>>16, n>>8&255, n&255)
}

// podCIDR returns the range of a VM's pods: a /24 of 100.64.0.0/10.
func podCIDR(network int) string {
	return fmt.Sprintf("100.%d.%d.0/24", 64+network>>8, network&255)
}

func addresses(r *Record) []localcloud.Address {
	return []localcloud.Address{
		{Type: localcloud.AddressInternalIP, Address: ip(r.Network)},
		{Type: localcloud.AddressHostname, Address: r.VM.Name},
	}
}

// networkFor returns the number with the address, or if it is empty the lowest number that no VM has.
func networkFor(address string, vms map[string]*Record) (int, error) {
	used := make(map[int]bool, len(vms))
	for _, r := range vms {
		used[r.Network] = true
	}
	for n := range maxNetworks {
		switch {
		case address == "" && !used[n], address == ip(n) && !used[n]:
			return n, nil
		case address == ip(n):
			return 0, localcloud.NewError(localcloud.CodeInvalidRequest, "address: %s: another VM has it", address)
		}
	}
	if address != "" {
		return 0, invalid("address", address, "one of "+ip(0)+" to "+ip(maxNetworks-1))
	}
	return 0, localcloud.NewError(localcloud.CodeCapacityExhausted, "there are no addresses left")
}
