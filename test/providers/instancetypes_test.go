package providers

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/machinetest"
)

// instanceTypePath of a Composition, below spec.forProvider.
var instanceTypePath = regexp.MustCompile(`(?m)^ +instanceTypePath: spec\.forProvider\.([a-zA-Z]+)$`)

// TestTheInstanceTypeOfAClassIsInItsVM lists the instance type of the class of each example, or one of its fields where VMs have no
// instance type. The VM must be that of the example.
func TestTheInstanceTypeOfAClassIsInItsVM(t *testing.T) {
	for cloud := range crds {
		t.Run(cloud, func(t *testing.T) {
			t.Parallel()
			b, err := os.ReadFile(compositionOf(cloud))
			if err != nil {
				t.Fatal(err)
			}
			vm := rendered(t, newPlane(t, cloud, "", func(class *unstructured.Unstructured) {
				fields, _, _ := unstructured.NestedMap(class.Object, "spec", "forProvider")
				field := slices.Sorted(maps.Keys(fields))[0]
				entry := map[string]any{"name": "first", "forProvider": map[string]any{field: fields[field]}}
				if path := instanceTypePath.FindSubmatch(b); path != nil {
					field = string(path[1])
					entry = map[string]any{"name": "first", "instanceType": fields[field]}
				}
				unstructured.RemoveNestedField(class.Object, "spec", "forProvider", field)
				machinetest.Set(class, []any{entry}, "spec", "instanceTypes")
			}))
			want := rendered(t, newPlane(t, cloud, ""))
			if diff := cmp.Diff(want.Object["spec"], vm.Object["spec"]); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if name := vm.GetAnnotations()[machinev1alpha1.AnnotationInstanceType]; name != "first" {
				t.Errorf("the VM has the instance type %q", name)
			}
		})
	}
}

// TestAVMOfAWSIsRequestedInTheSubnetOfItsInstanceType after the cloud refused the first one.
func TestAVMOfAWSIsRequestedInTheSubnetOfItsInstanceType(t *testing.T) {
	p := newPlane(t, "aws", "", func(class *unstructured.Unstructured) {
		unstructured.RemoveNestedField(class.Object, "spec", "forProvider", "instanceType")
		machinetest.Set(class, []any{
			map[string]any{"name": "in-a", "instanceType": "m7i.large", "forProvider": map[string]any{"subnetID": "subnet-a"}},
			map[string]any{"name": "in-b", "instanceType": "m6i.xlarge", "forProvider": map[string]any{"subnetID": "subnet-b"}},
		}, "spec", "instanceTypes")
	})
	machinetest.Set(p.Machine, map[string]any{"round": int64(1), "refused": []any{
		map[string]any{"name": "in-a", "errorCode": "CapacityExhausted", "message": "InsufficientInstanceCapacity", "time": "2026-01-01T00:00:00Z", "round": int64(1), "vmUID": "uid-a"},
	}}, "status", "instanceType")
	golden(t, "aws-instance-types", withoutUserData(rendered(t, p)))
}
