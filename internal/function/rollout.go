package function

import (
	"errors"
	"fmt"
	"slices"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/deployment"
	"github.com/drover-dev/drover/internal/plan/nodetemplate"
)

const (
	requirementSets     = "machine-sets"
	requirementPolicies = "rollout-policies"
)

// runRollout runs the step. An error means that nothing can be decided on the deployment, and that
// everything stays as it is.
func runRollout(now time.Time, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	if err := step.Input(req, &fn.Rollout{}); err != nil {
		return nil, err
	}
	d := &machinev1alpha1.MachineDeployment{}
	if err := step.Composite(req, d); err != nil {
		return nil, err
	}

	// The class is the one that a Machine created now would have.
	template := deployment.Template(d)
	next := &machinev1alpha1.Machine{ObjectMeta: d.ObjectMeta, Spec: template.Spec}
	rsp := step.NewResponse(req)
	rsp.RequireByLabels(requirementSets, machinev1alpha1.SchemeGroupVersion.String(), machinev1alpha1.MachineSetGroupVersionKind.Kind,
		d.Namespace, map[string]string{machinev1alpha1.LabelDeployment: d.Name})

	rsp.RequireByLabels(requirementPolicies, machinev1alpha1.SchemeGroupVersion.String(), machinev1alpha1.RolloutPolicyGroupVersionKind.Kind, "", nil)

	there, lookedForTemplate := requireNodeTemplate(req, rsp, d, template.Spec.InfrastructureRef)
	o, looked, err := observeDeployment(now, req, rsp, d, next)
	if err != nil || !looked || !lookedForTemplate {
		return rsp.RunFunctionResponse, err
	}
	class, _, _ := rsp.Class(req, next, "spec.template.spec.classRef.name")
	nodes := nodetemplate.Observed{
		Owner: d, Kind: machinev1alpha1.MachineDeploymentGroupVersionKind.Kind, Ref: template.Spec.InfrastructureRef, Class: class, There: there,
	}
	if !deriveCapacity(req, rsp, &nodes) {
		return rsp.RunFunctionResponse, nil
	}
	if err := respondDeployment(req, rsp, deployment.Plan(now, o)); err != nil {
		return nil, err
	}
	return rsp.RunFunctionResponse, respondNodeTemplate(rsp, nodes)
}

func observeDeployment(now time.Time, req *fnv1.RunFunctionRequest, rsp step.Response, d *machinev1alpha1.MachineDeployment, next *machinev1alpha1.Machine) (deployment.Observed, bool, error) {
	o := deployment.Observed{Deployment: d}
	if _, err := step.Context(req, step.ContextSafety, &o.Safety); err != nil {
		return o, false, err
	}
	gate := &plan.RolloutGate{}
	has, err := step.Context(req, step.ContextRolloutGate, gate)
	if err != nil {
		return o, false, fmt.Errorf("%w: must have hold (true or false), reason, message and until (RFC 3339)", err)
	}
	if has {
		o.Gate = gate
	}
	if o.Analysis, err = observed[machinev1alpha1.RolloutAnalysisRun](req, machinev1alpha1.ResourceAnalysisRun); err != nil {
		return o, false, err
	}
	if o.Turn, err = observed[machinev1alpha1.RolloutTurn](req, machinev1alpha1.ResourceTurn); err != nil {
		return o, false, err
	}
	class, problem, looked := rsp.Class(req, next, "spec.template.spec.classRef.name")
	children, looked2 := step.Children(req, requirementSets, machinev1alpha1.MachineSetGroupVersionKind.Kind, d.UID)
	policies, looked3 := step.Required(req, requirementPolicies)
	if !looked || !looked2 || !looked3 {
		return o, false, nil
	}
	o.HasPolicies = len(policies) > 0
	o.ClassFound = class != nil || problem.Reason != machinev1alpha1.ReasonClassNotFound
	o.ClassProblem = problem
	for _, c := range children {
		s, err := step.As[machinev1alpha1.MachineSet](c.Object)
		if err != nil {
			return o, false, err
		}
		plan.SettleBackoff(now, s.Status.Backoff)
		o.Sets = append(o.Sets, deployment.Set{MachineSet: s, Observed: c.Observed, Terminating: c.Terminating})
	}
	unowned, _ := step.Others(req, requirementSets, d.UID)
	for _, u := range unowned {
		s, err := step.As[machinev1alpha1.MachineSet](u)
		var fields *step.NotDecodableError
		if errors.As(err, &fields) {
			continue // It is not adopted: its controller is not known to be this one's.
		}
		if err != nil {
			return o, false, err
		}
		if deployment.Adopts(d, s) {
			o.Sets = append(o.Sets, deployment.Set{MachineSet: s})
		}
	}
	if class == nil || proven(o.Sets, next) {
		return o, true, nil
	}
	composition, problem, looked := rsp.Composition(req, class)
	if looked && problem == nil {
		problem, looked = checkClass(req, rsp, composition, class, next)
	}
	o.ClassProblem = problem
	return o, looked, nil
}

// observed is a composed resource of the deployment, nil if there is none.
func observed[T any](req *fnv1.RunFunctionRequest, name string) (*T, error) {
	composed, ok := step.Observed(req)[name]
	if !ok {
		return nil, nil
	}
	return step.As[T](composed)
}

// proven reports whether Nodes of the class are Ready. A class is immutable, so its problems were
// reported before.
func proven(sets []deployment.Set, next *machinev1alpha1.Machine) bool {
	return slices.ContainsFunc(sets, func(s deployment.Set) bool {
		return s.Spec.Template.Spec.ClassRef.Equal(next.Spec.ClassRef) && s.Spec.InPlaceUpdate == nil && s.Status.ReadyReplicas > 0
	})
}

func respondDeployment(req *fnv1.RunFunctionRequest, rsp step.Response, d deployment.Decision) error {
	for _, s := range d.Sets {
		if err := rsp.Compose(s.Name, s.MachineSet, s.Ready); err != nil {
			return err
		}
	}
	if d.Analysis != nil {
		if err := rsp.Compose(machinev1alpha1.ResourceAnalysisRun, d.Analysis, true); err != nil {
			return err
		}
	}
	if d.Turn != nil {
		if err := rsp.Compose(machinev1alpha1.ResourceTurn, d.Turn, true); err != nil {
			return err
		}
	}
	if err := rsp.Report(machinev1alpha1.MachineDeploymentGroupVersionKind, &d.Status, d.Report); err != nil {
		return err
	}
	rsp.IfUnchanged(req)
	return nil
}
