package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"net"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// formerMemory is an annotation of Nodes in which earlier versions of Drover recorded the fields
// that they had applied.
const formerMemory = "cluster.drover.dev/applied"

// TestANodeCannot checks that a kubelet gains nothing by its rights: to write its own Node, and
// to request certificates. The API server of the target cluster has the Node authorizer and the
// admission plugin NodeRestriction.
func TestANodeCannot(t *testing.T) {
	leaveNothing(t)
	s := newStage(t)
	s.all = snapshot(t)
	s.resist(t, []attack{
		// Long attacks come first.
		{"BeReplacedWithoutEnd", replacedWithoutEnd},
		{"DisturbOthersInALoop", annotateInALoop},
		{"BeAMachinesNodeBeforeItJoinsByItsProviderID", func(t *testing.T, a *attacker) { rogueBefore(t, a, true, false) }},
		{"BeAMachinesNodeBeforeItJoinsByItsLabel", func(t *testing.T, a *attacker) { rogueBefore(t, a, false, true) }},
		{"BeAMachinesNodeBeforeItJoinsByBoth", func(t *testing.T, a *attacker) { rogueBefore(t, a, true, true) }},
		{"BecomeAnotherMachinesNodeLater", becomeAnother},
		{"BeAnotherMachinesNodeByItsProviderID", func(t *testing.T, a *attacker) { rogueAfter(t, a, true, false) }},
		{"BeAnotherMachinesNodeByItsLabel", func(t *testing.T, a *attacker) { rogueAfter(t, a, false, true) }},
		{"BeAnotherMachinesNodeByBoth", func(t *testing.T, a *attacker) { rogueAfter(t, a, true, true) }},
		{"GainMarksByAnAnnotation", marksByAnnotation},
		{"HaveAServingCertificateForAForeignName", foreignServing},
		{"WriteAnythingElse", writeOthers},
		{"HaveTheNameOfAnotherNodeByItsToken", nameByToken},
	})
}

// genuine creates a Machine of the attacker, and returns it once it runs, with the identity of
// its kubelet.
func (a *attacker) genuine(t *testing.T) (*member, client.Client) {
	t.Helper()
	must(t, a.f.Client.Create(t.Context(), a.machine("genuine", a.useTarget(t))))
	m := a.member("genuine")
	m.awaitRunning(t)
	return m, a.f.Cluster.NodeIdentity(t, m.node)
}

// rogue is a kubelet with its own identity.
func (a *attacker) rogue(t *testing.T) (name string, as client.Client) {
	t.Helper()
	name = "rogue-" + a.f.Namespace
	a.all.DisownNodes(name)
	t.Cleanup(func() {
		_ = a.f.Cluster.Client.Delete(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	})
	return name, a.f.Cluster.NodeIdentity(t, name)
}

// register the Node of a rogue kubelet as that of a Machine.
func (a *attacker) register(t *testing.T, m *machinev1alpha1.Machine, byProviderID, byLabel bool) (changed func(ctx context.Context) string) {
	t.Helper()
	name, as := a.rogue(t)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"example.org/rogue": "true"}}}
	n.Spec.Taints = []corev1.Taint{{Key: machinev1alpha1.TaintUninitialized, Effect: corev1.TaintEffectNoSchedule}}
	if byProviderID {
		n.Spec.ProviderID = m.Status.ProviderID
	}
	if byLabel {
		n.Labels[clusterv1alpha1.LabelJoinToken] = string(m.UID)
	}
	must(t, as.Create(t.Context(), n))
	was := nodeState(t, a.f, name)
	return func(context.Context) string {
		if now := nodeState(t, a.f, name); fmt.Sprint(was) != fmt.Sprint(now) {
			return fmt.Sprintf("the Node %s was %v and is %v", name, was, now)
		}
		return ""
	}
}

func marksByAnnotation(t *testing.T, a *attacker) {
	m, as := a.genuine(t)
	administrate(t, a.f, m.node)
	for name, memory := range map[string]string{
		"it gave back": `{"labels":["` + restricted + `"],"before":{"labels":{"` + restricted + `":"pci"}},"taints":["` + quarantine + `:NoExecute"],"cordoned":true}`,
		"it put there": `{"labels":["` + restricted + `"],"taints":["` + quarantine + `:NoExecute"],"cordoned":true}`,
		"of two keys":  `{"labels":["node-role.kubernetes.io/etcd"],"before":{"labels":{"node-role.kubernetes.io/etcd":"true"},"taints":{"` + quarantine + `:NoExecute":"weaker"}},"taints":["` + quarantine + `:NoExecute"]}`,
	} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.node}}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{formerMemory: memory}}})
		must(t, err)
		must(t, as.Patch(t.Context(), n, client.RawPatch("application/merge-patch+json", patch)))
		m.annotate(t, "example.org/another-reconcile")
		a.nothing(t, func(ctx context.Context) string {
			if s := administrated(ctx, a.f, m.node, restricted, protected, quarantine); s != "" {
				return "after a forged annotation of what " + name + ": " + s
			}
			must(t, a.f.Cluster.Client.Get(ctx, client.ObjectKeyFromObject(n), n))
			if _, ok := n.Labels["node-role.kubernetes.io/etcd"]; ok {
				return "the Node has a role"
			}
			return ""
		})
		m.unannotate(t, "example.org/another-reconcile")
	}
}

