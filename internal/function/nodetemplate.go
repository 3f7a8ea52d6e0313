package function

import (
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/plan/nodetemplate"
)

const requirementNodeTemplate = "node-template"

// requireNodeTemplate of the owner's name, if its template asks for one: another object may have
// it, and must not stop this one. It returns nil if there is none, and false while Crossplane has
// not looked for it yet.
func requireNodeTemplate(req *fnv1.RunFunctionRequest, rsp step.Response, owner metav1.Object, ref *machinev1alpha1.InfrastructureReference) (*machinev1alpha1.NodeTemplate, bool) {
	if !nodetemplate.Asks(ref, owner.GetName()) {
		return nil, true
	}
	rsp.RequireByName(requirementNodeTemplate, machinev1alpha1.SchemeGroupVersion.String(), machinev1alpha1.NodeTemplateGroupVersionKind.Kind, owner.GetNamespace(), owner.GetName())
	found, looked := step.Required(req, requirementNodeTemplate)
	if !looked || len(found) == 0 {
		return nil, looked
	}
	// One that cannot be read is written again.
	t, _ := step.As[machinev1alpha1.NodeTemplate](found[0])
	return t, true
}

// respondNodeTemplate composes it, and reports whether the autoscaler can use it.
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
