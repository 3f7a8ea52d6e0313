package nodeinventory

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/target"
)

var query = clusterv1alpha1.NodeQuery{
	ExternalName: "vm-1", Cluster: "eu", Namespace: "team", MachineUID: "u-1", NodeName: "web-0", ProviderID: "cloud://vm-1",
}

func node(name, token, providerID string, ready corev1.ConditionStatus) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if token != "" {
		n.Labels = map[string]string{clusterv1alpha1.LabelJoinToken: token}
	}
	n.Spec.ProviderID = providerID
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue}, {Type: corev1.NodeReady, Status: ready}}
	return n
}

func uninitialized(n *corev1.Node) *corev1.Node {
	n.Spec.Taints = []corev1.Taint{{Key: machinev1alpha1.TaintUninitialized, Effect: corev1.TaintEffectNoSchedule}}
	return n
}

// A world has target clusters by their configurations, and the number of written statuses.
type world struct {
	*reconciler
	clusters map[target.Ref][]*corev1.Node
	// configs that exist.
	configs map[target.Ref]bool
	// broken clusters have an error instead.
	broken map[target.Ref]error
	writes int
}

func newWorld(t *testing.T, queries []clusterv1alpha1.NodeQuery, configs ...target.Ref) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1alpha1.AddToScheme, machinev1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{clusters: map[target.Ref][]*corev1.Node{}, configs: map[target.Ref]bool{}, broken: map[target.Ref]error{}}
	for _, ref := range configs {
		w.configs[ref] = true
	}
	inventory := &clusterv1alpha1.NodeInventory{ObjectMeta: metav1.ObjectMeta{Namespace: "drover", Name: "n", Generation: 3}}
	inventory.Spec.VirtualMachines = queries
	w.reconciler = &reconciler{
		connect: w.connect,
		client: crfake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(inventory).WithObjects(inventory).
			WithInterceptorFuncs(interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
				w.writes++
				return c.SubResource(sub).Update(ctx, o, opts...)
			}}).Build(),
	}
	return w
}

func (w *world) connect(_ context.Context, ref target.Ref) (cluster, error) {
	if !w.configs[ref] {
		return cluster{}, &target.Error{Kind: target.ConfigNotFound, Ref: ref}
	}
	if err := w.broken[ref]; err != nil && strings.Contains(err.Error(), "credentials") {
		return cluster{}, err
	}
	var objects []runtime.Object
	for _, n := range w.clusters[ref] {
		objects = append(objects, n)
	}
	kube := fake.NewClientset(objects...)
	if err := w.broken[ref]; err != nil {
		kube.PrependReactor("list", "nodes", failing(err))
	}
	matching := func(match func(*corev1.Node) bool) (out []*corev1.Node) {
		for _, n := range w.clusters[ref] {
			if match(n) {
				out = append(out, n)
			}
		}
		return out
	}
	return cluster{
		kube: kube,
		nodes: func(_ context.Context, _, name, _ string) ([]*corev1.Node, error) {
			return matching(func(n *corev1.Node) bool { return n.Name == name }), nil
		},
		ofVM: func(_ context.Context, id string) ([]*corev1.Node, error) {
			return matching(func(n *corev1.Node) bool { return n.Spec.ProviderID == id }), nil
		},
		classify: func(err error) error { return err },
	}, nil
}

func (w *world) look(t *testing.T) clusterv1alpha1.NodeInventoryStatus {
	t.Helper()
	key := client.ObjectKey{Namespace: "drover", Name: "n"}
	result, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
	if err != nil {
		t.Fatal(err)
	}
	if result.RequeueAfter != interval {
		t.Errorf("the next look is after %s, want %s", result.RequeueAfter, interval)
	}
	n := &clusterv1alpha1.NodeInventory{}
	if err := w.client.Get(t.Context(), key, n); err != nil {
		t.Fatal(err)
	}
	return n.Status
}

func failing(err error) clienttesting.ReactionFunc {
	return func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err }
}

