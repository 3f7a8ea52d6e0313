package approver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"net/url"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/internal/workernode"
)

// A form is a CertificateSigningRequest that is still to be made.
type form struct {
	template x509.CertificateRequest
	spec     certificatesv1.CertificateSigningRequestSpec
}

func kubelet(signer, node string, usages ...certificatesv1.KeyUsage) *form {
	return &form{
		template: x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}},
		spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: signer, Username: "system:node:" + node, Groups: []string{"system:nodes", "system:authenticated"}, Usages: usages,
		},
	}
}

// serving is what the kubelet of the Node a asks for.
func serving() *form {
	f := kubelet(certificatesv1.KubeletServingSignerName, "a", certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth)
	f.template.DNSNames, f.template.IPAddresses = []string{"a"}, []net.IP{net.IPv4(10, 0, 0, 1)}
	return f
}

// renewal of the client certificate of the Node a.
func renewal() *form {
	return kubelet(certificatesv1.KubeAPIServerClientKubeletSignerName, "a", certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth)
}

// join is what the bootstrap token of the machine a asks for.
func join() *form {
	f := renewal()
	f.spec.Username, f.spec.Groups = "system:bootstrap:abcdef", []string{"system:bootstrappers", "system:authenticated"}
	return f
}

// of another Node instead of a.
func (f *form) of(node string) *form {
	f.template.Subject.CommonName = "system:node:" + node
	if f.spec.Username == "system:node:a" {
		f.spec.Username = "system:node:" + node
	}
	if len(f.template.DNSNames) > 0 {
		f.template.DNSNames = []string{node}
	}
	return f
}

func (f *form) csr(t *testing.T, name string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &f.template, key)
	if err != nil {
		t.Fatal(err)
	}
	csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: f.spec}
	if csr.Spec.Request == nil {
		csr.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	}
	return csr
}

// aMachine has joined as the Node of its name.
func aMachine(node, address string) *machine {
	return &machine{node: node, joined: node, addresses: []workernode.Address{
		{Type: "InternalIP", Address: address}, {Type: "ExternalIP", Address: "fd00:0::1"}, {Type: "InternalDNS", Address: node + ".Example.org"},
	}}
}

func deletingMachine() *machine {
	m := aMachine("a", "10.0.0.1")
	m.deleting = true
	return m
}

