package machine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/machine/nodekeeper"
	"github.com/drover-dev/drover/internal/controller/machine/nodekeeper/nodetest"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/target"
)

// TestAForgedProviderIDKeepsNoNodeFromItsDrain continues the deletion of a Machine after a restart: only the
// status names the VM.
func TestAForgedProviderIDKeepsNoNodeFromItsDrain(t *testing.T) {
	m := dying()
	m.Status.ProviderID = "of-another"
	w := newWorld(t, m, aVM())
	w.join(itsNode())
	w.step()
	if w.hasNode("n") || len(w.events.of(machinev1alpha1.EventNodeAbandoned)) > 0 {
		t.Errorf("the Node is left, events %v", w.events.all)
	}
}

// TestAForgedReferenceStartsNoWatch of a kind that no pipeline composes.
func TestAForgedReferenceStartsNoWatch(t *testing.T) {
	forged := []machinev1alpha1.ComposedReference{
		{Role: "a", APIVersion: "apps/v1", Kind: "Deployment", Name: "d"},
		{Role: "companion-b", APIVersion: cardKind.GroupVersion().String(), Kind: cardKind.Kind, Name: "b"},
	}
	for name, deleting := range map[string]bool{"Living": false, "Deleting": true} {
		t.Run(name, func(t *testing.T) {
			w := running(t)
			m := w.machine()
			m.Status.ResourceRefs = append(m.Status.ResourceRefs, forged...)
			if err := w.client.Status().Update(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			w.watched = nil
			w.restart()
			if deleting {
				if err := w.client.Delete(t.Context(), m); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				w.step()
			}
			if got := slices.DeleteFunc(slices.Clone(w.watched), func(k schema.GroupVersionKind) bool { return k == vmKind || k == classKind }); len(got) > 0 {
				t.Errorf("watches of %v were started", got)
			}
		})
	}
}

var classKind = machinev1alpha1.MachineClassGroupVersionKind

func appliedTo(w *world) *machinev1alpha1.AppliedToNode { return w.machine().Status.AppliedToNode }

// withLabels has the Machine's spec and the pipeline desire labels of the Node.
func (w *world) withLabels(labels map[string]string) {
	w.t.Helper()
	if labels == nil {
		labels = map[string]string{}
	}
	w.script = func(ctx context.Context, req *fnRequest) (*fnResponse, error) {
		rsp, err := drover(w.t)(ctx, req)
		if wn, ok := rsp.GetContext().GetFields()["drover.dev/node"]; ok {
			wn.GetStructValue().GetFields()["parameters"].GetStructValue().Fields["labels"] = structpb.NewStructValue(structOf(w.t, labels))
		}
		return rsp, err
	}
}

func (w *world) nodeOfM() *corev1.Node {
	w.t.Helper()
	n, err := w.target.CoreV1().Nodes().Get(w.t.Context(), names.OfMachine("m", "uid-m"), metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// TestWhatANodeGetsIsRecordedFirst stops the process before, between and after the two writes.
func TestWhatANodeGetsIsRecordedFirst(t *testing.T) {
	w := running(t)
	if d := cmp.Diff(&machinev1alpha1.AppliedToNode{NodeUID: "uid-1", Labels: []string{"pool"}}, appliedTo(w)); d != "" {
		t.Fatalf("(-want +got):\n%s", d)
	}
	stopped := errors.New("the process was killed")
	n := w.nodeOfM()
	n.Labels["tier"] = "theirs"
	if _, err := w.target.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.target.ClearActions()

	w.withLabels(map[string]string{"tier": "gold"})
	w.refuse = func(write string) error {
		if write == "patch Machine/status" {
			return stopped
		}
		return nil
	}
	if err := w.reconcile(); !errors.Is(err, stopped) || len(nodetest.Writes(w.target)) > 0 {
		t.Fatalf("error %v, writes to the target cluster %v: nothing may be patched that is not recorded", err, nodetest.Writes(w.target))
	}
	w.restart()
	w.refuse = nil
	fails := true
	w.target.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) { return fails, nil, stopped })
	w.wantStep("it is recorded, and the Node cannot be patched", "patch Machine/status")
	recorded := &machinev1alpha1.AppliedToNode{
		NodeUID: "uid-1", Labels: []string{"pool", "tier"}, Replaced: &machinev1alpha1.ReplacedValues{Labels: map[string]string{"tier": "theirs"}},
	}
	if d := cmp.Diff(recorded, appliedTo(w)); d != "" {
		t.Errorf("before the patch (-want +got):\n%s", d)
	}
	w.restart()
	fails = false
	w.refuse = func(write string) error { return stopped }
	if err := w.reconcile(); !errors.Is(err, stopped) {
		t.Fatalf("error %v", err)
	}
	if l := w.nodeOfM().Labels; l["tier"] != "gold" || l["pool"] != "" {
		t.Errorf("labels %v", l)
	}
	w.restart()
	w.refuse = nil
	w.wantStep("the record is that of the Node", "patch Machine/status")
	recorded.Labels = []string{"tier"}
	if d := cmp.Diff(recorded, appliedTo(w)); d != "" {
		t.Errorf("after the patch (-want +got):\n%s", d)
	}
	w.wantRest("and then")

	w.withLabels(nil)
	w.wantStep("it is given back", "patch Machine/status")
	if l := w.nodeOfM().Labels; l["tier"] != "theirs" || appliedTo(w) != nil {
		t.Errorf("labels %v, record %+v", l, appliedTo(w))
	}
	w.wantRest("and then")
}

// TestALabelIsOneWriteOfTheMachine, be it added or removed, like any other change.
func TestALabelIsOneWriteOfTheMachine(t *testing.T) {
	w := running(t)
	w.withLabels(map[string]string{"pool": "a", "more": "b"})
	w.wantStep("it is added", "patch Machine/status")
	w.withLabels(map[string]string{"pool": "c", "more": "b"})
	w.wantStep("another value is not recorded")
	w.withLabels(map[string]string{"pool": "c"})
	w.wantStep("it is removed", "patch Machine/status")
	if l := w.nodeOfM().Labels; l["pool"] != "c" || l["more"] != "" {
		t.Errorf("labels %v", l)
	}
}

// TestAForgedRecordReachesNoProtectedKey has a tenant who forges the record of the keys that Drover set on the
// Node.
func TestAForgedRecordReachesNoProtectedKey(t *testing.T) {
	const tier = "node-restriction.kubernetes.io/tier"
	w := running(t)
	n := w.nodeOfM()
	n.Labels[tier], n.Spec.Unschedulable = "untrusted", true
	n.Spec.Taints = []corev1.Taint{{Key: "node.kubernetes.io/out-of-service", Effect: corev1.TaintEffectNoExecute}}
	if _, err := w.target.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	m := w.machine()
	m.Status.AppliedToNode = &machinev1alpha1.AppliedToNode{
		NodeUID: "uid-1", Labels: []string{"pool", tier}, Taints: []string{"node.kubernetes.io/out-of-service:NoExecute"},
		Replaced: &machinev1alpha1.ReplacedValues{Labels: map[string]string{tier: "pci"}},
	}
	if err := w.client.Status().Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	w.restart()
	w.target.ClearActions()
	for range 3 {
		w.step()
	}
	if d := cmp.Diff(n, w.nodeOfM()); d != "" || len(nodetest.Writes(w.target)) > 0 {
		t.Errorf("writes %v, Node (-want +got):\n%s", nodetest.Writes(w.target), d)
	}
	if d := cmp.Diff(&machinev1alpha1.AppliedToNode{NodeUID: "uid-1", Labels: []string{"pool"}}, appliedTo(w)); d != "" {
		t.Errorf("the record is not put right (-want +got):\n%s", d)
	}
	if got := w.events.of(machinev1alpha1.EventNodeKeysKept); len(got) == 0 || !strings.Contains(got[0], tier) {
		t.Errorf("events %v: a user is to remove it by hand", w.events.all)
	}
}

func identifiedOf(w *world) metav1.Condition {
	w.t.Helper()
	c := meta.FindStatusCondition(w.machine().Status.Conditions, machinev1alpha1.ConditionNodeIdentified)
	if c == nil {
		return metav1.Condition{}
	}
	return *c
}

// TestAPretenderIsReportedOnceAndBlindsNoMachine has a rogue kubelet beside a healthy Machine.
func TestAPretenderIsReportedOnceAndBlindsNoMachine(t *testing.T) {
	for name, rogue := range map[string]*corev1.Node{
		"WithTheProviderID": nodetest.Joined("rogue", "uid-r", "of-the-rogue", nodetest.ID),
		"WithTheToken":      nodetest.Joined("rogue", "uid-r", "uid-m", "of-the-rogue"),
		"WithBoth":          nodetest.Joined("rogue", "uid-r", "uid-m", nodetest.ID),
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t)
			if c := identifiedOf(w); c.Type != "" {
				t.Errorf("condition %+v of a Machine whose Node is not contested", c)
			}
			w.join(rogue.DeepCopy())
			w.wantStep("it is reported", "patch Machine/status")
			w.wantRest("and then")
			w.restart()
			w.wantRest("after a restart")
			c := identifiedOf(w)
			if got := w.events.of(machinev1alpha1.ReasonNodeContested); len(got) != 1 || !strings.Contains(got[0], "rogue") || c.Status != metav1.ConditionFalse || c.Reason != machinev1alpha1.ReasonNodeContested || !strings.Contains(c.Message, "Node rogue;") {
				t.Errorf("condition %+v, events %v", c, w.events.all)
			}
			if m := w.machine(); m.Status.Phase != machinev1alpha1.MachineRunning || m.Status.NodeRef.UID != "uid-1" {
				t.Errorf("status %+v", m.Status)
			}
			w.withLabels(map[string]string{"pool": "b"})
			w.step()
			if got := w.nodeOfM().Labels["pool"]; got != "b" {
				t.Errorf("label pool is %q: the Machine's own Node is kept in step", got)
			}
			if err := w.target.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("nodes"), "", "rogue"); err != nil {
				t.Fatal(err)
			}
			w.wantStep("it is gone", "patch Machine/status")
			if c := identifiedOf(w); c.Status != metav1.ConditionTrue || c.Reason != machinev1alpha1.ReasonNodeProven {
				t.Errorf("condition %+v", c)
			}
			w.wantRest("and then")
		})
	}
}

