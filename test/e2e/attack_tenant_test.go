package e2e

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// bodyMark is in every answer of a server of a test. No object may quote it.
const bodyMark = "this-body-must-not-be-quoted"

// A stage has attackers, and bystanders that no attack may change.
type stage struct {
	// victim is a running Machine of another namespace in the target cluster.
	victim *member
	// kubeconfig of the target cluster, with the shipped rights. The Secret served in the
	// namespace default has it too.
	kubeconfig []byte
	served     string
	// foreignVM belongs to another installation.
	foreignVM string
	all       *kit.Snapshot
}

// newStage creates the bystanders: the victim, and Nodes without a Machine.
func newStage(t *testing.T, strangers ...string) *stage {
	t.Helper()
	f := plane.NewTargetFleet(t)
	s := &stage{victim: &member{f: f, name: "victim"}, kubeconfig: plane.Target.Credentials(t).Kubeconfig, served: f.Namespace + "-served"}
	o := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: s.victim.name}, Spec: f.MachineSpec(kit.NewVersion)}
	o.Spec.Metadata.Labels = map[string]string{"example.org/pool": "victim"}
	f.Create(t, o)
	for _, name := range strangers {
		s.stranger(t, name)
	}
	s.victim.awaitRunning(t)
	s.victim.pod(t, "pod", nil)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: s.served}}
	secret.Data = map[string][]byte{"kubeconfig": s.kubeconfig}
	f.Create(t, secret)
	t.Cleanup(func() {
		ctx := context.Background()
		must(t, client.IgnoreNotFound(f.Client.Delete(ctx, o)))
		patience.Eventually(t, s.victim.gone)
		must(t, f.Client.DeleteAllOf(ctx, &clusterv1alpha1.ProviderConfig{}, client.InNamespace(f.Namespace)))
		must(t, f.Client.Delete(ctx, secret))
	})
	return s
}

// stranger creates a Node without a Machine, with a pod of the cluster on it.
func (s *stage) stranger(t *testing.T, name string) {
	t.Helper()
	f := s.victim.f
	n := foreignNode(t, f, s.nodeOf(name), s.providerIDOf(name), map[string]string{"node-role.kubernetes.io/control-plane": ""})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "etcd-" + strings.ToLower(name)}}
	pod.Spec = corev1.PodSpec{
		NodeName: n.Name, Containers: []corev1.Container{{Name: "c", Image: "example.org/c"}}, TerminationGracePeriodSeconds: ptr.To(int64(0)),
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
	}
	f.CreateIn(t, f.Cluster, pod)
}

func (s *stage) nodeOf(name string) string { return "cp-" + strings.ToLower(name) }

func (s *stage) providerIDOf(name string) string {
	return "aws:///eu-1/i-" + s.victim.f.Namespace + "-" + strings.ToLower(name)
}

// An attacker is a tenant with a namespace.
type attacker struct {
	*stage
	*kit.Tenant
	f kit.Fleet
	// node of the stage that the attack targets, if any.
	node     string
	nodeUID  string
	provider string
}

// attackers are the namespaces of all attackers of this run. Their remaining objects may still
// change while the next test runs.
var attackers struct {
	sync.Mutex
	namespaces []string
}

// snapshot of all objects, except those of attackers and of the given namespaces.
func snapshot(t *testing.T, but ...string) *kit.Snapshot {
	t.Helper()
	attackers.Lock()
	defer attackers.Unlock()
	return plane.Snapshot(t, append(but, attackers.namespaces...)...)
}

func (s *stage) attacker(t *testing.T, name string) *attacker {
	t.Helper()
	namespace := kit.NewNamespaceName()
	attackers.Lock()
	attackers.namespaces = append(attackers.namespaces, namespace)
	attackers.Unlock()
	s.all.Disown(namespace)
	f, err := plane.MakeFleetIn(t.Context(), namespace)
	must(t, err)
	f.Cluster = f.Target
	must(t, f.Cluster.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.Namespace}}))
	a := &attacker{stage: s, Tenant: f.NewTenant(t), f: f, node: s.nodeOf(name), provider: s.providerIDOf(name)}
	n := &corev1.Node{}
	if err := f.Cluster.Client.Get(t.Context(), client.ObjectKey{Name: a.node}, n); err == nil {
		a.nodeUID = string(n.UID)
	}
	t.Cleanup(func() { a.clean(t) })
	return a
}

