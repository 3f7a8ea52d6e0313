package kubelet

import (
	"context"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/kubernetes"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/certificate"
	"k8s.io/client-go/util/certificate/csr"
	"k8s.io/client-go/util/keyutil"
)

// signingTimeout is how long a kubelet waits for a certificate before it requests another one with
// a new key.
const signingTimeout = 15 * time.Minute

// errNotSigned means that a request exists and will never be signed.
var errNotSigned = errors.New("was not signed")

// certificateKind is one of the two certificates of a kubelet.
type certificateKind struct {
	signer   string
	dnsNames []string
	ips      []net.IP
	usages   func(key any) []certificatesv1.KeyUsage
	pair     func(*State) *KeyPair
}

func (k *kubelet) clientCertificate() certificateKind {
	return certificateKind{
		signer: certificatesv1.KubeAPIServerClientKubeletSignerName,
		usages: certificate.DefaultKubeletClientGetUsages,
		pair:   func(s *State) *KeyPair { return &s.Client },
	}
}

func (k *kubelet) servingCertificate() certificateKind {
	return certificateKind{
		signer:   certificatesv1.KubeletServingSignerName,
		dnsNames: []string{k.NodeName}, ips: []net.IP{net.ParseIP(k.IP)},
		usages: certificate.DefaultKubeletServingGetUsages,
		pair:   func(s *State) *KeyPair { return &s.Serving },
	}
}

// sign requests a certificate for a key from the cluster, and waits for it. A second call with the
// same key waits for the same request.
func (k *kubelet) sign(ctx context.Context, client kubernetes.Interface, c certificateKind, pem []byte) ([]byte, error) {
	key, err := keyutil.ParsePrivateKeyPEM(pem)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	name, err := requestName(key)
	if err != nil {
		return nil, err
	}
	subject := &pkix.Name{Organization: []string{"system:nodes"}, CommonName: "system:node:" + k.NodeName}
	request, err := certutil.MakeCSR(key, subject, c.dnsNames, c.ips)
	if err != nil {
		return nil, fmt.Errorf("make certificate request: %w", err)
	}
	name, uid, err := csr.RequestCertificateWithContext(ctx, client, request, name, c.signer, nil, c.usages(key), key)
	if err != nil {
		return nil, err
	}
	k.host.Console("kubelet: waits for certificate signing request %s", name)
	wait, cancel := context.WithTimeout(ctx, signingTimeout)
	defer cancel()
	cert, err := csr.WaitForCertificate(wait, client, name, uid)
	if err != nil {
		return nil, fmt.Errorf("certificate signing request %s %w: %w", name, errNotSigned, err)
	}
	return cert, nil
}

func requestName(key any) (string, error) {
	signer, ok := key.(crypto.Signer)
	if !ok {
		return "", fmt.Errorf("key of type %T cannot sign", key)
	}
	public, err := x509.MarshalPKIXPublicKey(signer.Public())
	if err != nil {
		return "", fmt.Errorf("read public key: %w", err)
	}
	sum := sha256.Sum256(public)
	return "node-csr-" + hex.EncodeToString(sum[:]), nil
}