// TestANodeThatGivesUpItsIdentityStaysTheMachines: Drover restores the label and reports that.
func TestANodeThatGivesUpItsIdentityStaysTheMachines(t *testing.T) {
	for name, token := range map[string]string{"Removed": "", "ThatOfAnotherMachine": "uid-of-another"} {
		t.Run(name, func(t *testing.T) {
			w := running(t)
			for range 3 {
				n := w.nodeOfM()
				n.Labels[clusterv1alpha1.LabelJoinToken] = token
				if token == "" {
					delete(n.Labels, clusterv1alpha1.LabelJoinToken)
				}
				n.Spec.ProviderID = nodetest.ID
				if _, err := w.target.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
				w.wantStep("nothing of the Machine changes")
				if got := w.nodeOfM().Labels[clusterv1alpha1.LabelJoinToken]; got != "uid-m" {
					t.Errorf("the label is %q", got)
				}
			}
			if got := w.events.of(machinev1alpha1.EventNodeIdentityRestored); len(got) != 3 || len(slices.Compact(got)) != 1 || strings.Contains(got[0], "uid-of-another") {
				t.Errorf("events %v", w.events.all)
			}
			if m := w.machine(); m.Status.Phase != machinev1alpha1.MachineRunning || m.Status.NodeRef.UID != "uid-1" {
				t.Errorf("status %+v", m.Status)
			}
		})
	}
}

