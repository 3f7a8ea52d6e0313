package offer

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	clocktesting "k8s.io/utils/clock/testing"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/drover-dev/drover/karpenter/internal/drover"
)

const offers = `
- {name: small, zones: [{name: a, price: "2"}, {name: b, price: "1"}]}
- {name: small-spot, instanceType: small, capacityType: spot, zones: [{name: a}], price: "0.5"}
- {name: large, zones: [{name: a}], price: "4"}
`

func offered(t *testing.T) Offer {
	t.Helper()
	o := Of(specOf(t, offers), Known{[]Class{class("small", node("1", "2Gi")), class("small-spot", node("1", "2Gi")), class("large", node("4", "16Gi"))}, here})
	if !o.IsReady() {
		t.Fatal(o.Problems)
	}
	return o
}

func never(Key) bool { return false }

func TestKarpenterSeesInstanceTypes(t *testing.T) {
	types := offered(t).Types(func(k Key) bool { return k.Class.Name == "small-spot" })
	if len(types) != 2 || types[0].Name != "large" || types[1].Name != "small" {
		t.Fatalf("types %v", types)
	}
	small := types[1]
	if got := small.Requirements.Get(corev1.LabelTopologyZone).Values(); len(got) != 2 {
		t.Errorf("zones %v", got)
	}
	if len(small.Offerings) != 3 || len(small.Offerings.Available()) != 2 {
		t.Errorf("%d offerings, %d of them available", len(small.Offerings), len(small.Offerings.Available()))
	}
	if p, ok := small.OfferingPrice("b", "on-demand"); !ok || p != 1 {
		t.Errorf("price %g", p)
	}
	region := scheduling.NewRequirements(scheduling.NewRequirement(corev1.LabelTopologyRegion, corev1.NodeSelectorOpIn, "eu"))
	if region.IsCompatible(small.Requirements, scheduling.AllowUndefinedWellKnownLabels) {
		t.Error("a pod that selects a region gets a Node that does not have it")
	}
	if got := cloudprovider.InstanceTypes(types).OrderByPrice(scheduling.NewRequirements())[0].Name; got != "small" {
		t.Errorf("the cheapest is %s", got)
	}
}

func claimOf(requests corev1.ResourceList, requirements ...karpenterv1.NodeSelectorRequirementWithMinValues) *karpenterv1.NodeClaim {
	c := &karpenterv1.NodeClaim{}
	c.Spec.Resources.Requests, c.Spec.Requirements = requests, requirements
	return c
}

func requires(key string, values ...string) karpenterv1.NodeSelectorRequirementWithMinValues {
	return karpenterv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

func TestTheCheapestOfferingThatFits(t *testing.T) {
	for name, c := range map[string]struct {
		claim       *karpenterv1.NodeClaim
		unavailable func(Key) bool
		want        []string
	}{
		"ComesFirst": {claimOf(nil), never, []string{"small-spot a", "small b", "small a", "large a"}},
		"HasTheCapacityType": {
			claimOf(nil, requires(karpenterv1.CapacityTypeLabelKey, "on-demand")), never, []string{"small b", "small a", "large a"},
		},
		"IsInTheZone":           {claimOf(nil, requires(corev1.LabelTopologyZone, "b")), never, []string{"small b"}},
		"HasTheInstanceType":    {claimOf(nil, requires(corev1.LabelInstanceTypeStable, "large")), never, []string{"large a"}},
		"HasRoom":               {claimOf(corev1.ResourceList{"cpu": resource.MustParse("2")}), never, []string{"large a"}},
		"HasRoomBesideEviction": {claimOf(corev1.ResourceList{"memory": resource.MustParse("16Gi")}), never, []string{"large a"}},
		"HasTheResource":        {claimOf(corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}), never, nil},
		"IsAvailable": {
			claimOf(nil), func(k Key) bool {
				return k == Key{Class: drover.Reference{Kind: "MachineClass", Name: "small"}, FailureDomain: "b"} || k.Class.Name == "small-spot"
			},
			[]string{"small a", "large a"},
		},
		"IsNotThereForOtherMachines": {claimOf(nil, requires(corev1.LabelArchStable, "arm64")), never, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, of := range offered(t).Fitting(c.claim, c.unavailable) {
				got = append(got, of.Class.Name+" "+of.Zone)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestAnOfferingIsAvailableAgainAfterMinutes(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	u := NewUnavailable(clock)
	k := Key{Class: drover.Reference{Name: "small"}, FailureDomain: "a"}
	u.Mark(k)
	if other := (Key{Class: k.Class, FailureDomain: "b"}); !u.Is(k) || u.Is(other) {
		t.Error("the wrong offering is unavailable")
	}
	clock.Step(unavailableFor - time.Second)
	if !u.Is(k) {
		t.Error("it is available too soon")
	}
	clock.Step(time.Second)
	if u.Is(k) || len(u.until) > 0 {
		t.Error("it is unavailable still")
	}
}