// rogueAfter registers while the Node of the Machine exists.
func rogueAfter(t *testing.T, a *attacker, byProviderID, byLabel bool) {
	must(t, a.f.Client.Create(t.Context(), a.machine("other", a.useTarget(t))))
	m := a.member("other")
	m.awaitRunning(t)
	unchanged := a.register(t, m.machine(t), byProviderID, byLabel)
	was := nodeState(t, a.f, m.node)
	its := func(ctx context.Context) string {
		if now := nodeState(t, a.f, m.node); fmt.Sprint(was) != fmt.Sprint(now) {
			return fmt.Sprintf("the Node of the Machine was %v and is %v", was, now)
		}
		o := m.machine(t)
		if c := conditionOf(o.Status.Conditions, "Synced"); c.Status != metav1.ConditionTrue {
			return fmt.Sprintf("the Machine is not kept any more: %+v", c)
		}
		return m.is(ctx, machinev1alpha1.MachineRunning)
	}
	m.annotate(t, "example.org/another-reconcile")
	a.nothing(t, unchanged, its)
	m.delete(t)
	m.awaitGone(t)
	a.nothing(t, unchanged)
}

// rogueBefore registers while the VM of a Machine boots. The Machine must get its own Node, and
// the Node of the rogue kubelet must not be deleted with it.
func rogueBefore(t *testing.T, a *attacker, byProviderID, byLabel bool) {
	fault, err := a.f.Cloud.CreateFault(t.Context(), localcloud.Fault{
		Kind: localcloud.FaultSlowBoot, Delay: localcloud.Duration(6 * time.Second), Match: localcloud.FaultMatch{Tags: map[string]string{machinev1alpha1.TagNamespace: a.f.Namespace}},
	})
	must(t, err)
	late := a.machine("late", a.useTarget(t))
	late.Spec.Metadata.Labels = map[string]string{"example.org/pool": "late"}
	must(t, a.f.Client.Create(t.Context(), late))
	m := a.member(late.Name)
	patience.Eventually(t, func(ctx context.Context) string {
		if late = m.machine(t); late.Status.ProviderID == "" {
			return "the VM is not created yet"
		}
		return ""
	}, a.f.Describe)
	unchanged := a.register(t, late, byProviderID, byLabel)
	if now := m.machine(t); now.Status.NodeRef != nil {
		t.Fatalf("the Machine has a Node already, so that this shows nothing: %+v, fault %+v", now.Status, fault)
	}
	patience.Eventually(t, func(ctx context.Context) string {
		if s := unchanged(ctx); s != "" {
			t.Fatal(s)
		}
		return m.is(ctx, machinev1alpha1.MachineRunning)
	}, a.f.Describe)
	m.node = m.machine(t).Status.NodeRef.Name
	a.nothing(t, unchanged)
	m.delete(t)
	m.awaitGone(t)
	a.nothing(t, unchanged)
}

// becomeAnother changes a Node that joined correctly.
func becomeAnother(t *testing.T, a *attacker) {
	m, as := a.genuine(t)
	victim := a.victim.machine(t)
	uid := string(m.machine(t).UID)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.node}}
	if err := as.Patch(t.Context(), n, client.RawPatch("application/merge-patch+json", []byte(fmt.Sprintf(`{"spec":{"providerID":%q}}`, victim.Status.ProviderID)))); !kit.Refused(err) {
		t.Errorf("a Node changes its providerID: %v", err)
	}
	must(t, as.Patch(t.Context(), n, client.RawPatch("application/merge-patch+json", []byte(fmt.Sprintf(
		`{"metadata":{"labels":{%q:%q},"annotations":{%q:%q,%q:%q}}}`, clusterv1alpha1.LabelJoinToken, victim.UID,
		machinev1alpha1.AnnotationMachine, a.victim.name, machinev1alpha1.AnnotationNamespace, a.victim.f.Namespace)))))
	a.nothing(t, func(ctx context.Context) string { return a.victim.is(ctx, machinev1alpha1.MachineRunning) })
	patience.Eventually(t, func(ctx context.Context) string {
		must(t, a.f.Cluster.Client.Get(ctx, client.ObjectKeyFromObject(n), n))
		if got := n.Labels[clusterv1alpha1.LabelJoinToken]; got != uid {
			return "the label is not put back: " + got
		}
		return ""
	})
	a.nothing(t)
	m.delete(t)
	m.awaitGone(t)
	a.nothing(t)
}

