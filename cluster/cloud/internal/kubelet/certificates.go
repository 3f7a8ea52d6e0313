package kubelet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/certificate"
)

// keepCertificates renews the client certificate and keeps a serving
// certificate, as far as the kubelet is configured to, until the context ends.
func (k *kubelet) keepCertificates(ctx context.Context) error {
	var configs []*certificate.Config
	if k.RotateCertificates {
		configs = append(configs, &certificate.Config{
			SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
			Template:   &x509.CertificateRequest{Subject: subject(k.NodeName)},
			GetUsages:  certificate.DefaultKubeletClientGetUsages,
			CertificateStore: pairStore{kubelet: k, of: func(s *State) *KeyPair { return &s.Client },
				// New requests go out over new connections, with the new certificate.
				changed: k.conns.close},
		})
	}
	if k.ServingCertificate {
		configs = append(configs, &certificate.Config{
			SignerName: certificatesv1.KubeletServingSignerName,
			Template: &x509.CertificateRequest{
				Subject: subject(k.NodeName), DNSNames: []string{k.NodeName}, IPAddresses: []net.IP{net.ParseIP(k.IP)},
			},
			GetUsages:        certificate.DefaultKubeletServingGetUsages,
			CertificateStore: pairStore{kubelet: k, of: func(s *State) *KeyPair { return &s.Serving }, changed: func() {}},
		})
	}
	for _, c := range configs {
		c.Ctx = &ctx
		c.ClientsetFn = func(*tls.Certificate) (kubernetes.Interface, error) { return k.client, nil }
		m, err := certificate.NewManager(c)
		if err != nil {
			return fmt.Errorf("%s: %w", c.SignerName, err)
		}
		m.Start()
	}
	<-ctx.Done()
	return nil
}

// pairStore keeps a key pair in the kubelet's state.
type pairStore struct {
	*kubelet
	of      func(*State) *KeyPair
	changed func()
}

// Current implements certificate.Store.
func (p pairStore) Current() (*tls.Certificate, error) {
	s := p.saved()
	pair := p.of(&s)
	if len(pair.Certificate) == 0 {
		none := certificate.NoCertKeyError("no certificate yet")
		return nil, &none
	}
	return parsePair(*pair)
}

// Update implements certificate.Store.
func (p pairStore) Update(cert, key []byte) (*tls.Certificate, error) {
	pair := KeyPair{Key: key, Certificate: cert}
	parsed, err := parsePair(pair)
	if err != nil {
		return nil, err
	}
	if err := p.save(func(s *State) { *p.of(s) = pair }); err != nil {
		return nil, err
	}
	p.changed()
	return parsed, nil
}

func parsePair(p KeyPair) (*tls.Certificate, error) {
	c, err := tls.X509KeyPair(p.Certificate, p.Key)
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	return &c, nil
}