func TestNodesOfVMsAreFound(t *testing.T) {
	eu, teams := target.ClusterRef("eu"), target.NamespacedRef("team", "eu")
	const ready, silent = corev1.ConditionTrue, corev1.ConditionUnknown
	unknown := func(err string) clusterv1alpha1.NodeAnswer {
		return clusterv1alpha1.NodeAnswer{ExternalName: "vm-1", Problem: err}
	}
	inEU := func(name string, ready bool) clusterv1alpha1.NodeAnswer {
		return clusterv1alpha1.NodeAnswer{ExternalName: "vm-1", Node: name, Cluster: "ClusterProviderConfig eu", Ready: ready}
	}
	cases := map[string]struct {
		nodes  map[target.Ref][]*corev1.Node
		broken map[target.Ref]error
		query  func(*clusterv1alpha1.NodeQuery)
		want   clusterv1alpha1.NodeAnswer
	}{
		"AVMMayHaveNoNode":                       {want: clusterv1alpha1.NodeAnswer{ExternalName: "vm-1"}},
		"NodesOfOthersAreNotIts":                 {nodes: map[target.Ref][]*corev1.Node{eu: {node("other", "u-2", "cloud://vm-2", ready), node("foreign", "", "", ready)}}, want: clusterv1alpha1.NodeAnswer{ExternalName: "vm-1"}},
		"ANodeIsFoundByItsMachine":               {nodes: map[target.Ref][]*corev1.Node{eu: {node("ip-10-0-0-1", "u-1", "", ready)}}, want: inEU("ip-10-0-0-1", true)},
		"ByItsName":                              {nodes: map[target.Ref][]*corev1.Node{eu: {node("web-0", "", "", ready)}}, want: inEU("web-0", true)},
		"ByItsProviderID":                        {nodes: map[target.Ref][]*corev1.Node{eu: {node("renamed", "", "cloud://vm-1", ready)}}, want: inEU("renamed", true)},
		"ANodeMayBeSilent":                       {nodes: map[target.Ref][]*corev1.Node{eu: {node("web-0", "u-1", "cloud://vm-1", silent)}}, want: inEU("web-0", false)},
		"ANodeThatWasNeverInitializedRunsNoPods": {nodes: map[target.Ref][]*corev1.Node{eu: {uninitialized(node("web-0", "u-1", "", ready))}}, want: inEU("web-0", false)},
		"OneThatIsReadyIsNamedBeforeOthers":      {nodes: map[target.Ref][]*corev1.Node{eu: {node("a", "u-1", "", silent), node("b", "u-1", "", ready), node("c", "u-1", "", silent)}}, want: inEU("b", true)},
		"TheClusterOfTheNamespaceIsLookedAt":     {nodes: map[target.Ref][]*corev1.Node{teams: {node("web-0", "u-1", "", ready)}}, want: clusterv1alpha1.NodeAnswer{ExternalName: "vm-1", Node: "web-0", Cluster: "ProviderConfig team/eu", Ready: true}},
		"AClusterThatIsSilentIsAProblem":         {broken: map[target.Ref]error{eu: errors.New("no answer")}, want: unknown("ClusterProviderConfig eu: no answer")},
		"SoAreBadCredentials":                    {broken: map[target.Ref]error{teams: errors.New("bad credentials")}, want: unknown("ProviderConfig team/eu: bad credentials")},
		"OfTwoClustersOneMayBeSilent":            {nodes: map[target.Ref][]*corev1.Node{eu: {node("web-0", "u-1", "", ready)}}, broken: map[target.Ref]error{teams: errors.New("no answer")}, want: clusterv1alpha1.NodeAnswer{ExternalName: "vm-1", Node: "web-0", Cluster: "ClusterProviderConfig eu", Ready: true, Problem: "ProviderConfig team/eu: no answer"}},
		"AVMWithoutATagOfItsClusterIsUnknown":    {query: func(q *clusterv1alpha1.NodeQuery) { q.Cluster = "" }, want: unknown("the VM has no tag with the cluster that it was made for")},
		"AClusterThatNobodyKnowsIsUnknown":       {query: func(q *clusterv1alpha1.NodeQuery) { q.Cluster = "us" }, want: unknown("neither a ClusterProviderConfig us nor a ProviderConfig team/us exists")},
		"AnErrorIsNoLongerThanAnAnswerMayHold":   {broken: map[target.Ref]error{eu: errors.New(strings.Repeat("x", 1000))}, want: unknown(("ClusterProviderConfig eu: " + strings.Repeat("x", 1000))[:maxProblem] + "...")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q := query
			if tc.query != nil {
				tc.query(&q)
			}
			w := newWorld(t, []clusterv1alpha1.NodeQuery{q}, eu, teams)
			w.clusters, w.broken = tc.nodes, tc.broken
			want := clusterv1alpha1.NodeInventoryStatus{ObservedGeneration: 3, VirtualMachines: []clusterv1alpha1.NodeAnswer{tc.want}}
			if d := cmp.Diff(want, w.look(t)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestAMachineIsFoundByTheNameOfItsVM(t *testing.T) {
	uid := types.UID("0b1c7f0e-1111-4222-8333-944445555666")
	long := strings.Repeat("x", 56) + "-" + strings.Repeat("y", 100)
	ask := func(namespace, name string) clusterv1alpha1.NodeQuery {
		return clusterv1alpha1.NodeQuery{ExternalName: namespace + "/" + name, Cluster: "eu", Namespace: namespace, NodeName: name}
	}
	cases := map[string]struct {
		query clusterv1alpha1.NodeQuery
		want  string
	}{
		"of a Machine":                       {ask("team", names.OfMachine("web-0", uid)), "web-0"},
		"of a Machine whose name is cut":     {ask("team", names.OfMachine(long, uid)), long},
		"of a Machine of before, by its UID": {ask("team", names.OfMachine("web-0", "another")), ""},
		"of a Machine of another namespace":  {ask("other", names.OfMachine("web-0", uid)), ""},
		"of a Machine that is there no more": {ask("team", names.OfMachine("web-1", uid)), ""},
		"of a VM whose namespace is unknown": {ask("", names.OfMachine("web-0", uid)), ""},
		"of a VM whose name is not known":    {ask("team", ""), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, []clusterv1alpha1.NodeQuery{tc.query}, target.ClusterRef("eu"))
			for _, machine := range []string{"web-0", long} {
				if err := w.client.Create(t.Context(), &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: machine, UID: uid}}); err != nil {
					t.Fatal(err)
				}
			}
			if got := w.look(t).VirtualMachines[0]; got.Machine != tc.want || got.Problem != "" {
				t.Errorf("got %+v, want the Machine %q", got, tc.want)
			}
		})
	}
}

