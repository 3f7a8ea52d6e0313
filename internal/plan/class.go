package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// NoClass is the problem of a Machine without a class. The field is the one that the
// class's name stands in.
func NoClass(m *machinev1alpha1.Machine, field string) *Problem {
	return &Problem{
		Reason:  machinev1alpha1.ReasonClassNotFound,
		Message: fmt.Sprintf("%s: there is no MachineClass %q in namespace %q", field, m.Spec.ClassRef.Name, m.Namespace),
	}
}

// NoComposition is the problem of a class whose provider has no Composition.
func NoComposition(class *machinev1alpha1.MachineClass) *Problem {
	return &Problem{
		Reason: machinev1alpha1.ReasonCompositionNotFound,
		Message: fmt.Sprintf("MachineClass %q has spec.provider %q, for which there is no Composition of Machines: one must have the label %s: %s",
			class.Name, class.Spec.Provider, machinev1alpha1.LabelProvider, class.Spec.Provider),
	}
}

// ComposesMachines reports whether a Composition, or a revision of one, is for Machines.
func ComposesMachines(o *unstructured.Unstructured) bool {
	apiVersion, _, _ := unstructured.NestedString(o.Object, "spec", "compositeTypeRef", "apiVersion")
	kind, _, _ := unstructured.NestedString(o.Object, "spec", "compositeTypeRef", "kind")
	return apiVersion == machinev1alpha1.SchemeGroupVersion.String() && kind == machinev1alpha1.MachineGroupVersionKind.Kind
}

// NoInstallation is the problem of a control plane without Drover's definitions.
func NoInstallation() *Problem {
	return &Problem{
		Reason:  machinev1alpha1.ReasonInstallationUnknown,
		Message: fmt.Sprintf("there is no CompositeResourceDefinition %q, whose UID tells the VMs of this installation from those of others", machinev1alpha1.DefinitionOfInstallation),
	}
}