func TestChangesOfANodeWakeItsMachineAtABoundedRate(t *testing.T) {
	now := nodetest.Start
	l := nodekeeper.NewLimits(func() time.Time { return now })
	busy, other := nodekeeper.NodeID{Name: "busy"}, nodekeeper.NodeID{Name: "other"}
	atOnce := 0
	for range 1000 { // In ten seconds.
		if l.Delay(busy) == 0 {
			atOnce++
		}
		now = now.Add(10 * time.Millisecond)
	}
	if atOnce < nodekeeper.Burst || atOnce > nodekeeper.Burst+2 {
		t.Errorf("%d changes woke the Machine at once", atOnce)
	}
	l.Delay(busy)
	if d := l.Delay(busy); d != nodekeeper.Every {
		t.Errorf("the next one waits for %s", d)
	}
	if d := l.Delay(other); d != 0 {
		t.Errorf("another Node waits for %s", d)
	}
	now = now.Add(nodekeeper.Burst * nodekeeper.Every)
	if d := l.Delay(busy); d != 0 {
		t.Errorf("after a rest it waits for %s", d)
	}
	for i := range 10 * nodekeeper.Remembered {
		l.Delay(nodekeeper.NodeID{Name: fmt.Sprint(i)})
		now = now.Add(time.Second)
	}
	if len(l.ByNode) > 2*nodekeeper.Remembered {
		t.Errorf("%d Nodes are remembered", len(l.ByNode))
	}
}

