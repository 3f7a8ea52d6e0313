package vm

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/drover-dev/drover/internal/plan"
)

// unmanagedJSON is the schema of a kind that is not of crossplane-runtime, such as KubeVirt's
// VirtualMachine.
const unmanagedJSON = `{"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}`

func schemaOf(t *testing.T, text string) *Validator {
	t.Helper()
	schema := map[string]any{}
	if err := json.Unmarshal([]byte(text), &schema); err != nil {
		t.Fatal(err)
	}
	v, err := NewValidator(schema)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestOnlyManagedKindsGetTheFinalizerOfTheirProvider(t *testing.T) {
	const begun = "crossplane.io/external-name"
	managed := schemaOf(t, `{"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"managementPolicies": {"type": "array", "items": {"type": "string"}}}}}}`)
	unmanaged := schemaOf(t, unmanagedJSON)
	there := func(annotation string, finalizers ...string) *plan.Object {
		o := vm(map[string]string{annotation: "vm-1"}, map[string]any{"id": "test:///1"})
		o.SetFinalizers(finalizers)
		return &o
	}
	has := []string{plan.FinalizerManaged}
	cases := map[string]struct {
		reason   string
		schema   *Validator
		observed *plan.Object
		want     []string
	}{
		"AManagedKindAtItsCreation":    {"its controller would add it with a write of its own", managed, nil, has},
		"AnotherKindAtItsCreation":     {"no controller would remove it: the VM could never be deleted", unmanaged, nil, nil},
		"AKindOfUnknownSchema":         {"it may be of another kind", nil, nil, nil},
		"OneThatExistsAndIsNotBegun":   {"it is as at its creation", managed, there("example.org/x", has...), has},
		"OneThatIsPinned":              {"it would be removed if it were not applied any more", managed, there(begun, has...), has},
		"OneThatIsPinnedAndLostItsOwn": {"its controller removed it", managed, there(begun), nil},
		"OthersAreNotOurs":             {"their owners keep them", managed, there(begun, "example.org/x", plan.FinalizerManaged), has},
		"AnotherKindThatIsPinned":      {"it never had it", unmanaged, there(begun, "example.org/x"), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, o := wanted(t)
			b, err := Bind(input())
			if err != nil {
				t.Fatal(err)
			}
			o.Class.Spec.Companions = nil
			o.Validator, o.VM = tc.schema, tc.observed
			d := Plan(b, nil, o)
			if d.VM == nil {
				t.Fatalf("there is no VM: %+v", d.Word)
			}
			if diff := cmp.Diff(tc.want, d.VM.GetFinalizers()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCompanionsGetTheFinalizerOfTheirProviderToo(t *testing.T) {
	b, o := wanted(t)
	o.Validators = map[string]*Validator{"address": schemaOf(t, `{"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"managementPolicies": {"type": "array", "items": {"type": "string"}}}}}}`), "card": schemaOf(t, unmanagedJSON)}
	d := Plan(b, nil, o)
	made := d.Companions["address"].DeepCopy()
	says("address", o, made, map[string]any{"id": "a-1"}, isReady)
	o.Companions["address"].SetFinalizers(made.GetFinalizers())
	d = Plan(b, nil, o)
	for name, want := range map[string][]string{"address": {plan.FinalizerManaged}, "card": nil} {
		if diff := cmp.Diff(want, finalizersOf(d.Companions[name])); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
	// With an existing VM it is pinned, and keeps the finalizer.
	there := vm(map[string]string{"crossplane.io/external-name": "vm-1"}, map[string]any{"id": "test:///1"})
	o.VM, o.Validators = &there, nil
	d = Plan(b, nil, o)
	if diff := cmp.Diff([]string{plan.FinalizerManaged}, finalizersOf(d.Companions["address"])); diff != "" {
		t.Errorf("pinned: -want +got:\n%s", diff)
	}
}

func finalizersOf(u *unstructured.Unstructured) []string {
	if u == nil {
		return nil
	}
	return u.GetFinalizers()
}
