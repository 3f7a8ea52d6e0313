package deployment

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/remediation"
)

// A Set is a MachineSet of the deployment.
type Set struct {
	*machinev1alpha1.MachineSet
	// Observed is false for a MachineSet that the deployment's references do not
	// name. See shared.Child.
	Observed bool
	// Terminating means that the MachineSet is being deleted.
	Terminating bool
}

// Observed is what the step sees.
type Observed struct {
	Deployment *machinev1alpha1.MachineDeployment
	// Sets that the deployment controls, in any order.
	Sets []Set
	// ClassFound means that the class of the template that is rolled out exists.
	ClassFound bool
	// ClassProblem is why no VM can be made from it, nil if one can.
	ClassProblem *shared.Problem
	Safety       shared.Safety
}

// A Desired MachineSet.
type Desired struct {
	*machinev1alpha1.MachineSet
	Ready bool
}

// A Decision is what the step wants.
type Decision struct {
	Sets   []Desired
	Status machinev1alpha1.MachineDeploymentStatus
	shared.Report
}

// Plan decides.
func Plan(now time.Time, o Observed) Decision {
	p := &plan{Observed: o, now: now}
	p.bounds, p.problem = boundsOf(o.Deployment)
	p.limits, p.unlimited = remediation.LimitsOf(o.Deployment.Spec.Remediation, o.Deployment.Spec.Replicas)
	p.choose()
	p.sort()
	p.revise()
	p.scale()
	p.allot()
	p.forget()
	return p.decide()
}

// A plan is in the making.
type plan struct {
	Observed
	now    time.Time
	bounds bounds
	// problem with the spec, nil if there is none.
	problem *shared.Problem
	// ofClass means that it is one of the class: no Machine can be created.
	ofClass bool
	// limits of replacements. While unlimited is set, the problem with them, none is
	// replaced.
	limits    remediation.Limits
	unlimited *shared.Problem

	// template that is rolled out: that of the spec or of a revision that is gone
	// back to.
	template machinev1alpha1.MachineTemplate
	// target identifies it.
	target rolling
	// rollback that is in force, nil if there is none.
	rollback *machinev1alpha1.Rollback
	// revisions that there were, the current one last.
	revisions []machinev1alpha1.Revision

	// current is the set of the template. It is nil when it does not exist and may
	// not be created.
	current *set
	// old sets are the others, oldest first.
	old []*set
	// terminating sets only count.
	terminating []*set

	// scaledFor is the number of replicas that the sets are scaled for.
	scaledFor int32
}

// held means that no Machine may be replaced or updated: only replicas counts.
func (p *plan) held() bool {
	return p.Safety.Frozen || p.paused() || p.problem != nil && !p.ofClass
}

// scalesOnly means that nothing is replaced: it is held, or there is no set that may
// take over.
func (p *plan) scalesOnly() bool { return p.held() || p.current == nil }

func (p *plan) paused() bool {
	_, annotated := p.Deployment.Annotations[machinev1alpha1.AnnotationPaused]
	return p.Deployment.Spec.Paused || annotated
}

func (p *plan) sort() {
	for _, s := range p.Sets {
		n := &set{Set: s, revision: revisionOf(s.MachineSet), told: s.Spec.Replicas}
		n.allotted = n.toldInFlight()
		for _, t := range p.Deployment.Status.MachineSets {
			if t.Name == s.Name {
				n.told, n.most, n.recorded = t.Replicas, t.Most, true
				n.allotted = ptr.Deref(t.MaxInFlight, n.allotted)
			}
		}
		n.wants, n.allots = n.told, n.allotted
		if s.Terminating {
			p.terminating = append(p.terminating, n)
		} else {
			p.old = append(p.old, n)
		}
	}
	slices.SortFunc(p.old, func(a, b *set) int {
		return cmp.Or(cmp.Compare(a.revision, b.revision), cmp.Compare(a.Name, b.Name))
	})

	switch {
	case p.problem != nil:
	case !p.ClassFound:
		p.problem, p.ofClass = classNotFound(p.Deployment, p.template), true
	case p.ClassProblem != nil:
		p.problem, p.ofClass = classUnusable(p.ClassProblem), true
	}
	for _, s := range slices.Backward(p.old) {
		if p.isCurrent(s) {
			p.current = s
			p.old = slices.DeleteFunc(p.old, func(o *set) bool { return o == s })
			return
		}
	}
	if p.problem == nil && !p.held() {
		p.current = &set{Set: Set{MachineSet: p.newSet()}, missing: true}
	}
}

// isCurrent says whether a set is that of the template. One that updates in place
// becomes it.
func (p *plan) isCurrent(s *set) bool {
	has := rollingOf(s.Spec.Template)
	if p.inPlace() {
		return has.same(p.target) || !p.held() && p.problem == nil && has.stays(p.target)
	}
	return has.same(p.target) && !s.mixed() && p.isYoungEnough(s)
}

// isYoungEnough says whether a set was created after spec.rollout.after. The hash
// tells it of those that were created for that time, whatever the clock says.
func (p *plan) isYoungEnough(s *set) bool {
	if p.target.After == nil || !s.CreationTimestamp.Before(p.target.After) {
		return true
	}
	r := p.target
	for ; r.Collision <= len(p.Sets); r.Collision++ {
		if s.Labels[machinev1alpha1.LabelTemplateHash] == r.hash() {
			return true
		}
	}
	return false
}

// forget old sets that are empty: what can be gone back to stands in the status. One
// that is not observed has to be composed again before it can be deleted.
func (p *plan) forget() {
	head := p.head()
	p.old = slices.DeleteFunc(p.old, func(s *set) bool {
		return s != head && s.empty() && s.settled() && s.wants == 0 && s.Observed
	})
}

// live sets are all that are composed.
func (p *plan) live() []*set {
	all := slices.Clone(p.old)
	if p.current != nil {
		all = append(all, p.current)
	}
	return all
}

// head is the set that Machines are wanted of: the current one, or, as long as
// there may be none, the newest that there is.
func (p *plan) head() *set {
	if p.current == nil && len(p.old) > 0 {
		return p.old[len(p.old)-1]
	}
	return p.current
}

func (p *plan) others(head *set) []*set {
	return slices.DeleteFunc(p.live(), func(s *set) bool { return s == head })
}

func (p *plan) decide() Decision {
	d := Decision{Status: p.status()}
	for _, s := range p.live() {
		d.Sets = append(d.Sets, Desired{MachineSet: p.composed(s), Ready: s.ready()})
	}
	d.Ready = p.complete()
	d.Conditions = p.conditions(d.Status)
	d.Events = p.allEvents(d.Conditions)
	d.CallAgain = p.callAgain(d.Status)
	return d
}