// TestAPretenderWakesItsVictim: otherwise it is reported hours later.
func TestAPretenderWakesItsVictim(t *testing.T) {
	victim, rogue := aMachine(false), aMachine(false)
	victim.Name, victim.UID, victim.Status.ProviderID = "victim", "uid-v", nodetest.ID
	rogue.Name, rogue.UID, rogue.Status.ProviderID = "rogue", "uid-r", "of-the-rogue"
	// A tenant may name the VM of another one in many Machines, which then must not be queued at each change of its Node.
	squatter := aMachine(false)
	squatter.Namespace, squatter.Name, squatter.UID, squatter.Spec.ProviderID = "of-a-tenant", "squatter", "uid-s", ptr.To(nodetest.ID)
	elsewhere := aMachine(false)
	elsewhere.Name, elsewhere.UID, elsewhere.Status.ProviderID, elsewhere.Spec.ClusterRef.Name = "elsewhere", "uid-e", nodetest.ID, "of-another-team"
	b := crfake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(victim, rogue, squatter, elsewhere)
	if err := index(t.Context(), indexerOf(b)); err != nil {
		t.Fatal(err)
	}
	reader := b.Build()
	name := names.OfMachine("rogue", "uid-r")
	for what, tc := range map[string]struct {
		node target.NodeIdentity
		want []string
	}{
		"ItsOwn":         {target.NodeIdentity{Token: "uid-r", Name: name, ProviderID: "of-the-rogue"}, []string{"rogue"}},
		"WithAToken":     {target.NodeIdentity{Token: "uid-v", Name: name, ProviderID: "of-the-rogue"}, []string{"rogue", "victim"}},
		"WithAVM":        {target.NodeIdentity{Token: "uid-r", Name: name, ProviderID: nodetest.ID}, []string{"rogue", "victim"}},
		"OfNoMachine":    {target.NodeIdentity{Name: "n"}, nil},
		"NamedByItsHost": {target.NodeIdentity{Token: "uid-v", Name: "ip-10-0-0-1"}, []string{"victim"}},
	} {
		t.Run(what, func(t *testing.T) {
			var got []string
			for _, req := range ofNode(t.Context(), reader, refOf(rogue), tc.node) {
				got = append(got, req.Name)
			}
			if slices.Sort(got); !slices.Equal(got, tc.want) {
				t.Errorf("woken %v, want %v", got, tc.want)
			}
		})
	}
}

type builderIndexer struct{ b *crfake.ClientBuilder }

func (i builderIndexer) IndexField(_ context.Context, obj client.Object, field string, fn client.IndexerFunc) error {
	i.b.WithIndex(obj, field, fn)
	return nil
}

func indexerOf(b *crfake.ClientBuilder) client.FieldIndexer { return builderIndexer{b} }
