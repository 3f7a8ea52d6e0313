package jointoken

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/target"
)

func named(name string) *machinev1alpha1.Machine {
	return machine(func(m *machinev1alpha1.Machine) { m.Name, m.UID = name, types.UID(name) })
}

// tokenFor returns the token of a Machine in the target cluster. Fakes create no UIDs.
func tokenFor(id string, m, config types.UID) *corev1.Secret {
	s := tokenSecret(named(string(m)), Cluster{ConfigUID: config}, request(), credential{secret: "0123456789abcdef", minted: start}, nil, start)
	s.Name, s.UID = "bootstrap-token-"+id, types.UID("uid-of-"+id)
	s.Data["token-id"] = []byte(id)
	return s
}

func lateNode(name string, changes ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID("uid-of-" + name), ResourceVersion: "7",
		Labels: map[string]string{clusterv1alpha1.LabelJoinToken: "gone", clusterv1alpha1.LabelConfig: "ours"},
	}}
	n.Spec.Taints = []corev1.Taint{{Key: machinev1alpha1.TaintUninitialized, Effect: corev1.TaintEffectNoSchedule}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
	for _, c := range changes {
		c(n)
	}
	return n
}

// A sweeping is a sweeper of one cluster that can be reached and one that cannot.
type sweeping struct {
	*testing.T
	*sweeper
	target          *fake.Clientset
	control         client.Client // of the API server
	events          *recorded
	listsOfMachines int
}

// newSweeping has Machines that are in the cache and in the API server, and some that are only in the API
// server.
func newSweeping(t *testing.T, known, unseen []*machinev1alpha1.Machine, inTarget ...runtime.Object) *sweeping {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clusterv1alpha1.AddToScheme(scheme), machinev1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	s := &sweeping{T: t, target: fake.NewClientset(inTarget...), events: &recorded{}}
	cached := crfake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&clusterv1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "ours"}},
		&clusterv1alpha1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "dead", UID: "dead"}},
	)
	live := crfake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			s.listsOfMachines++
			return c.List(ctx, list, opts...)
		},
	})
	for _, m := range known {
		cached, live = cached.WithObjects(m.DeepCopy()), live.WithObjects(m.DeepCopy())
	}
	for _, m := range unseen {
		live = live.WithObjects(m.DeepCopy())
	}
	reader := cached.Build()
	s.control = live.Build()
	s.sweeper = &sweeper{
		configs: reader, cached: reader, live: s.control, record: s.events, log: logging.NewNopLogger(),
		connect: func(_ context.Context, ref target.Ref) (Cluster, error) {
			if ref.Namespace != "" {
				return Cluster{}, errors.New("unreachable")
			}
			return Cluster{Kube: s.target, ConfigUID: "ours", Classify: func(err error) error { return err }}, nil
		},
	}
	return s
}

func (s *sweeping) sweepOnce() {
	s.Helper()
	if err := s.sweep(s.Context()); err != nil {
		s.Fatal(err)
	}
}

// left in the target cluster: IDs of tokens and names of Nodes.
func (s *sweeping) left() []string {
	s.Helper()
	tokens, err := s.target.CoreV1().Secrets("kube-system").List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	nodes, err := s.target.CoreV1().Nodes().List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	out := map[string]bool{}
	for _, t := range tokens.Items {
		out[string(t.Data["token-id"])] = true
	}
	for _, n := range nodes.Items {
		out[n.Name] = true
	}
	return slices.Sorted(maps.Keys(out))
}

func (s *sweeping) expectLeft(reason string, want ...string) {
	s.Helper()
	if got := s.left(); !slices.Equal(got, want) {
		s.Errorf("%s\nwant %v, left are %v", reason, want, got)
	}
}

func TestSweepOfTokens(t *testing.T) {
	opaque := tokenFor("ffffff", "gone", "ours")
	opaque.Type = corev1.SecretTypeOpaque
	anonymous := tokenFor("eeeeee", "gone", "ours")
	delete(anonymous.Labels, clusterv1alpha1.LabelJoinToken)
	s := newSweeping(t, []*machinev1alpha1.Machine{named("alive")}, []*machinev1alpha1.Machine{named("unseen")},
		tokenFor("aaaaaa", "gone", "ours"), tokenFor("bbbbbb", "alive", "ours"), tokenFor("cccccc", "gone", "another"),
		tokenFor("dddddd", "unseen", "ours"), anonymous, opaque, tokenFor("gggggg", "gone too", "ours"))
	s.sweepOnce()
	s.expectLeft("A token that was found once stays.", "aaaaaa", "bbbbbb", "cccccc", "dddddd", "eeeeee", "ffffff", "gggggg")
	if s.listsOfMachines != 0 {
		t.Errorf("the Machines were listed %d times although nothing was to be deleted", s.listsOfMachines)
	}
	s.sweepOnce()
	s.expectLeft("All tokens stay but those of this configuration whose Machine does not exist in the API server either.", "bbbbbb", "cccccc", "dddddd", "eeeeee", "ffffff")
	if s.listsOfMachines != 1 {
		t.Errorf("the Machines were listed %d times in one sweep", s.listsOfMachines)
	}
	s.sweepOnce()
	text := strings.Join(s.events.all, "\n")
	if len(s.events.all) != 2 || !strings.Contains(text, "TokenSwept: Deleted bootstrap token aaaaaa") || strings.Contains(text, "0123456789abcdef") {
		t.Errorf("events %v", s.events.all)
	}
	for _, a := range s.target.Actions() {
		if d, ok := a.(clienttesting.DeleteActionImpl); ok && (d.DeleteOptions.Preconditions == nil || d.DeleteOptions.Preconditions.UID == nil) {
			t.Errorf("the deletion of %s has no UID", d.Name)
		}
	}
}

