package vm

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

// keep a resource as it was requested, with the finalizer of its provider. The step lifecycle sees
// finalizers only on observed resources, and this one may come from a request for required
// resources.
func keep(there plan.Object, m *machinev1alpha1.Machine) *unstructured.Unstructured {
	kept := plan.AsObserved(there, m)
	if slices.Contains(there.GetFinalizers(), plan.FinalizerManaged) {
		kept.SetFinalizers([]string{plan.FinalizerManaged})
	}
	return kept
}

// pin restricts the provider to observe and delete the VM. Without the right to delete,
// crossplane-runtime would remove the resource without deleting the VM.
func pin(vm *unstructured.Unstructured) {
	spec, ok := vm.Object["spec"].(map[string]any)
	if !ok {
		return
	}
	spec["managementPolicies"] = []any{"Observe", "Delete"}
}
