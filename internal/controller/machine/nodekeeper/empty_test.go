package nodekeeper

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

func drained(wn *Node) { wn.Parameters.Drained = true }

func cordonedNode(notes map[string]string, taints ...corev1.Taint) *corev1.Node {
	n := node("n", corev1.ConditionTrue)
	n.Spec.Unschedulable, n.Spec.Taints = true, taints
	n.SetAnnotations(notes)
	return n
}

func TestANodeThatStaysIsDrained(t *testing.T) {
	ours := corev1.Taint{Key: machinev1alpha1.TaintCordoned, Effect: corev1.TaintEffectPreferNoSchedule}
	draining := func(since time.Duration) func(*Node) {
		return func(wn *Node) {
			drained(wn)
			wn.Observation.NodeUID = "uid-1"
			wn.Observation.Drain = &machinev1alpha1.DrainStatus{StartTime: metav1.NewTime(start.Add(-since))}
		}
	}
	skipped := map[string]string{machinev1alpha1.AnnotationSkipDrain: "true"}
	cases := map[string]struct {
		node    *corev1.Node
		change  func(*Node)
		pods    []*corev1.Pod
		kube    func(*fake.Clientset)
		writes  []string
		drained bool
		started time.Time // start of the drain in the status
		fails   bool
	}{
		"ItIsCordonedFirst": {node: node("n", corev1.ConditionTrue), change: drained, pods: []*corev1.Pod{podOn("a")}, writes: []string{"patch nodes"}},
		"ThenItsPodsAreEvicted": {
			node: cordonedNode(nil, ours), change: drained, pods: []*corev1.Pod{podOn("a")},
			writes: []string{"create pods/eviction"}, started: start,
		},
		"TheTimeoutCountsFromTheBeginning": {
			node: cordonedNode(nil, ours), change: draining(time.Minute), pods: []*corev1.Pod{podOn("a")},
			writes: []string{"create pods/eviction"}, started: start.Add(-time.Minute),
		},
		"AfterItBudgetsDoNotCount": {
			node: cordonedNode(nil, ours), change: draining(2 * time.Hour), pods: []*corev1.Pod{podOn("a")},
			writes: []string{"delete pods"}, started: start.Add(-2 * time.Hour),
		},
		"AnEmptyNodeIsDrained":         {node: cordonedNode(nil, ours), change: draining(time.Minute), drained: true},
		"ANodeThatOthersCordonedIsToo": {node: cordonedNode(nil), change: drained, drained: true},
		"SkipDrainLeavesThePods":       {node: cordonedNode(skipped), change: drained, pods: []*corev1.Pod{podOn("a")}, drained: true},
		"PodsThatCannotBeListedMayBeThere": {
			node: cordonedNode(nil, ours), change: drained, kube: noPods, started: start, fails: true,
		},
		"WhenItIsTakenBackTheNodeIsUncordoned": {
			node: cordonedNode(nil, ours), change: func(wn *Node) {
				draining(time.Minute)(wn)
				wn.Parameters.Drained = false
			},
			pods: []*corev1.Pod{podOn("a")}, writes: []string{"patch nodes"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kube := fake.NewClientset(tc.node)
			for _, p := range tc.pods {
				if err := kube.Tracker().Add(p); err != nil {
					t.Fatal(err)
				}
			}
			if tc.kube != nil {
				tc.kube(kube)
			}
			x, _ := newKeeper(start, kube, tc.node)
			wn := workerNode(tc.change)
			n, err := x.Observe(t.Context(), wn)
			if err != nil || wn.Observation.Synced && !toDrain(wn, n) {
				t.Fatalf("observation %+v, error %v", wn.Observation, err)
			}
			if _, err := x.Keep(t.Context(), wn, n, recordIn(wn)); (err != nil) != tc.fails {
				t.Fatalf("error %v", err)
			}
			if w := writes(kube); !slices.Equal(w, tc.writes) {
				t.Errorf("writes %v, want %v", w, tc.writes)
			}
			s := wn.Observation
			if s.Drained != tc.drained || (s.Drain != nil) != !tc.started.IsZero() || s.Drain != nil && !s.Drain.StartTime.Time.Equal(tc.started) {
				t.Errorf("drained %v, drain %+v", s.Drained, s.Drain)
			}
		})
	}
}

func TestADrainedNode(t *testing.T) {
	was := func(uid types.UID) *Node {
		return workerNode(drained, func(wn *Node) {
			wn.Observation.NodeUID, wn.Observation.Drained = uid, true
		})
	}
	for name, tc := range map[string]struct {
		node *corev1.Node
		uid  types.UID
		want bool
	}{
		"IsLeftInPeace":                       {cordonedNode(nil), "uid-1", true},
		"IsNotSoOnceSomebodyUncordonedIt":     {node("n", corev1.ConditionTrue), "uid-1", false},
		"IsNotTheOneThatCameBackUnderItsName": {cordonedNode(nil), "uid-0", false},
		"IsNotThereWithoutItsNode":            {nil, "uid-1", false},
	} {
		t.Run(name, func(t *testing.T) {
			kube := fake.NewClientset()
			x, _ := newKeeper(start, kube)
			if tc.node != nil {
				x.Nodes = always(tc.node)
			}
			wn := was(tc.uid)
			n, err := x.Observe(t.Context(), wn)
			if err != nil || wn.Observation.Drained != tc.want || (wn.Observation.Synced && !toDrain(wn, n)) != tc.want {
				t.Errorf("observation %+v, error %v", wn.Observation, err)
			}
			if len(kube.Actions()) > 0 {
				t.Errorf("calls %v: pods are listed only while draining", kube.Actions())
			}
		})
	}
}

func TestWhatANodeSaysIsReportedWithoutWhatWePutThere(t *testing.T) {
	n := node("n", corev1.ConditionTrue)
	n.SetLabels(map[string]string{
		clusterv1alpha1.LabelJoinToken: "w", "machine.drover.dev/updated-to": "u1", "machine.drover.dev/update": "ready", "machine.drover.dev/stale": "x",
		"kubernetes.io/os": "linux", "plain": "1",
	})
	n.SetAnnotations(map[string]string{
		"drover.dev/skip-drain": "true", "machine.drover.dev/machine": "m", "sub.drover.dev/x": "1",
	})
	wn := workerNode(func(wn *Node) {
		wn.Parameters.Labels = map[string]string{"machine.drover.dev/update": "ready"}
		wn.Parameters.Annotations = map[string]string{"machine.drover.dev/machine": "m"}
		wn.Status.AppliedToNode = &machinev1alpha1.AppliedToNode{NodeUID: "uid-1", Labels: []string{"machine.drover.dev/stale"}}
	})
	observeNode(wn, n, start)
	if d := cmp.Diff(map[string]string{"machine.drover.dev/updated-to": "u1"}, wn.Observation.Labels); d != "" {
		t.Errorf("labels (-want +got):\n%s", d)
	}
	if d := cmp.Diff(map[string]string{"drover.dev/skip-drain": "true"}, wn.Observation.Annotations); d != "" {
		t.Errorf("annotations (-want +got):\n%s", d)
	}
}
