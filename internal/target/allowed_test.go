package target

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

func machineOf(namespace, kind string) *machinev1alpha1.Machine {
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m"}}
	m.Spec.ClusterRef = machinev1alpha1.ClusterReference{Kind: kind, Name: "c"}
	return m
}

func TestAMachineObtainsTheClustersThatAllowItsNamespace(t *testing.T) {
	kubeconfig := secret("s", map[string][]byte{"kubeconfig": kubeconfigFor("https://127.0.0.1:1")})
	for name, tc := range map[string]struct {
		allowed []v1alpha1.NamespacePattern
		m       *machinev1alpha1.Machine
		want    bool
	}{
		"ByItsName":                      {[]v1alpha1.NamespacePattern{"team-a"}, machineOf("team-a", "ClusterProviderConfig"), true},
		"ByAPattern":                     {[]v1alpha1.NamespacePattern{"x", "team-*"}, machineOf("team-a", "ClusterProviderConfig"), true},
		"NotThoseOfOthers":               {[]v1alpha1.NamespacePattern{"team-b"}, machineOf("team-a", "ClusterProviderConfig"), false},
		"NotWithoutAList":                {nil, machineOf("team-a", "ClusterProviderConfig"), false},
		"AlwaysThatOfItsOwnNamespace":    {nil, machineOf("ns", "ProviderConfig"), true},
		"NotByTheDefaultKindOfReference": {nil, machineOf("team-a", ""), false},
	} {
		t.Run(name, func(t *testing.T) {
			shared := config("c", "s")
			shared.Spec.AllowedNamespaces = tc.allowed
			own := &v1alpha1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}, Spec: shared.Spec.ProviderConfigSpec}
			p, _ := newPool(t, nil, []client.Object{shared, own, kubeconfig}...)
			conn, err := p.For(t.Context(), tc.m)
			if tc.want {
				if err != nil || conn == nil {
					t.Errorf("connection %v, error %v", conn, err)
				}
				return
			}
			const want = `ClusterProviderConfig c: Machines of namespace "team-a" may not use it: add "team-a", or a pattern that matches it, to its spec.allowedNamespaces`
			if conn != nil || !Is(err, NotAllowed) || err.Error() != want {
				t.Errorf("connection %v, error %v, want %q", conn, err, want)
			}
		})
	}
}

func TestAnAllowanceCountsAtOnce(t *testing.T) {
	cfg := config("c", "s")
	p, c := newPool(t, nil, cfg, secret("s", map[string][]byte{"kubeconfig": kubeconfigFor("https://127.0.0.1:1")}))
	m := machineOf("team-a", "ClusterProviderConfig")
	was, err := p.For(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Spec.AllowedNamespaces = nil
	if err := c.Update(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if _, err := p.For(t.Context(), m); !Is(err, NotAllowed) {
		t.Errorf("error %v after the namespace lost the allowance", err)
	}
	cfg.Spec.AllowedNamespaces = []v1alpha1.NamespacePattern{"team-a"}
	if err := c.Update(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if is, err := p.For(t.Context(), m); err != nil || is.link != was.link {
		t.Errorf("error %v, or another connection, after it was allowed again", err)
	}
}

func TestLabelsAndTaintsThatAConfigurationDoesNotAllow(t *testing.T) {
	for name, tc := range map[string]struct {
		change         func(*machinev1alpha1.Machine)
		labels, taints []v1alpha1.KeyPattern
		ofTenant       bool
		err            string
	}{
		"None": {change: func(*machinev1alpha1.Machine) {}},
		"OnesOfTheDefault": {change: func(m *machinev1alpha1.Machine) {
			m.Spec.Metadata.Labels = map[string]string{"team": "a", "node-role.kubernetes.io/worker": ""}
			m.Spec.Taints = []machinev1alpha1.Taint{{Key: "example.org/team"}}
		}},
		"ALabel": {change: func(m *machinev1alpha1.Machine) {
			m.Spec.Metadata.Labels = map[string]string{"team": "a", "node-role.kubernetes.io/etcd": ""}
		}, err: `ClusterProviderConfig c: spec.metadata.labels of the Machine: invalid value "node-role.kubernetes.io/etcd": spec.allowedNodeLabels of the configuration does not match it`},
		"ATaint": {change: func(m *machinev1alpha1.Machine) {
			m.Spec.Taints = []machinev1alpha1.Taint{{Key: "a"}, {Key: "node.kubernetes.io/unschedulable"}}
		}, err: `spec.taints[1].key of the Machine: invalid value "node.kubernetes.io/unschedulable": spec.allowedNodeTaints of the configuration`},
		"AStartupTaint": {change: func(m *machinev1alpha1.Machine) {
			m.Spec.StartupTaints = []machinev1alpha1.Taint{{Key: "x.k8s.io/a"}}
		}, err: `spec.startupTaints[0].key of the Machine: invalid value "x.k8s.io/a"`},
		"ALabelThatIsListed": {change: func(m *machinev1alpha1.Machine) {
			m.Spec.Metadata.Labels = map[string]string{"node-restriction.kubernetes.io/tier": "pci"}
		}, labels: []v1alpha1.KeyPattern{"node-restriction.kubernetes.io/tier"}},
		"ALabelThatIsNotListed": {change: func(m *machinev1alpha1.Machine) {
			m.Spec.Metadata.Labels = map[string]string{"team": "a"}
		}, labels: []v1alpha1.KeyPattern{"example.org/*"}, err: `spec.metadata.labels of the Machine: invalid value "team"`},
		"AnEmptyListAllowsNone": {change: func(m *machinev1alpha1.Machine) { m.Spec.Taints = []machinev1alpha1.Taint{{Key: "a"}} },
			taints: []v1alpha1.KeyPattern{}, err: `spec.taints[0].key of the Machine: invalid value "a"`},
		"ATenantsOwnConfigurationAllowsAll": {change: func(m *machinev1alpha1.Machine) {
			m.Spec.Metadata.Labels = map[string]string{"node-role.kubernetes.io/etcd": ""}
		}, ofTenant: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := machineOf("ns", "ClusterProviderConfig")
			tc.change(m)
			conn := &Conn{Ref: ClusterRef("c"), allows: allowancesOf(v1alpha1.ClusterProviderConfigSpec{AllowedNodeLabels: tc.labels, AllowedNodeTaints: tc.taints})}
			if tc.ofTenant {
				conn.allows = nil
			}
			err := conn.CheckNode(m)
			switch {
			case tc.err == "" && err != nil:
				t.Error(err)
			case tc.err != "" && (!Is(err, NotAllowed) || !strings.Contains(err.Error(), tc.err)):
				t.Errorf("error %v, want %q", err, tc.err)
			}
		})
	}
}
