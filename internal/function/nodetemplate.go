package function

import (
	"fmt"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/plan/nodetemplate"
	"github.com/drover-dev/drover/internal/plan/vm"
)

const requirementNodeTemplate = "node-template"

// requireNodeTemplate requires the NodeTemplate of the owner's name, if its template requests one.
// Another object may own it, and must not block this one. It returns nil if there is none, and false
// while Crossplane has not looked for it yet.
func requireNodeTemplate(req *fnv1.RunFunctionRequest, rsp step.Response, owner metav1.Object, ref *machinev1alpha1.InfrastructureReference) (*machinev1alpha1.NodeTemplate, bool) {
	if !nodetemplate.Asks(ref, owner.GetName()) {
		return nil, true
	}
	rsp.RequireByName(requirementNodeTemplate, machinev1alpha1.SchemeGroupVersion.String(), machinev1alpha1.NodeTemplateGroupVersionKind.Kind, owner.GetNamespace(), owner.GetName())
	found, looked := step.Required(req, requirementNodeTemplate)
	if !looked || len(found) == 0 {
		return nil, looked
	}
	// A NodeTemplate that cannot be decoded is rewritten.
	t, _ := step.As[machinev1alpha1.NodeTemplate](found[0])
	return t, true
}

// deriveCapacity derives the capacity of the Nodes from the fields of the cloud's VM in the class, if
// the class itself does not state it and the autoscaler needs it. It returns false while Crossplane
// has not looked for the Composition of the class yet.
func deriveCapacity(req *fnv1.RunFunctionRequest, rsp step.Response, o *nodetemplate.Observed) bool {
	if o.Class == nil || !nodetemplate.Asks(o.Ref, o.Owner.GetName()) || !nodetemplate.Lacks(o.Class) {
		return true
	}
	composition, problem, looked := rsp.Composition(req, o.Class)
	if !looked || problem != nil {
		// The owner's own conditions report the problem.
		return looked
	}
	b, problem := vm.BindingOf(composition, o.Class)
	if b == nil {
		if problem != nil {
			o.NotDerived = problem.Message
		}
		return true
	}
	var err error
	if len(o.Class.Spec.InstanceTypes) > 0 {
		o.InstanceTypes, err = b.NodesOf(o.Class)
	} else {
		o.Derived, err = b.NodeCapacity(o.Class)
	}
	if err != nil {
		o.NotDerived = fmt.Sprintf("Composition %q, input Infrastructure: %v", composition.GetName(), err)
	}
	return true
}

// respondNodeTemplate composes the NodeTemplate, and reports whether the autoscaler can use it.
func respondNodeTemplate(rsp step.Response, o nodetemplate.Observed) error {
	d := nodetemplate.Plan(o)
	if d.Condition != nil {
		rsp.SetConditions(*d.Condition)
	}
	if d.NodeTemplate == nil {
		return nil
	}
	return rsp.ComposeWithStatus(machinev1alpha1.ResourceNodeTemplate, d.NodeTemplate)
}
