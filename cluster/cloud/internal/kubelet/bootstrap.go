package kubelet

import (
	"context"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/kubernetes"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/certificate"
	"k8s.io/client-go/util/certificate/csr"
	"k8s.io/client-go/util/keyutil"
)

// signingTimeout is how long a kubelet waits for its certificate before it asks
// again with another key.
const signingTimeout = 15 * time.Minute

func subject(nodeName string) pkix.Name {
	return pkix.Name{Organization: []string{"system:nodes"}, CommonName: "system:node:" + nodeName}
}

// bootstrap gets the client certificate with the bootstrap token. The key is
// kept before it is used, and names the request, so that a kubelet that is
// interrupted takes up the request that it made.
func (k *kubelet) bootstrap(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(k.Bootstrap)
	if err != nil {
		return err
	}
	if len(k.saved().Client.Key) == 0 {
		pem, err := keyutil.MakeEllipticPrivateKeyPEM()
		if err != nil {
			return fmt.Errorf("make key: %w", err)
		}
		if err := k.save(func(s *State) { s.Client.Key = pem }); err != nil {
			return err
		}
	}
	key, err := keyutil.ParsePrivateKeyPEM(k.saved().Client.Key)
	if err != nil {
		return fmt.Errorf("read key: %w", err)
	}
	name, err := requestName(key)
	if err != nil {
		return err
	}
	sub := subject(k.NodeName)
	request, err := certutil.MakeCSR(key, &sub, nil, nil)
	if err != nil {
		return fmt.Errorf("make certificate request: %w", err)
	}
	name, uid, err := csr.RequestCertificateWithContext(ctx, client, request, name,
		certificatesv1.KubeAPIServerClientKubeletSignerName, nil, certificate.DefaultKubeletClientGetUsages(key), key)
	if err != nil {
		return err
	}
	k.host.Console("kubelet: waits for certificate signing request %s", name)
	waitCtx, cancel := context.WithTimeout(ctx, signingTimeout)
	defer cancel()
	cert, err := csr.WaitForCertificate(waitCtx, client, name, uid)
	if err != nil {
		if ctx.Err() == nil {
			// Denied, failed or forgotten: it will never be signed.
			if err := k.save(func(s *State) { s.Client.Key = nil }); err != nil {
				return err
			}
		}
		return fmt.Errorf("certificate signing request %s: %w", name, err)
	}
	if err := k.save(func(s *State) { s.Client.Certificate = cert }); err != nil {
		return err
	}
	k.host.Console("kubelet: got its client certificate as system:node:%s", k.NodeName)
	return nil
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