// clean deletes the objects of the attack. It does not wait: the namespaces are disowned.
func (a *attacker) clean(t *testing.T) {
	ctx := context.Background()
	l, err := a.f.Machines(ctx)
	if err != nil {
		t.Error(err)
	}
	for i := range l {
		// The Node may exist for a moment longer than its Machine.
		a.all.DisownNodes(names.OfMachine(l[i].Name, l[i].UID))
		_ = a.f.Client.Patch(ctx, &l[i], client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"drover.dev/skip-drain":"true"}}}`)))
		_ = a.f.Client.Delete(ctx, &l[i])
	}
}

// attempt a request as the tenant. If a policy refuses it, the platform's user makes the same
// request: not every control plane has all policies, and the attack must fail without them too.
// The result is the last refusal, nil if the API server finally accepted the request.
func (a *attacker) attempt(t *testing.T, request func(client.Client) error) error {
	t.Helper()
	err := request(a.As)
	if err == nil {
		t.Log("the API server accepts it of the tenant")
		return nil
	}
	if !kit.Refused(err) {
		t.Fatalf("neither accepted nor refused: %v", err)
	}
	t.Logf("the API server refuses it to the tenant: %v", err)
	if err = request(a.f.Client); err != nil && !kit.Refused(err) {
		t.Fatalf("neither accepted nor refused: %v", err)
	}
	if err != nil {
		t.Logf("the API server refuses it to all: %v", err)
	}
	return err
}

// make creates an object by attempt.
func (a *attacker) make(t *testing.T, o client.Object) error {
	t.Helper()
	return a.attempt(t, func(c client.Client) error { return c.Create(t.Context(), o.DeepCopyObject().(client.Object)) })
}

// forge the status of a Machine by attempt.
func (a *attacker) forge(t *testing.T, m *member, patch string) {
	t.Helper()
	_ = a.attempt(t, func(c client.Client) error {
		return c.Status().Patch(t.Context(), m.machine(t), client.RawPatch("application/merge-patch+json", []byte(patch)))
	})
}

// useTarget creates a configuration of the tenant, with credentials of the target cluster, and
// returns its reference.
func (a *attacker) useTarget(t *testing.T) machinev1alpha1.ClusterReference {
	t.Helper()
	a.f.SetKubeconfig(t, a.kubeconfig)
	must(t, a.f.Client.Create(t.Context(), a.config("target", nil)))
	return machinev1alpha1.ClusterReference{Kind: "ProviderConfig", Name: "target"}
}

// config is a ProviderConfig whose kubeconfig is in the Secret target.
func (a *attacker) config(name string, change func(spec map[string]any)) *unstructured.Unstructured {
	spec := map[string]any{
		"credentials":  map[string]any{"source": "Secret", "secretRef": map[string]any{"name": "target", "key": "kubeconfig"}},
		"certificates": map[string]any{"client": "Approve"},
	}
	if change != nil {
		change(spec)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(clusterv1alpha1.ProviderConfigGroupVersionKind)
	u.SetNamespace(a.f.Namespace)
	u.SetName(name)
	return u
}

// serve creates a ClusterProviderConfig of the target cluster with additional fields, which lets
// the tenant use the cluster.
func (a *attacker) serve(t *testing.T, more map[string]any) machinev1alpha1.ClusterReference {
	t.Helper()
	u := a.config(a.f.Namespace, func(spec map[string]any) {
		spec["credentials"].(map[string]any)["secretRef"] = map[string]any{"namespace": metav1.NamespaceDefault, "name": a.served, "key": "kubeconfig"}
		for k, v := range more {
			spec[k] = v
		}
	})
	u.SetGroupVersionKind(clusterv1alpha1.ClusterProviderConfigGroupVersionKind)
	u.SetNamespace("")
	must(t, a.f.Client.Create(t.Context(), u))
	t.Cleanup(func() { _ = a.f.Client.Delete(context.Background(), u) })
	return machinev1alpha1.ClusterReference{Kind: "ClusterProviderConfig", Name: u.GetName()}
}

// allowed is the value of spec.allowedNamespaces of a ClusterProviderConfig.
func allowed(namespaces ...string) []any {
	var out []any
	for _, n := range namespaces {
		out = append(out, n)
	}
	return out
}

// machine returns a Machine of the attacker without creating it. Its drain timeout is short.
func (a *attacker) machine(name string, cluster machinev1alpha1.ClusterReference) *machinev1alpha1.Machine {
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: a.f.Namespace, Name: name}, Spec: a.f.MachineSpec(kit.NewVersion)}
	m.Spec.ClusterRef = cluster
	m.Spec.Drain.Timeout.Duration = time.Second
	return m
}

// evil is a Machine without a VM that requests labels, taints and a short drain.
func (a *attacker) evil(cluster machinev1alpha1.ClusterReference) *machinev1alpha1.Machine {
	m := a.machine("evil", cluster)
	m.Spec.ClassRef.Name = "does-not-exist"
	m.Spec.Metadata.Labels = map[string]string{"owned-by": "mallory", "node-role.kubernetes.io/etcd": ""}
	m.Spec.Taints = []machinev1alpha1.Taint{{Key: "example.org/mine", Effect: "NoExecute"}}
	// There is no class that would select the Composition of the Machine.
	m.Spec.Crossplane = &machinev1alpha1.CompositionSelection{CompositionSelector: &machinev1alpha1.CompositionSelector{MatchLabels: map[string]string{"provider": "local"}}}
	return m
}

func (a *attacker) member(name string) *member { return &member{f: a.f, name: name} }

// seen waits until Drover has reconciled the current version of the Machine.
func (a *attacker) seen(t *testing.T, m *member) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		o := &machinev1alpha1.Machine{}
		if err := a.f.Client.Get(ctx, m.key(), o); err != nil {
			return err.Error()
		}
		if o.Status.ObservedGeneration != o.Generation || len(o.Status.Conditions) == 0 {
			return fmt.Sprintf("the Machine has generation %d and status %+v", o.Generation, o.Status)
		}
		return ""
	})
}

// nothing checks that the attack has no effect: only objects of the attacker change, and the
// attacker gets no token.
func (a *attacker) nothing(t *testing.T, checks ...func(ctx context.Context) string) {
	t.Helper()
	defer a.all.Check(t)
	a.f.ThroughoutReport(t, func(ctx context.Context) string {
		for _, check := range checks {
			if s := check(ctx); s != "" {
				return s
			}
		}
		return ""
	})
}

// noToken checks that neither cluster has a token of the attacker, and the namespace has no user
// data.
func (a *attacker) noToken(ctx context.Context) string {
	for _, c := range []*kit.Cluster{a.f.Control, a.f.Target} {
		f := a.f
		f.Cluster = c
		if s := noTokens(ctx, f); s != "" {
			return s
		}
	}
	l := &corev1.SecretList{}
	if err := a.f.Client.List(ctx, l, client.InNamespace(a.f.Namespace)); err != nil {
		return err.Error()
	}
	for _, s := range l.Items {
		if _, ok := s.Data[clusterv1alpha1.ConnectionToken]; ok && s.Type != corev1.SecretTypeServiceAccountToken {
			return "there is a join token in Secret " + s.Name
		}
	}
	return ""
}

// awaits a refusal. If there is none, the test continues, to find all effects of the attack.
func (a *attacker) awaits(t *testing.T, check func(ctx context.Context) string) {
	t.Helper()
	if s := patience.Await(t.Context(), check); s != "" {
		t.Error(s)
	}
}

// refusedBy waits until the configuration is not Reachable for a reason that the user must
// correct, and the message or the event has all texts.
func (a *attacker) refusedBy(t *testing.T, kind, name string, texts ...string) {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(clusterv1alpha1.SchemeGroupVersion.WithKind(kind))
	a.awaits(t, func(ctx context.Context) string {
		key := client.ObjectKey{Name: name}
		if kind == "ProviderConfig" {
			key.Namespace = a.f.Namespace
		}
		if err := a.f.Client.Get(ctx, key, u); err != nil {
			return err.Error()
		}
		c := conditionsOf(u)["Reachable"]
		if c.Status != metav1.ConditionFalse || c.Reason == clusterv1alpha1.ReasonUnreachable || c.Reason == clusterv1alpha1.ReasonUnauthorized {
			return fmt.Sprintf("%s %s is not refused: condition Reachable %+v", kind, name, c)
		}
		for _, text := range texts {
			if !strings.Contains(c.Message, text) {
				return fmt.Sprintf("condition %+v does not name %q", c, text)
			}
		}
		return ""
	})
}

// machineRefused waits until a condition of the Machine that is not True has all texts.
func (a *attacker) machineRefused(t *testing.T, m *member, texts ...string) {
	t.Helper()
	a.awaits(t, func(ctx context.Context) string {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(machinev1alpha1.MachineGroupVersionKind)
		if err := a.f.Client.Get(ctx, m.key(), u); err != nil {
			return err.Error()
		}
	conditions:
		for _, c := range conditionsOf(u) {
			for _, text := range texts {
				if c.Status != metav1.ConditionFalse || !strings.Contains(c.Reason+": "+c.Message, text) {
					continue conditions
				}
			}
			return ""
		}
		return fmt.Sprintf("no condition names %q: %+v", texts, conditionsOf(u))
	})
}

func conditionsOf(u *unstructured.Unstructured) map[string]metav1.Condition {
	text, _ := json.Marshal(u.Object["status"])
	got := struct{ Conditions []metav1.Condition }{}
	_ = json.Unmarshal(text, &got)
	out := map[string]metav1.Condition{}
	for _, c := range got.Conditions {
		out[c.Type] = c
	}
	return out
}

// TestATenantCannot checks that a tenant cannot reach beyond its namespace with the rights that
// Crossplane's RBAC manager generates: neither Nodes, tokens and certificates of a cluster, nor
// VMs, nor the network of the provider.
func TestATenantCannot(t *testing.T) {
	leaveNothing(t)
	s := newStage(t, strangers...)
	s.foreignVM = foreignVM(t)
	s.all = snapshot(t)
	s.resist(t, []attack{
		// Long attacks come first.
		{"ClaimANodeWithAMachineThatRuns", claimWithAVM},
		{"ForgeWhatDroverPutOnANode", forgeMemory},
		{"UseAConfigurationThatAllowsNoNamespace", func(t *testing.T, a *attacker) { configurationOfOthers(t, a, nil) }},
		{"UseAConfigurationThatAllowsAnother", func(t *testing.T, a *attacker) {
			configurationOfOthers(t, a, map[string]any{"allowedNamespaces": allowed(a.victim.f.Namespace)})
		}},
		{"ClaimANodeByASpec", claimBySpec},
		{"ClaimANodeByAProviderID", func(t *testing.T, a *attacker) {
			claimByStatus(t, a, fmt.Sprintf(`{"status":{"phase":"Running","providerID":%q}}`, a.provider))
		}},
		{"ClaimANodeByANodeRef", func(t *testing.T, a *attacker) {
			claimByStatus(t, a, fmt.Sprintf(`{"status":{"phase":"Running","nodeRef":{"kind":"Node","name":%q,"uid":%q}}}`, a.node, a.nodeUID))
		}},
		{"ClaimANodeByResourceRefs", func(t *testing.T, a *attacker) {
			claimByStatus(t, a, fmt.Sprintf(`{"status":{"phase":"Running","providerID":%q,%s}}`, a.provider, a.refToVictim()))
		}},
		{"ClaimANodeByAllAtOnce", func(t *testing.T, a *attacker) {
			claimByStatus(t, a, fmt.Sprintf(`{"status":{"phase":"Running","providerID":%q,"nodeRef":{"kind":"Node","name":%q,"uid":%q},%s}}`, a.provider, a.node, a.nodeUID, a.refToVictim()))
		}},
		{"ClaimANodeThroughASecondConfiguration", claimThroughASecondConfiguration},
		{"HaveACertificateForAForeignAddress", certificateForAStatus},
		{"DeleteVMsOfAnotherInstallation", collectOrphans},
		{"BecomeAnotherMachineByALabel", labelOfAnotherMachine},
		{"HaveATokenForEver", tokenForEver},
		{"HaveAnInjectedIdentity", injectedIdentity},
		{"HaveAnInjectedIdentityThatNoFlagNames", injectedClusterIdentity},
		{"HaveLabelsThatAreNotAllowed", labelsOutside},
		{"HaveTaintsThatAreNotAllowed", taintsOutside},
		{"HaveMarksThatAreNotAllowed", marksOutside},
		{"WriteAStatus", writeStatuses},
		{"UseAClassOfAnotherNamespace", classOfOthers},
		{"UseAClusterMachineClassOfOthers", clusterClassOfOthers},
		{"UseASecretOfAnotherNamespace", secretOfOthers},
		{"HaveAnHTTPServerRead", readHTTP},
		{"HaveAnInsecureServerRead", readInsecure},
		{"HaveAProxyUsed", useProxy},
		{"HaveARedirectFollowed", followRedirect},
		{"HaveALoopbackServerRead", readLoopback},
		{"HaveALinkLocalServerRead", readLinkLocal},
		{"HaveABodyQuoted", quoteBody},
	})
	if err := plane.Cloud.DeleteVM(t.Context(), s.foreignVM); err != nil && !localcloud.IsNotFound(err) {
		t.Error(err)
	}
}

// strangers are the attacks that target a Node without a Machine. Each has its own Node.
var strangers = []string{
	"ClaimANodeWithAMachineThatRuns", "ClaimANodeByASpec", "ClaimANodeByAProviderID", "ClaimANodeByANodeRef", "ClaimANodeByResourceRefs", "ClaimANodeByAllAtOnce",
}

// refToVictim is a status field that refers to the VM of the victim.
func (a *attacker) refToVictim() string {
	return fmt.Sprintf(`"resourceRefs":[{"role":"vm","apiVersion":"local.drover.dev/v1alpha1","kind":"VirtualMachine","name":%q}]`, a.victim.node)
}

// An attack by a separate attacker.
type attack struct {
	name string
	try  func(t *testing.T, a *attacker)
}

// resist several attacks at once. Only objects of attackers may change.
func (s *stage) resist(t *testing.T, attacks []attack) {
	t.Helper()
	t.Run("Attacks", func(t *testing.T) {
		for _, a := range attacks {
			t.Run(a.name, func(t *testing.T) {
				t.Parallel()
				a.try(t, s.attacker(t, a.name))
			})
		}
	})
	s.all.Check(t)
}

func claimBySpec(t *testing.T, a *attacker) {
	m := a.evil(a.useTarget(t))
	m.Spec.ProviderID = ptr.To(a.provider)
	_ = a.make(t, m)
	a.claims(t, "")
}

func claimByStatus(t *testing.T, a *attacker, status string) {
	_ = a.make(t, a.evil(a.useTarget(t)))
	a.claims(t, status)
}

// claims reconciles the evil Machine with a forged status, and deletes it.
func (a *attacker) claims(t *testing.T, status string) {
	t.Helper()
	m := a.member("evil")
	a.seen(t, m)
	forge := func() {
		if status != "" {
			a.forge(t, m, status)
		}
		// Drover ignores changes of the status alone.
		m.annotate(t, "example.org/another-reconcile")
	}
	forge()
	a.nothing(t, a.noToken)
	a.hold(t, m)
	m.delete(t)
	forge()
	a.nothing(t, a.noToken)
	a.release(t, m)
	patience.Eventually(t, m.gone, a.f.Describe)
	a.nothing(t, a.noToken)
}

// forging is the finalizer of a Machine whose status is forged while it is deleted.
const forging = "example.org/forging"

// hold a Machine by a finalizer. It is deleted later.
func (a *attacker) hold(t *testing.T, m *member) {
	t.Helper()
	a.finalizers(t, m, func(was []string) []string { return append(was, forging) })
}

// release a held Machine.
func (a *attacker) release(t *testing.T, m *member) {
	t.Helper()
	a.finalizers(t, m, func(was []string) []string {
		return slices.DeleteFunc(was, func(f string) bool { return f == forging })
	})
}

func (a *attacker) finalizers(t *testing.T, m *member, change func([]string) []string) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		o := &machinev1alpha1.Machine{}
		if err := a.f.Client.Get(ctx, m.key(), o); err != nil {
			return err.Error()
		}
		was := o.DeepCopy()
		o.Finalizers = change(o.Finalizers)
		if err := a.f.Client.Patch(ctx, o, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{})); err != nil {
			return err.Error()
		}
		return ""
	})
}

// claimWithAVM forges the status of a Machine that has a VM and a Node, so that all other fields
// are valid.
func claimWithAVM(t *testing.T, a *attacker) {
	m := a.machine("genuine", a.useTarget(t))
	m.Spec.Metadata.Labels = map[string]string{"owned-by": "mallory"}
	_ = a.make(t, m)
	o := a.member(m.Name)
	o.awaitRunning(t)
	forged := fmt.Sprintf(`{"status":{"nodeRef":{"kind":"Node","name":%q,"uid":%q}}}`, a.node, a.nodeUID)
	a.forge(t, o, forged)
	o.annotate(t, "example.org/another-reconcile")
	a.nothing(t)
	a.hold(t, o)
	o.delete(t)
	a.forge(t, o, forged)
	a.nothing(t)
	a.release(t, o)
	o.awaitGone(t)
	a.nothing(t)
}

// claimThroughASecondConfiguration claims the Node of the victim, which joined the same cluster
// through another configuration.
func claimThroughASecondConfiguration(t *testing.T, a *attacker) {
	victim := a.victim.machine(t)
	m := a.evil(a.useTarget(t))
	m.Spec.ProviderID = ptr.To(victim.Status.ProviderID)
	_ = a.make(t, m)
	a.claims(t, fmt.Sprintf(`{"status":{"phase":"Running","providerID":%q,"nodeRef":{"kind":"Node","name":%q,"uid":%q}}}`,
		victim.Status.ProviderID, victim.Status.NodeRef.Name, victim.Status.NodeRef.UID))
}

// forgeMemory forges Drover's record of its writes to a Node, so that Drover would remove the
// administrator's labels and taints. If a policy refuses the forged status, the test repeats it
// without the policy. Then only the keys that no kubelet may write must be kept.
func forgeMemory(t *testing.T, a *attacker) {
	_ = a.make(t, a.machine("genuine", a.useTarget(t)))
	m := a.member("genuine")
	m.awaitRunning(t)
	for _, forged := range forgedMemories() {
		administrate(t, a.f, m.node)
		patch := client.RawPatch("application/merge-patch+json", []byte(forged))
		err := a.As.Status().Patch(t.Context(), m.machine(t), patch)
		m.annotate(t, "example.org/another-reconcile")
		a.nothing(t, func(ctx context.Context) string {
			return administrated(ctx, a.f, m.node, restricted, protected, quarantine)
		})
		if kit.Refused(err) {
			t.Logf("the API server refuses it to the tenant: %v", err)
			must(t, a.f.Client.Status().Patch(t.Context(), m.machine(t), patch))
			m.unannotate(t, "example.org/another-reconcile")
			a.nothing(t, func(ctx context.Context) string { return administrated(ctx, a.f, m.node, restricted, protected) })
			continue
		}
		must(t, err)
		m.unannotate(t, "example.org/another-reconcile")
	}
}

// forgedMemories are statuses that attribute the administrator's changes to Drover.
func forgedMemories() []string {
	const had = `"labels":["` + restricted + `"],"taints":["` + quarantine + `:NoExecute","` + protected + `:NoExecute"]`
	const values = `{"labels":{"` + restricted + `":"pci"}}`
	return []string{
		`{"status":{"appliedToNode":{` + had + `}}}`,
		`{"status":{"appliedToNode":{` + had + `,"replaced":` + values + `}}}`,
		`{"status":{"appliedToNode":{"labels":["` + clusterv1alpha1.LabelJoinToken + `"],"taints":["` + machinev1alpha1.Group + `/cordoned:PreferNoSchedule"]},"drained":true}}`,
	}
}

// Labels and taints of the administrator. A kubelet may not change those of a Kubernetes domain.
const (
	restricted = "node-restriction.kubernetes.io/tier"
	protected  = "node-restriction.kubernetes.io/quarantine"
	quarantine = "example.org/quarantine"
)

// administrate adds a label and taints to a Node and cordons it.
func administrate(t *testing.T, f kit.Fleet, node string) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		n := &corev1.Node{}
		if err := f.Cluster.Client.Get(ctx, client.ObjectKey{Name: node}, n); err != nil {
			return err.Error()
		}
		n.Labels[restricted] = "public"
		for _, key := range []string{quarantine, protected} {
			n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute})
		}
		n.Spec.Unschedulable = true
		if err := f.Cluster.Client.Update(ctx, n); err != nil {
			return err.Error()
		}
		return ""
	})
}

// administrated reports which of the administrator's keys the Node lacks, or that it is not
// cordoned.
func administrated(ctx context.Context, f kit.Fleet, node string, keys ...string) string {
	n := &corev1.Node{}
	if err := f.Cluster.Client.Get(ctx, client.ObjectKey{Name: node}, n); err != nil {
		return err.Error()
	}
	has := map[string]bool{restricted: n.Labels[restricted] == "public"}
	for _, taint := range n.Spec.Taints {
		has[taint.Key] = taint.Effect == corev1.TaintEffectNoExecute
	}
	if !n.Spec.Unschedulable {
		return "the Node is not cordoned any more"
	}
	for _, key := range keys {
		if !has[key] {
			return fmt.Sprintf("the Node lacks %s: it has the label %q and the taints %v", key, n.Labels[restricted], n.Spec.Taints)
		}
	}
	return ""
}

// labelOfAnotherMachine requests the label that makes its Node another Machine's.
func labelOfAnotherMachine(t *testing.T, a *attacker) {
	victim := a.victim.machine(t)
	m := a.machine("genuine", a.useTarget(t))
	m.Spec.Metadata.Labels = map[string]string{clusterv1alpha1.LabelJoinToken: string(victim.UID), "owned-by": "mallory"}
	m.Spec.Metadata.Annotations = map[string]string{
		formerMemory:                        `{"cordoned":true}`,
		machinev1alpha1.AnnotationMachine:   a.victim.name,
		machinev1alpha1.AnnotationNamespace: a.victim.f.Namespace,
	}
	if err := a.make(t, m); err != nil {
		a.nothing(t)
		return
	}
	o := a.member(m.Name)
	uid := string(o.machine(t).UID)
	node := names.OfMachine(m.Name, o.machine(t).UID)
	a.seen(t, o)
	for range 2 {
		a.nothing(t, func(ctx context.Context) string {
			n := &corev1.Node{}
			if err := a.f.Cluster.Client.Get(ctx, client.ObjectKey{Name: node}, n); err != nil {
				return "" // The Node has not joined.
			}
			if got := n.Labels[clusterv1alpha1.LabelJoinToken]; got != "" && got != uid {
				return "the Node has the label of another Machine: " + got
			}
			return a.victim.is(ctx, machinev1alpha1.MachineRunning)
		})
	}
}

// tokenForEver has a Machine whose VM cannot be created, so it never joins.
func tokenForEver(t *testing.T, a *attacker) {
	class := a.f.Class("refused", "local", `{"image":"ubuntu-24.04","size":"small"}`)
	class.Spec.ProviderConfigRef.Name = "nope"
	_ = a.make(t, class)
	m := a.machine("waits", a.useTarget(t))
	m.Spec.ClassRef.Name = class.Name
	m.Spec.CreationTimeout.Duration = time.Minute
	_ = a.make(t, m)
	patience.Eventually(t, func(ctx context.Context) string {
		if noTokens(ctx, a.f) == "" {
			return "there is no token yet"
		}
		return ""
	}, a.f.Describe)
	l := &corev1.SecretList{}
	must(t, a.f.Cluster.Client.List(t.Context(), l, client.InNamespace(metav1.NamespaceSystem)))
	for _, s := range l.Items {
		if s.Type != corev1.SecretTypeBootstrapToken || !strings.Contains(string(s.Data["description"]), a.f.Namespace+"/") {
			continue
		}
		expires, err := time.Parse(time.RFC3339, string(s.Data["expiration"]))
		if limit := s.CreationTimestamp.Add(time.Hour + time.Minute + 5*time.Second); err != nil || expires.After(limit) {
			t.Errorf("the token expires at %s, %v: want %s at the latest", expires, err, limit)
		}
	}
	a.nothing(t)
}

func injectedIdentity(t *testing.T, a *attacker) {
	pc := a.config("self", func(spec map[string]any) { spec["credentials"] = map[string]any{"source": "InjectedIdentity"} })
	if err := a.make(t, pc); err != nil {
		if !strings.Contains(err.Error(), "InjectedIdentity") {
			t.Errorf("the refusal does not name the source: %v", err)
		}
		a.nothing(t, a.noToken)
		return
	}
	_ = a.make(t, a.machine("node-of-control", machinev1alpha1.ClusterReference{Kind: "ProviderConfig", Name: pc.GetName()}))
	a.refusedBy(t, "ProviderConfig", pc.GetName(), "InjectedIdentity")
	a.nothing(t, a.noToken)
}

func injectedClusterIdentity(t *testing.T, a *attacker) {
	ref := a.serve(t, map[string]any{"credentials": map[string]any{"source": "InjectedIdentity"}, "allowedNamespaces": allowed(a.f.Namespace)})
	_ = a.make(t, a.machine("node-of-control", ref))
	a.refusedBy(t, ref.Kind, ref.Name, "InjectedIdentity")
	a.nothing(t, a.noToken)
}

// clusterClassOfOthers has a class that does not allow the namespace, at first and again later.
func clusterClassOfOthers(t *testing.T, a *attacker) {
	class := a.f.ClusterClass(a.f.Namespace, a.victim.f.Namespace, a.f.Namespace+"-2")
	must(t, a.f.Client.Create(t.Context(), class))
	t.Cleanup(func() { _ = a.f.Client.Delete(context.Background(), class) })
	mine := a.useTarget(t)
	use := func(m *machinev1alpha1.Machine) *machinev1alpha1.Machine {
		m.Spec.ClassRef = machinev1alpha1.ClassReference{Kind: "ClusterMachineClass", Name: class.Name}
		return m
	}
	intruder := a.member("intruder")
	if err := a.make(t, use(a.machine(intruder.name, mine))); err != nil {
		t.Fatalf("a tenant may name the class, which refuses it: %v", err)
	}
	// If the tenant selects a pipeline, it resolves the class itself.
	selects := use(a.machine("selects", mine))
	selects.Spec.Crossplane = &machinev1alpha1.CompositionSelection{CompositionSelector: &machinev1alpha1.CompositionSelector{MatchLabels: map[string]string{"provider": "local"}}}
	_ = a.make(t, selects)
	refused := func(name string) func(ctx context.Context) string {
		return func(ctx context.Context) string {
			return a.isRefused(ctx, name, machinev1alpha1.ReasonClassNotAllowed, fmt.Sprintf("ClusterMachineClass %q: Machines of namespace %q may not use it", class.Name, a.f.Namespace))
		}
	}
	a.awaits(t, refused(intruder.name))
	a.awaits(t, refused("selects"))
	noVMs := func(ctx context.Context) string {
		if vms, err := a.f.VMs(ctx); err != nil || len(vms) > 0 {
			return fmt.Sprintf("VMs %v, %v", vms, err)
		}
		return ""
	}
	a.nothing(t, a.noToken, noVMs)
	// To allow its own namespace, a tenant would write the class.
	err := a.As.Patch(t.Context(), class.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"allowedNamespaces":["*"]}}`)))
	if !kit.Refused(err) {
		t.Errorf("the tenant serves itself: %v", err)
	}
	// An existing Machine keeps its VM. New ones are refused.
	a.f.Patch(t, class, fmt.Sprintf(`{"spec":{"allowedNamespaces":[%q]}}`, a.f.Namespace))
	intruder.awaitRunning(t)
	a.f.Patch(t, class, `{"spec":{"allowedNamespaces":null}}`)
	_ = a.make(t, use(a.machine("late", mine)))
	a.awaits(t, refused("late"))
	before := intruder.machine(t)
	a.nothing(t, func(ctx context.Context) string {
		vms, err := a.f.VMs(ctx)
		if now := intruder.machine(t); err != nil || now.UID != before.UID || now.Status.Phase != machinev1alpha1.MachineRunning || len(vms) > 2 {
			return fmt.Sprintf("the Machine that was served is %s, VMs %v, %v", now.Status.Phase, vms, err)
		}
		return refused("late")(ctx)
	})
}

