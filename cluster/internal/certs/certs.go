// Package certs creates the certificates and keys of the local control plane.
package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

// Ten years, as for Crossplane's own certificates: an instance is deleted long before.
const validity = 10 * 365 * 24 * time.Hour

// A Pair is a PEM certificate and its PEM private key.
type Pair struct {
	Cert, Key []byte
}

// An Authority signs certificates.
type Authority struct {
	Pair
	cert *x509.Certificate
	key  crypto.Signer
}

// NewAuthority creates a self-signed authority.
func NewAuthority(commonName string, now time.Time) (*Authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template, err := newTemplate(pkix.Name{CommonName: commonName}, now)
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	template.DNSNames = []string{commonName}
	pair, err := sign(template, template, key, key)
	if err != nil {
		return nil, err
	}
	return LoadAuthority(pair)
}

// LoadAuthority reads an authority, its key in any of the usual PEM encodings.
func LoadAuthority(pair Pair) (*Authority, error) {
	block, _ := pem.Decode(pair.Cert)
	if block == nil {
		return nil, errors.New("authority certificate: not PEM")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("authority certificate: %w", err)
	}
	block, _ = pem.Decode(pair.Key)
	if block == nil {
		return nil, errors.New("authority key: not PEM")
	}
	key, err := parseKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("authority key: %w", err)
	}
	return &Authority{Pair: pair, cert: cert, key: key}, nil
}

// Server issues a serving certificate.
func (a *Authority) Server(commonName string, dns []string, ips []net.IP, now time.Time) (Pair, error) {
	return a.issue(pkix.Name{CommonName: commonName}, x509.ExtKeyUsageServerAuth, dns, ips, now)
}

// Client issues a client certificate. Kubernetes uses the common name as the user, and the
// organizations as its groups.
func (a *Authority) Client(commonName string, organizations, dns []string, now time.Time) (Pair, error) {
	return a.issue(pkix.Name{CommonName: commonName, Organization: organizations}, x509.ExtKeyUsageClientAuth, dns, nil, now)
}

// SigningKey creates the key pair that signs ServiceAccount tokens. Cert is the public key.
func SigningKey() (Pair, error) {
	key, err := newKey()
	if err != nil {
		return Pair{}, err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return Pair{}, err
	}
	private, err := encodeKey(key)
	return Pair{Cert: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), Key: private}, err
}

func (a *Authority) issue(name pkix.Name, usage x509.ExtKeyUsage, dns []string, ips []net.IP, now time.Time) (Pair, error) {
	key, err := newKey()
	if err != nil {
		return Pair{}, err
	}
	template, err := newTemplate(name, now)
	if err != nil {
		return Pair{}, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{usage}
	template.DNSNames = dns
	template.IPAddresses = ips
	return sign(template, a.cert, key, a.key)
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func newTemplate(name pkix.Name, now time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      name,
		// A minute earlier, for clients whose clock is slow.
		NotBefore:             now.Add(-time.Minute),
		NotAfter:              now.Add(validity),
		BasicConstraintsValid: true,
	}, nil
}

func sign(template, parent *x509.Certificate, key *ecdsa.PrivateKey, signer crypto.Signer) (Pair, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return Pair{}, err
	}
	private, err := encodeKey(key)
	return Pair{Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), Key: private}, err
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// parseKey reads SEC 1 (of this package), PKCS 1 (of Crossplane) and PKCS 8.
func parseKey(der []byte) (crypto.Signer, error) {
	if key, err := x509.ParseECPrivateKey(der); err == nil {
		return key, nil
	}
	if key, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		return key, nil
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a %T cannot sign", key)
	}
	return signer, nil
}
