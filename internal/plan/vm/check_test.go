package vm

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

// compositionOf returns a pipeline with the step infrastructure, whose input is changed.
func compositionOf(t *testing.T, change func(input map[string]any)) plan.Object {
	t.Helper()
	in, err := runtime.DefaultUnstructuredConverter.ToUnstructured(input())
	if err != nil {
		t.Fatal(err)
	}
	in["apiVersion"], in["kind"] = fn.Group+"/"+fn.Version, "Infrastructure"
	change(in)
	c := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"pipeline": []any{map[string]any{"step": "infrastructure", "input": in}}}}}
	c.SetName("machine-test")
	return plan.Object{Unstructured: c}
}

func TestTheBindingOfAClassIsThatOfItsComposition(t *testing.T) {
	for name, tc := range map[string]struct {
		change   func(input map[string]any)
		provider string
		bound    bool
		want     string
	}{
		"ACompositionOfItsProvider": {change: func(map[string]any) {}, bound: true},
		"ACompositionWithoutTheStepIsNotChecked": {
			change: func(in map[string]any) { in["kind"] = "Other" },
		},
		"AnInputOfAnotherForm": {
			change: func(in map[string]any) { in["status"] = "good" },
			want:   `Composition "machine-test", input Infrastructure: cannot restore struct from: string`,
		},
		"AnInputWithoutAProvider": {
			change: func(in map[string]any) { in["provider"] = "" },
			want:   `Composition "machine-test", input Infrastructure: provider is required`,
		},
		"ACompositionThatHasTheLabelOfAnotherProvider": {
			change: func(map[string]any) {}, provider: "other",
			want: `Composition "machine-test", input Infrastructure: provider: is "test", but the Composition has the label provider: other`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			class := &machinev1alpha1.MachineClass{}
			if class.Spec.Provider = tc.provider; tc.provider == "" {
				class.Spec.Provider = "test"
			}
			b, problem := BindingOf(compositionOf(t, tc.change), class)
			if (b != nil) != tc.bound {
				t.Errorf("binding %v", b)
			}
			var want *plan.Problem
			if tc.want != "" {
				want = &plan.Problem{Reason: machinev1alpha1.ReasonBindingInvalid, Message: tc.want}
			}
			if diff := cmp.Diff(want, problem); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestASpecimenIsAMachineOfTheSet: expressions can read the same fields as from a Machine.
func TestASpecimenIsAMachineOfTheSet(t *testing.T) {
	template := &machinev1alpha1.Machine{}
	template.Namespace, template.Name = "team", "set"
	template.Spec.Version, template.Spec.ClassRef.Name = "v1.35.4", "a"
	o := Specimen(&machinev1alpha1.MachineClass{}, template)
	env, err := fieldEnv()
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]any{
		`machine.metadata.name`:                                "set-00000",
		`machine.metadata.namespace`:                           "team",
		`machine.metadata.uid`:                                 "00000000-0000-4000-8000-000000000000",
		`machine.metadata.labels["machine.drover.dev/set"]`:    "set",
		`machine.metadata.?annotations["a"].orValue("absent")`: "absent",
		`machine.spec.version`:                                 "v1.35.4",
		`machine.spec.classRef.name`:                           "a",
	} {
		e, err := compile(env, "value", text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := e.eval(map[string]any{"machine": o.RawMachine}); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", text, got, err, want)
		}
	}
	if o.Machine.Name != "set-00000" || o.Machine.Namespace != "team" || o.Bootstrap.SecretName != "set-00000-user-data" {
		t.Errorf("%s/%s with the user data %s", o.Machine.Namespace, o.Machine.Name, o.Bootstrap.SecretName)
	}
}