func TestATokenMustBeFoundTwiceInARow(t *testing.T) {
	s := newSweeping(t, nil, nil, tokenFor("aaaaaa", "late", "ours"))
	s.cached, s.live = s.control, s.control
	s.sweepOnce()
	late := named("late")
	if err := s.control.Create(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	s.sweepOnce()
	if err := s.control.Delete(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	s.sweepOnce()
	s.expectLeft("The sweep before did not find it.", "aaaaaa")
	s.sweepOnce()
	s.expectLeft("It was found twice in a row.")
}

func TestADeletionThatFailsIsTriedAgain(t *testing.T) {
	s := newSweeping(t, nil, nil, tokenFor("aaaaaa", "gone", "ours"), lateNode("late"))
	broken := true
	s.target.PrependReactor("delete", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return broken, nil, errors.New("broken")
	})
	s.sweepOnce()
	s.sweepOnce()
	s.expectLeft("The deletions failed.", "aaaaaa", "late")
	broken = false
	s.sweepOnce()
	s.expectLeft("The next sweep tries again.")
}

func TestSweepOfNodesThatJoinedTooLate(t *testing.T) {
	ready := func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionTrue }
	initialized := func(n *corev1.Node) { n.Spec.Taints = nil }
	label := func(key, value string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Labels[key] = value }
	}
	cases := map[string]struct {
		reason  string
		node    *corev1.Node
		deleted bool
	}{
		"Late":           {"No Machine waits for it, and its kubelet is silent.", lateNode("n"), true},
		"NotReady":       {"A kubelet without network is not Ready for ever.", lateNode("n", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }), true},
		"WithoutStatus":  {"Its kubelet never reported.", lateNode("n", func(n *corev1.Node) { n.Status.Conditions = nil }), true},
		"Claimed":        {"A Machine is alive.", lateNode("n", label(clusterv1alpha1.LabelJoinToken, "alive")), false},
		"ClaimedUnseen":  {"A Machine is alive that the cache does not know.", lateNode("n", label(clusterv1alpha1.LabelJoinToken, "unseen")), false},
		"OfAnother":      {"Another Drover looks after it.", lateNode("n", label(clusterv1alpha1.LabelConfig, "another")), false},
		"WithoutToken":   {"Drover does not know the Node.", lateNode("n", func(n *corev1.Node) { delete(n.Labels, clusterv1alpha1.LabelJoinToken) }), false},
		"Ready":          {"A kubelet that lives is left alone.", lateNode("n", ready), false},
		"InUse":          {"Nodes keep the labels for life: without the taint, pods may run there.", lateNode("n", initialized), false},
		"InUseAndFailed": {"A Node that a Machine used is not the sweeper's, Ready or not.", lateNode("n", initialized, label("pool", "a")), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSweeping(t, []*machinev1alpha1.Machine{named("alive")}, []*machinev1alpha1.Machine{named("unseen")}, tc.node)
			s.sweepOnce()
			s.expectLeft("A Node that was found once stays.", "n")
			s.sweepOnce()
			s.sweepOnce()
			if deleted := len(s.left()) == 0; deleted != tc.deleted {
				t.Errorf("%s\ndeleted: %v", tc.reason, deleted)
			}
			if got := len(s.events.all) == 1 && strings.Contains(s.events.all[0], "NodeSwept: Deleted Node n:"); got != tc.deleted {
				t.Errorf("events %v", s.events.all)
			}
			for _, a := range s.target.Actions() {
				if d, ok := a.(clienttesting.DeleteActionImpl); ok {
					if p := d.DeleteOptions.Preconditions; p == nil || *p.UID != "uid-of-n" || *p.ResourceVersion != "7" {
						t.Errorf("preconditions %+v", p)
					}
				}
			}
		})
	}
}

// TestTwoConfigurationsOfOneClusterSweepNothingTwice: a token and a Node are those of the
// configuration that the token was minted through.
func TestTwoConfigurationsOfOneClusterSweepNothingTwice(t *testing.T) {
	ofOther := lateNode("b", func(n *corev1.Node) { n.Labels[clusterv1alpha1.LabelConfig] = "dead" })
	s := newSweeping(t, nil, nil, tokenFor("aaaaaa", "gone", "ours"), tokenFor("bbbbbb", "gone", "dead"), lateNode("a"), ofOther)
	s.connect = func(_ context.Context, ref target.Ref) (Cluster, error) {
		uid := types.UID("ours")
		if ref.Namespace != "" {
			uid = "dead"
		}
		return Cluster{Kube: s.target, ConfigUID: uid, Classify: func(err error) error { return err }}, nil
	}
	for range 3 {
		s.sweepOnce()
	}
	s.expectLeft("Each is deleted through its own configuration.")
	deleted := map[string]int{}
	for _, a := range s.target.Actions() {
		if d, ok := a.(clienttesting.DeleteAction); ok {
			deleted[d.GetName()]++
		}
	}
	want := map[string]int{"bootstrap-token-aaaaaa": 1, "bootstrap-token-bbbbbb": 1, "a": 1, "b": 1}
	if !maps.Equal(deleted, want) || len(s.events.all) != len(want) {
		t.Errorf("deleted %v, events %v", deleted, s.events.all)
	}
}
