package nodekeeper

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/nodekeys"
)

func TestANodeIsTheMachinesOnlyByProof(t *testing.T) {
	named := claim{uid: "m", name: "node-of-m", providerID: id, confirmed: true}
	cloud := claim{uid: "m", cloudNames: true, providerID: id, confirmed: true}
	seen := func(c claim, confirmed bool) claim {
		c.recorded, c.confirmed = "uid-1", confirmed
		return c
	}
	seenAs := func(name string) claim {
		c := seen(cloud, true)
		c.name = name
		return c
	}
	own := func(c claim, confirmed bool) claim {
		c.ownUserData, c.confirmed = true, confirmed
		return c
	}
	cases := map[string]struct {
		reason string
		claim  claim
		node   *corev1.Node
		want   bool
	}{
		"OwnNameAndProviderID":       {"User data that Drover did not write may lack the label.", own(named, true), joined("node-of-m", "u", "", id), true},
		"OwnNameAlone":               {"The name follows from the Machine, which is no secret.", own(named, true), joined("node-of-m", "u", "", ""), false},
		"OwnProviderIDAlone":         {"A Node chooses its providerID itself.", own(named, true), joined("rogue", "u", "", id), false},
		"OwnNameAndAnotherVM":        {"It is of another VM.", own(named, true), joined("node-of-m", "u", "", "of-another"), false},
		"OwnNotConfirmed":            {"A status may be forged.", own(named, false), joined("node-of-m", "u", "", id), false},
		"OwnNameAndAnotherToken":     {"It belongs to another Machine.", own(named, true), joined("node-of-m", "u", "another", id), false},
		"OwnTokenAndName":            {"The user data has the label.", own(named, false), joined("node-of-m", "u", "m", ""), true},
		"OwnWhereTheCloudNamesNodes": {"The name proves nothing there.", own(cloud, true), joined("ip-10-0-0-1", "u", "", id), false},
		"TokenAndName":               {"A kubelet registers with both.", named, joined("node-of-m", "u", "m", ""), true},
		"TokenAlone":                 {"Any kubelet can put the label on its own Node, but cannot choose its name.", named, joined("rogue", "u", "m", id), false},
		"NameAlone":                  {"The name follows from the Machine, which is no secret.", named, joined("node-of-m", "u", "", id), false},
		"NameAndAnotherToken":        {"It belongs to another Machine.", named, joined("node-of-m", "u", "another", id), false},
		"ProviderIDAlone":            {"A Node chooses its providerID itself.", named, joined("rogue", "u", "", id), false},
		"ClaimedButAnotherName":      {"A forged status.nodeRef reaches no Node of another name.", seen(named, true), joined("cp-1", "uid-1", "", id), false},
		"ClaimedAndConfirmed":        {"The Node removed its label.", seen(named, true), joined("node-of-m", "uid-1", "", id), true},
		"ClaimedNotConfirmed":        {"Both status.nodeRef and status.providerID may be forged.", seen(named, false), joined("node-of-m", "uid-1", "", id), false},
		"CloudTokenAndProviderID":    {"The cloud names Nodes, and the VM has the providerID.", cloud, joined("ip-10-0-0-1", "u", "m", id), true},
		"CloudTokenAlone":            {"Any kubelet can put the label on its own Node.", cloud, joined("ip-10-0-0-1", "u", "m", ""), false},
		"CloudTokenOfAnotherVM":      {"Any kubelet can put the label on its own Node.", cloud, joined("ip-10-0-0-1", "u", "m", "of-another"), false},
		"CloudTokenAndRecorded":      {"The Machine knows its Node, also when the VM is gone.", seen(cloud, false), joined("ip-10-0-0-1", "uid-1", "m", ""), true},
		"CloudRecordedAnotherName":   {"A Node of another name has another identity.", seenAs("ip-10-0-0-1"), joined("rogue", "u", "m", id), false},
		"CloudRegisteredAgain":       {"Its kubelet registered again.", seenAs("ip-10-0-0-1"), joined("ip-10-0-0-1", "u", "m", id), true},
		"CloudAnotherToken":          {"It belongs to another Machine.", cloud, joined("ip-10-0-0-1", "u", "another", id), false},
		"CloudProviderIDAlone":       {"A Node chooses its providerID itself.", cloud, joined("ip-10-0-0-1", "u", "", id), false},
		"CloudClaimedNotConfirmed":   {"Both status.nodeRef and status.providerID may be forged.", seen(cloud, false), joined("cp-1", "uid-1", "", id), false},
		"CloudClaimedOfAnotherVM":    {"status.nodeRef is forged: the VM is another one.", seen(cloud, true), joined("cp-1", "uid-1", "", "of-another"), false},
		"CloudClaimedAndConfirmed":   {"The Node removed its label.", seen(cloud, true), joined("ip-10-0-0-1", "uid-1", "", id), true},
		"CloudAnotherUID":            {"The Node was deleted, and another one has its providerID.", seen(cloud, true), joined("ip-10-0-0-1", "uid-2", "", id), false},
		"NeitherClaimNorToken":       {"Nothing is known.", claim{uid: "m"}, joined("n", "", "", ""), false},
		"CloudClaimedWithoutAnID":    {"A Node without providerID is confirmed by nothing.", seen(cloud, true), joined("cp-1", "uid-1", "", ""), false},
		"CloudClaimedNothingIsKnown": {"Neither has a providerID.", claim{uid: "m", recorded: "uid-1"}, joined("cp-1", "uid-1", "", ""), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.claim.isProven(tc.node); got != tc.want {
				t.Errorf("%s\nproven %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

func TestTwoMachinesNeverShareANode(t *testing.T) {
	of := func(uid string) *Node {
		return workerNode(func(wn *Node) { wn.SetUID(types.UID(uid)); wn.SetName(uid) })
	}
	for _, tc := range []struct {
		wn   *Node
		mine bool
	}{{of("a"), true}, {of("b"), false}, {of("c"), false}} {
		n := joined("n", "uid-1", "a", id) // All three Machines have the providerID.
		kube := fake.NewClientset(n)
		x, _ := newKeeper(start, kube, n)
		found, err := x.Observe(t.Context(), tc.wn)
		if err != nil || (found != nil) != tc.mine || tc.wn.Observation.Present != tc.mine {
			t.Errorf("%s: Node %v, observation %+v, error %v", tc.wn.GetName(), found, tc.wn.Observation, err)
		}
		deleted(tc.wn)
		gone, err := x.Remove(t.Context(), tc.wn, nil)
		if err != nil || gone == tc.mine || (len(writes(kube)) > 0) != tc.mine {
			t.Errorf("%s, deleted: gone %v, writes %v, error %v", tc.wn.GetName(), gone, writes(kube), err)
		}
	}
}

func TestANodeWithoutProviderIDGetsThatOfTheVM(t *testing.T) {
	wn := workerNode(func(wn *Node) { wn.Parameters.CloudNamesNodes = false })
	name := names.OfMachine(wn.GetName(), wn.GetUID())
	for _, tc := range []struct {
		token string
		found int
	}{{"", 0}, {"another", 0}, {"w", 1}} {
		bare := joined(name, "uid-1", tc.token, "")
		x, _ := newKeeper(start, fake.NewClientset())
		asked := []string{}
		x.Nodes = func(_ context.Context, token, name, uid string) ([]*corev1.Node, error) {
			asked = append(asked, token, name, uid)
			return slices.DeleteFunc([]*corev1.Node{bare}, func(n *corev1.Node) bool { return n.Name != name && string(n.UID) != uid }), nil
		}
		found, err := x.find(t.Context(), wn)
		if err != nil || len(found.proven) != tc.found || !slices.Equal(asked, []string{"w", name, ""}) {
			t.Fatalf("token %q: found %v, %v, asked for %q", tc.token, found, err, asked)
		}
		if tc.found == 0 {
			continue
		}
		change, err := nodekeys.Of(found.proven[0], wn.Parameters, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := struct{ Spec corev1.NodeSpec }{}
		if err := json.Unmarshal(change.Patch, &got); err != nil || got.Spec.ProviderID != id {
			t.Errorf("patch %s, %v: it must get the providerID", change.Patch, err)
		}
	}
}

func TestANodeThatGotTheProviderIDOfAnotherMachineIsNotDeleted(t *testing.T) {
	for _, tc := range []struct {
		providerID string
		deleted    bool
	}{{"", true}, {id, true}, {"of-another", false}} {
		live := node("n", corev1.ConditionTrue)
		live.Spec.ProviderID = tc.providerID
		seen := live.DeepCopy()
		seen.Spec.ProviderID = "" // The watch lags.
		kube := fake.NewClientset(live)
		x, e := newKeeper(start, kube, seen)
		wn := workerNode(deleted, recordedNode("n", "uid-1"))
		if gone, err := x.Remove(t.Context(), wn, nil); err != nil || gone || (len(writes(kube)) > 0) != tc.deleted {
			t.Errorf("providerID %q: gone %v, writes %v, error %v", tc.providerID, gone, writes(kube), err)
		}
		if tc.deleted {
			continue
		}
		x.Nodes = always(live)
		if gone, err := x.Remove(t.Context(), wn, nil); err != nil || !gone || len(writes(kube)) > 0 || !e.has(machinev1alpha1.EventNodeAbandoned) {
			t.Errorf("once the watch has it: gone %v, writes %v, events %v, error %v: it must not hold the Machine for ever", gone, writes(kube), *e, err)
		}
	}
}

func TestAProvenNodeWithTheProviderIDOfAnotherVMIsLeftAlone(t *testing.T) {
	n := joined("n", "uid-1", "w", "of-another")
	kube := fake.NewClientset(n)
	x, _ := newKeeper(start, kube, n)
	wn := workerNode(recordedNode("n", "uid-1"), func(wn *Node) { wn.Parameters.Labels = map[string]string{"a": "b"} })
	_, err := x.update(t.Context(), wn)
	if err == nil || !strings.Contains(err.Error(), "of-another") || !strings.Contains(err.Error(), id) || len(kube.Actions()) > 0 {
		t.Errorf("error %v, calls %v", err, kube.Actions())
	}
}

func TestARogueNodeWithTheProviderIDOfAnotherMachineChangesNothing(t *testing.T) {
	rogue := joined("rogue", "uid-r", "of-the-rogue", id)
	for name, genuine := range map[string]*corev1.Node{"BesideTheGenuineOne": joined("n", "uid-1", "w", id), "WithoutIt": nil} {
		t.Run(name, func(t *testing.T) {
			nodes := []*corev1.Node{rogue}
			if genuine != nil {
				nodes = append(nodes, genuine)
			}
			kube := fake.NewClientset(rogue)
			x, _ := newKeeper(start, kube, nodes...)
			wn := workerNode(func(wn *Node) { wn.Parameters.Labels = map[string]string{"a": "b"} })
			n, err := x.Observe(t.Context(), wn)
			if err != nil || n != genuine {
				t.Errorf("Node %v, error %v", n, err)
			}
			deleted(wn)
			if genuine == nil {
				if gone, err := x.Remove(t.Context(), wn, nil); err != nil || !gone {
					t.Errorf("gone %v, error %v", gone, err)
				}
			}
			if w := writes(kube); len(w) > 0 {
				t.Errorf("writes %v", w)
			}
		})
	}
}

func TestTwoNodesWithTheSameToken(t *testing.T) {
	a, b := joined("a", "uid-a", "w", id), joined("b", "uid-b", "w", id)
	t.Run("WhereTheCloudNamesNodesNeitherIsTouched", func(t *testing.T) {
		kube := fake.NewClientset(a, b)
		x, _ := newKeeper(start, kube, a, b)
		_, err := x.update(t.Context(), workerNode(func(wn *Node) { wn.Parameters.Labels = map[string]string{"a": "b"} }))
		if err == nil || !strings.Contains(err.Error(), "a and b") || len(kube.Actions()) > 0 {
			t.Errorf("error %v, calls %v", err, kube.Actions())
		}
	})
	t.Run("NeitherIsDrainedWithTheirMachineWhichGoesAtTheTimeout", func(t *testing.T) {
		kube := fake.NewClientset(a, b)
		x, e := newKeeper(start, kube, a, b)
		wn := workerNode(deleted)
		for _, late := range []bool{false, true} {
			if late {
				x.Now = func() time.Time { return start.Add(2 * time.Hour) }
			}
			gone, err := x.Remove(t.Context(), wn, nil)
			if gone != late || (err == nil) != late || e.has(machinev1alpha1.EventNodeAbandoned) != late || len(writes(kube)) > 0 {
				t.Errorf("late %v: gone %v, error %v, events %v, writes %v", late, gone, err, *e, writes(kube))
			}
		}
	})
	t.Run("ElsewhereTheNameDecides", func(t *testing.T) {
		wn := workerNode(func(wn *Node) { wn.Parameters.CloudNamesNodes = false })
		own := joined(names.OfMachine("w", "w"), "uid-1", "w", id)
		x, _ := newKeeper(start, fake.NewClientset(), a, own, b)
		if n, err := x.Observe(t.Context(), wn); err != nil || n != own {
			t.Errorf("Node %v, error %v", n, err)
		}
	})
}

func TestATokenThatTheNodeRemovedIsPutBack(t *testing.T) {
	claimed := func(wn *Node) { wn.Status.NodeRef = &machinev1alpha1.NodeReference{Name: "n", UID: "uid-1"} }
	cases := map[string]struct {
		change     func(*Node)
		providerID string
		putBack    bool
	}{
		"OfANodeThatTheVMConfirms":    {claimed, id, true},
		"NotIfTheVMConfirmsNothing":   {func(wn *Node) { claimed(wn); wn.Confirmed = false }, id, false},
		"NotIfTheMachineHadNoNode":    {func(*Node) {}, id, false},
		"NotOfTheNodeOfAnotherVM":     {claimed, "of-another", false},
		"NotOfANodeWithoutProviderID": {claimed, "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n := joined("n", "uid-1", "", tc.providerID)
			kube := fake.NewClientset(n)
			x, _ := newKeeper(start, kube, n)
			_, err := x.update(t.Context(), workerNode(tc.change))
			got, gerr := kube.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
			if err != nil || gerr != nil {
				t.Fatal(err, gerr)
			}
			if token := got.GetLabels()[clusterv1alpha1.LabelJoinToken]; (token == "w") != tc.putBack || !tc.putBack && len(writes(kube)) > 0 {
				t.Errorf("token %q, writes %v", token, writes(kube))
			}
		})
	}
}
