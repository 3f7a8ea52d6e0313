package conformance

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"net"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// foreign is an address that no VM has.
const foreign = "10.99.99.99"

// dualStack writes all addresses of the VM to the Node, as a cloud-controller-manager may.
func dualStack(t *testing.T, _ Cloud, l *life) {
	w, n := l.world, l.world.node(t, l.machine)
	w.await(t, l.machine, func(m *machinev1alpha1.Machine) string {
		if v4, v6 := count(ipsOf(m)); v6 == 0 || v4 == 0 || v4+v6 < 2 {
			return fmt.Sprintf("it has %d IPv4 and %d IPv6 addresses", v4, v6)
		}
		return ""
	})
	all := ipsOf(l.machine)
	var addresses []corev1.NodeAddress
	for _, a := range l.machine.Status.Addresses {
		addresses = append(addresses, corev1.NodeAddress{Type: corev1.NodeAddressType(a.Type), Address: a.Address})
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"addresses": addresses}})
	must(t, err)
	w.PatchStatusIn(t, w.Cluster, n, string(patch))
	t.Logf("the Node has %v", all)

	if c := w.decided(t, n.Name, all); c.Type != certificatesv1.CertificateApproved {
		t.Errorf("no certificate for all addresses of the VM: %s: %s", c.Reason, c.Message)
	}
	if c := w.decided(t, n.Name, append(all, net.ParseIP(foreign))); c.Type != certificatesv1.CertificateDenied {
		t.Errorf("a certificate for %s is not denied: %s %s: %s", foreign, c.Type, c.Reason, c.Message)
	} else {
		t.Log(c.Message)
	}
	w.Throughout(t, func(ctx context.Context) string {
		if err := w.Client.Get(ctx, key(l.machine), l.machine); err != nil {
			return err.Error()
		}
		return isRunning(l.machine)
	})
}

func ipsOf(m *machinev1alpha1.Machine) []net.IP {
	var out []net.IP
	for _, a := range m.Status.Addresses {
		if ip := net.ParseIP(a.Address); ip != nil {
			out = append(out, ip)
		}
	}
	return out
}

func count(ips []net.IP) (v4, v6 int) {
	for _, ip := range ips {
		if ip.To4() != nil {
			v4++
		} else {
			v6++
		}
	}
	return v4, v6
}

// decided requests a serving certificate as the kubelet of a Node does, and returns the condition
// by which the request is approved or denied.
func (w *world) decided(t *testing.T, node string, ips []net.IP) certificatesv1.CertificateSigningRequestCondition {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	user := "system:node:" + node
	csr, err := kit.NewCSR(&x509.CertificateRequest{
		Subject: pkix.Name{CommonName: user, Organization: []string{"system:nodes"}}, DNSNames: []string{node}, IPAddresses: ips,
	}, k, certificatesv1.KubeletServingSignerName, certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth)
	must(t, err)
	must(t, w.Cluster.As(t, user, "system:nodes").Create(t.Context(), csr))
	patience.Eventually(t, func(ctx context.Context) string {
		if err := w.Cluster.Client.Get(ctx, key(csr), csr); err != nil || len(csr.Status.Conditions) == 0 {
			return fmt.Sprintf("request %s for %v is not decided on: %v", csr.Name, ips, err)
		}
		return ""
	})
	return csr.Status.Conditions[0]
}
