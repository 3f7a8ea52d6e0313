package certs

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

func parse(t *testing.T, b []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(b)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func TestIssuedCertificatesVerifyForTheirUseOnly(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ca, err := NewAuthority("ca", now)
	if err != nil {
		t.Fatal(err)
	}
	server, err := ca.Server("s", []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}, now)
	if err != nil {
		t.Fatal(err)
	}
	client, err := ca.Client("c", []string{"group"}, nil, now)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.Cert)
	for _, tc := range []struct {
		name  string
		pair  Pair
		usage x509.ExtKeyUsage
		host  string
		ok    bool
	}{
		{"ServerServesItsAddress", server, x509.ExtKeyUsageServerAuth, "127.0.0.1", true},
		{"ServerDoesNotServeAnother", server, x509.ExtKeyUsageServerAuth, "127.0.0.2", false},
		{"ServerIsNoClient", server, x509.ExtKeyUsageClientAuth, "", false},
		{"ClientIsAClient", client, x509.ExtKeyUsageClientAuth, "", true},
		{"ClientIsNoServer", client, x509.ExtKeyUsageServerAuth, "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := parse(t, tc.pair.Cert).Verify(x509.VerifyOptions{
				Roots: roots, DNSName: tc.host, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{tc.usage},
			})
			if (err == nil) != tc.ok {
				t.Errorf("verified: %v, want %v (%v)", err == nil, tc.ok, err)
			}
		})
	}
	if got := parse(t, client.Cert).Subject.Organization; len(got) != 1 || got[0] != "group" {
		t.Errorf("groups: got %v", got)
	}
}

// Crossplane's own authority has an RSA key.
func TestAnRSAAuthoritySigns(t *testing.T) {
	now := time.Now()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now, NotAfter: now.Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := LoadAuthority(Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
	})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.Server("s", []string{"localhost"}, nil, now)
	if err != nil {
		t.Fatal(err)
	}
	if err := parse(t, pair.Cert).CheckSignatureFrom(parse(t, ca.Cert)); err != nil {
		t.Error(err)
	}
}

func TestAnAuthorityThatIsNotPEMIsAnError(t *testing.T) {
	if _, err := LoadAuthority(Pair{Cert: []byte("x"), Key: []byte("y")}); err == nil {
		t.Error("no error")
	}
}
