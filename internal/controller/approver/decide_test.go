package approver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/internal/workernode"
)

// A form is a CertificateSigningRequest under construction.
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

// serving is the request for the serving certificate of the Node a.
func serving() *form {
	f := kubelet(certificatesv1.KubeletServingSignerName, "a", certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth)
	f.template.DNSNames, f.template.IPAddresses = []string{"a"}, []net.IP{net.IPv4(10, 0, 0, 1)}
	return f
}

// renewal is the request to renew the client certificate of the Node a.
func renewal() *form {
	return kubelet(certificatesv1.KubeAPIServerClientKubeletSignerName, "a", certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth)
}

// join is the request of the bootstrap token of the machine a.
func join() *form {
	f := renewal()
	f.spec.Username, f.spec.Groups = "system:bootstrap:abcdef", []string{"system:bootstrappers", "system:authenticated"}
	return f
}

// of changes the request to another Node than a.
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

func (f *form) csr(t testing.TB, name string) *certificatesv1.CertificateSigningRequest {
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

// aMachine returns a machine that has joined as the Node of its name.
func aMachine(node, address string) *machine {
	return &machine{node: node, joined: node, addresses: []workernode.Address{
		{Type: "InternalIP", Address: address}, {Type: "ExternalIP", Address: "fd00:0::1"}, {Type: "InternalDNS", Address: node + ".Example.org"},
	}}
}

// guestFacts returns the facts of a machine whose guest reports its addresses. The given addresses
// are the cloud's, and the networks those of VMs.
func guestFacts(cloud []workernode.Address, networks ...string) facts {
	m := &machine{node: "a", joined: "a", addresses: append([]workernode.Address{
		{Type: "InternalIP", Address: "10.0.0.1", Guest: true}, {Type: "Hostname", Address: "guest.example.org", Guest: true},
	}, cloud...)}
	return withPolicy(twice(m), policy{guest: prefixes(networks...)})
}

// cloudMachine returns a machine that has joined as a Node that its cloud named.
func cloudMachine(node, address string) *machine {
	return aCloudNamed(&machine{node: node, joined: node, addresses: []workernode.Address{
		{Type: "InternalIP", Address: address}, {Type: "Hostname", Address: node},
	}})
}

func aCloudNamed(m *machine) *machine {
	m.cloudNamed = true
	return m
}

// joining makes the machine one that has not joined yet, and whose Node was to have another name.
func joining(m *machine) *machine {
	m.node, m.joined = "drovers-"+m.node, ""
	return m
}

// twice returns the facts of a machine that requests a certificate for itself.
func twice(m *machine) facts { return facts{requestor: m, subject: m} }

func withPolicy(f facts, p policy) facts {
	f.policy = p
	return f
}

func withClaim(f facts, name string, c claim) facts {
	f.claims = map[string]claim{name: c}
	return f
}

func prefixes(texts ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, s := range texts {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
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
		"SoAreAllThatTheCloudReports": {form: serving(), edit: func(f *form) {
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
		"AddressesThatAreNotKnownYetWait":         {form: serving(), facts: facts{requestor: &machine{node: "a", joined: "a"}, subject: &machine{node: "a", joined: "a"}}, want: wait, says: "not reported an address"},

		"AnAddressOfTheGuestWaitsForItsNetwork":       {form: serving(), facts: guestFacts(nil), want: wait, says: "spec.certificates.guestCIDRs"},
		"InANetworkOfVMsItIsApproved":                 {form: serving(), facts: guestFacts(nil, "10.0.0.0/24"), want: approve},
		"NotInAnotherNetwork":                         {form: serving(), facts: guestFacts(nil, "10.0.1.0/24", "fd00::/8"), want: wait, says: "10.0.0.1"},
		"WhatTheCloudReportsTooNeedsNoNetwork":        {form: serving(), facts: guestFacts([]workernode.Address{{Type: "InternalIP", Address: "10.0.0.1"}}), want: approve},
		"ANameOfTheGuestIsDenied":                     {form: serving(), edit: func(f *form) { f.template.DNSNames = []string{"guest.example.org"} }, facts: guestFacts(nil, "10.0.0.0/24"), want: deny, says: "guest.example.org"},
		"AForeignNameDecidesBeforeAGuestsAddress":     {form: serving(), edit: func(f *form) { f.template.DNSNames = []string{"b"} }, facts: guestFacts(nil), want: deny, says: "DNS name b"},
		"AnAddressOfAServiceIsDenied":                 {form: serving(), facts: withPolicy(itself, policy{services: prefixes("10.0.0.0/28")}), want: deny, says: "serviceCIDRs"},
		"AlsoOfAGuestInANetworkOfVMs":                 {form: serving(), facts: withPolicy(guestFacts(nil), policy{services: prefixes("10.0.0.0/28"), guest: prefixes("10.0.0.0/24")}), want: deny, says: "serviceCIDRs"},
		"AnAddressOfTheAPIServerIsDenied":             {form: serving(), facts: withPolicy(itself, policy{servers: []string{"10.0.0.1"}}), want: deny, says: "API server"},
		"ANameOfTheAPIServerIsDenied":                 {form: serving(), edit: func(f *form) { f.template.DNSNames = []string{"A.example.org"} }, facts: withPolicy(itself, policy{servers: []string{"a.example.org"}}), want: deny, says: "API server"},
		"AnAddressInWhichANameIsDisguisedIsDenied":    {form: serving(), edit: func(f *form) { f.template.DNSNames = []string{"10.0.0.1"} }, facts: itself, want: deny, says: "no host name"},
		"AnAddressOfAnotherMachineWaits":              {form: serving(), facts: withClaim(itself, "10.0.0.1", claim{by: "the Machine b"}), want: wait, says: "the Machine b"},
		"AGuestElsewhereTakesNoAddressAway":           {form: serving(), facts: withClaim(itself, "10.0.0.1", claim{guest: true, by: "the Machine b"}), want: approve},
		"ButOneThatOnlyAGuestReportsHere":             {form: serving(), facts: withClaim(guestFacts(nil, "10.0.0.0/24"), "10.0.0.1", claim{guest: true, by: "the Machine b"}), want: wait, says: "the Machine b"},
		"ANameOfAnotherMachineThatTheCloudReportsToo": {form: serving(), edit: func(f *form) { f.template.DNSNames = []string{"a.example.org"} }, facts: withClaim(itself, "a.example.org", claim{by: "the Machine b"}), want: wait, says: "the Machine b"},

		"ANodeThatTheCloudNamedIsApproved":        {form: serving(), facts: twice(cloudMachine("a", "10.0.0.1")), want: approve},
		"IfTheCloudReportsTheName":                {form: serving(), facts: twice(aCloudNamed(&machine{node: "a", joined: "a", addresses: []workernode.Address{{Type: "InternalIP", Address: "10.0.0.1"}}})), want: wait, says: "has not reported a as a name"},
		"AndNotItsGuest":                          {form: serving(), facts: twice(aCloudNamed(&machine{node: "a", joined: "a", addresses: []workernode.Address{{Type: "Hostname", Address: "a", Guest: true}, {Type: "InternalIP", Address: "10.0.0.1"}}})), want: wait, says: "has not reported a as a name"},
		"NotTheNodeOfAnotherThatTookItsLabel":     {form: serving(), facts: twice(&machine{node: "a", joined: "b", cloudNamed: true}), want: deny, says: "Node is b"},
		"ARenewalOfACloudsNodeIsApproved":         {form: renewal(), facts: facts{requestor: cloudMachine("a", "10.0.0.1")}, want: approve},
		"NotBeforeTheCloudReportsTheName":         {form: renewal(), facts: facts{requestor: aCloudNamed(&machine{node: "a", joined: "a"})}, want: wait, says: "has not reported a"},
		"NorBeforeTheMachineOfACloudIsReconciled": {form: renewal(), facts: facts{requestor: aCloudNamed(&machine{node: "a", unobserved: true})}, want: retry, says: "not been reconciled"},
		"ATokenMayHaveANameThatTheCloudReports":   {form: join(), facts: facts{token: joining(cloudMachine("a", "10.0.0.1"))}, want: approve},
		"ButNoOtherNameOfACloud":                  {form: join().of("control-plane"), facts: facts{token: joining(cloudMachine("a", "10.0.0.1"))}, want: deny, says: "must be of a name that the cloud reports"},
		"NorOneThatTheCloudHasNotReportedYet":     {form: join().of("ip-10-0-0-1"), facts: facts{token: aCloudNamed(&machine{node: "a"})}, want: wait, says: "it reports none"},
		"NorOneOfAnotherMachinesNode":             {form: join(), facts: withClaim(facts{token: joining(cloudMachine("a", "10.0.0.1"))}, "a", claim{by: "the Machine b"}), want: wait, says: "the Machine b"},
		"NorTheNameOfTheAPIServer": {form: join().of("kubernetes"), facts: facts{token: aCloudNamed(&machine{node: "x", addresses: []workernode.Address{{Type: "Hostname", Address: "kubernetes"}}})},
			want: deny, says: "API server"},
		"NorBeforeItIsKnownHowNodesAreNamed": {form: join().of("b"), facts: facts{token: &machine{node: "a", unnamed: true}}, want: wait, says: "not known yet"},
		"NorWhatIsNoNameOfANode":             {form: join(), edit: func(f *form) { f.template.Subject.CommonName = "kubernetes-admin" }, facts: facts{token: &machine{node: "a", unnamed: true}}, want: deny, says: "must be system:node:a"},

		"ATokenMayBecomeItsMachinesNode":   {form: join(), facts: facts{token: &machine{node: "a"}}, want: approve},
		"ButNoOther":                       {form: join(), edit: func(f *form) { f.template.Subject.CommonName = "system:node:b" }, facts: facts{token: &machine{node: "a"}, subject: b}, want: deny, says: "must be system:node:a"},
		"NorAnAdministrator":               {form: join(), edit: func(f *form) { f.template.Subject.Organization = []string{"system:masters"} }, facts: facts{token: &machine{node: "a"}}, want: deny, says: "system:masters"},
		"NorItTwice":                       {form: join(), facts: facts{token: a, subject: a}, want: deny, says: "joined already"},
		"NorWhileAnotherVMIsItsNode":       {form: join(), facts: facts{token: &machine{node: "a", taken: true}}, want: wait, says: "a VM has joined as the Node a already"},
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
