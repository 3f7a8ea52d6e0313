package approver

import (
	"net"
	"testing"

	"github.com/drover-dev/drover/internal/workernode"
)

func TestNoReportOfAVMGetsACertificateForTheAPIServer(t *testing.T) {
	for name, guest := range map[string]bool{"OfItsGuest": true, "OfItsCloud": false} {
		t.Run(name, func(t *testing.T) {
			f := twice(&machine{node: "a", joined: "a", addresses: []workernode.Address{
				{Type: "InternalIP", Address: "10.96.0.1", Guest: guest}, {Type: "Hostname", Address: "kubernetes.default.svc", Guest: guest},
			}})
			f.policy = policy{guest: prefixes("10.0.0.0/8"), servers: []string{"10.96.0.1"}}
			dns, ip := serving(), serving()
			dns.template.DNSNames, dns.template.IPAddresses = []string{"a", "kubernetes.default.svc"}, nil
			ip.template.IPAddresses = []net.IP{net.IPv4(10, 96, 0, 1)}
			for _, form := range []*form{dns, ip} {
				if v := decide(requestOf(form.csr(t, "r")), f); v.outcome != deny {
					t.Errorf("%v %v: %s: %s, want %s", form.template.DNSNames, form.template.IPAddresses, v.outcome, v.message, deny)
				}
			}
		})
	}
}

func TestOfAnAddressThatCloudAndGuestReportTheCloudCounts(t *testing.T) {
	m := &machine{addresses: []workernode.Address{
		{Address: "10.0.0.1", Guest: true}, {Address: "10.0.0.1"}, {Address: "::ffff:10.0.0.2", Guest: true}, {Address: "A.example.org"},
	}}
	for name, want := range map[string][2]bool{"10.0.0.1": {true, false}, "10.0.0.2": {true, true}, "a.example.org": {true, false}, "10.0.0.3": {}, "": {}} {
		if reported, guest := m.reports(name); reported != want[0] || guest != want[1] {
			t.Errorf("%q: reported %t, guest %t, want %v", name, reported, guest, want)
		}
	}
}