// isRefused reports how the refusal of a Machine differs from a reason and a message.
func (a *attacker) isRefused(ctx context.Context, name, reason, message string) string {
	m := &machinev1alpha1.Machine{}
	if err := a.f.Client.Get(ctx, client.ObjectKey{Namespace: a.f.Namespace, Name: name}, m); err != nil {
		return err.Error()
	}
	c := meta.FindStatusCondition(m.Status.Conditions, machinev1alpha1.ConditionValid)
	if c == nil || c.Reason != reason || !strings.Contains(c.Message, message) {
		return fmt.Sprintf("Machine %s: Valid is %+v", name, c)
	}
	return ""
}

// configurationOfOthers has a configuration that does not allow the namespace.
func configurationOfOthers(t *testing.T, a *attacker, more map[string]any) {
	ref := a.serve(t, more)
	m := a.member("intruder")
	if err := a.make(t, a.machine(m.name, ref)); err == nil {
		a.machineRefused(t, m, a.f.Namespace)
	}
	a.nothing(t, a.noToken)
	if vms, err := a.f.VMs(t.Context()); err != nil || len(vms) > 0 {
		t.Errorf("VMs %v, %v: none may be made that cannot join", vms, err)
	}
	// A Machine that joined another cluster cannot change to this one.
	mine := a.useTarget(t)
	_ = a.make(t, a.machine("moves", mine))
	moves := a.member("moves")
	moves.awaitRunning(t)
	uid := moves.machine(t).UID
	err := a.attempt(t, func(c client.Client) error {
		o := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: a.f.Namespace, Name: moves.name}}
		return c.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(fmt.Sprintf(`{"spec":{"clusterRef":{"kind":%q,"name":%q}}}`, ref.Kind, ref.Name))))
	})
	if err == nil {
		a.machineRefused(t, moves, a.f.Namespace)
	}
	a.nothing(t, func(ctx context.Context) string {
		if got := moves.machine(t).UID; got != uid {
			return "the Machine is another"
		}
		return ""
	})
}

