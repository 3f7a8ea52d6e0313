package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

func capacityOf(architecture string, pairs ...string) *machinev1alpha1.NodeCapacity {
	c := &machinev1alpha1.NodeCapacity{Capacity: corev1.ResourceList{}, Architecture: architecture}
	for i := 0; i+1 < len(pairs); i += 2 {
		c.Capacity[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return c
}

func TestTheSmallestCapacity(t *testing.T) {
	for name, tc := range map[string]struct {
		all  []*machinev1alpha1.NodeCapacity
		want *machinev1alpha1.NodeCapacity
	}{
		"OfNone":                             {},
		"OfOneIsItsOwn":                      {[]*machinev1alpha1.NodeCapacity{capacityOf("amd64", "cpu", "4")}, capacityOf("amd64", "cpu", "4")},
		"HasTheSmallestValueOfEachResource":  {[]*machinev1alpha1.NodeCapacity{capacityOf("", "cpu", "4", "memory", "1Gi"), capacityOf("", "cpu", "2", "memory", "2Gi")}, capacityOf("", "cpu", "2", "memory", "1Gi")},
		"HasOnlyWhatAllHave":                 {[]*machinev1alpha1.NodeCapacity{capacityOf("", "cpu", "4", "gpu", "1"), capacityOf("", "cpu", "8")}, capacityOf("", "cpu", "4")},
		"HasNoArchitectureIfTheyDiffer":      {[]*machinev1alpha1.NodeCapacity{capacityOf("amd64", "cpu", "4"), capacityOf("arm64", "cpu", "4")}, capacityOf("", "cpu", "4")},
		"HasTheArchitectureThatAllOfThemAre": {[]*machinev1alpha1.NodeCapacity{capacityOf("arm64", "cpu", "4"), capacityOf("arm64", "cpu", "2")}, capacityOf("arm64", "cpu", "2")},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, SmallestCapacity(tc.all)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
