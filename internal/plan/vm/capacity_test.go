package vm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

func TestNodeCapacity(t *testing.T) {
	two := &machinev1alpha1.NodeCapacity{
		Capacity:     corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("4Gi")},
		Architecture: "arm64",
	}
	gpu := two.DeepCopy()
	gpu.Capacity["nvidia.com/gpu"] = resource.MustParse("1")
	for name, tc := range map[string]struct {
		expression, forProvider string
		want                    *machinev1alpha1.NodeCapacity
		err                     string
	}{
		"IsNotDerivedByDefault":               {"", `{}`, nil, ""},
		"HasTheSizesOfTheClass":               {`{"capacity": {"cpu": class.spec.forProvider.cores, "memory": class.spec.forProvider.memory}, "architecture": "arm64"}`, `{"cores": 2, "memory": "4Gi"}`, two, ""},
		"TakesANumberOfBytes":                 {`{"capacity": {"cpu": "2", "memory": 4294967296}, "architecture": "arm64"}`, `{}`, two, ""},
		"HasOtherResourcesToo":                {`{"capacity": {"cpu": 2, "memory": "4Gi", "nvidia.com/gpu": 1}, "architecture": "arm64"}`, `{}`, gpu, ""},
		"IsUnknownIfTheOptionalIsAbsent":      {`{"a": {"capacity": {"cpu": 1, "memory": "1Gi"}}}[?class.spec.forProvider.?type.orValue("")]`, `{"type": "b"}`, nil, ""},
		"IsUnknownWithoutMemory":              {`{"capacity": {"cpu": 2}}`, `{}`, nil, ""},
		"IsUnknownWithoutACPU":                {`{"capacity": {"cpu": 0, "memory": "4Gi"}}`, `{}`, nil, ""},
		"ReportsTheFieldThatTheClassLacks":    {`{"capacity": {"cpu": class.spec.forProvider.cores, "memory": "4Gi"}}`, `{}`, nil, "no such key: cores"},
		"RefusesWhatIsNoQuantity":             {`{"capacity": {"cpu": 2, "memory": "much"}}`, `{}`, nil, `gives {"capacity":{"cpu":2,"memory":"much"}}`},
		"RefusesAFieldThatAClassDoesNotHave":  {`{"capacity": {"cpu": 2, "memory": "4Gi"}, "arch": "arm64"}`, `{}`, nil, `unknown field "arch"`},
		"RefusesWhatIsNoMap":                  {`4`, `{}`, nil, "nodeCapacity"},
		"ReadsAPartOfAName":                   {`cel.bind(n, regex.extract(class.spec.forProvider.type, "^c([0-9]+)$").optMap(n, int(n)), n.optMap(n, {"capacity": {"cpu": n, "memory": string(n * 2) + "Gi"}, "architecture": "arm64"}))`, `{"type": "c2"}`, two, ""},
		"DoesNotSeeTheMachineThatIsNotYetOne": {`{"capacity": {"cpu": machine.spec.cpus, "memory": "4Gi"}}`, `{}`, nil, "undeclared reference to 'machine'"},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(func(in *fn.Infrastructure) { in.NodeCapacity = tc.expression })
			class := &machinev1alpha1.MachineClass{}
			class.Spec.ForProvider = &runtime.RawExtension{Raw: []byte(tc.forProvider)}
			var got *machinev1alpha1.NodeCapacity
			b, err := Bind(in)
			if err == nil {
				got, err = b.NodeCapacity(class)
			}
			if tc.err != "" || err != nil {
				if err == nil || tc.err == "" || !strings.Contains(err.Error(), tc.err) || !strings.Contains(err.Error(), "nodeCapacity") {
					t.Fatalf("error %v, want %q", err, tc.err)
				}
				return
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}