func TestAnswersThatDoNotChangeAreNotWritten(t *testing.T) {
	other := query
	other.ExternalName, other.MachineUID, other.NodeName, other.ProviderID = "vm-2", "u-2", "web-1", ""
	w := newWorld(t, []clusterv1alpha1.NodeQuery{query, other}, target.ClusterRef("eu"))
	w.clusters[target.ClusterRef("eu")] = []*corev1.Node{node("web-1", "u-2", "", corev1.ConditionTrue)}
	w.look(t)
	w.look(t)
	if w.writes != 1 {
		t.Errorf("%d writes of the same answers", w.writes)
	}
	w.clusters[target.ClusterRef("eu")] = nil
	if got := w.look(t).VirtualMachines; w.writes != 2 || got[0].ExternalName != "vm-1" || got[1].Node != "" {
		t.Errorf("%d writes, answers %+v", w.writes, got)
	}
}

func TestANodeWakesThoseThatAskAboutIt(t *testing.T) {
	w := newWorld(t, []clusterv1alpha1.NodeQuery{query, {ExternalName: "vm-2"}})
	for name, tc := range map[string]struct {
		node target.NodeIdentity
		want int
	}{
		"ByItsName":       {target.NodeIdentity{Name: "web-0"}, 1},
		"ByItsMachine":    {target.NodeIdentity{Name: "x", Token: "u-1"}, 1},
		"ByItsProviderID": {target.NodeIdentity{Name: "x", ProviderID: "cloud://vm-1"}, 1},
		"OthersWakeNone":  {target.NodeIdentity{Name: "x", Token: "u-3", ProviderID: "cloud://vm-3"}, 0},
		"NothingIsNoNode": {target.NodeIdentity{Name: "x"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := asking(t.Context(), w.client, tc.node); len(got) != tc.want {
				t.Errorf("wakes %v, want %d", got, tc.want)
			}
		})
	}
}
