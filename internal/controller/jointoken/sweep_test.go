package jointoken

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/target"
)

// tokenFor is a token in the target cluster. Fakes give out no UIDs.
func tokenFor(id string, jt, config types.UID) *corev1.Secret {
	owner := joinToken(func(j *v1alpha1.JoinToken) { j.SetUID(jt) })
	s := secretFor(owner, config, id, "0123456789abcdef", start)
	s.SetUID(types.UID("uid-of-" + id))
	return s
}

func TestSweep(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	pc := &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "ours"}}
	dead := &v1alpha1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "dead", UID: "dead"}}
	lives := joinToken(func(j *v1alpha1.JoinToken) { j.SetUID("lives") })
	unseen := joinToken(func(j *v1alpha1.JoinToken) { j.SetName("unseen"); j.SetUID("unseen") })
	cached := crfake.NewClientBuilder().WithScheme(scheme).WithObjects(pc, dead, lives).Build()
	live := crfake.NewClientBuilder().WithScheme(scheme).WithObjects(lives, unseen).Build()

	foreign := tokenFor("ffffff", "gone", "ours")
	foreign.Type = corev1.SecretTypeOpaque
	kube := fake.NewClientset(tokenFor("aaaaaa", "gone", "ours"), tokenFor("bbbbbb", "lives", "ours"), tokenFor("cccccc", "gone", "anothers"),
		tokenFor("dddddd", "unseen", "ours"), tokenFor("eeeeee", "", "ours"), foreign)
	events := &texts{}
	s := &sweeper{cached: cached, live: live, record: events, log: logging.NewNopLogger(), connect: func(_ context.Context, ref target.Ref) (sweepable, error) {
		if ref.Namespace != "" {
			return sweepable{}, errors.New("unreachable")
		}
		return sweepable{kube: kube, config: "ours", classify: func(err error) error { return err }}, nil
	}}
	tokens := func() string {
		t.Helper()
		l, err := kube.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, s := range l.Items {
			out = append(out, string(s.Data["token-id"]))
		}
		return strings.Join(out, " ")
	}

	if err := s.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := tokens(); got != "aaaaaa bbbbbb cccccc dddddd eeeeee ffffff" {
		t.Errorf("what was seen once is gone: %s are left", got)
	}
	for range 2 {
		if err := s.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := tokens(); got != "bbbbbb cccccc dddddd eeeeee ffffff" {
		t.Errorf("%s are left, want all but ours whose JoinToken is gone for the API server too", got)
	}
	if len(events.all) != 1 || !strings.Contains(events.all[0], "aaaaaa") || strings.Contains(events.all[0], "0123456789abcdef") {
		t.Errorf("events %v", events.all)
	}
}

func TestATokenThatIsOnItsWayOutForOneSweepIsLeftAlone(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	pc := &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "ours"}}
	control := crfake.NewClientBuilder().WithScheme(scheme).WithObjects(pc).Build()
	kube := fake.NewClientset(tokenFor("aaaaaa", "late", "ours"))
	s := &sweeper{cached: control, live: control, record: &texts{}, log: logging.NewNopLogger(), connect: func(context.Context, target.Ref) (sweepable, error) {
		return sweepable{kube: kube, config: "ours", classify: func(err error) error { return err }}, nil
	}}
	sweep := func() {
		t.Helper()
		if err := s.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	sweep()
	late := joinToken(func(j *v1alpha1.JoinToken) { j.SetUID("late") })
	if err := control.Create(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	sweep()
	if err := client.IgnoreNotFound(control.Delete(t.Context(), late)); err != nil {
		t.Fatal(err)
	}
	sweep()
	if _, err := kube.CoreV1().Secrets("kube-system").Get(t.Context(), "bootstrap-token-aaaaaa", metav1.GetOptions{}); err != nil {
		t.Errorf("it was not seen twice in a row: %v", err)
	}
}

func TestSweepOfNodesThatJoinedTooLate(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	workerNode := func(name, providerID, nodeName string) *v1alpha1.WorkerNode {
		wn := &v1alpha1.WorkerNode{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
		wn.Spec.ForProvider.ProviderID, wn.Spec.ForProvider.NodeName = providerID, nodeName
		return wn
	}
	pc := &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "ours"}}
	lives := joinToken(func(j *v1alpha1.JoinToken) { j.SetUID("lives") })
	byID, byName, bare := workerNode("by-id", "local:///a/1", ""), workerNode("by-name", "local:///a/2", "by-name"), workerNode("bare", "", "")
	unseen := workerNode("unseen", "local:///a/3", "")
	cached := crfake.NewClientBuilder().WithScheme(scheme).WithObjects(pc, lives, byID, byName, bare).Build()
	live := crfake.NewClientBuilder().WithScheme(scheme).WithObjects(lives, byID, byName, bare, unseen).Build()

	late := func(name string, change func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID("uid-of-" + name), Labels: map[string]string{v1alpha1.LabelJoinToken: "gone", v1alpha1.LabelConfig: "ours"},
		}}
		n.Spec.Taints = []corev1.Taint{{Key: machinev1alpha1.TaintUninitialized, Effect: corev1.TaintEffectNoSchedule}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
		if change != nil {
			change(n)
		}
		return n
	}
	kube := fake.NewClientset(
		late("late", nil),
		late("late-without-status", func(n *corev1.Node) { n.Status.Conditions = nil }),
		late("of-a-token-that-lives", func(n *corev1.Node) { n.Labels[v1alpha1.LabelJoinToken] = "lives" }),
		late("of-another-drover", func(n *corev1.Node) { n.Labels[v1alpha1.LabelConfig] = "anothers" }),
		late("of-nobody-knows-whom", func(n *corev1.Node) { delete(n.Labels, v1alpha1.LabelJoinToken) }),
		late("found-by-its-id", func(n *corev1.Node) { n.Spec.ProviderID = "local:///a/1" }),
		late("by-name", nil),
		late("found-only-now", func(n *corev1.Node) { n.Spec.ProviderID = "local:///a/3" }),
		late("alive", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionTrue }),
		late("in-use", func(n *corev1.Node) { n.Spec.Taints = nil }),
	)
	events := &texts{}
	s := &sweeper{cached: cached, live: live, record: events, log: logging.NewNopLogger(), connect: func(context.Context, target.Ref) (sweepable, error) {
		return sweepable{kube: kube, config: "ours", classify: func(err error) error { return err }}, nil
	}}
	left := func() map[string]bool {
		t.Helper()
		l, err := kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]bool{}
		for _, n := range l.Items {
			out[n.Name] = true
		}
		return out
	}
	for i, want := range []int{10, 8, 8} {
		if err := s.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := left(); len(got) != want {
			t.Errorf("after sweep %d there are %v, want %d", i, got, want)
		}
	}
	if got := left(); got["late"] || got["late-without-status"] {
		t.Errorf("left are %v", got)
	}
	if len(events.all) != 2 || !strings.Contains(strings.Join(events.all, " "), "Node late,") {
		t.Errorf("events %v", events.all)
	}
}
