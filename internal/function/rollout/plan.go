package rollout

import (
	"cmp"
	"slices"
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
)

// A Set is a MachineSet of the deployment.
type Set struct {
	*machinev1alpha1.MachineSet
	// Observed is false for a MachineSet that the deployment's references do not
	// name. See step.Child.
	Observed bool
	// Terminating means that the MachineSet is being deleted.
	Terminating bool
}

// Observed is what the step sees.
type Observed struct {
	Deployment *machinev1alpha1.MachineDeployment
	// Sets that the deployment controls, in any order.
	Sets []Set
	// ClassFound means that the class of the current template exists.
	ClassFound bool
	Safety     step.Safety
}

// A Desired MachineSet.
type Desired struct {
	*machinev1alpha1.MachineSet
	Ready bool
}

// A Decision is what the step wants.
type Decision struct {
	Sets       []Desired
	Status     machinev1alpha1.MachineDeploymentStatus
	Ready      bool
	Conditions []step.Condition
	Events     []step.Event
	// CallAgain after this time, even if nothing happens.
	CallAgain time.Duration
}

// Plan decides.
func Plan(o Observed) Decision {
	p := &plan{Observed: o}
	p.bounds, p.problem = boundsOf(o.Deployment)
	p.sort()
	p.revise()
	p.scale()
	p.forget()
	return p.decide()
}

// A plan is in the making.
type plan struct {
	Observed
	bounds bounds
	// problem with the spec, nil if there is none.
	problem *step.Problem

	// current is the set of the current template. It is nil when it may not be
	// created, or not yet because one of its name is still terminating.
	current *set
	// old sets are the others, oldest first.
	old []*set
	// terminating sets only count.
	terminating []*set
}

func (p *plan) sort() {
	h := hash(p.Deployment.Spec.Template)
	for _, s := range p.Sets {
		n := &set{Set: s, revision: revisionOf(s.MachineSet), told: s.Spec.Replicas}
		for _, t := range p.Deployment.Status.MachineSets {
			if t.Name == s.Name {
				n.told, n.recorded = t.Replicas, true
			}
		}
		n.wants = n.told
		switch {
		case s.Terminating:
			p.terminating = append(p.terminating, n)
		case s.Labels[machinev1alpha1.LabelTemplateHash] == h:
			p.current = n
		default:
			p.old = append(p.old, n)
		}
	}
	slices.SortFunc(p.old, func(a, b *set) int {
		return cmp.Or(cmp.Compare(a.revision, b.revision), cmp.Compare(a.Name, b.Name))
	})

	if !p.ClassFound && p.problem == nil {
		p.problem = classNotFound(p.Deployment)
	}
	if p.current == nil && p.problem == nil && !p.Safety.Frozen {
		s := newSet(p.Deployment, h)
		if !slices.ContainsFunc(p.terminating, func(t *set) bool { return t.Name == s.Name }) {
			p.current = &set{Set: Set{MachineSet: s}, missing: true}
		}
	}
}

// revise gives the current template the highest revision, be it new or one that
// was there before.
func (p *plan) revise() {
	if p.current == nil {
		return
	}
	highest := int64(0)
	for _, s := range slices.Concat(p.old, p.terminating) {
		highest = max(highest, s.revision)
	}
	if p.current.revision <= highest {
		p.current.revision = highest + 1
	}
}

// forget the oldest empty sets beyond the history limit. One that is not observed
// has to be composed again before it can be deleted.
func (p *plan) forget() {
	keep := p.Deployment.Spec.RevisionHistoryLimit
	for _, s := range slices.Backward(slices.Clone(p.old)) {
		if !s.empty() || !s.settled() || s.wants > 0 || s == p.head() {
			continue
		}
		if keep > 0 {
			keep--
			continue
		}
		if s.Observed {
			p.old = slices.DeleteFunc(p.old, func(o *set) bool { return o == s })
		}
	}
}

// live sets are all that are composed.
func (p *plan) live() []*set {
	if p.current == nil {
		return p.old
	}
	return append(slices.Clone(p.old), p.current)
}

func (p *plan) decide() Decision {
	d := Decision{Status: p.status()}
	for _, s := range p.live() {
		d.Sets = append(d.Sets, Desired{MachineSet: p.composed(s), Ready: s.ready()})
	}
	d.Ready = p.complete()
	d.Conditions = []step.Condition{p.valid(), p.available(), p.progressing()}
	d.Events = p.allEvents(d.Conditions)
	d.CallAgain = p.callAgain()
	return d
}
