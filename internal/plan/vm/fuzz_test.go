package vm

import (
	"encoding/json"
	"os"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

// FuzzReadStatus reads any status of a VM with the binding of the local cloud. Only a status that
// can be parsed may end a VM.
func FuzzReadStatus(f *testing.F) {
	b := bindingOf(f, "../../../apis/machine/compositions/machine-local.yaml")
	for _, s := range []string{
		`{"atProvider": {"providerId": "local:///a/vm-1", "state": "Running", "addresses": [{"type": "InternalIP", "address": "10.0.0.7"}]}, "conditions": [{"type": "Ready", "status": "True"}]}`,
		`{"atProvider": {"state": "Failed", "error": {"code": "QuotaExceeded", "message": "10"}}}`,
		`{"atProvider": {"state": "Failed", "error": "QuotaExceeded"}}`,
		`{"conditions": [{"type": "Synced", "status": "False", "message": "external resource does not exist"}]}`,
		`{"conditions": [{"type": "Ready", "status": "False", "reason": "Missing"}, null, 3, {"type": []}]}`,
		`{"atProvider": {"providerId": 7, "addresses": {"type": "InternalIP"}, "state": null}}`,
		`{"atProvider": {"addresses": [{"type": "Home", "address": "x"}, null, []]}, "conditions": {}}`,
		`[]`, `"Failed"`, `null`, `1e999`, ``,
	} {
		f.Add([]byte(s), "local:///a/vm-1")
		f.Add([]byte(s), "")
	}
	f.Fuzz(func(t *testing.T, status []byte, remembered string) {
		var said any
		if json.Unmarshal(status, &said) != nil || !utf8.Valid(status) {
			return // The API server has no such object.
		}
		vm := plan.Object{Unstructured: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "local.drover.dev/v1alpha1", "kind": "VirtualMachine", "metadata": map[string]any{"name": "vm"}, "status": said,
		}}}
		m := &machinev1alpha1.Machine{}
		m.Status.ProviderID = remembered
		got, err := read(b, Observed{Machine: m, RawMachine: map[string]any{"metadata": map[string]any{}, "spec": map[string]any{}}, VM: &vm})
		if remembered != "" && got.ProviderID == "" {
			t.Error("the providerID is forgotten")
		}
		if len(got.Message) > maxMessage+len("...") {
			t.Errorf("a message of %d bytes", len(got.Message))
		}
		for _, a := range got.Addresses {
			if a.Type == "" || a.Address == "" {
				t.Errorf("address %+v", a)
			}
		}
		conditions := conditionsOf(vm.Unstructured)
		switch got.State {
		case plan.VMLost:
			if conditions.Get("Ready").Reason != machinev1alpha1.ReasonMissing && conditions.Get("Synced").Message == "" {
				t.Errorf("it is given up as lost: %+v", got)
			}
		case plan.VMFailed:
			if state, _, _ := unstructured.NestedString(vm.Object, "status", "atProvider", "state"); state != "Failed" || err != nil {
				t.Errorf("it is given up as failed: %+v, %v", got, err)
			}
		case plan.VMRunning, plan.VMCreating:
		default:
			t.Errorf("state %s", got.State)
		}
	})
}

// bindingOf returns the binding in a Composition's file.
func bindingOf(t testing.TB, file string) *Binding {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	composition := struct {
		Spec struct {
			Pipeline []struct {
				Step  string                `json:"step"`
				Input *runtime.RawExtension `json:"input"`
			} `json:"pipeline"`
		} `json:"spec"`
	}{}
	if err := yaml.Unmarshal(data, &composition); err != nil {
		t.Fatal(err)
	}
	for _, s := range composition.Spec.Pipeline {
		if s.Step != "infrastructure" {
			continue
		}
		in := &fn.Infrastructure{}
		if err := json.Unmarshal(s.Input.Raw, in); err != nil {
			t.Fatal(err)
		}
		b, err := Bind(in)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	t.Fatalf("%s has no step infrastructure", file)
	return nil
}
