package step

import (
	"fmt"
	"slices"
	"strings"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// ReasonCompositionNotFound is the reason of a problem with a class whose provider has
// no Composition: Crossplane would never look at its Machines.
const ReasonCompositionNotFound = "CompositionNotFound"

const requirementCompositions = "compositions"

// RequireCompositions asks for the Compositions of a class's provider.
func (r Response) RequireCompositions(class *machinev1alpha1.MachineClass) {
	labels := map[string]string{machinev1alpha1.LabelProvider: class.Spec.Provider}
	r.RequireByLabels(requirementCompositions, "apiextensions.crossplane.io/v1", "Composition", "", labels)
}

// Composition of Machines of a class, and a problem if there is none. It is false while
// Crossplane has not looked for it yet.
func Composition(req *fnv1.RunFunctionRequest, class *machinev1alpha1.MachineClass) (Object, *Problem, bool) {
	compositions, looked := Required(req, requirementCompositions)
	if !looked {
		return Object{}, nil, false
	}
	compositions = slices.DeleteFunc(compositions, func(c Object) bool { return !composesMachines(c) })
	if len(compositions) == 0 {
		return Object{}, &Problem{
			Reason: ReasonCompositionNotFound,
			Message: fmt.Sprintf("MachineClass %q has spec.provider %q, for which there is no Composition of Machines: one must have the label %s: %s",
				class.Name, class.Spec.Provider, machinev1alpha1.LabelProvider, class.Spec.Provider),
		}, true
	}
	// Any would do; the same one for the same view.
	return slices.MinFunc(compositions, func(a, b Object) int { return strings.Compare(a.GetName(), b.GetName()) }), nil, true
}

func composesMachines(o Object) bool {
	apiVersion, _, _ := unstructured.NestedString(o.Object, "spec", "compositeTypeRef", "apiVersion")
	kind, _, _ := unstructured.NestedString(o.Object, "spec", "compositeTypeRef", "kind")
	return apiVersion == machinev1alpha1.SchemeGroupVersion.String() && kind == machinev1alpha1.MachineGroupVersionKind.Kind
}
