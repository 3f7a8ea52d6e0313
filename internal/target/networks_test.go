package target

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestNetworksThatAProviderConfigMayReach(t *testing.T) {
	n := Networks{
		Allowed: []netip.Prefix{netip.MustParsePrefix("127.1.0.0/16"), netip.MustParsePrefix("10.96.7.0/24")},
		Denied:  []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12"), netip.MustParsePrefix("fd12::/64")},
	}
	for name, tc := range map[string]struct{ addr, err string }{
		"APublicOne":                     {addr: "192.0.2.1"},
		"APrivateOne":                    {addr: "10.0.0.1"},
		"APrivateOneOfIPv6":              {addr: "fd00::1"},
		"Loopback":                       {addr: "127.0.0.1", err: "a loopback address"},
		"AnyLoopback":                    {addr: "127.255.0.9", err: "a loopback address"},
		"LoopbackThatIsAllowed":          {addr: "127.1.2.3"},
		"LoopbackOfIPv6":                 {addr: "::1", err: "a loopback address"},
		"LoopbackInIPv6":                 {addr: "::ffff:127.0.0.1", err: "a loopback address"},
		"LoopbackByNAT64":                {addr: "64:ff9b::7f00:1", err: "a loopback address"},
		"LoopbackCompatibleWithIPv4":     {addr: "::127.0.0.1", err: "a loopback address"},
		"APublicOneByNAT64":              {addr: "64:ff9b::c000:201"},
		"TheMetadataOfClouds":            {addr: "169.254.169.254", err: "a link-local address"},
		"TheMetadataOfCloudsByNAT64":     {addr: "64:ff9b::a9fe:a9fe", err: "a link-local address"},
		"LinkLocalOfIPv6WithItsZone":     {addr: "fe80::1%eth0", err: "a link-local address"},
		"TheMetadataOfAWSByIPv6":         {addr: "fd00:ec2::254", err: "a metadata service"},
		"Unspecified":                    {addr: "0.0.0.0", err: "an unspecified address"},
		"ThisNetwork":                    {addr: "0.1.2.3", err: "an unspecified address"},
		"UnspecifiedOfIPv6":              {addr: "::", err: "an unspecified address"},
		"Multicast":                      {addr: "224.0.0.1", err: "a multicast address"},
		"MulticastOfIPv6":                {addr: "ff02::1", err: "a multicast address"},
		"Broadcast":                      {addr: "255.255.255.255", err: "a broadcast address"},
		"AServiceOfTheControlCluster":    {addr: "10.96.0.1", err: "an address of a denied network"},
		"AServiceThatIsAllowed":          {addr: "10.96.7.1"},
		"AServiceOfTheControlClusterBy6": {addr: "fd12::1", err: "an address of a denied network"},
	} {
		t.Run(name, func(t *testing.T) {
			err := n.control("tcp", net.JoinHostPort(tc.addr, "443"), nil)
			var denied *deniedError
			switch {
			case tc.err == "" && err != nil:
				t.Error(err)
			case tc.err != "" && (!errors.As(err, &denied) || !strings.Contains(err.Error(), tc.err)):
				t.Errorf("error %v, want %q", err, tc.err)
			case tc.err != "" && strings.Contains(err.Error(), tc.addr):
				t.Errorf("%q names the address, which a DNS server may have reported", err)
			}
		})
	}
}

func TestParseNetworks(t *testing.T) {
	got, err := ParseNetworks("--x", []string{"10.1.2.3/8", "192.0.2.1", "::1", "10.0.0.0/8"})
	want := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("::1/128")}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	for _, bad := range []string{"", "localhost", "10.0.0.0/33", "fe80::1%eth0", "::ffff:127.0.0.1"} {
		if _, err := ParseNetworks("--x", []string{bad}); err == nil || !strings.Contains(err.Error(), "--x: invalid value ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
