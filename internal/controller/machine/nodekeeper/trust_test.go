package nodekeeper

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// TestANodesOwnAnnotationIsNoMemory has a kubelet that may not write the label and the taint itself, and claims
// in an annotation that Drover set them.
func TestANodesOwnAnnotationIsNoMemory(t *testing.T) {
	const tier = "node-restriction.kubernetes.io/tier"
	n := node("n", corev1.ConditionTrue)
	n.Labels[tier] = "untrusted"
	n.Annotations = map[string]string{
		"cluster.drover.dev/applied": `{"labels":["` + tier + `"],"before":{"labels":{"` + tier + `":"pci"}},"taints":["quarantine:NoExecute"],"cordoned":true}`,
	}
	n.Spec.Taints = []corev1.Taint{{Key: "quarantine", Effect: corev1.TaintEffectNoExecute}}
	n.Spec.Unschedulable = true
	kube := fake.NewClientset(n)
	x, _ := newKeeper(start, kube, n)
	if _, err := x.update(t.Context(), workerNode()); err != nil || len(writes(kube)) > 0 {
		got, _ := kube.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
		t.Errorf("error %v, writes %v: tier %q, taints %v, unschedulable %v", err, writes(kube), got.Labels[tier], got.Spec.Taints, got.Spec.Unschedulable)
	}
}

// recordedNode records a Node in the status of workerNode.
func recordedNode(name, uid string) func(*Node) {
	return func(wn *Node) { wn.Status.NodeRef = &machinev1alpha1.NodeReference{Name: name, UID: uid} }
}

// TestAKubeletThatTakesTheTokenOfAnotherMachine has a rogue kubelet at a cloud that names Nodes: it puts the
// UID of the Machine into the label of its own Node.
func TestAKubeletThatTakesTheTokenOfAnotherMachine(t *testing.T) {
	genuine, rogue := joined("genuine", "uid-1", "w", id), joined("rogue", "uid-r", "w", id)
	bare := joined("rogue", "uid-r", "w", "")
	cases := map[string]struct {
		reason string
		change func(*Node)
		nodes  []*corev1.Node
		own    string
		fails  bool
	}{
		"BesideTheRecordedNode":             {"The Machine knows its Node.", recordedNode("genuine", "uid-1"), []*corev1.Node{genuine, rogue}, "genuine", false},
		"AfterTheRecordedNodeIsGone":        {"The Machine's Node had another name.", recordedNode("genuine", "uid-1"), []*corev1.Node{rogue}, "", false},
		"WithoutAProviderIDBeforeTheRecord": {"Only one has the providerID of the VM.", func(*Node) {}, []*corev1.Node{genuine, bare}, "genuine", false},
		"AloneWithoutAProviderID":           {"The label is no proof without the providerID of the VM.", func(*Node) {}, []*corev1.Node{bare}, "", false},
		"WithItBeforeTheRecord":             {"Nothing shows which is genuine.", func(*Node) {}, []*corev1.Node{genuine, rogue}, "", true},
		"WhenTheVMConfirmsNoProviderID":     {"A status is not good enough.", func(wn *Node) { wn.Confirmed = false }, []*corev1.Node{genuine}, "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kube := fake.NewClientset()
			for _, n := range tc.nodes {
				if err := kube.Tracker().Add(n.DeepCopy()); err != nil {
					t.Fatal(err)
				}
			}
			x, _ := newKeeper(start, kube, tc.nodes...)
			wn := workerNode(tc.change)
			n, err := x.Observe(t.Context(), wn)
			if got := nameOrNone(n); got != tc.own || (err != nil) != tc.fails {
				t.Errorf("%s\nNode %q, error %v", tc.reason, got, err)
			}
			if tc.fails && !strings.Contains(err.Error(), "genuine and rogue") {
				t.Errorf("error %v: it must name both", err)
			}
			deleted(wn)
			gone, err := x.Remove(t.Context(), wn, nil)
			left, lerr := kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
			if lerr != nil || (err != nil) != tc.fails || gone != (tc.own == "" && !tc.fails) {
				t.Errorf("deletion: gone %v, errors %v, %v", gone, err, lerr)
			}
			for _, n := range tc.nodes {
				isThere := slices.ContainsFunc(left.Items, func(l corev1.Node) bool { return l.Name == n.Name })
				if isThere != (n.Name != tc.own) {
					t.Errorf("deletion: Nodes %v are left", namesOfItems(left.Items))
				}
			}
		})
	}
}

func nameOrNone(n *corev1.Node) string {
	if n == nil {
		return ""
	}
	return n.GetName()
}

func namesOfItems(nodes []corev1.Node) []string {
	var out []string
	for _, n := range nodes {
		out = append(out, n.Name)
	}
	return out
}
