package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

const (
	dialTimeout   = 5 * time.Second
	dialKeepAlive = 30 * time.Second
)

// Networks decide which addresses a ProviderConfig may connect to. Its kubeconfig is the input
// of a tenant, and the provider may be able to reach more than the tenant can. A
// ClusterProviderConfig, which only the platform operator writes, may connect to all.
type Networks struct {
	// Allowed networks take precedence over all denied ones.
	Allowed []netip.Prefix
	// Denied networks beside those that are always denied, such as the Services of the
	// control cluster.
	Denied []netip.Prefix
}

// alwaysDenied are networks that lead back to the provider, its host or its cloud.
var alwaysDenied = []struct {
	netip.Prefix
	what string
}{
	{netip.MustParsePrefix("127.0.0.0/8"), "a loopback address"},
	{netip.MustParsePrefix("::1/128"), "a loopback address"},
	{netip.MustParsePrefix("0.0.0.0/8"), "an unspecified address"},
	{netip.MustParsePrefix("::/128"), "an unspecified address"},
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local address"},
	{netip.MustParsePrefix("fe80::/10"), "a link-local address"},
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast address"},
	{netip.MustParsePrefix("ff00::/8"), "a multicast address"},
	{netip.MustParsePrefix("255.255.255.255/32"), "a broadcast address"},
	// Metadata services of clouds that are not link-local.
	{netip.MustParsePrefix("fd00:ec2::254/128"), "a metadata service of a cloud"},
	{netip.MustParsePrefix("100.100.100.200/32"), "a metadata service of a cloud"},
	{netip.MustParsePrefix("168.63.129.16/32"), "a metadata service of a cloud"},
	{netip.MustParsePrefix("192.0.0.192/32"), "a metadata service of a cloud"},
}

// translated are the IPv6 networks whose last four bytes are an IPv4 address that a gateway
// connects to.
var translated = []netip.Prefix{netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("::/96")}

// A deniedError is why a connection to an address is refused. It does not name the address, which may come from
// a DNS server that the tenant cannot query.
type deniedError struct{ what string }

func (e *deniedError) Error() string {
	return fmt.Sprintf("the server of the kubeconfig has %s, which a %s may not connect to; the argument --allow-target-networks of provider-drover can allow it", e.what, kindProviderConfig)
}

// check that a connection to an address may be made.
func (n Networks) check(addr netip.Addr) error {
	addr = addr.WithZone("").Unmap()
	contains := func(p netip.Prefix) bool { return p.Contains(addr) }
	if slices.ContainsFunc(n.Allowed, contains) {
		return nil
	}
	for _, d := range alwaysDenied {
		if d.Contains(addr) {
			return &deniedError{what: d.what}
		}
	}
	if slices.ContainsFunc(n.Denied, contains) {
		return &deniedError{what: "an address of a denied network"}
	}
	if slices.ContainsFunc(translated, contains) {
		b := addr.As16()
		return n.check(netip.AddrFrom4([4]byte(b[12:])))
	}
	return nil
}

// control has the signature of net.Dialer.Control. It checks the address that is dialed, so that no response
// of a DNS server can circumvent it.
func (n Networks) control(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return &deniedError{what: "an address that is no IP address"}
	}
	return n.check(ap.Addr())
}

// dialer of connections to a target cluster, limited to networks unless these are nil.
func dialer(limits *Networks) func(ctx context.Context, network, address string) (net.Conn, error) {
	d := &net.Dialer{Timeout: dialTimeout, KeepAlive: dialKeepAlive}
	if limits != nil {
		d.Control = limits.control
	}
	return d.DialContext
}

// DialContext connects to an address that the input of a tenant names, within the networks. Denied tells its errors.
func (n Networks) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return dialer(&n)(ctx, network, address)
}

// Denied returns which kind of address a connection was refused to, if networks are why the connection failed.
func Denied(err error) (what string, denied bool) {
	var d *deniedError
	if !errors.As(err, &d) {
		return "", false
	}
	return d.what, true
}

// ParseNetworks parses networks, such as 10.0.0.0/8, or single addresses. name is the argument
// that errors name.
func ParseNetworks(name string, values []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, v := range values {
		p, err := netip.ParsePrefix(v)
		if err != nil {
			addr, aerr := netip.ParseAddr(v)
			if aerr != nil || addr.Zone() != "" {
				return nil, fmt.Errorf("%s: invalid value %q: must be a network such as 10.96.0.0/12, or an address", name, v)
			}
			p = netip.PrefixFrom(addr, addr.BitLen())
		}
		if p.Addr().Is4In6() {
			return nil, fmt.Errorf("%s: invalid value %q: must be written as an IPv4 network", name, v)
		}
		out = append(out, p.Masked())
	}
	slices.SortFunc(out, func(a, b netip.Prefix) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(out), nil
}
