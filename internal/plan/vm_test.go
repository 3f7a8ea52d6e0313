package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

func TestACreationBeganWithAnyWordOfTheProvider(t *testing.T) {
	for key, want := range map[string]bool{
		"crossplane.io/external-name":             true,
		"crossplane.io/external-create-pending":   true,
		"crossplane.io/external-create-succeeded": true,
		"crossplane.io/external-create-failed":    true,
		"crossplane.io/paused":                    false,
	} {
		vm := Object{Unstructured: &unstructured.Unstructured{Object: map[string]any{}}}
		vm.SetAnnotations(map[string]string{key: "x"})
		if got := CreationBegan(vm); got != want {
			t.Errorf("%s: %t, want %t", key, got, want)
		}
		vm.SetAnnotations(map[string]string{key: ""})
		if CreationBegan(vm) {
			t.Errorf("%s without a value: a creation began", key)
		}
	}
}

func TestAVMIsComposedAsItWasRequested(t *testing.T) {
	m := &machinev1alpha1.Machine{}
	m.Name = "web-0"
	there := Object{Unstructured: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "local.drover.dev/v1alpha1", "kind": "VirtualMachine",
		"metadata": map[string]any{
			"name": "vm-1", "uid": "1", "labels": map[string]any{"team": "a"},
			"annotations": map[string]any{machinev1alpha1.AnnotationCompanions: "disk", "crossplane.io/external-name": "i-1"},
		},
		"spec":   map[string]any{"forProvider": map[string]any{"size": "small"}},
		"status": map[string]any{"phase": "Running"},
	}}}
	got := AsObserved(there, m)
	want := map[string]any{
		"apiVersion": "local.drover.dev/v1alpha1", "kind": "VirtualMachine",
		"metadata": map[string]any{
			"name": "vm-1", "labels": map[string]any{machinev1alpha1.LabelMachine: "web-0"},
			"annotations": map[string]any{machinev1alpha1.AnnotationCompanions: "disk"},
		},
		"spec": map[string]any{"forProvider": map[string]any{"size": "small"}},
	}
	if diff := cmp.Diff(want, got.Object); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	there.SetAnnotations(map[string]string{"crossplane.io/external-name": "i-1"})
	if _, has, _ := unstructured.NestedMap(AsObserved(there, m).Object, "metadata", "annotations"); has {
		t.Error("it has annotations although Drover set none")
	}
	got.Object["spec"].(map[string]any)["forProvider"].(map[string]any)["size"] = "large"
	if size, _, _ := unstructured.NestedString(there.Object, "spec", "forProvider", "size"); size != "small" {
		t.Error("a change of the composed VM changes what was observed")
	}
}