// nameByToken requests the identity of another Machine's Node with the join token of a Machine.
func nameByToken(t *testing.T, a *attacker) {
	neverBoot(t, a.f, 1)
	must(t, a.f.Client.Create(t.Context(), a.machine("waits", a.useTarget(t))))
	token := ""
	patience.Eventually(t, func(ctx context.Context) string {
		l := &corev1.SecretList{}
		if err := a.f.Client.List(ctx, l, client.InNamespace(a.f.Namespace)); err != nil {
			return err.Error()
		}
		for _, s := range l.Items {
			if t, ok := s.Data[clusterv1alpha1.ConnectionToken]; ok && s.Type != corev1.SecretTypeServiceAccountToken {
				token = string(t)
				return ""
			}
		}
		return "there is no token yet"
	}, a.f.Describe)
	as := a.f.Cluster.WithToken(t, token)
	for _, name := range []string{a.victim.node, "control-plane-0"} {
		template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + name, Organization: []string{"system:nodes"}}}
		a.asksInVain(t, as, template, certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth)
	}
}

// asksInVain requests a certificate. The request must be refused or denied.
func (a *attacker) asksInVain(t *testing.T, as client.Client, template *x509.CertificateRequest, signer string, usages ...certificatesv1.KeyUsage) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	csr, err := kit.NewCSR(template, key, signer, usages...)
	must(t, err)
	if err := as.Create(t.Context(), csr); err != nil {
		if !kit.Refused(err) {
			t.Error(err)
		}
		return
	}
	a.awaits(t, func(ctx context.Context) string {
		if s := notApproved(ctx, a.f, csr); s != "" {
			t.Fatal(s)
		}
		for _, c := range csr.Status.Conditions {
			if c.Type == certificatesv1.CertificateDenied {
				t.Logf("denied: %s", c.Message)
				return ""
			}
		}
		return fmt.Sprintf("the request for %v is not denied: %+v", template.Subject, csr.Status.Conditions)
	})
}

// foreignServing requests names that are not the Node's, after it let its Node report them.
func foreignServing(t *testing.T, a *attacker) {
	m, as := a.genuine(t)
	victim := a.victim.machine(t)
	foreign := []string{"10.0.0.1", "127.0.0.1", victim.Status.Addresses[0].Address}
	var reported []corev1.NodeAddress
	for _, ip := range foreign {
		reported = append(reported, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip})
	}
	reported = append(reported, corev1.NodeAddress{Type: corev1.NodeInternalDNS, Address: "kubernetes.default.svc"})
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.node}}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"addresses": reported}})
	must(t, err)
	must(t, as.Status().Patch(t.Context(), n, client.RawPatch("application/merge-patch+json", patch)))
	subject := pkix.Name{CommonName: "system:node:" + m.node, Organization: []string{"system:nodes"}}
	for _, ip := range foreign {
		a.asksInVain(t, as, &x509.CertificateRequest{Subject: subject, DNSNames: []string{m.node}, IPAddresses: []net.IP{net.ParseIP(ip)}}, certificatesv1.KubeletServingSignerName, servingUsages...)
	}
	for _, name := range []string{"kubernetes.default.svc", "kubernetes", "localhost", a.victim.node} {
		a.asksInVain(t, as, &x509.CertificateRequest{Subject: subject, DNSNames: []string{m.node, name}}, certificatesv1.KubeletServingSignerName, servingUsages...)
	}
	theirs := pkix.Name{CommonName: "system:node:" + a.victim.node, Organization: []string{"system:nodes"}}
	a.asksInVain(t, as, &x509.CertificateRequest{Subject: theirs, DNSNames: []string{a.victim.node}}, certificatesv1.KubeletServingSignerName, servingUsages...)
	a.asksInVain(t, as, &x509.CertificateRequest{Subject: theirs}, certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth)
	a.nothing(t)
}