// serveLimited serves a configuration with a list of the allowed labels and taints of Nodes.
func (a *attacker) serveLimited(t *testing.T) machinev1alpha1.ClusterReference {
	t.Helper()
	return a.serve(t, map[string]any{
		"allowedNamespaces": allowed(a.f.Namespace),
		"allowedNodeLabels": []any{"example.org/allowed"},
		"allowedNodeTaints": []any{"example.org/allowed"},
	})
}

func labelsOutside(t *testing.T, a *attacker) {
	ref := a.serveLimited(t)
	for i, key := range []string{"example.org/not-allowed", "node-role.kubernetes.io/etcd", restricted} {
		m := a.machine(fmt.Sprintf("wants-%d", i), ref)
		m.Spec.Metadata.Labels = map[string]string{"example.org/allowed": "yes", key: "mallory"}
		a.outside(t, m, key)
	}
}

func taintsOutside(t *testing.T, a *attacker) {
	ref := a.serveLimited(t)
	for i, change := range []func(m *machinev1alpha1.Machine, taint machinev1alpha1.Taint){
		func(m *machinev1alpha1.Machine, taint machinev1alpha1.Taint) {
			m.Spec.Taints = []machinev1alpha1.Taint{{Key: "example.org/allowed", Effect: "NoSchedule"}, taint}
		},
		func(m *machinev1alpha1.Machine, taint machinev1alpha1.Taint) {
			m.Spec.StartupTaints = []machinev1alpha1.Taint{taint}
		},
	} {
		m := a.machine(fmt.Sprintf("wants-%d", i), ref)
		change(m, machinev1alpha1.Taint{Key: "example.org/not-allowed", Effect: "PreferNoSchedule"})
		a.outside(t, m, "example.org/not-allowed")
	}
}

