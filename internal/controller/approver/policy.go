package approver

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

// A policy has the rules of a target cluster and its configuration for serving certificates.
type policy struct {
	// guest has the networks in which an address counts even if only a guest reports it.
	guest []netip.Prefix
	// services has the networks of addresses that no certificate may have.
	services []netip.Prefix
	// servers has the host names and addresses of the API server.
	servers []string
}

// policyOf returns the policy of a configuration whose API server has these names and addresses.
func policyOf(c v1alpha1.Certificates, servers []string) (policy, error) {
	out := policy{}
	for _, s := range servers {
		out.servers = append(out.servers, normalized(s))
	}
	var err error
	if out.guest, err = prefixesOf("guestCIDRs", c.GuestCIDRs); err != nil {
		return policy{}, err
	}
	out.services, err = prefixesOf("serviceCIDRs", c.ServiceCIDRs)
	return out, err
}

func prefixesOf(field string, cidrs []v1alpha1.CIDR) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for i, c := range cidrs {
		p, err := netip.ParsePrefix(string(c))
		if err != nil {
			return nil, fmt.Errorf("spec.certificates.%s[%d]: %q must be a range of IP addresses such as 10.20.0.0/16 or 2001:db8::/64", field, i, c)
		}
		out = append(out, p)
	}
	return out, nil
}

// trusts reports whether an address counts even if only a guest reports it.
func (p policy) trusts(a netip.Addr) bool { return contains(p.guest, a) }

// reservesAddress returns why no certificate may have an address, empty if one may.
func (p policy) reservesAddress(a netip.Addr) string {
	a = a.Unmap()
	switch {
	case a.IsUnspecified():
		return "the unspecified address"
	case a.IsLoopback():
		return "a loopback address"
	case a.IsLinkLocalUnicast():
		return "a link-local address"
	case a.IsMulticast(), a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "a multicast or broadcast address"
	case slices.Contains(p.servers, a.String()):
		return "an address of the API server"
	case contains(p.services, a):
		return "in spec.certificates.serviceCIDRs"
	}
	return ""
}

// reservesName returns why no certificate may have a DNS name, empty if one may.
func (p policy) reservesName(name string) string {
	name = normalized(name)
	labels := strings.Split(name, ".")
	_, err := strconv.Atoi(labels[len(labels)-1])
	switch {
	case len(validation.IsDNS1123Subdomain(name)) > 0, err == nil:
		return "no host name"
	case labels[0] == "localhost", labels[len(labels)-1] == "localhost":
		return "a name of the host itself"
	case labels[0] == "kubernetes" && (len(labels) == 1 || labels[1] == "default"):
		return "a name of the API server"
	case slices.Contains(labels[1:], "svc"):
		return "a name of a Service"
	case slices.Contains(p.servers, name):
		return "a name of the API server"
	}
	return ""
}

func contains(all []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(all, func(p netip.Prefix) bool { return p.Contains(a.Unmap()) })
}

// normalized returns the form of a name or an address that is compared.
func normalized(s string) string {
	if a, err := netip.ParseAddr(s); err == nil {
		return a.Unmap().WithZone("").String()
	}
	return strings.TrimSuffix(strings.ToLower(s), ".")
}
