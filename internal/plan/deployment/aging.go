package deployment

import (
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/aging"
)

// checkMaxAge of the rollout.
func (f *fleet) checkMaxAge() {
	if f.problem != nil {
		return
	}
	if f.problem = aging.Problem(f.Deployment.Spec.Rollout, f.Deployment.Spec.Template.Spec, f.Deployment.Spec.MinReadySeconds); f.problem != nil {
		f.problem.Message += "; meanwhile no healthy Machine is replaced"
	}
}

// agingOf returns the age at which a set replaces Machines, nil during a rollout: that replaces all of them.
func (p *plan) agingOf(s *set) *machinev1alpha1.MachineSetAging {
	maxAge := p.Deployment.Spec.Rollout.MaxAge
	if maxAge == nil || s != p.current || !p.isDone() {
		return nil
	}
	a := &machinev1alpha1.MachineSetAging{MaxAge: *maxAge, Order: machinev1alpha1.DeleteFirst}
	if p.bounds.surge > 0 {
		a.Order = machinev1alpha1.CreateFirst
	}
	if next := s.Status.Aging; next != nil && p.mayReplaceAged() && !p.now.Before(next.DueTime.Time) && p.windows.IsOpen(p.now) {
		a.Replace = next.Machine
	}
	return a
}

// mayReplaceAged reports whether nothing but the time keeps the deployment from replacing a Machine because of its age: no
// user, gate, rejection or freeze, and all Machines are available. No Machine is replaced where none can be created.
func (p *plan) mayReplaceAged() bool {
	_, held := p.Deployment.Annotations[machinev1alpha1.AnnotationRolloutHold]
	return p.isComplete() && !held && !p.isGateClosed() && !p.isHeld() && p.problem == nil && !p.isSpecRejected() &&
		p.current.Status.TerminatingReplicas == 0 && len(p.exhausted()) == 0
}

// isGateClosed reports whether a step of the user's own holds rollouts.
func (f *fleet) isGateClosed() bool { return f.Gate != nil && f.Gate.Hold }

// untilAged is the time until a Machine may be replaced because of its age, or until that must be taken back because a
// window closes. It is false if another event decides that.
func (p *plan) untilAged() (time.Duration, bool) {
	c := p.current
	if c == nil || c.Status.Aging == nil || p.agingOf(c) == nil {
		return 0, false
	}
	due := c.Status.Aging.DueTime.Time
	if due.Before(p.now) {
		due = p.now
	}
	at := p.windows.Opens(due)
	switch {
	case p.agingOf(c).Replace != "":
		at = p.windows.Closes(p.now)
	case at.IsZero():
	case !at.After(p.now) && p.isGateClosed() && p.Gate.Until != nil && p.now.Before(p.Gate.Until.Time):
		at = p.Gate.Until.Time
	case !at.After(p.now) && p.isGateClosed():
		return shared.InFlight, true
	case !at.After(p.now):
		return 0, false
	}
	if at.IsZero() {
		return 0, false
	}
	return max(shared.Soonest, at.Sub(p.now)), true
}

// aged is the Machine that is due next, nil if none is replaced because of its age.
func (p *plan) aged() *machinev1alpha1.AgingMachine {
	if p.current == nil || p.agingOf(p.current) == nil {
		return nil
	}
	return p.current.Status.Aging.DeepCopy()
}
