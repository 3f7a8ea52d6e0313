package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

var servingUsages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth}

// TestCertificatesOfKubelets checks that a Machine gets the certificates that it needs in a
// cluster where only Drover approves certificates. Its Node, or any user in its name, must get no
// other certificate.
func TestCertificatesOfKubelets(t *testing.T) {
	t.Parallel()
	f := plane.NewTargetFleet(t)
	everybodyMayAsk(t, f)
	md := f.Deployment("certified", 2, 1, 0)
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)
	machines, err := f.Machines(t.Context())
	if err != nil || len(machines) != 2 {
		t.Fatalf("%d Machines, %v", len(machines), err)
	}
	a, b := machines[0].Status.NodeRef.Name, machines[1].Status.NodeRef.Name
	addressOf := map[string]net.IP{}
	for _, m := range machines {
		addressOf[m.Status.NodeRef.Name] = net.ParseIP(m.Status.Addresses[0].Address)
	}

	step(t, "EachKubeletGetsItsServingCertificate", func(t *testing.T) {
		patience.Eventually(t, func(ctx context.Context) string { return servingCertificates(ctx, f, a, b) })
	})

	step(t, "WhatIsDoneWithClientCertificatesDependsOnTheRights", func(t *testing.T) {
		here := &clusterv1alpha1.ProviderConfig{}
		if err := f.Client.Get(t.Context(), client.ObjectKey{Namespace: f.Namespace, Name: machines[0].Spec.ClusterRef.Name}, here); err != nil {
			t.Fatal(err)
		}
		there := &clusterv1alpha1.ClusterProviderConfig{}
		if err := f.Client.Get(t.Context(), client.ObjectKey{Name: "default"}, there); err != nil {
			t.Fatal(err)
		}
		for _, spec := range []clusterv1alpha1.ProviderConfigSpec{here.Spec, there.Spec.ProviderConfigSpec} {
			if got := spec.Certificates.Client; got != clusterv1alpha1.ClientCertificatesAuto {
				t.Errorf("the default is %s", got)
			}
		}
		if got := here.Status.ClientCertificates; got == nil || got.Policy != clusterv1alpha1.ClientCertificatesApprove {
			t.Errorf("with the rights: %+v", got)
		}
		if got := there.Status.ClientCertificates; got == nil || got.Policy != clusterv1alpha1.ClientCertificatesIgnore || !strings.Contains(got.Message, "kubernetes.io/kube-apiserver-client-kubelet") {
			t.Errorf("without the rights: %+v", got)
		}
	})

	node := func(name string) requestor { return requestor{"system:node:" + name, []string{"system:nodes"}} }
	organization := []string{"system:nodes"}
	its := x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: "system:node:" + a, Organization: organization},
		DNSNames: []string{a}, IPAddresses: []net.IP{addressOf[a]},
	}
	cases := []struct {
		name   string
		by     requestor
		edit   func(*x509.CertificateRequest)
		usages []certificatesv1.KeyUsage
		// denied is a text of the denial and of the event, "" if the request is left alone.
		denied string
	}{
		// For a user in the group of nodes, the API server itself refuses the request.
		{"AnotherMachinesName", requestor{"system:node:" + a, nil}, func(c *x509.CertificateRequest) { c.Subject.CommonName = "system:node:" + b }, servingUsages, "system:node:" + b},
		{"AnExtraDNSName", node(a), func(c *x509.CertificateRequest) { c.DNSNames = []string{a, "kubernetes.default.svc"} }, servingUsages, "kubernetes.default.svc"},
		{"AnExtraIPAddress", node(a), func(c *x509.CertificateRequest) { c.IPAddresses = []net.IP{addressOf[a], addressOf[b]} }, servingUsages, addressOf[b].String()},
		// The first address of Services: Drover reads it from the certificate of the API server.
		{"AnAddressOfTheAPIServer", node(a), func(c *x509.CertificateRequest) { c.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 1)} }, servingUsages, "an address of the API server"},
		{"AWrongGroup", requestor{"system:node:" + a, nil}, nil, servingUsages, "group system:nodes"},
		{"AWrongOrganization", node(a), func(c *x509.CertificateRequest) { c.Subject.Organization = []string{"system:masters"} }, servingUsages, "system:masters"},
		{"WrongUsages", node(a), nil, append([]certificatesv1.KeyUsage{certificatesv1.UsageClientAuth}, servingUsages...), "client auth"},
		{"AStrangerInItsName", requestor{"eve", nil}, nil, servingUsages, "eve"},
		{"AStrangerInTheirOwnName", node("stranger"), func(c *x509.CertificateRequest) { c.Subject.CommonName = "system:node:stranger" }, servingUsages, ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			template := its
			if tc.edit != nil {
				tc.edit(&template)
			}
			csr := tc.by.asks(t, f, &template, tc.usages)
			if tc.denied == "" {
				f.Throughout(t, func(ctx context.Context) string { return undecided(ctx, f, csr) })
				return
			}
			patience.Eventually(t, func(ctx context.Context) string { return denied(ctx, f, csr, tc.denied) })
		})
	}
	t.Run("WhatIsItsOwnIsApproved", func(t *testing.T) {
		csr := node(a).asks(t, f, &its, servingUsages)
		patience.Eventually(t, func(ctx context.Context) string {
			if err := f.Cluster.Client.Get(ctx, client.ObjectKeyFromObject(csr), csr); err != nil || len(csr.Status.Certificate) == 0 {
				return fmt.Sprintf("%+v, %v", csr.Status.Conditions, err)
			}
			return ""
		})
	})
	kubectl(t, f, "delete", "md", md.Name)
	f.AwaitNothing(t)
}

