package kit

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"testing"

	"github.com/drover-dev/drover/test/patience"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NodeIdentity returns a client of the cluster that authenticates like the kubelet of a Node:
// with a certificate of the cluster for system:node:NAME in the group system:nodes. Drover
// approves the certificate if the Node belongs to a Machine. Otherwise the human user does.
func (c *Cluster) NodeIdentity(t testing.TB, node string) client.Client {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}}
	csr, err := NewCSR(template, key, certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.As(t, "system:node:"+node, "system:nodes").Create(t.Context(), csr); err != nil {
		t.Fatal(err)
	}
	patience.Eventually(t, func(ctx context.Context) string { return c.certify(ctx, csr) })
	pemKey, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	return c.clientAs(t, func(cfg *rest.Config) *rest.Config {
		cfg = rest.AnonymousClientConfig(cfg)
		cfg.CertData, cfg.KeyData = csr.Status.Certificate, pemKey
		return cfg
	})
}

// certify approves a request that no other approver decided on, and waits for the certificate.
func (c *Cluster) certify(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) string {
	if err := c.Client.Get(ctx, client.ObjectKeyFromObject(csr), csr); err != nil {
		return err.Error()
	}
	if len(csr.Status.Certificate) > 0 {
		return ""
	}
	if len(csr.Status.Conditions) > 0 {
		return fmt.Sprintf("no certificate yet: %+v", csr.Status.Conditions)
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return err.Error()
	}
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err.Error()
	}
	approved := csr.DeepCopy()
	approved.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test", Message: "The test needs the identity",
	}}
	if _, err := kube.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, csr.Name, approved, metav1.UpdateOptions{}); err != nil {
		return err.Error()
	}
	return "the certificate is not signed yet"
}

// NewCSR returns a CertificateSigningRequest without creating it in a cluster.
func NewCSR(template *x509.CertificateRequest, key *ecdsa.PrivateKey, signer string, usages ...certificatesv1.KeyUsage) (*certificatesv1.CertificateSigningRequest, error) {
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		return nil, err
	}
	csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}
	csr.Spec.SignerName, csr.Spec.Usages = signer, usages
	csr.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	return csr, nil
}
