package approver

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/drover-dev/drover/internal/workernode"
)

var (
	someAddresses = []string{"10.0.0.1", "10.0.0.2", "10.20.0.1", "10.20.0.2", "10.96.0.1", "127.0.0.1", "192.0.2.1", "fd00::1", "169.254.169.254"}
	someNames     = []string{"a", "b", "a.example.org", "B.example.org", "kubernetes", "kubernetes.default.svc", "localhost", "api.example.org", "*.example.org", "10.0.0.1"}
	someNodes     = []string{"a", "b", "a.example.org", "kubernetes"}
)

func pick[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }

func some[T any](r *rand.Rand, of []T, most int) []T {
	var out []T
	for range r.IntN(most + 1) {
		out = append(out, pick(r, of))
	}
	return out
}

func anyMachine(r *rand.Rand) *machine {
	if r.IntN(8) == 0 {
		return nil
	}
	m := &machine{node: pick(r, someNodes), cloudNamed: r.IntN(4) == 0, unnamed: r.IntN(10) == 0, unobserved: r.IntN(10) == 0, deleting: r.IntN(5) == 0}
	if m.joined = m.node; r.IntN(4) == 0 {
		m.joined = pick(r, append(someNodes, ""))
	}
	m.taken = m.joined == "" && r.IntN(3) == 0
	for _, s := range slices.Concat(some(r, someAddresses, 3), some(r, someNames, 3)) {
		m.addresses = append(m.addresses, workernode.Address{Type: "InternalIP", Address: s, Guest: r.IntN(2) == 0})
	}
	return m
}

func anyFacts(r *rand.Rand) facts {
	f := facts{requestor: anyMachine(r), subject: anyMachine(r), claims: map[string]claim{}}
	if r.IntN(2) == 0 {
		f.subject = f.requestor
	}
	if r.IntN(3) == 0 {
		f.token = anyMachine(r)
	}
	f.policy = policy{servers: []string{"192.0.2.1", "api.example.org"}, guest: prefixes("10.20.0.0/16"), services: prefixes("10.96.0.0/12")}
	for _, name := range some(r, slices.Concat(someAddresses, someNames), 2) {
		f.claims[normalized(name)] = claim{guest: r.IntN(2) == 0, by: "another"}
	}
	return f
}

func anyRequest(r *rand.Rand, f facts) request {
	node := pick(r, someNodes)
	if f.requestor != nil && r.IntN(4) > 0 {
		node = f.requestor.node
	}
	req := request{
		signer: certificatesv1.KubeletServingSignerName, user: nodeUserPrefix + node, groups: []string{nodesGroup},
		usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
		asked:  &x509.CertificateRequest{Subject: pkix.Name{CommonName: nodeUserPrefix + node, Organization: []string{nodesGroup}}},
	}
	if r.IntN(3) == 0 {
		req.signer, req.usages[1] = certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.UsageClientAuth
		if r.IntN(2) == 0 {
			req.user, req.groups = bootstrapUser+"abcdef", []string{bootstrapGroup}
		}
		return req
	}
	req.asked.DNSNames = some(r, append(someNames, node, node), 2)
	for _, s := range some(r, someAddresses, 2) {
		req.asked.IPAddresses = append(req.asked.IPAddresses, net.ParseIP(s))
	}
	return req
}

// approvable returns the first condition that an approved request violates. It restates the rules
// independently of the code.
func approvable(req request, f facts) string {
	if req.signer == certificatesv1.KubeAPIServerClientKubeletSignerName {
		return approvableClient(req, f)
	}
	m := f.subject
	switch {
	case m == nil || f.requestor == nil || m.node != f.requestor.node:
		return "it is not of the Node that requests it"
	case m.unobserved || m.joined != m.node:
		return "the Node is not proven"
	case m.cloudNamed && !cloudReports(m, m.node):
		return "the cloud does not report the Node's name"
	}
	for _, ip := range req.asked.IPAddresses {
		text := ip.String()
		a := netip.MustParseAddr(text)
		isCloud, isGuest := cloudReports(m, text), guestReports(m, text)
		c, isClaimed := f.claims[text]
		switch {
		case slices.Contains([]string{"10.96.0.1", "127.0.0.1", "192.0.2.1", "169.254.169.254"}, text):
			return text + " is reserved"
		case !isCloud && !(isGuest && netip.MustParsePrefix("10.20.0.0/16").Contains(a)):
			return text + " is not attested"
		case isClaimed && (!isCloud || !c.guest):
			return text + " is another's"
		}
	}
	for _, n := range req.asked.DNSNames {
		n = strings.ToLower(n)
		c, isClaimed := f.claims[n]
		switch {
		case slices.Contains([]string{"kubernetes", "kubernetes.default.svc", "localhost", "api.example.org", "*.example.org", "10.0.0.1"}, n):
			return n + " is reserved"
		case n == m.node:
		case !cloudReports(m, n):
			return n + " is not attested"
		case isClaimed && !c.guest:
			return n + " is another's"
		}
	}
	return ""
}

