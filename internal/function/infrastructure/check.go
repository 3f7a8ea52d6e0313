package infrastructure

import (
	"fmt"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
)

// Check says what is wrong with the VMs that Machines of a class and a template would
// get, before there is any: it renders one by the Composition's input of this step, and
// goes by the schema of its kind. It is false while Crossplane has not looked for that.
//
// A Composition without such a step is somebody else's, of which nothing is known. So
// is a schema that Crossplane does not show.
func Check(req *fnv1.RunFunctionRequest, rsp step.Response, composition step.Object, class *machinev1alpha1.MachineClass, template *machinev1alpha1.Machine) (problem *step.Problem, complete bool) {
	input := inputOf(composition)
	if input == nil {
		return nil, true
	}
	invalid := func(format string, args ...any) *step.Problem {
		return &step.Problem{Reason: ReasonBindingInvalid, Message: truncate(fmt.Sprintf("Composition %q, input Infrastructure: ", composition.GetName()) + fmt.Sprintf(format, args...))}
	}
	in := &fn.Infrastructure{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(input, in); err != nil {
		return invalid("%v", err), true
	}
	b, err := bind(in)
	if err != nil {
		return invalid("%v", err), true
	}
	o := specimen(class, template)
	if o.Class.Spec.Provider != b.provider {
		return invalid("provider: is %q, but the Composition has the label %s: %s", b.provider, machinev1alpha1.LabelProvider, o.Class.Spec.Provider), true
	}
	if problem, complete := requireSchemas(req, rsp, b, &o); problem != nil || !complete {
		return problem, complete
	}
	_, problem = render(b, o)
	return problem, true
}

// inputOf this step in a Composition's pipeline, nil if there is none.
func inputOf(composition step.Object) map[string]any {
	pipeline, _, _ := unstructured.NestedSlice(composition.Object, "spec", "pipeline")
	for _, s := range pipeline {
		m, _ := s.(map[string]any)
		input, _ := m["input"].(map[string]any)
		if input["apiVersion"] == fn.Group+"/"+fn.Version && input["kind"] == "Infrastructure" {
			return input
		}
	}
	return nil
}

// specimen of a Machine that would be created now.
func specimen(class *machinev1alpha1.MachineClass, template *machinev1alpha1.Machine) Observed {
	m := &machinev1alpha1.Machine{Spec: *template.Spec.DeepCopy()}
	m.Namespace, m.Name, m.UID = template.Namespace, template.Name+"-00000", "00000000-0000-4000-8000-000000000000"
	m.Labels, m.Annotations = map[string]string{}, map[string]string{}
	m.Labels[machinev1alpha1.LabelSet] = template.Name
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m)
	if err != nil {
		raw = map[string]any{}
	}
	return Observed{
		Machine:    m,
		RawMachine: map[string]any{"metadata": raw["metadata"], "spec": raw["spec"]},
		Class:      class,
		Bootstrap:  step.Bootstrap{SecretName: m.Name + "-user-data", Key: "userData"},
		UserData:   "#cloud-config\n",

		Installation: "00000000-0000-4000-8000-000000000000",
	}
}
