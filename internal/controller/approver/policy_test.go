package approver

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

func TestNoCertificateHasAnAddressOrANameThatIsReserved(t *testing.T) {
	p, err := policyOf(v1alpha1.Certificates{GuestCIDRs: []v1alpha1.CIDR{"10.20.0.0/16"}, ServiceCIDRs: []v1alpha1.CIDR{"10.96.0.0/12", "fd96::/108"}},
		[]string{"API.example.org.", "192.0.2.1", "::ffff:192.0.2.2", "2001:DB8::1"})
	if err != nil {
		t.Fatal(err)
	}
	for address, reserved := range map[string]bool{
		"10.20.0.1": false, "192.0.2.3": false, "2001:db8::2": false, "fe00::1": false,
		"0.0.0.0": true, "::": true, "127.0.0.1": true, "127.1.2.3": true, "::1": true, "::ffff:127.0.0.1": true,
		"169.254.169.254": true, "fe80::1": true, "224.0.0.1": true, "ff02::1": true, "255.255.255.255": true,
		"10.96.0.1": true, "10.111.255.255": true, "10.112.0.0": false, "::ffff:10.96.0.1": true, "fd96::1": true, "fd96::1:0:0": false,
		"192.0.2.1": true, "192.0.2.2": true, "2001:db8::1": true,
	} {
		if got := p.reservesAddress(netip.MustParseAddr(address)); (got != "") != reserved {
			t.Errorf("%s: reserved %q, want %t", address, got, reserved)
		}
	}
	for name, reserved := range map[string]bool{
		"node-1": false, "ip-10-0-0-1.ec2.internal": false, "node.example.org": false, "kubernetes-x7k2p": false, "svc": false, "svc-1.example.org": false,
		"kubernetes.example.org": false, "1-2": false,
		"kubernetes": true, "Kubernetes.Default": true, "kubernetes.default.svc": true, "kubernetes.default.svc.cluster.local": true, "kubernetes.default.example.org": true,
		"etcd.kube-system.svc": true, "etcd.kube-system.svc.cluster.local": true, "etcd.kube-system.svc.": true, "x.svc": true,
		"localhost": true, "LOCALHOST": true, "a.localhost": true, "localhost.localdomain": true,
		"api.example.org": true, "Api.Example.Org": true, "api.example.org.": true,
		"*.example.org": true, "*": true, "": true, ".": true, "a b": true, "10.96.0.1": true, "fd00::1": true, "a_b": true, "a..b": true,
	} {
		if got := p.reservesName(name); (got != "") != reserved {
			t.Errorf("%q: reserved %q, want %t", name, got, reserved)
		}
	}
	for address, trusted := range map[string]bool{"10.20.255.1": true, "::ffff:10.20.0.1": true, "10.21.0.1": false, "::1": false} {
		if p.trusts(netip.MustParseAddr(address)) != trusted {
			t.Errorf("%s: want trusted %t", address, trusted)
		}
	}
}

func TestANetworkThatCannotBeReadIsNamed(t *testing.T) {
	for field, c := range map[string]v1alpha1.Certificates{
		"spec.certificates.guestCIDRs[1]":   {GuestCIDRs: []v1alpha1.CIDR{"10.0.0.0/8", "10.0.0.1"}},
		"spec.certificates.serviceCIDRs[0]": {ServiceCIDRs: []v1alpha1.CIDR{"10.0.0.1"}},
	} {
		if _, err := policyOf(c, nil); err == nil || !strings.Contains(err.Error(), field) || !strings.Contains(err.Error(), `"10.0.0.1"`) {
			t.Errorf("%s: error %v", field, err)
		}
	}
}
