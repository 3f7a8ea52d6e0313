package function

import (
	"errors"
	"fmt"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/offer"
	"github.com/drover-dev/drover/internal/plan/pool"
)

const (
	requirementDeployments = "machine-deployments"

	// Requirements of offered classes start with this, before the name of the class.
	requirementOffered = "offered-class-"
)

// runPool runs the step. An error means that nothing can be decided on the pool, and that everything
// stays as it is.
func runPool(now time.Time, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	o := pool.Observed{Pool: &machinev1alpha1.NodePool{}}
	if err := step.Input(req, &o.Offer); err != nil {
		return nil, err
	}
	if len(o.Offer.Classes) == 0 {
		return nil, fmt.Errorf("classes: the input of the step offers none: there must be one at least")
	}
	if err := step.Composite(req, o.Pool); err != nil {
		return nil, err
	}
	// A composite resource without a namespace gets the name and the namespace of its claim.
	if claim := step.Claim(req); o.Pool.Namespace == "" && claim.Name != "" {
		o.Pool.Namespace, o.Pool.Name = claim.Namespace, claim.Name
	}
	if o.Namespace = o.Pool.Namespace; o.Namespace == "" {
		return nil, fmt.Errorf("metadata.namespace: the composite resource must have a namespace, or a claim")
	}

	rsp := step.NewResponse(req)
	rsp.RequireByLabels(requirementDeployments, machinev1alpha1.SchemeGroupVersion.String(), machinev1alpha1.MachineDeploymentGroupVersionKind.Kind,
		o.Namespace, map[string]string{machinev1alpha1.LabelNodePool: o.Pool.Name})
	looked, err := observePool(req, &o)
	if err != nil || !looked {
		return rsp.RunFunctionResponse, err
	}
	o.Classes = observeClasses(req, rsp, o)
	return rsp.RunFunctionResponse, respondPool(req, rsp, pool.Plan(now, o))
}

// observePool adds the MachineDeployments that the pool controls, and those with its label that have
// no controller, because they were restored or moved.
func observePool(req *fnv1.RunFunctionRequest, o *pool.Observed) (bool, error) {
	children, looked := step.Children(req, requirementDeployments, machinev1alpha1.MachineDeploymentGroupVersionKind.Kind, o.Pool.UID)
	if !looked {
		return false, nil
	}
	for _, c := range children {
		d, err := step.As[machinev1alpha1.MachineDeployment](c.Object)
		if err != nil {
			return false, err
		}
		o.Deployments = append(o.Deployments, pool.Deployment{
			MachineDeployment: d, Observed: c.Observed, Terminating: c.Terminating,
			ScaledByOthers: step.IsSharedField(req, requirementDeployments, d.Name, "spec", "replicas"),
		})
	}
	unowned, _ := step.Others(req, requirementDeployments, o.Pool.UID)
	for _, u := range unowned {
		d, err := step.As[machinev1alpha1.MachineDeployment](u)
		var fields *step.NotDecodableError
		if errors.As(err, &fields) {
			continue // It is not adopted: its controller is not known to be this one's.
		}
		if err != nil {
			return false, err
		}
		o.Deployments = append(o.Deployments, pool.Deployment{MachineDeployment: d, ScaledByOthers: true})
	}
	return true, nil
}

// observeClasses requires the classes that are offered. It returns nil while Crossplane has not looked for all of them: the
// pool is decided without them, as they only inform users.
func observeClasses(req *fnv1.RunFunctionRequest, rsp step.Response, o pool.Observed) map[string]offer.Spec {
	out, complete := map[string]offer.Spec{}, true
	for _, c := range o.Offer.Classes {
		kind, namespace := machinev1alpha1.MachineClassGroupVersionKind.Kind, o.Namespace
		if c.ClassRef.IsCluster() {
			kind, namespace = c.ClassRef.Kind, ""
		}
		requirement := requirementOffered + c.Name
		rsp.RequireByName(requirement, machinev1alpha1.SchemeGroupVersion.String(), kind, namespace, c.ClassRef.Name)
		found, looked := step.Required(req, requirement)
		complete = complete && looked
		if len(found) != 1 {
			continue
		}
		if spec, err := specOf(found[0], c.ClassRef); err == nil {
			out[c.ClassRef.Key()] = spec
		}
	}
	if !complete {
		return nil
	}
	return out
}

func specOf(class plan.Object, ref machinev1alpha1.ClassReference) (offer.Spec, error) {
	if !ref.IsCluster() {
		c, err := step.As[machinev1alpha1.MachineClass](class)
		if err != nil {
			return offer.Spec{}, err
		}
		return offer.Spec{MachineClassSpec: c.Spec}, nil
	}
	c, err := step.As[machinev1alpha1.ClusterMachineClass](class)
	if err != nil {
		return offer.Spec{}, err
	}
	return offer.OfCluster(c), nil
}

func respondPool(req *fnv1.RunFunctionRequest, rsp step.Response, d pool.Decision) error {
	for _, c := range d.Deployments {
		if err := rsp.Compose(c.Name, c.MachineDeployment, c.Ready); err != nil {
			return err
		}
		if c.OmitReplicas {
			rsp.Omit(c.Name, "spec", "replicas")
		}
	}
	// If the pool is claimed, its kind is the platform's own.
	if err := rsp.Report(step.CompositeKind(req), &d.Status, d.Report); err != nil {
		return err
	}
	if step.Claim(req).Name != "" {
		rsp.ReportToClaim()
	}
	rsp.IfUnchanged(req)
	return nil
}
