package offer_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan/offer"
)

func spec(forProvider string) machinev1alpha1.MachineClassSpec {
	return machinev1alpha1.MachineClassSpec{ForProvider: &runtime.RawExtension{Raw: []byte(forProvider)}}
}

func TestOnlyClassesThatTheNamespaceMayUseAreOffered(t *testing.T) {
	cluster := func(name string) machinev1alpha1.ClassReference {
		return machinev1alpha1.ClassReference{Kind: "ClusterMachineClass", Name: name}
	}
	pool := fn.Pool{Classes: []fn.OfferedClass{
		{Name: "of-the-namespace", ClassRef: machinev1alpha1.ClassReference{Name: "own"}},
		{Name: "allowed", ClassRef: cluster("allowed")},
		{Name: "of-another-team", ClassRef: cluster("other")},
		{Name: "of-nobody", ClassRef: cluster("nobody")},
		{Name: "missing", ClassRef: cluster("missing")},
		{Name: "missing-in-the-namespace", ClassRef: machinev1alpha1.ClassReference{Name: "missing"}},
	}}
	o := offer.Of("nodepools", "team-a", pool, map[string]offer.Spec{
		pool.Classes[0].ClassRef.Key(): {},
		pool.Classes[1].ClassRef.Key(): {IsCluster: true, AllowedNamespaces: []string{"team-*"}},
		pool.Classes[2].ClassRef.Key(): {IsCluster: true, AllowedNamespaces: []string{"team-b"}},
		pool.Classes[3].ClassRef.Key(): {IsCluster: true},
	})
	var names []string
	for _, c := range o.Classes {
		names = append(names, c.Name)
	}
	if diff := cmp.Diff([]string{"allowed", "of-the-namespace"}, names); diff != "" || o.NotAllowed != 4 {
		t.Errorf("%d are not allowed, -want +got:\n%s", o.NotAllowed, diff)
	}
}

func TestAnOfferHasSizesAndLimits(t *testing.T) {
	capacity := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi")}
	for name, tc := range map[string]struct {
		class, pool *int32
		spec        machinev1alpha1.MachineClassSpec
		size, text  string
		max, most   int32
	}{
		"NoLimitIsThatOfTheSchema":        {max: 10000, most: 10000},
		"TheLimitOfTheClass":              {class: ptr.To[int32](3), max: 3, most: 10000},
		"TheLimitOfAPoolIsTheSmallerOne":  {class: ptr.To[int32](30), pool: ptr.To[int32](8), max: 8, most: 8},
		"AClassThatIsClosedHasNoNodes":    {class: ptr.To[int32](0), pool: ptr.To[int32](8), max: 0, most: 8},
		"AnInstanceType":                  {spec: spec(`{"instanceType":"m5.large","image":"x"}`), size: "m5.large", max: 10000, most: 10000},
		"ASizeThatIsNoTextIsLeftOut":      {spec: spec(`{"size":{"cpu":4}}`), max: 10000, most: 10000},
		"FieldsThatAreNoObjectAreLeftOut": {spec: spec(`[]`), max: 10000, most: 10000},
		"ItsCapacity":                     {spec: machinev1alpha1.MachineClassSpec{NodeCapacity: &machinev1alpha1.NodeCapacity{Capacity: capacity}}, text: "4 CPU, 16Gi", max: 10000, most: 10000},
	} {
		t.Run(name, func(t *testing.T) {
			ref := machinev1alpha1.ClassReference{Name: "small-1"}
			o := offer.Of("c", "ns", fn.Pool{MaxSize: tc.pool, Classes: []fn.OfferedClass{{Name: "small", ClassRef: ref, MaxSize: tc.class}}}, map[string]offer.Spec{ref.Key(): {MachineClassSpec: tc.spec}})
			c := o.Classes[0]
			if c.Size != tc.size || c.String() != tc.text || c.MaxSize != tc.max || o.MaxSize != tc.most {
				t.Errorf("size %q, capacity %q, at most %d of %d", c.Size, c.String(), c.MaxSize, o.MaxSize)
			}
		})
	}
}

// TestTheStatusOfAPoolHasTheOffer checks that a user sees the same in the status as by the Composition, apart from labels and
// taints.
func TestTheStatusOfAPoolHasTheOffer(t *testing.T) {
	pool := fn.Pool{Versions: []string{"v1.35.4", "v1.34.8"}, MaxSize: ptr.To[int32](9)}
	specs := map[string]offer.Spec{}
	for i := range 70 {
		c := fn.OfferedClass{Name: fmt.Sprintf("class-%02d", 69-i), ClassRef: machinev1alpha1.ClassReference{Name: fmt.Sprint(i)}, FailureDomains: []machinev1alpha1.FailureDomain{"a"}}
		pool.Classes = append(pool.Classes, c)
		specs[c.ClassRef.Key()] = offer.Spec{MachineClassSpec: spec(`{"size":"big"}`)}
	}
	whole := offer.Of("web", "team", pool, specs)
	got := offer.FromStatus("web", *whole.Status())
	whole.Classes = whole.Classes[:64]
	if d := cmp.Diff(whole, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}
