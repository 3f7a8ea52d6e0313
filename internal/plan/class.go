package plan

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/allow"
)

// NoClass is the problem of a Machine whose class does not exist. The field is the path of the
// class reference, as the message names it.
func NoClass(m *machinev1alpha1.Machine, field string) *Problem {
	return &Problem{
		Reason:  machinev1alpha1.ReasonClassNotFound,
		Message: fmt.Sprintf("%s: there is no %s", field, placeOf(m)),
	}
}

// placeOf returns the class reference of a Machine, with its namespace if the class has one, for
// messages.
func placeOf(m *machinev1alpha1.Machine) string {
	if m.Spec.ClassRef.IsCluster() {
		return m.Spec.ClassRef.String()
	}
	return fmt.Sprintf("%s in namespace %q", m.Spec.ClassRef, m.Namespace)
}

// NoCluster is the problem of Machines that join a cluster whose configuration does not exist. The field is the path
// of the reference, as the message names it. The namespace is that of a ProviderConfig, and empty otherwise.
func NoCluster(namespace string, ref machinev1alpha1.ClusterReference, field string) *Problem {
	place := fmt.Sprintf("%s %q", ref.Kind, ref.Name)
	if namespace != "" {
		place += fmt.Sprintf(" in namespace %q", namespace)
	}
	return &Problem{
		Reason:  machinev1alpha1.ReasonClusterNotFound,
		Message: fmt.Sprintf("%s: there is no %s of %s", field, place, clusterv1alpha1.Group),
	}
}

// Admit returns a problem if a ClusterMachineClass does not allow the namespace of a Machine. It
// returns nil otherwise.
func Admit(class *machinev1alpha1.ClusterMachineClass, m *machinev1alpha1.Machine, field string) *Problem {
	patterns := make([]string, 0, len(class.Spec.AllowedNamespaces))
	for _, p := range class.Spec.AllowedNamespaces {
		patterns = append(patterns, string(p))
	}
	if allow.Namespace(patterns, m.Namespace) {
		return nil
	}
	return &Problem{
		Reason: machinev1alpha1.ReasonClassNotAllowed,
		Message: fmt.Sprintf("%s: %s: Machines of namespace %q may not use it: add %q, or a pattern that matches it, to its spec.allowedNamespaces",
			field, m.Spec.ClassRef, m.Namespace, m.Namespace),
	}
}

// NoComposition is the problem of a class whose provider has no Composition.
func NoComposition(class *machinev1alpha1.MachineClass) *Problem {
	return &Problem{
		Reason: machinev1alpha1.ReasonCompositionNotFound,
		Message: fmt.Sprintf("%s has spec.provider %q, for which there is no Composition of Machines: one must have the label %s: %s",
			class.Reference(), class.Spec.Provider, machinev1alpha1.LabelProvider, class.Spec.Provider),
	}
}

// ForeignComposition returns a problem if a Composition of Machines, or a revision of one, is for another provider
// than the class, and nil otherwise. Its input Infrastructure names the provider. Without that step, its label
// does, and one without the label serves the classes of all providers.
func ForeignComposition(class *machinev1alpha1.MachineClass, composition *unstructured.Unstructured) *Problem {
	provider, _, _ := unstructured.NestedString(InputOf(Object{Unstructured: composition}, "Infrastructure"), "provider")
	if provider == "" {
		provider = composition.GetLabels()[machinev1alpha1.LabelProvider]
	}
	if provider == "" || provider == class.Spec.Provider {
		return nil
	}
	return ProviderMismatch(class, provider)
}

// ProviderMismatch is the problem of a Machine whose Composition is for another provider than its class.
func ProviderMismatch(class *machinev1alpha1.MachineClass, provider string) *Problem {
	return &Problem{
		Reason: machinev1alpha1.ReasonProviderMismatch,
		Message: fmt.Sprintf("%s: spec.provider: is %q, but the Machine's Composition makes VMs of provider %q: select the Composition labeled %s: %s with the Machine's spec.crossplane.compositionSelector.matchLabels",
			class.Reference(), class.Spec.Provider, provider, machinev1alpha1.LabelProvider, class.Spec.Provider),
	}
}

// NoProfile is the problem of a class whose OperatingSystemProfile does not exist.
func NoProfile(class *machinev1alpha1.MachineClass, builtIn []string) *Problem {
	return &Problem{
		Reason: machinev1alpha1.ReasonProfileNotFound,
		Message: fmt.Sprintf("%s has spec.operatingSystem.profile %q: there is no OperatingSystemProfile of this name, and the built-in ones are %s",
			class.Reference(), class.Spec.OperatingSystem.Profile, strings.Join(builtIn, ", ")),
	}
}

// InputOf returns the input of the given kind from the pipeline of a Composition. It returns nil if
// no step has such an input. The caller must not change it.
func InputOf(composition Object, kind string) map[string]any {
	pipeline, _, _ := unstructured.NestedFieldNoCopy(composition.Object, "spec", "pipeline")
	steps, _ := pipeline.([]any)
	for _, s := range steps {
		m, _ := s.(map[string]any)
		input, _ := m["input"].(map[string]any)
		if input["apiVersion"] == fn.Group+"/"+fn.Version && input["kind"] == kind {
			return input
		}
	}
	return nil
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
		Message: fmt.Sprintf("there is no CompositeResourceDefinition %q, whose UID distinguishes the VMs of this installation from those of other installations", machinev1alpha1.DefinitionOfInstallation),
	}
}

// NotDecodable is the problem of an object that is stored with fields that cannot be decoded. The fields have their
// values and the errors.
func NotDecodable(fields string) *Problem {
	return &Problem{Reason: machinev1alpha1.ReasonNotDecodable, Message: "cannot decode " + fields + ". Nothing of the object is changed until the field is corrected or the object is deleted"}
}