func TestDecide(t *testing.T) {
	a, b := aMachine("a", "10.0.0.1"), aMachine("b", "10.0.0.2")
	itself := facts{requestor: a, subject: a}
	cases := map[string]struct {
		form  *form
		edit  func(*form)
		facts facts
		want  outcome
		says  string
	}{
		"ANodesOwnNameAndAddressesAreApproved": {form: serving(), facts: itself, want: approve},
		"SoAreAllThatTheCloudTellsOf": {form: serving(), edit: func(f *form) {
			f.template.DNSNames, f.template.IPAddresses = []string{"A.example.org", "a"}, []net.IP{net.ParseIP("fd00::1"), net.ParseIP("10.0.0.1")}
		}, facts: itself, want: approve},
		"AnRSAKeyNeedsOneUsageMore": {form: serving(), edit: func(f *form) { f.spec.Usages = append(f.spec.Usages, certificatesv1.UsageKeyEncipherment) }, facts: itself, want: approve},

		"ANameOfAnotherMachineIsDenied": {form: serving(), edit: func(f *form) { f.template.Subject.CommonName = "system:node:b" }, facts: facts{requestor: a, subject: b}, want: deny, says: `"system:node:b"`},
		"ANameOfAStrangersNodeToo":      {form: serving(), edit: func(f *form) { f.template.Subject.CommonName = "system:node:x" }, facts: facts{requestor: a}, want: deny, says: `"system:node:x"`},
		"ANameOfNoNodeToo":              {form: serving(), edit: func(f *form) { f.template.Subject.CommonName = "kubernetes" }, facts: facts{requestor: a}, want: deny, says: `"kubernetes"`},
		"AnotherMachinesDNSName":        {form: serving(), edit: func(f *form) { f.template.DNSNames = []string{"b"} }, facts: itself, want: deny, says: "DNS name b"},
		"AnExtraDNSName":                {form: serving(), edit: func(f *form) { f.template.DNSNames = []string{"a", "kubernetes.default.svc"} }, facts: itself, want: deny, says: "DNS name kubernetes.default.svc"},
		"AWildcard":                     {form: serving(), edit: func(f *form) { f.template.DNSNames = []string{"*.example.org"} }, facts: itself, want: deny, says: "*.example.org"},
		"AnExtraIPAddress": {form: serving(), edit: func(f *form) { f.template.IPAddresses = append(f.template.IPAddresses, net.IPv4(10, 0, 0, 2)) },
			facts: itself, want: deny, says: "IP address 10.0.0.2"},
		"AnEMailAddress":          {form: serving(), edit: func(f *form) { f.template.EmailAddresses = []string{"a@example.org"} }, facts: itself, want: deny, says: "a@example.org"},
		"AURI":                    {form: serving(), edit: func(f *form) { f.template.URIs = []*url.URL{{Scheme: "spiffe", Host: "a"}} }, facts: itself, want: deny, says: "spiffe://a"},
		"NoNameAtAll":             {form: serving(), edit: func(f *form) { f.template.DNSNames, f.template.IPAddresses = nil, nil }, facts: itself, want: deny, says: "no name"},
		"AWrongGroup":             {form: serving(), edit: func(f *form) { f.spec.Groups = []string{"system:authenticated"} }, facts: itself, want: deny, says: "not in the group system:nodes"},
		"AWrongOrganization":      {form: serving(), edit: func(f *form) { f.template.Subject.Organization = []string{"system:masters"} }, facts: itself, want: deny, says: `"system:masters"`},
		"AnExtraOrganization":     {form: serving(), edit: func(f *form) { f.template.Subject.Organization = []string{"system:nodes", "system:masters"} }, facts: itself, want: deny, says: `"system:masters"`},
		"ALongerSubject":          {form: serving(), edit: func(f *form) { f.template.Subject.Country = []string{"XX"} }, facts: itself, want: deny, says: "C=XX"},
		"UsageOfAClient":          {form: serving(), edit: func(f *form) { f.spec.Usages = append(f.spec.Usages, certificatesv1.UsageClientAuth) }, facts: itself, want: deny, says: "client auth"},
		"UsageOfAnAuthority":      {form: serving(), edit: func(f *form) { f.spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageCertSign} }, facts: itself, want: deny, says: "cert sign"},
		"WhatIsNoRequest":         {form: serving(), edit: func(f *form) { f.spec.Request = []byte("-----BEGIN NONSENSE-----") }, facts: facts{requestor: a}, want: deny, says: "PEM"},
		"APersonInTheNameOfANode": {form: serving(), edit: func(f *form) { f.spec.Username, f.spec.Groups = "eve", []string{"system:authenticated"} }, facts: facts{subject: a}, want: deny, says: "eve asks"},
		"AnotherNodeInItsName":    {form: serving(), edit: func(f *form) { f.spec.Username = "system:node:b" }, facts: facts{requestor: b, subject: a}, want: deny, says: "system:node:b asks"},
		"ATokenInTheNameOfANode": {form: serving(), edit: func(f *form) {
			f.spec.Username, f.spec.Groups = "system:bootstrap:abcdef", []string{"system:bootstrappers"}
		},
			facts: facts{subject: a, token: a}, want: deny, says: "system:bootstrap:abcdef asks"},
		"ANodeThatIsNotTheMachines": {form: serving(), facts: facts{requestor: &machine{node: "a", joined: "other"}, subject: &machine{node: "a", joined: "other"}}, want: deny, says: "Node is other"},

		"AStrangersNodeIsLeftAlone":               {form: serving(), want: leave},
		"AStrangersMalformedOneToo":               {form: serving(), edit: func(f *form) { f.spec.Request = []byte("?") }, want: leave},
		"AnotherSignerIsLeftAlone":                {form: serving(), edit: func(f *form) { f.spec.SignerName = "example.org/signer" }, facts: itself, want: leave},
		"ANodeThatIsNotKnownYetWaits":             {form: serving(), facts: facts{requestor: &machine{node: "a"}, subject: &machine{node: "a"}}, want: wait, says: "not been found"},
		"AMachineThatIsNotReconciledYetIsRetried": {form: serving(), facts: facts{requestor: &machine{node: "a", unobserved: true}, subject: &machine{node: "a", unobserved: true}}, want: retry, says: "not been reconciled"},
		"ButAForeignNameIsDeniedAtOnce":           {form: serving(), edit: func(f *form) { f.template.Subject.CommonName = "system:node:x" }, facts: facts{requestor: &machine{node: "a", unobserved: true}}, want: deny, says: `"system:node:x"`},
		"AMachineThatIsDeletedStillServes":        {form: serving(), facts: facts{requestor: deletingMachine(), subject: deletingMachine()}, want: approve},
		"AddressesThatAreNotKnownYetWait":         {form: serving(), facts: facts{requestor: &machine{node: "a", joined: "a"}, subject: &machine{node: "a", joined: "a"}}, want: wait, says: "no address"},

		"ATokenMayBecomeItsMachinesNode":   {form: join(), facts: facts{token: &machine{node: "a"}}, want: approve},
		"ButNoOther":                       {form: join(), edit: func(f *form) { f.template.Subject.CommonName = "system:node:b" }, facts: facts{token: &machine{node: "a"}, subject: b}, want: deny, says: "must be system:node:a"},
		"NorAnAdministrator":               {form: join(), edit: func(f *form) { f.template.Subject.Organization = []string{"system:masters"} }, facts: facts{token: &machine{node: "a"}}, want: deny, says: "system:masters"},
		"NorItTwice":                       {form: join(), facts: facts{token: a, subject: a}, want: deny, says: "joined already"},
		"NorOnceItsMachineIsDeleted":       {form: join(), facts: facts{token: &machine{node: "a", deleting: true}}, want: deny, says: "being deleted"},
		"NorBeforeItsMachineIsReconciled":  {form: join(), facts: facts{token: &machine{node: "a", unobserved: true}}, want: retry, says: "not been reconciled"},
		"ARenewalNeedsNoReconcile":         {form: renewal(), facts: facts{requestor: &machine{node: "a", unobserved: true}}, want: approve},
		"NorTheMachineToStay":              {form: renewal(), facts: facts{requestor: deletingMachine()}, want: approve},
		"NorWithAName":                     {form: join(), edit: func(f *form) { f.template.DNSNames = []string{"a"} }, facts: facts{token: &machine{node: "a"}}, want: deny, says: "[a]"},
		"NorToServe":                       {form: join(), edit: func(f *form) { f.spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageServerAuth} }, facts: facts{token: &machine{node: "a"}}, want: deny, says: "server auth"},
		"NorWithoutTheGroupOfTokens":       {form: join(), edit: func(f *form) { f.spec.Groups = nil }, facts: facts{token: &machine{node: "a"}}, want: deny, says: "system:bootstrappers"},
		"ATokenOfOthersIsLeftAlone":        {form: join(), want: leave},
		"AlsoForANodeOfOurs":               {form: join(), facts: facts{subject: a}, want: leave},
		"ANodeMayRenewItsCertificate":      {form: renewal(), facts: itself, want: approve},
		"ButForNoOther":                    {form: renewal(), edit: func(f *form) { f.template.Subject.CommonName = "system:node:b" }, facts: facts{requestor: a, subject: b}, want: deny, says: "must be system:node:a"},
		"NorOutsideTheGroupOfNodes":        {form: renewal(), edit: func(f *form) { f.spec.Groups = nil }, facts: itself, want: deny, says: "system:nodes"},
		"AMalformedRenewalOfOursIsDenied":  {form: renewal(), edit: func(f *form) { f.spec.Request = []byte("?") }, facts: facts{requestor: a}, want: deny, says: "PEM"},
		"AStrangersRenewalIsLeftAlone":     {form: renewal(), want: leave},
		"AnAdministratorsRequestIsLeftToo": {form: renewal(), edit: func(f *form) { f.spec.Username = "admin" }, facts: facts{subject: a}, want: leave},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.edit != nil {
				tc.edit(tc.form)
			}
			v := decide(requestOf(tc.form.csr(t, "r")), tc.facts)
			if v.outcome != tc.want || !strings.Contains(v.message, tc.says) {
				t.Errorf("%s: %s, want %s that says %q", v.outcome, v.message, tc.want, tc.says)
			}
		})
	}
}

func TestARequestMustBeSignedWithItsKey(t *testing.T) {
	csr := serving().csr(t, "r")
	block, _ := pem.Decode(csr.Spec.Request)
	block.Bytes[len(block.Bytes)-1] ^= 1
	csr.Spec.Request = pem.EncodeToMemory(block)
	m := aMachine("a", "10.0.0.1")
	if v := decide(requestOf(csr), facts{requestor: m, subject: m}); v.outcome != deny {
		t.Errorf("%+v", v)
	}
}
