package plan

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestACompositionIsForMachinesByItsGroupAndKind(t *testing.T) {
	for name, tc := range map[string]struct {
		apiVersion, kind string
		want             bool
	}{
		"Machines":                    {"machine.drover.dev/v1alpha1", "Machine", true},
		"MachineSets":                 {"machine.drover.dev/v1alpha1", "MachineSet", false},
		"Machines of another product": {"cluster.x-k8s.io/v1beta1", "Machine", false},
	} {
		t.Run(name, func(t *testing.T) {
			c := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
				"compositeTypeRef": map[string]any{"apiVersion": tc.apiVersion, "kind": tc.kind},
			}}}
			if got := ComposesMachines(c); got != tc.want {
				t.Errorf("%t, want %t", got, tc.want)
			}
		})
	}
}
