package vm

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

// BindingOf returns the binding for the VMs of a class from its Composition. Both results are nil
// if the Composition has no such step: it uses another function, which Drover does not know.
func BindingOf(composition plan.Object, class *machinev1alpha1.MachineClass) (*Binding, *plan.Problem) {
	input := plan.InputOf(composition, "Infrastructure")
	if input == nil {
		return nil, nil
	}
	invalid := func(format string, args ...any) *plan.Problem {
		return &plan.Problem{Reason: machinev1alpha1.ReasonBindingInvalid, Message: truncate(fmt.Sprintf("Composition %q, input Infrastructure: ", composition.GetName()) + fmt.Sprintf(format, args...))}
	}
	in := &fn.Infrastructure{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(input, in); err != nil {
		return nil, invalid("%v", err)
	}
	b, err := Bind(in)
	if err != nil {
		return nil, invalid("%v", err)
	}
	if class.Spec.Provider != b.provider {
		return nil, invalid("provider: is %q, but the Composition has the label %s: %s", b.provider, machinev1alpha1.LabelProvider, class.Spec.Provider)
	}
	return b, nil
}

// Check renders the VM of a specimen, for each instance type of the class, and returns the first problem.
func Check(b *Binding, specimen Observed) *plan.Problem {
	variants, problem := b.variantsOf(specimen.Class)
	if problem != nil {
		return problem
	}
	for _, v := range variants {
		if _, problem := renderVariant(b, specimen, v); problem != nil {
			return problem
		}
	}
	return nil
}

// Specimen returns the view of a Machine that would be created now.
func Specimen(class *machinev1alpha1.MachineClass, template *machinev1alpha1.Machine) Observed {
	m := &machinev1alpha1.Machine{Spec: *template.Spec.DeepCopy()}
	m.Namespace, m.Name, m.UID = template.Namespace, template.Name+"-00000", "00000000-0000-4000-8000-000000000000"
	m.Labels, m.Annotations = map[string]string{}, map[string]string{}
	m.Labels[machinev1alpha1.LabelSet] = template.Name
	// The conversion of a Machine never fails.
	raw, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(m)
	return Observed{
		Machine:    m,
		RawMachine: map[string]any{"metadata": raw["metadata"], "spec": raw["spec"]},
		Class:      class,
		Bootstrap:  plan.Bootstrap{SecretName: m.Name + "-user-data", Key: "userData"},
		UserData:   "#cloud-config\n",

		Installation: "00000000-0000-4000-8000-000000000000",
	}
}
