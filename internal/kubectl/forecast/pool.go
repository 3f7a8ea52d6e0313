package forecast

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/view"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/deployment"
	"github.com/drover-dev/drover/internal/plan/pool"
)

// stepsOfPool bounds the steps of a pool in a forecast. A pool that moves a size between failure domains takes
// at most one step per Machine.
const stepsOfPool = machinev1alpha1.MaxReplicas

// PoolInput of a forecast of a NodePool.
type PoolInput struct {
	// After is the NodePool as the API server would store the change, with its current status.
	After *machinev1alpha1.NodePool
	// Offer of the platform.
	Offer       fn.Pool
	Deployments []machinev1alpha1.MachineDeployment
	// Of returns the input for a MachineDeployment, without Before and After.
	Of func(after *machinev1alpha1.MachineDeployment) Input
}

// OfPool forecasts the effect of a change of a NodePool on each of its MachineDeployments. The pool's planner
// decides on them, step by step, as if each step had been carried out.
func OfPool(now time.Time, in PoolInput) []Forecast {
	after, order, problem := deploymentsOf(now, in)
	if problem != nil {
		return []Forecast{{
			Ref:    view.Ref{Kind: view.NodePool, Namespace: in.After.Namespace, Name: in.After.Name},
			Blocks: []Block{{Reason: problem.Reason, Message: problem.Message, Do: "Correct the field.", All: true}},
		}}
	}
	out := []Forecast{}
	for _, d := range after {
		input := in.Of(d)
		input.After, input.Before = d, &machinev1alpha1.MachineDeployment{}
		if i := slices.IndexFunc(in.Deployments, func(b machinev1alpha1.MachineDeployment) bool { return b.Name == d.Name }); i >= 0 {
			input.Before = &in.Deployments[i]
		}
		out = append(out, Of(now, input))
	}
	if in.After.Spec.Strategy.FailureDomains == machinev1alpha1.FailureDomainsOneByOne {
		oneByOne(out, order)
	}
	return out
}

// oneByOne adds to each forecast which rollout ends before its own begins. The order has the names of all.
func oneByOne(all []Forecast, order []string) {
	before := ""
	for _, name := range order {
		i := slices.IndexFunc(all, func(f Forecast) bool { return f.Name == name })
		if i < 0 || len(all[i].Replaced)+len(all[i].Updated) == 0 {
			continue
		}
		all[i].Follows, before = before, name
	}
}

// deploymentsOf returns the future MachineDeployments of the pool, and their names in the order of the failure domains. It
// returns the problem if the pool is not valid.
func deploymentsOf(now time.Time, in PoolInput) (out []*machinev1alpha1.MachineDeployment, order []string, problem *plan.Condition) {
	p := in.After.DeepCopy()
	is := map[string]*machinev1alpha1.MachineDeployment{}
	for i := range in.Deployments {
		is[in.Deployments[i].Name] = in.Deployments[i].DeepCopy()
	}
	for range stepsOfPool {
		o := pool.Observed{Pool: p, Namespace: p.Namespace, Offer: in.Offer}
		for _, d := range is {
			o.Deployments = append(o.Deployments, pool.Deployment{MachineDeployment: settled(d), Observed: true, ScaledByOthers: p.Spec.Autoscaling != nil})
		}
		slices.SortFunc(o.Deployments, func(a, b pool.Deployment) int { return cmp.Compare(a.Name, b.Name) })
		decision := pool.Plan(now, o)
		for _, c := range decision.Conditions {
			if c.Type == machinev1alpha1.ConditionValid && c.Status == string(metav1.ConditionFalse) {
				return nil, nil, &c
			}
		}
		// A decision is recorded first, and carried out when it is read back.
		recorded := !equality.Semantic.DeepEqual(p.Status.FailureDomains, decision.Status.FailureDomains)
		p.Status = decision.Status
		if changed := carryOut(is, decision); !changed && !recorded {
			break
		}
	}
	for _, d := range is {
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b *machinev1alpha1.MachineDeployment) int { return cmp.Compare(a.Name, b.Name) })
	for _, d := range p.Status.FailureDomains {
		order = append(order, d.MachineDeployment)
	}
	return out, order, nil
}

// carryOut carries out a decision, and reports whether anything changed. Fields that the pool does not decide
// on keep their values, such as the defaults of the schema. A MachineDeployment that is no longer one of the
// pool's has no Machines any more.
func carryOut(is map[string]*machinev1alpha1.MachineDeployment, decision pool.Decision) (changed bool) {
	wanted := map[string]bool{}
	for _, to := range decision.Deployments {
		wanted[to.Name] = true
		d := is[to.Name]
		if d == nil {
			d = to.MachineDeployment.DeepCopy()
			is[to.Name] = d
			changed = true
		}
		before := d.DeepCopy()
		overlay(&d.Spec, to.Spec, to.OmitReplicas)
		if d.Annotations == nil {
			d.Annotations = map[string]string{}
		}
		for k, v := range to.Annotations {
			d.Annotations[k] = v
		}
		changed = changed || !equality.Semantic.DeepEqual(before, d)
	}
	for name, d := range is {
		if !wanted[name] && d.Spec.Replicas > 0 {
			d.Spec.Replicas, changed = 0, true
		}
	}
	return changed
}

// overlay writes the fields that a pool decides on into a MachineDeployment.
func overlay(d *machinev1alpha1.MachineDeploymentSpec, to machinev1alpha1.MachineDeploymentSpec, omitReplicas bool) {
	if !omitReplicas {
		d.Replicas = to.Replicas
	}
	d.Strategy, d.Paused, d.Rollout = to.Strategy, to.Paused, to.Rollout
	t, from := &d.Template.Spec, to.Template.Spec
	t.ClassRef, t.Version, t.ClusterRef, t.FailureDomain = from.ClassRef, from.Version, from.ClusterRef, from.FailureDomain
	t.ClassRef.Kind = cmp.Or(t.ClassRef.Kind, machinev1alpha1.MachineClassGroupVersionKind.Kind)
	t.Metadata, t.Taints, t.StartupTaints = from.Metadata, from.Taints, from.StartupTaints
	d.Template.Metadata = to.Template.Metadata
}

// settled returns a MachineDeployment with the status that its spec desires.
func settled(d *machinev1alpha1.MachineDeployment) *machinev1alpha1.MachineDeployment {
	out := d.DeepCopy()
	n := out.Spec.Replicas
	s := &out.Status
	s.ObservedGeneration = out.Generation
	s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas = n, n, n, n
	s.UnavailableReplicas, s.TerminatingReplicas, s.UnhealthyReplicas = 0, 0, 0
	s.DesiredReplicas = &n
	s.Exhausted = nil
	s.Revisions = []machinev1alpha1.Revision{deployment.CompleteRevision(out, s.Revision)}
	return out
}
