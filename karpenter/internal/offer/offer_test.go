package offer

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/karpenter/apis/v1alpha1"
	"github.com/drover-dev/drover/karpenter/internal/capacity"
)

func node(cpu, memory string) capacity.Node {
	return capacity.Node{Capacity: corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}, Architecture: "amd64", OperatingSystem: "linux"}
}

func class(name string, n capacity.Node) Class {
	return Class{Kind: "MachineClass", Name: name, Node: n}
}

// here is the configuration that a DroverNodeClass names by default.
var here = []Cluster{{Kind: "ClusterProviderConfig", Name: "default"}}

func specOf(t *testing.T, classes string) v1alpha1.DroverNodeClassSpec {
	t.Helper()
	s := v1alpha1.DroverNodeClassSpec{}
	if err := yaml.UnmarshalStrict([]byte("classes:\n"+classes), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// show an offering in a line.
func show(o Offer) []string {
	var out []string
	for _, of := range o.Offerings {
		out = append(out, fmt.Sprintf("%s %s %s(%s) %g from %s", of.InstanceType, of.CapacityType, of.Zone, of.FailureDomain, of.Price, of.Class.Name))
	}
	return out
}

func TestOfferings(t *testing.T) {
	small, large := class("small", node("1", "2Gi")), class("large", node("4", "16Gi"))
	spot := class("small-spot", node("1", "2Gi"))
	labelled := class("metal", node("32", "128Gi"))
	labelled.Labels = map[string]string{"offer": "karpenter"}
	for name, c := range map[string]struct {
		spec    string
		classes []Class
		want    []string
	}{
		"OfAClassAreItsZones": {
			"- {name: small, zones: [{name: a}, {name: b, failureDomain: region-b}, {name: c, failureDomain: \"\"}], price: \"0.5\"}", []Class{small},
			[]string{"small on-demand a(a) 0.5 from small", "small on-demand b(region-b) 0.5 from small", "small on-demand c() 0.5 from small"},
		},
		"OfAZoneHaveItsPrice": {
			"- {name: small, zones: [{name: a}, {name: b, price: \"0.25\"}], price: \"0.5\"}", []Class{small},
			[]string{"small on-demand a(a) 0.5 from small", "small on-demand b(b) 0.25 from small"},
		},
		"WithoutPricesAreComparedBySize": {
			"- {name: small, zones: [{name: a}]}\n- {name: large, zones: [{name: a}]}", []Class{small, large},
			[]string{"large on-demand a(a) 8 from large", "small on-demand a(a) 1.5 from small"},
		},
		"OfAnInstanceTypeMayHaveTwoClasses": {
			"- {name: small, zones: [{name: a}], price: \"2\"}\n- {name: small-spot, instanceType: small, capacityType: spot, zones: [{name: a}], price: \"1\"}", []Class{small, spot},
			[]string{"small on-demand a(a) 2 from small", "small spot a(a) 1 from small-spot"},
		},
		"AreSelectedByLabels": {
			"- {matchLabels: {offer: karpenter}, zones: [{name: a}]}", []Class{small, labelled},
			[]string{"metal on-demand a(a) 64 from metal"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := Of(specOf(t, c.spec), Known{c.classes, here})
			if len(o.Problems) > 0 || !o.IsReady() {
				t.Errorf("problems %v", o.Problems)
			}
			if d := cmp.Diff(c.want, show(o)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestProblemsNameFieldValueAndCure(t *testing.T) {
	small := class("small", node("1", "2Gi"))
	unknown := class("unknown", capacity.Node{})
	unknown.NotDerived = "no such size"
	zoned := class("zoned", node("1", "2Gi"))
	zoned.FailureDomains = []string{"a", "b"}
	refused := Class{Kind: "ClusterMachineClass", Name: "shared", Node: node("1", "2Gi"), Refused: "spec.allowedNamespaces has no pattern for the namespace nodes"}
	all := []Class{small, unknown, zoned, refused, class("bigger", node("2", "2Gi"))}
	for name, c := range map[string]struct{ spec, condition, reason, message string }{
		"AClassThatDoesNotExist": {
			"- {name: smal, zones: [{name: a}]}", "ClassesFound", "ClassNotFound",
			`spec.classes[0].name: there is no MachineClass "smal", there are bigger, small, unknown, zoned: create it in the control cluster, or name another one`,
		},
		"AClassOfAnotherKind": {
			"- {kind: ClusterMachineClass, name: small, zones: [{name: a}]}", "ClassesFound", "ClassNotFound",
			`spec.classes[0].name: there is no ClusterMachineClass "small", there are shared: create it in the control cluster, or name another one`,
		},
		"AClassThatTheNamespaceMayNotUse": {
			"- {kind: ClusterMachineClass, name: shared, zones: [{name: a}]}", "ClassesFound", "ClassNotAllowed",
			`spec.classes[0]: ClusterMachineClass "shared": spec.allowedNamespaces has no pattern for the namespace nodes`,
		},
		"LabelsThatNoClassHas": {
			"- {matchLabels: {b: \"2\", a: \"1\"}, zones: [{name: a}]}", "ClassesFound", "NoClassSelected",
			`spec.classes[0].matchLabels: no MachineClass has the labels a=1,b=2: label a class, or remove the entry`,
		},
		"NoCapacityKnown": {
			"- {name: unknown, zones: [{name: a}]}", "CapacityKnown", "NodeCapacityUnknown",
			`spec.classes[0]: MachineClass "unknown" has no cpu and memory in spec.nodeCapacity.capacity, and they cannot be derived from spec.forProvider: no such size: create a class that has them, and name it here`,
		},
		"APriceThatIsNoNumber": {
			"- {name: small, zones: [{name: a}], price: cheap}", "PricesValid", "PriceInvalid",
			`spec.classes[0].price: is "cheap": must be the price of an hour, a number like 0.0104`,
		},
		"APriceThatIsNegative": {
			"- {name: small, zones: [{name: a, price: \"-1\"}], price: \"1\"}", "PricesValid", "PriceInvalid",
			`spec.classes[0].zones[0].price: is "-1": must be the price of an hour, a number like 0.0104`,
		},
		"APriceThatIsInfinite": {
			"- {name: small, zones: [{name: a}], price: Inf}", "PricesValid", "PriceInvalid",
			`spec.classes[0].price: is "Inf": must be the price of an hour, a number like 0.0104`,
		},
		"OnePriceOfTwo": {
			"- {name: small, zones: [{name: a}], price: \"1\"}\n- {name: bigger, zones: [{name: a}]}", "PricesValid", "PriceMissing",
			`spec.classes[1].price: is missing, and other classes have a price: set it, or remove all prices`,
		},
		"AZoneThatTheClassLacks": {
			"- {name: zoned, zones: [{name: a}, {name: d}]}", "ZonesValid", "ZoneNotOfClass",
			`spec.classes[0].zones[1]: the failure domain "d" is none of MachineClass "zoned", which has a, b: name one of these in failureDomain`,
		},
		"AnOfferingTwice": {
			"- {name: small, zones: [{name: a}]}\n- {name: small, zones: [{name: a}]}", "ZonesValid", "OfferedTwice",
			`spec.classes: the classes "small" and "small" both offer the instance type "small" in the zone "a" as on-demand: give one of them another instanceType`,
		},
		"AnInstanceTypeOfTwoSizes": {
			"- {name: small, zones: [{name: a}]}\n- {name: bigger, instanceType: small, zones: [{name: b}]}", "CapacityKnown", "InstanceTypeDiffers",
			`spec.classes: the classes "small" and "bigger" have the instance type "small" and not the same capacity: give one of them another instanceType`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := Of(specOf(t, c.spec), Known{all, here})
			if d := cmp.Diff([]Problem{{c.condition, c.reason, c.message}}, o.Problems); d != "" {
				t.Error(d)
			}
			if o.IsReady() {
				t.Error("NodeClaims may be created")
			}
		})
	}
}

func TestTheClusterOfADroverNodeClass(t *testing.T) {
	known := Known{Classes: []Class{class("small", node("1", "2Gi"))}, Clusters: []Cluster{
		{Kind: "ClusterProviderConfig", Name: "prod"}, {Kind: "ProviderConfig", Name: "own"},
		{Kind: "ClusterProviderConfig", Name: "closed", Refused: "spec.allowedNamespaces has no pattern for the namespace nodes"},
	}}
	for name, c := range map[string]struct {
		ref             v1alpha1.ClusterReference
		reason, message string
	}{
		"OfItsKindAndNameIsFound":   {v1alpha1.ClusterReference{Kind: "ClusterProviderConfig", Name: "prod"}, "", ""},
		"InTheNamespaceIsFound":     {v1alpha1.ClusterReference{Kind: "ProviderConfig", Name: "own"}, "", ""},
		"MustAllowTheNamespace":     {v1alpha1.ClusterReference{Name: "closed"}, "ClusterNotAllowed", `spec.clusterRef: ClusterProviderConfig "closed": spec.allowedNamespaces has no pattern for the namespace nodes`},
		"OfAnotherKindIsNotFound":   {v1alpha1.ClusterReference{Kind: "ProviderConfig", Name: "prod"}, "ClusterNotFound", `spec.clusterRef: there is no ProviderConfig "prod", there are own: create it in the control cluster, or create another DroverNodeClass, since clusterRef is immutable`},
		"IsTheDefaultIfNoneIsNamed": {v1alpha1.ClusterReference{}, "ClusterNotFound", `spec.clusterRef: there is no ClusterProviderConfig "default", there are closed, prod: create it in the control cluster, or create another DroverNodeClass, since clusterRef is immutable`},
	} {
		t.Run(name, func(t *testing.T) {
			spec := specOf(t, "- {name: small, zones: [{name: a}]}")
			spec.ClusterRef = c.ref
			o := Of(spec, known)
			var want []Problem
			if c.reason != "" {
				want = []Problem{{v1alpha1.ConditionClusterFound, c.reason, c.message}}
			}
			if d := cmp.Diff(want, o.Problems); d != "" {
				t.Error(d)
			}
			if o.IsReady() != (want == nil) {
				t.Errorf("NodeClaims may be created: %v", o.IsReady())
			}
		})
	}
}
