package plan

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
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

func TestAnInputIsFoundByItsGroupVersionAndKind(t *testing.T) {
	step := func(apiVersion, kind, mark string) any {
		return map[string]any{"input": map[string]any{"apiVersion": apiVersion, "kind": kind, "mark": mark}}
	}
	composition := func(steps ...any) Object {
		return Object{Unstructured: &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"pipeline": steps}}}}
	}
	others := []any{
		map[string]any{"step": "without-input"},
		step("fn.example.org/v1", "Bootstrap", "of another function"),
		step("fn.drover.dev/v1alpha1", "Lifecycle", "of another step"),
	}
	if got := InputOf(composition(others...), "Bootstrap"); got != nil {
		t.Errorf("found %v, want none", got)
	}
	if got := InputOf(composition(append(others, step("fn.drover.dev/v1alpha1", "Bootstrap", "its own"))...), "Bootstrap"); got["mark"] != "its own" {
		t.Errorf("found %v", got)
	}
}

func TestAClusterMachineClassServesTheNamespacesThatItNames(t *testing.T) {
	class := &machinev1alpha1.ClusterMachineClass{}
	class.Spec.AllowedNamespaces = []clusterv1alpha1.NamespacePattern{"team-a", "dev-*"}
	for namespace, served := range map[string]bool{"team-a": true, "dev-web": true, "team-b": false, "dev": false} {
		m := &machinev1alpha1.Machine{}
		m.Namespace, m.Spec.ClassRef = namespace, machinev1alpha1.ClassReference{Kind: "ClusterMachineClass", Name: "small"}
		if problem := Admit(class, m, "spec.classRef"); (problem == nil) != served {
			t.Errorf("namespace %s: %+v", namespace, problem)
		}
		if problem := Admit(&machinev1alpha1.ClusterMachineClass{}, m, "spec.classRef"); problem == nil {
			t.Errorf("a class that names no namespace serves %s", namespace)
		}
	}
}