// A requestor of certificates.
type requestor struct {
	user   string
	groups []string
}

func (r requestor) asks(t *testing.T, f kit.Fleet, template *x509.CertificateRequest, usages []certificatesv1.KeyUsage) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}
	csr.Spec.SignerName = certificatesv1.KubeletServingSignerName
	csr.Spec.Usages = usages
	csr.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	if err := f.Cluster.As(t, r.user, r.groups...).Create(t.Context(), csr); err != nil {
		t.Fatal(err)
	}
	return csr
}

// everybodyMayAsk lets all users request certificates, so that only approval limits them.
func everybodyMayAsk(t *testing.T, f kit.Fleet) {
	t.Helper()
	b := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: f.Namespace}}
	b.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node-bootstrapper"}
	b.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:authenticated"}}
	if err := f.Cluster.Client.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Cluster.Client.Delete(context.Background(), b) })
}

func servingCertificates(ctx context.Context, f kit.Fleet, nodes ...string) string {
	l := &certificatesv1.CertificateSigningRequestList{}
	if err := f.Cluster.Client.List(ctx, l); err != nil {
		return err.Error()
	}
	has := map[string]bool{}
	for _, csr := range l.Items {
		if csr.Spec.SignerName == certificatesv1.KubeletServingSignerName && len(csr.Status.Certificate) > 0 {
			has[csr.Spec.Username] = true
		}
	}
	for _, n := range nodes {
		if !has["system:node:"+n] {
			return "no serving certificate for " + n
		}
	}
	return ""
}

func undecided(ctx context.Context, f kit.Fleet, csr *certificatesv1.CertificateSigningRequest) string {
	if err := f.Cluster.Client.Get(ctx, client.ObjectKeyFromObject(csr), csr); err != nil || len(csr.Status.Conditions) > 0 {
		return fmt.Sprintf("%+v, %v", csr.Status.Conditions, err)
	}
	return ""
}

func denied(ctx context.Context, f kit.Fleet, csr *certificatesv1.CertificateSigningRequest, want string) string {
	if err := f.Cluster.Client.Get(ctx, client.ObjectKeyFromObject(csr), csr); err != nil {
		return err.Error()
	}
	c := csr.Status.Conditions
	if len(c) != 1 || c[0].Type != certificatesv1.CertificateDenied || !strings.Contains(c[0].Message, want) {
		return fmt.Sprintf("conditions %+v, want Denied that names %q", c, want)
	}
	l := &corev1.EventList{}
	if err := f.Client.List(ctx, l, client.InNamespace(f.Namespace)); err != nil {
		return err.Error()
	}
	for _, e := range l.Items {
		if e.Reason == "CertificateDenied" && strings.Contains(e.Message, csr.Name) && strings.Contains(e.Message, want) && e.InvolvedObject.Kind == "Machine" {
			return ""
		}
	}
	return "no event names it"
}
