package control

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/karpenter/internal/drover"
	"github.com/drover-dev/drover/karpenter/internal/offer"
)

func decode(t *testing.T, o client.Object, text string) client.Object {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), o); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestClasses(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := drover.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	composition := func(name, provider, kind, expression string) client.Object {
		return decode(t, &drover.Composition{}, `
metadata: {name: `+name+`, labels: {provider: `+provider+`}}
spec:
  compositeTypeRef: {apiVersion: machine.drover.dev/v1alpha1, kind: `+kind+`}
  pipeline: [{step: bootstrap}, {step: infrastructure, input: {kind: Infrastructure, nodeCapacity: '`+expression+`'}}]`)
	}
	c := &Cluster{Namespace: "nodes", Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		composition("a", "cloud", "NodePool", `{"capacity": {"cpu": 64, "memory": "1Gi"}}`),
		composition("b", "cloud", "Machine", `{"capacity": {"cpu": class.spec.forProvider.cores, "memory": "2Gi"}}`),
		composition("c", "cloud", "Machine", `{"capacity": {"cpu": 32, "memory": "1Gi"}}`),
		decode(t, &drover.MachineClass{}, `{metadata: {namespace: nodes, name: four}, spec: {provider: cloud, forProvider: {cores: 4, failureDomains: [{name: zone-x}, {name: zone-y}]}}}`),
		decode(t, &drover.MachineClass{}, `{metadata: {namespace: nodes, name: wrong}, spec: {provider: cloud, forProvider: {}}}`),
		decode(t, &drover.MachineClass{}, `{metadata: {namespace: nodes, name: listed}, spec: {provider: none, instanceTypes: [{name: a}, {name: b}]}}`),
		decode(t, &drover.MachineClass{}, `{metadata: {namespace: other, name: elsewhere}, spec: {provider: cloud}}`),
		decode(t, &drover.ClusterMachineClass{}, `{metadata: {name: shared}, spec: {provider: none, allowedNamespaces: [team, n*s]}}`),
		decode(t, &drover.ClusterMachineClass{}, `{metadata: {name: refused}, spec: {provider: none, allowedNamespaces: [node, "n.*"]}}`),
		decode(t, &drover.ProviderConfig{}, `{metadata: {namespace: nodes, name: own}}`),
		decode(t, &drover.ProviderConfig{}, `{metadata: {namespace: other, name: elsewhere}}`),
		decode(t, &drover.ClusterProviderConfig{}, `{metadata: {name: open}, spec: {allowedNamespaces: ["node*"]}}`),
		decode(t, &drover.ClusterProviderConfig{}, `{metadata: {name: closed}, spec: {allowedNamespaces: [team]}}`),
	).Build()}
	known, err := c.Known(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]offer.Cluster{
		{Kind: "ProviderConfig", Name: "own"},
		{Kind: "ClusterProviderConfig", Name: "closed", Refused: `its spec.allowedNamespaces has no pattern for the namespace "nodes": add it there`},
		{Kind: "ClusterProviderConfig", Name: "open"},
	}, known.Clusters); d != "" {
		t.Error(d)
	}
	all := known.Classes
	if len(all) != 5 {
		t.Fatalf("%d classes", len(all))
	}
	for _, class := range all {
		switch class.Name {
		case "four":
			if class.Node.Capacity.Cpu().String() != "4" || !slices.Equal(class.FailureDomains, []string{"zone-x", "zone-y"}) || class.Refused != "" {
				t.Errorf("class %+v", class)
			}
		case "wrong":
			if class.Node.IsKnown() || class.NotDerived == "" || class.FailureDomains != nil {
				t.Errorf("class %+v", class)
			}
		case "listed":
			if !strings.Contains(class.Refused, "spec.instanceTypes lists several instance types") {
				t.Errorf("class %+v", class)
			}
		case "shared", "refused":
			if (class.Refused != "") != (class.Name == "refused") || class.Kind != "ClusterMachineClass" {
				t.Errorf("class %+v", class)
			}
		default:
			t.Errorf("class %+v", class)
		}
	}
}