// outside creates a Machine whose Node must not get a key, as a label or as a taint.
func (a *attacker) outside(t *testing.T, m *machinev1alpha1.Machine, key string) {
	t.Helper()
	if err := a.make(t, m); err != nil {
		if !strings.Contains(err.Error(), key) {
			t.Errorf("the refusal does not name %s: %v", key, err)
		}
		return
	}
	o := a.member(m.Name)
	a.machineRefused(t, o, key)
	node := names.OfMachine(m.Name, o.machine(t).UID)
	a.nothing(t, func(ctx context.Context) string {
		n := &corev1.Node{}
		if err := a.f.Cluster.Client.Get(ctx, client.ObjectKey{Name: node}, n); err != nil {
			return "" // The Node has not joined.
		}
		text, err := json.Marshal(n)
		if err != nil || strings.Contains(string(text), key) {
			return fmt.Sprintf("the Node has %s: labels %v, taints %v, %v", key, n.Labels, n.Spec.Taints, err)
		}
		return ""
	})
}

// marksOutside writes the MachineGroup of a set, whose labels and taints are applied to the Nodes
// of the set.
func marksOutside(t *testing.T, a *attacker) {
	ref := a.serveLimited(t)
	set := machineSet(a.f, "set", 1)
	set.Spec.Template.Spec.ClusterRef = ref
	set.Spec.Template.Spec.Metadata.Labels = nil
	_ = a.make(t, set)
	awaitSet(t, a.f, set)
	_ = a.attempt(t, func(c client.Client) error {
		g := &machinev1alpha1.MachineGroup{ObjectMeta: metav1.ObjectMeta{Namespace: a.f.Namespace, Name: set.Name}}
		return c.Patch(t.Context(), g, client.RawPatch("application/merge-patch+json",
			[]byte(`{"spec":{"nodeMarks":{"taints":[{"key":"example.org/not-allowed","effect":"NoExecute"}]}}}`)))
	})
	a.nothing(t, func(ctx context.Context) string {
		nodes, err := a.f.Nodes(ctx)
		if err != nil || len(nodes) != 1 {
			return fmt.Sprintf("%d Nodes, %v", len(nodes), err)
		}
		for _, taint := range nodes[0].Spec.Taints {
			if taint.Key == "example.org/not-allowed" {
				return fmt.Sprintf("the Node has the taints %v", nodes[0].Spec.Taints)
			}
		}
		return ""
	})
}

