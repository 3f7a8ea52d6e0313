package step

import (
	"fmt"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// ReasonClassNotFound is the reason of a Machine's problem when it has no class.
const ReasonClassNotFound = "ClassNotFound"

const requirementClass = "class"

// RequireClass asks for a Machine's class.
func (r Response) RequireClass(m *machinev1alpha1.Machine) {
	r.RequireByName(requirementClass, machinev1alpha1.SchemeGroupVersion.String(), "MachineClass", m.Namespace, m.Spec.ClassRef.Name)
}

// Class returns a Machine's class, and nil with a problem if there is none, which
// names the field of the XR that the class's name stands in. It is false while
// Crossplane has not looked for it yet.
func Class(req *fnv1.RunFunctionRequest, m *machinev1alpha1.Machine, field string) (*machinev1alpha1.MachineClass, *Problem, bool) {
	found, ok := Required(req, requirementClass)
	if !ok {
		return nil, nil, false
	}
	if len(found) == 0 {
		return nil, NoClass(m, field), true
	}
	c, err := As[machinev1alpha1.MachineClass](found[0])
	if err != nil {
		return nil, &Problem{Reason: ReasonClassNotFound, Message: err.Error()}, true
	}
	return c, nil, true
}

// NoClass is the problem of a Machine without a class. The field is the one that the
// class's name stands in.
func NoClass(m *machinev1alpha1.Machine, field string) *Problem {
	return &Problem{
		Reason:  ReasonClassNotFound,
		Message: fmt.Sprintf("%s: there is no MachineClass %q in namespace %q", field, m.Spec.ClassRef.Name, m.Namespace),
	}
}