// writeOthers checks that the API server limits this identity like that of a real kubelet.
func writeOthers(t *testing.T, a *attacker) {
	m, as := a.genuine(t)
	own := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.node}}
	victim := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: a.victim.node}}
	merge := func(n client.Object, patch string) func() error {
		return func() error {
			return as.Patch(t.Context(), n, client.RawPatch("application/merge-patch+json", []byte(patch)))
		}
	}
	for name, do := range map[string]func() error{
		"label itself as an administrator does": merge(own, `{"metadata":{"labels":{"`+restricted+`":"pci"}}}`),
		"take off its taints":                   merge(own, `{"spec":{"taints":[{"key":"example.org/other","effect":"NoSchedule"}]}}`),
		"annotate another Node":                 merge(victim, `{"metadata":{"annotations":{"drover.dev/skip-drain":"true"}}}`),
		"label another Node":                    merge(victim, `{"metadata":{"labels":{"example.org/a":"b"}}}`),
		"delete another Node":                   func() error { return as.Delete(t.Context(), victim) },
		"read the tokens": func() error {
			return as.List(t.Context(), &corev1.SecretList{}, client.InNamespace(metav1.NamespaceSystem))
		},
	} {
		if err := do(); !kit.Refused(err) {
			t.Errorf("a kubelet can %s: %v", name, err)
		}
	}
	a.all.Check(t)
}

// annotateInALoop changes all annotations by which a Node can make requests, as fast as it can.
func annotateInALoop(t *testing.T, a *attacker) {
	m, as := a.genuine(t)
	must(t, a.f.Client.Create(t.Context(), a.machine("sibling", machinev1alpha1.ClusterReference{Kind: "ProviderConfig", Name: "target"})))
	sibling := a.member("sibling")
	sibling.awaitRunning(t)
	patience.Eventually(t, func(ctx context.Context) string { return noTokens(ctx, a.f) })
	was := sibling.machine(t)
	before, err := plane.Writes(t.Context())
	must(t, err)
	began, changes := time.Now(), 0
	for ; time.Since(began) < 5*time.Second; changes++ {
		on := []string{`"true"`, "null", `"false"`}[changes%3]
		preserve := []string{`"now"`, "null", `"when-failed"`, `"garbage"`}[changes%4]
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.node}}
		must(t, as.Patch(t.Context(), n, client.RawPatch("application/merge-patch+json", []byte(fmt.Sprintf(
			`{"metadata":{"annotations":{%q:%s,%q:%s,%q:%s,%q:%s,%q:%s}}}`, machinev1alpha1.AnnotationPreserve, preserve, machinev1alpha1.AnnotationReplace, on,
			machinev1alpha1.AnnotationSkipRemediation, on, machinev1alpha1.AnnotationSkipDrain, on, machinev1alpha1.AnnotationForceDrain, on)))))
	}
	took := time.Since(began).Seconds()
	after, err := plane.Writes(t.Context())
	must(t, err)
	for _, what := range []string{"PATCH machines/status", "PUT machines/status", "APPLY machines/status"} {
		if n := after[what] - before[what]; n > 0 {
			t.Logf("%d changes of annotations in %.0f s made %.0f of %s in all namespaces", changes, took, n, what)
			if n > 20*took {
				t.Errorf("%.0f of %s a second", n/took, what)
			}
		}
	}
	if now := sibling.machine(t); now.ResourceVersion != was.ResourceVersion {
		t.Errorf("another Machine changed from %+v to %+v", was.Status, now.Status)
	}
	a.nothing(t)
}

// replacedWithoutEnd makes each Node of a pool request its replacement, as a compromised image
// would.
func replacedWithoutEnd(t *testing.T, a *attacker) {
	ref := a.useTarget(t)
	md := a.f.Deployment("pool", 2, 1, 0)
	md.Spec.Template.Spec.ClusterRef = ref
	must(t, a.f.Client.Create(t.Context(), md))
	a.f.AwaitDeployment(t, md.Name)
	guard := a.f.Guard(t, kit.Bounds{MaxMachines: 3, MinAvailable: 1})
	seen := map[string]bool{}
	const long = 12 * time.Second
	for began := time.Now(); time.Since(began) < long; {
		nodes, err := a.f.Nodes(t.Context())
		must(t, err)
		for i := range nodes {
			n := &nodes[i]
			if seen[n.Name] {
				continue
			}
			seen[n.Name] = true
			_ = a.f.Cluster.As(t, "system:node:"+n.Name, "system:nodes").Patch(t.Context(), n,
				client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"machine.drover.dev/replace":"true"}}}`)))
		}
		a.nothing(t)
	}
	guard.Done(t, 1)
	t.Logf("%d Nodes asked for another one within %s", len(seen), long)
	if len(seen) > 2+6 {
		t.Errorf("%d Nodes of a pool of 2 within %s", len(seen), long)
	}
}