// writeStatuses writes the status of each kind in the roles.
func writeStatuses(t *testing.T, a *attacker) {
	ref := a.useTarget(t)
	set := machineSet(a.f, "set", 0)
	set.Spec.Template.Spec.ClusterRef = ref
	md := a.f.Deployment("deployment", 0, 1, 0)
	md.Spec.Template.Spec.ClusterRef = ref
	for _, o := range []client.Object{a.evil(ref), set, md} {
		_ = a.make(t, o)
	}
	awaitSet(t, a.f, set)
	a.seen(t, a.member("evil"))
	for _, tc := range []struct{ group, kind, name, status string }{
		{machinev1alpha1.Group, "Machine", "evil", `{"status":{"phase":"Running"}}`},
		{machinev1alpha1.Group, "MachineSet", set.Name, `{"status":{"replicas":7}}`},
		{machinev1alpha1.Group, "MachineDeployment", md.Name, `{"status":{"replicas":7}}`},
		{machinev1alpha1.Group, "MachineGroup", set.Name, `{"status":{"digest":"forged"}}`},
		{clusterv1alpha1.Group, "ProviderConfig", ref.Name, `{"status":{"version":"v9.9.9"}}`},
	} {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: tc.group, Version: "v1alpha1", Kind: tc.kind})
		u.SetNamespace(a.f.Namespace)
		u.SetName(tc.name)
		err := a.As.Status().Patch(t.Context(), u, client.RawPatch("application/merge-patch+json", []byte(tc.status)))
		if !kit.Refused(err) {
			t.Errorf("the status of %s %s is written by the tenant: %v", tc.kind, tc.name, err)
		}
	}
	a.all.Check(t)
}

