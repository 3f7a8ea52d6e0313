package jointoken

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

func TestEndpointComesFromTheFirstSourceThatHasIt(t *testing.T) {
	published, self := endpoint{"https://cluster", []byte("cluster")}, endpoint{"https://self", []byte("self")}
	for name, tc := range map[string]struct {
		reason     string
		configured endpoint
		published  endpoint
		want       endpoint
	}{
		"Configuration": {"The configuration comes first.", endpoint{"https://conf", []byte("conf")}, published, endpoint{"https://conf", []byte("conf")}},
		"Halves":        {"Each half has its own source.", endpoint{server: "https://conf"}, published, endpoint{"https://conf", []byte("cluster")}},
		"ClusterInfo":   {"The cluster comes second.", endpoint{}, published, published},
		"Self":          {"The connection of this process comes last.", endpoint{}, endpoint{}, self},
		"NoCA":          {"A cluster may publish a server alone.", endpoint{}, endpoint{server: "https://cluster"}, endpoint{"https://cluster", []byte("self")}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := firstOf(tc.configured, tc.published, self); got.server != tc.want.server || string(got.ca) != string(tc.want.ca) {
				t.Errorf("%s\nwant %+v, got %+v", tc.reason, tc.want, got)
			}
		})
	}
}

func TestAnEndpointThatIsNoURLIsNamed(t *testing.T) {
	for server, ok := range map[string]bool{
		"https://10.0.0.1:6443": true, "https://[fd00::1]:6443": true, "https://api.example.org/k8s/a": true,
		"": false, "10.0.0.1:6443": false, "https://": false, `https://a" b`: false, `https://a\b`: false,
	} {
		err := endpoint{server: server, ca: []byte("ca")}.check()
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "spec.apiServer.endpoint") {
			t.Errorf("%q: %v", server, err)
		}
	}
}

func TestABadConfigurationIsNamedAndNothingIsMinted(t *testing.T) {
	cases := map[string]struct {
		change func(*Cluster)
		want   []string
	}{
		"ABundleThatIsNoPEM": {
			func(c *Cluster) { c.APIServer = &clusterv1alpha1.APIServer{CABundle: []byte("x")} },
			[]string{"spec.apiServer.caBundle", "PEM"},
		},
		"ABundleThatIsEncodedTwice": {
			func(c *Cluster) {
				c.APIServer = &clusterv1alpha1.APIServer{CABundle: []byte(base64.StdEncoding.EncodeToString(certificate(t)))}
			},
			[]string{"spec.apiServer.caBundle", "is encoded twice"},
		},
		"AnEndpointThatIsNoURL": {
			func(c *Cluster) { c.APIServer = &clusterv1alpha1.APIServer{Endpoint: "10.0.0.1"} },
			[]string{"spec.apiServer.endpoint", `"10.0.0.1"`, "URL"},
		},
		"NoCAAtAll":       {func(c *Cluster) { c.CA = nil }, []string{"spec.apiServer.caBundle", "required"}},
		"NoEndpointAtAll": {func(c *Cluster) { c.Host = "" }, []string{"spec.apiServer.endpoint", "required"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			tc.change(&f.cluster)
			_, err := f.tryApply()
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
			if f.token() != nil || f.secret() != nil {
				t.Error("something was written")
			}
		})
	}
}

func TestClusterInfo(t *testing.T) {
	const kubeadm = `
apiVersion: v1
kind: Config
clusters: [{name: "", cluster: {server: "https://10.0.0.1:6443", certificate-authority-data: Y2E=}}]
`
	got, err := parseClusterInfo(kubeadm)
	if err != nil || got.server != "https://10.0.0.1:6443" || string(got.ca) != "ca" {
		t.Errorf("as kubeadm writes it: %+v, error %v", got, err)
	}
	if got, err := parseClusterInfo(""); err != nil || got.server != "" {
		t.Errorf("an empty one: %+v, error %v", got, err)
	}

	f := newFixture(t)
	f.must(f.target.Tracker().Add(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: "cluster-info"}, Data: map[string]string{"kubeconfig": kubeadm},
	}))
	f.apply()
	if got := string(f.secret().Data["server"]); got != "https://10.0.0.1:6443" {
		t.Errorf("published: %s", got)
	}
}

func TestClusterInfoIsNotReadIfTheConfigurationHasAll(t *testing.T) {
	f := newFixture(t)
	// A block without a certificate is none.
	f.cluster.APIServer = &clusterv1alpha1.APIServer{Endpoint: "https://conf", CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})}
	if _, err := f.tryApply(); err == nil || !strings.Contains(err.Error(), "caBundle") {
		t.Errorf("error %v", err)
	}
	f.calls = nil
	f.cluster.APIServer.CABundle = certificate(t)
	f.apply()
	f.expectCalls("control get", "target create secret", "control create")
}

// certificate that is valid, as PEM.
func certificate(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
