package target

import (
	"crypto/x509"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

func TestTheNamesOfTheAPIServerAreThoseOfItsCertificate(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"gitVersion": "v1.35.4"}`))
	}))
	defer s.Close()
	l, err := newLink(&rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, nil, newShared(), time.Now, observer{})
	if err != nil {
		t.Fatal(err)
	}
	c := &Conn{Host: s.URL, link: l, Spec: v1alpha1.ProviderConfigSpec{APIServer: &v1alpha1.APIServer{Endpoint: "https://api.example.org:6443"}}}
	if got, want := c.ServerNames(), []string{"127.0.0.1", "api.example.org"}; !slices.Equal(got, want) {
		t.Errorf("before a call: %v, want %v", got, want)
	}
	for range 2 {
		if _, err := l.kube.Discovery().ServerVersion(); err != nil {
			t.Fatal(err)
		}
	}
	got := c.ServerNames()
	for _, name := range append(s.Certificate().DNSNames, "::1") {
		if !slices.Contains(got, name) {
			t.Errorf("%s of the certificate is not in %v", name, got)
		}
	}
	if len(l.server.certificates) != 1 {
		t.Errorf("%d certificates after two calls", len(l.server.certificates))
	}
}

func TestCertificatesOfManyAPIServersAreBounded(t *testing.T) {
	s := &serverNames{}
	for i := range maxServerCertificates + 5 {
		s.remember(&x509.Certificate{Raw: big.NewInt(int64(i + 1)).Bytes(), IPAddresses: []net.IP{net.IPv4(192, 0, 2, byte(i))}})
	}
	if got := s.all(); len(got) != maxServerCertificates || got[0] != "192.0.2.20" || slices.Contains(got, "192.0.2.4") {
		t.Errorf("%v, want the last %d", got, maxServerCertificates)
	}
}

func TestTheHostOfAnAPIServer(t *testing.T) {
	for text, want := range map[string]string{
		"https://10.0.0.1:6443": "10.0.0.1", "https://[fd00::1]:6443/k8s": "fd00::1", "https://api.example.org": "api.example.org",
		"10.0.0.1:6443": "10.0.0.1", "api.example.org:443": "api.example.org", "api.example.org": "api.example.org", "": "",
	} {
		if got := hostOf(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestConfigurationsThatShareAnAPIServer(t *testing.T) {
	a, b, other := ClusterRef("a"), NamespacedRef("ns", "b"), ClusterRef("other")
	p := &Pool{links: map[string]*link{
		"1": {host: "https://one", users: map[Ref]time.Time{a: {}}},
		"2": {host: "https://one", users: map[Ref]time.Time{b: {}}},
		"3": {host: "https://two", users: map[Ref]time.Time{other: {}}},
	}}
	got := p.Sharing(&Conn{Ref: a, Host: "https://one"})
	if len(got) != 2 || !slices.Contains(got, a) || !slices.Contains(got, b) {
		t.Errorf("%v, want those of both credentials", got)
	}
	if got := p.Sharing(&Conn{Ref: other, Host: "https://three"}); !slices.Equal(got, []Ref{other}) {
		t.Errorf("%v, want itself", got)
	}
}