func classOfOthers(t *testing.T, a *attacker) {
	theirs := a.victim.f.Class("theirs", "local", `{"image":"ubuntu-24.04","size":"small"}`)
	must(t, a.f.Client.Get(t.Context(), client.ObjectKey{Namespace: a.victim.f.Namespace, Name: "small"}, theirs))
	ref := a.useTarget(t)
	for i, name := range []string{a.victim.f.Namespace + "/small", "../" + a.victim.f.Namespace + "/small", "small." + a.victim.f.Namespace} {
		m := a.machine(fmt.Sprintf("borrows-%d", i), ref)
		m.Spec.ClassRef.Name = name
		m.Spec.Crossplane = &machinev1alpha1.CompositionSelection{CompositionSelector: &machinev1alpha1.CompositionSelector{MatchLabels: map[string]string{"provider": "local"}}}
		if err := a.make(t, m); err != nil {
			continue
		}
		a.machineRefused(t, a.member(m.Name), "ClassNotFound")
	}
	a.nothing(t, a.noToken, func(ctx context.Context) string {
		if vms, err := a.f.VMs(ctx); err != nil || len(vms) > 0 {
			return fmt.Sprintf("VMs %v, %v", vms, err)
		}
		return ""
	})
}

// secretOfOthers names the credentials of the platform, which are in another namespace.
func secretOfOthers(t *testing.T, a *attacker) {
	for i, secret := range []map[string]any{
		{"namespace": metav1.NamespaceDefault, "name": a.served, "key": "kubeconfig"},
		{"namespace": a.victim.f.Namespace, "name": "target", "key": "kubeconfig"},
		{"name": metav1.NamespaceDefault + "/" + a.served, "key": "kubeconfig"},
	} {
		pc := a.config(fmt.Sprintf("borrows-%d", i), func(spec map[string]any) { spec["credentials"].(map[string]any)["secretRef"] = secret })
		if err := a.make(t, pc); err != nil {
			continue
		}
		_ = a.make(t, a.machine(pc.GetName(), machinev1alpha1.ClusterReference{Kind: "ProviderConfig", Name: pc.GetName()}))
		a.refusedBy(t, "ProviderConfig", pc.GetName())
	}
	a.nothing(t, a.noToken)
}

// foreignVM creates a VM of another installation in the same account of the cloud.
func foreignVM(t *testing.T) string {
	t.Helper()
	vm, err := plane.Cloud.CreateVM(t.Context(), localcloud.CreateVMRequest{
		Name: "of-another-installation", Image: localcloud.ImageUbuntu2404, Size: localcloud.SizeSmall,
		Tags: map[string]string{
			machinev1alpha1.TagInstallation: "another", machinev1alpha1.TagNamespace: "production", machinev1alpha1.TagMachine: "database",
			machinev1alpha1.TagMachineUID: "e3b0c442-98fc-1c14-9afb-f4c8996fb924", machinev1alpha1.TagCluster: "default",
		},
	})
	must(t, err)
	return vm.ID
}

// collectOrphans names the other installation, whose VMs have no Machines in this one.
func collectOrphans(t *testing.T, a *attacker) {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"policy": "Delete", "gracePeriod": "1s", "interval": "1s", "maxOrphans": int64(1000), "formerInstallations": []any{"another"},
		"crossplane": map[string]any{"compositionSelector": map[string]any{"matchLabels": map[string]any{"provider": "local"}}},
	}}}
	u.SetGroupVersionKind(machinev1alpha1.OrphanCollectorGroupVersionKind)
	u.SetName(a.f.Namespace)
	// Try both with a namespace and without, so that the scope of the kind does not matter.
	for _, namespace := range []string{a.f.Namespace, ""} {
		o := u.DeepCopy()
		o.SetNamespace(namespace)
		err := a.As.Create(t.Context(), o)
		if err == nil {
			t.Error("the tenant has an OrphanCollector")
			t.Cleanup(func() { _ = a.f.Client.Delete(context.Background(), o) })
			continue
		}
		if !kit.Refused(err) && !apierrors.IsNotFound(err) && !apierrors.IsBadRequest(err) && !isScope(err) {
			t.Errorf("neither accepted nor refused: %v", err)
		}
		t.Logf("the API server refuses it to the tenant: %v", err)
	}
	// A collector checks twice, a second apart.
	for range 4 {
		a.nothing(t, func(ctx context.Context) string {
			if _, err := a.f.Cloud.GetVM(ctx, a.foreignVM); err != nil {
				return "the VM of another installation: " + err.Error()
			}
			return ""
		})
	}
}

// isScope reports whether the client itself detected that the kind has another scope.
func isScope(err error) bool {
	return strings.Contains(err.Error(), "namespace")
}

// certificateForAStatus forges the addresses of a running Machine, and requests a certificate as
// its kubelet.
func certificateForAStatus(t *testing.T, a *attacker) {
	_ = a.make(t, a.machine("genuine", a.useTarget(t)))
	m := a.member("genuine")
	m.awaitRunning(t)
	everybodyMayAsk(t, a.f)
	const foreign = "10.0.0.1"
	a.forge(t, m, fmt.Sprintf(`{"status":{"addresses":[{"type":"InternalIP","address":%q},{"type":"InternalDNS","address":"kubernetes.default.svc"}]}}`, foreign))
	for _, template := range []x509.CertificateRequest{
		{IPAddresses: []net.IP{net.ParseIP(foreign)}},
		{DNSNames: []string{"kubernetes.default.svc"}},
	} {
		template.Subject = pkix.Name{CommonName: "system:node:" + m.node, Organization: []string{"system:nodes"}}
		csr := requestor{"system:node:" + m.node, []string{"system:nodes"}}.asks(t, a.f, &template, servingUsages)
		a.nothing(t, func(ctx context.Context) string { return notApproved(ctx, a.f, csr) })
	}
}

// notApproved returns an error text if a request was approved.
func notApproved(ctx context.Context, f kit.Fleet, csr *certificatesv1.CertificateSigningRequest) string {
	if err := f.Cluster.Client.Get(ctx, client.ObjectKeyFromObject(csr), csr); err != nil {
		return err.Error()
	}
	for _, c := range csr.Status.Conditions {
		if c.Type == certificatesv1.CertificateApproved {
			return fmt.Sprintf("%s is approved: %s", csr.Name, c.Message)
		}
	}
	if len(csr.Status.Certificate) > 0 {
		return csr.Name + " has a certificate"
	}
	return ""
}