func approvableClient(req request, f facts) string {
	name := strings.TrimPrefix(req.asked.Subject.CommonName, nodeUserPrefix)
	if m := f.token; m != nil {
		switch {
		case req.user != bootstrapUser+"abcdef" || m.joined != "" || m.taken || m.deleting || m.unobserved:
			return "the token is used, or of no Machine that joins"
		case name != m.node && (!m.cloudNamed || !cloudReports(m, name)):
			return "the name is not the Machine's"
		}
		return ""
	}
	if m := f.requestor; m == nil || name != m.node || m.cloudNamed && (m.unobserved || m.joined != name || !cloudReports(m, name)) {
		return "it is no renewal of the Machine's Node"
	}
	return ""
}

func cloudReports(m *machine, name string) bool { return reportsAs(m, name, false) }
func guestReports(m *machine, name string) bool { return reportsAs(m, name, true) }

func reportsAs(m *machine, name string, guest bool) bool {
	return slices.ContainsFunc(m.addresses, func(a workernode.Address) bool { return strings.EqualFold(a.Address, name) && a.Guest == guest })
}

func TestNothingIsApprovedThatIsNotProven(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	outcomes, approved := map[outcome]int{}, map[string]int{}
	for range 200_000 {
		f := anyFacts(r)
		req := anyRequest(r, f)
		if f.token != nil && req.token() == "" {
			f.token = nil // The token is found by the sender of the request.
		}
		v := decide(req, f)
		outcomes[v.outcome]++
		if v.outcome != approve {
			continue
		}
		approved[req.signer]++
		if why := approvable(req, f); why != "" {
			t.Fatalf("approved although %s:\nuser %s, subject %s, names %v %v\nrequestor %+v\nsubject %+v\ntoken %+v\nclaims %v",
				why, req.user, req.asked.Subject.CommonName, req.asked.DNSNames, req.asked.IPAddresses, f.requestor, f.subject, f.token, f.claims)
		}
	}
	for _, o := range []outcome{wait, retry, approve, deny} {
		if outcomes[o] < 100 {
			t.Errorf("only %d cases of %s: they show nothing", outcomes[o], o)
		}
	}
	if approved[certificatesv1.KubeletServingSignerName] < 100 || approved[certificatesv1.KubeAPIServerClientKubeletSignerName] < 100 {
		t.Errorf("approved %v: they show nothing", approved)
	}
}

func TestMoreThatIsReservedOrClaimedNeverApprovesMore(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	lost := 0
	for range 100_000 {
		f := anyFacts(r)
		req := anyRequest(r, f)
		before := decide(req, f)
		stricter := f
		stricter.claims = map[string]claim{}
		for name, c := range f.claims {
			stricter.claims[name] = claim{guest: c.guest && r.IntN(2) == 0, by: c.by}
		}
		stricter.claims[normalized(pick(r, slices.Concat(someAddresses, someNames)))] = claim{by: "a third"}
		stricter.policy.services = append(slices.Clone(f.policy.services), prefixes("10.0.0.2/32")...)
		stricter.policy.servers = append(slices.Clone(f.policy.servers), pick(r, someNames))
		stricter.policy.guest = nil
		after := decide(req, stricter)
		if before.outcome != approve && after.outcome == approve {
			t.Fatalf("%s (%s) became approve of %+v", before.outcome, before.message, req)
		}
		if before.outcome == approve && after.outcome != approve {
			lost++
		}
	}
	if lost < 100 {
		t.Errorf("only %d approvals were lost: they show nothing", lost)
	}
}

// FuzzParse reads arbitrary bytes of a kubelet as a certificate request. Nothing is approved except
// for names and addresses of the Machine.
func FuzzParse(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\nMIIB\n-----END CERTIFICATE REQUEST-----\n"))
	f.Add([]byte("-----BEGIN NONSENSE-----"))
	f.Add([]byte{})
	for _, form := range []*form{serving(), renewal(), join(), serving().of("kubernetes")} {
		f.Add(form.csr(f, "r").Spec.Request)
		block, _ := pem.Decode(form.csr(f, "r").Spec.Request)
		f.Add(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes}))
		f.Add(append(pem.EncodeToMemory(block), pem.EncodeToMemory(block)...))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, form := range []*form{serving(), renewal()} {
			csr := &certificatesv1.CertificateSigningRequest{Spec: form.spec}
			csr.Spec.Request = text
			r := requestOf(csr)
			if (r.asked == nil) == (r.malformed == nil) {
				t.Fatalf("asked %v, malformed %v", r.asked, r.malformed)
			}
			m := aMachine("a", "10.0.0.1")
			v := decide(r, twice(m))
			if v.outcome != approve {
				continue
			}
			if r.asked == nil || r.subject() != "a" || len(r.asked.EmailAddresses)+len(r.asked.URIs) > 0 {
				t.Errorf("approved: %+v", r.asked)
			}
			if why := approvable(r, twice(m)); why != "" && form.spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName {
				t.Errorf("approved although %s", why)
			}
			for _, ip := range r.asked.IPAddresses {
				if !cloudReports(m, ip.String()) && !ip.Equal(net.ParseIP("fd00::1")) {
					t.Errorf("approved for %s", ip)
				}
			}
			for _, n := range r.asked.DNSNames {
				if !strings.EqualFold(n, "a") && !strings.EqualFold(n, "a.example.org") {
					t.Errorf("approved for %s", n)
				}
			}
		}
	})
}
