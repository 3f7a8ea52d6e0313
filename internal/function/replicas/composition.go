package replicas

import (
	"fmt"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
)

const requirementCompositions = "compositions"

// reasonCompositionNotFound is the reason of a set's problem when its provider has
// no Composition: Crossplane would never look at its Machines.
const reasonCompositionNotFound = "CompositionNotFound"

// requireCompositions asks for the Compositions of a class's provider.
func requireCompositions(rsp step.Response, class *machinev1alpha1.MachineClass) {
	rsp.RequireByLabels(requirementCompositions, "apiextensions.crossplane.io/v1", "Composition", "",
		map[string]string{machinev1alpha1.LabelProvider: class.Spec.Provider})
}

// composition returns a problem if no Composition of Machines is for the class's
// provider. It is false while Crossplane has not looked for them yet.
func composition(req *fnv1.RunFunctionRequest, class *machinev1alpha1.MachineClass) (*step.Problem, bool) {
	found, looked := step.Required(req, requirementCompositions)
	if !looked {
		return nil, false
	}
	for _, c := range found {
		apiVersion, _, _ := unstructured.NestedString(c.Object, "spec", "compositeTypeRef", "apiVersion")
		kind, _, _ := unstructured.NestedString(c.Object, "spec", "compositeTypeRef", "kind")
		if apiVersion == machinev1alpha1.SchemeGroupVersion.String() && kind == machinev1alpha1.MachineGroupVersionKind.Kind {
			return nil, true
		}
	}
	return &step.Problem{
		Reason: reasonCompositionNotFound,
		Message: fmt.Sprintf("MachineClass %q has spec.provider %q, for which there is no Composition of Machines: one must have the label %s: %s",
			class.Name, class.Spec.Provider, machinev1alpha1.LabelProvider, class.Spec.Provider),
	}, true
}