// reads creates a configuration with a kubeconfig, and a Machine that joins through it.
func (a *attacker) reads(t *testing.T, cluster clientcmdapi.Cluster) (refused bool) {
	t.Helper()
	a.MayUseSecrets(t)
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: a.f.Namespace, Name: "target"}, Data: map[string][]byte{"kubeconfig": kit.KubeconfigOf(t, cluster)}}
	must(t, a.As.Create(t.Context(), s))
	if err := a.make(t, a.config("target", nil)); err != nil {
		return true
	}
	_ = a.make(t, a.machine("reads", machinev1alpha1.ClusterReference{Kind: "ProviderConfig", Name: "target"}))
	return false
}

// nothingOfABody checks that no object in the namespace quotes a body.
func (a *attacker) nothingOfABody(ctx context.Context) string { return a.f.Quotes(ctx, bodyMark) }

// secretive answers with an error whose body must not be quoted.
func secretive(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusInternalServerError)
	_, _ = fmt.Fprintln(w, bodyMark)
}

// unread creates a configuration that must be refused before a listener gets a connection.
func (a *attacker) unread(t *testing.T, l *kit.Listener, cluster clientcmdapi.Cluster, texts ...string) {
	t.Helper()
	check := func(context.Context) string {
		if n := l.Connections(); n > 0 {
			return fmt.Sprintf("the listener got %d connections and %d requests", n, l.Requests())
		}
		return ""
	}
	if !a.reads(t, cluster) {
		a.refusedBy(t, "ProviderConfig", "target", texts...)
	}
	a.nothing(t, a.noToken, a.nothingOfABody, check)
}

func readHTTP(t *testing.T, a *attacker) {
	l := kit.Listen(t, "127.0.0.1", false, secretive)
	a.unread(t, l, clientcmdapi.Cluster{Server: l.URL + "/latest/meta-data/iam"}, "https")
}

func readInsecure(t *testing.T, a *attacker) {
	l := kit.Listen(t, "127.0.0.1", true, secretive)
	a.unread(t, l, clientcmdapi.Cluster{Server: l.URL, InsecureSkipTLSVerify: true}, "insecure")
}

func useProxy(t *testing.T, a *attacker) {
	l := kit.Listen(t, "127.0.0.1", false, secretive)
	ca := targetCA(t)
	a.unread(t, l, clientcmdapi.Cluster{Server: plane.Target.Server, CertificateAuthorityData: ca, ProxyURL: l.URL}, "proxy-url")
}

func followRedirect(t *testing.T, a *attacker) {
	to := kit.Listen(t, "127.0.0.1", false, secretive)
	from := kit.Listen(t, "127.0.0.1", true, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, to.URL+"/latest/meta-data/iam", http.StatusFound)
	})
	if !a.reads(t, clientcmdapi.Cluster{Server: from.URL, CertificateAuthorityData: from.CA}) {
		a.awaitUnreachable(t)
	}
	a.nothing(t, a.noToken, a.nothingOfABody, func(context.Context) string {
		if n := to.Connections(); n > 0 {
			return fmt.Sprintf("%d redirects were followed", n)
		}
		return ""
	})
}

// awaitUnreachable waits until the cluster of the tenant's configuration is reported as
// unreachable.
func (a *attacker) awaitUnreachable(t *testing.T) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		u := a.config("target", nil)
		if err := a.f.Client.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
			return err.Error()
		}
		if c := conditionsOf(u)["Reachable"]; c.Status != metav1.ConditionFalse {
			return fmt.Sprintf("condition %+v", c)
		}
		return ""
	})
}

// readLoopback uses another loopback address than the API servers of the test.
func readLoopback(t *testing.T, a *attacker) {
	l := kit.Listen(t, "127.0.0.2", true, secretive)
	a.unread(t, l, clientcmdapi.Cluster{Server: l.URL, CertificateAuthorityData: l.CA, TLSServerName: "example.com"})
}

// readLinkLocal targets the metadata service of clouds. Only the reason shows whether the service
// got a request.
func readLinkLocal(t *testing.T, a *attacker) {
	if !a.reads(t, clientcmdapi.Cluster{Server: "https://169.254.169.254", CertificateAuthorityData: targetCA(t)}) {
		a.refusedBy(t, "ProviderConfig", "target")
	}
	a.nothing(t, a.noToken)
}

func quoteBody(t *testing.T, a *attacker) {
	l := kit.Listen(t, "127.0.0.1", true, secretive)
	if !a.reads(t, clientcmdapi.Cluster{Server: l.URL, CertificateAuthorityData: l.CA}) {
		a.awaitUnreachable(t)
	}
	a.nothing(t, a.noToken, a.nothingOfABody)
}

// targetCA is the certificate of the target cluster's certificate authority.
func targetCA(t *testing.T) []byte {
	t.Helper()
	cm := &corev1.ConfigMap{}
	patience.Eventually(t, func(ctx context.Context) string {
		if err := plane.Target.Client.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "kube-root-ca.crt"}, cm); err != nil {
			return err.Error()
		}
		return ""
	})
	return []byte(cm.Data["ca.crt"])
}

// leaveNothing deletes the Machines of the attacks before the next tests. The VM resources of
// some cannot be deleted, because their ProviderConfig never existed.
func leaveNothing(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		c := plane.Control.Client
		patience.Eventually(t, func(context.Context) string {
			sets, machines := &machinev1alpha1.MachineSetList{}, &machinev1alpha1.MachineList{}
			deployments := &machinev1alpha1.MachineDeploymentList{}
			for _, l := range []client.ObjectList{deployments, sets, machines} {
				if err := c.List(ctx, l); err != nil {
					return err.Error()
				}
			}
			for i := range deployments.Items {
				_ = c.Delete(ctx, &deployments.Items[i])
			}
			for i := range sets.Items {
				_ = c.Delete(ctx, &sets.Items[i])
			}
			for i := range machines.Items {
				_ = c.Patch(ctx, &machines.Items[i], client.RawPatch("application/merge-patch+json",
					[]byte(fmt.Sprintf(`{"metadata":{"annotations":{%q:"true",%q:"true"}}}`, machinev1alpha1.AnnotationForceDelete, machinev1alpha1.AnnotationSkipDrain))))
				_ = c.Delete(ctx, &machines.Items[i])
			}
			if n := len(machines.Items); n > 0 {
				return fmt.Sprintf("%d Machines are left, the first is %s/%s", n, machines.Items[0].Namespace, machines.Items[0].Name)
			}
			return ""
		})
	})
}
