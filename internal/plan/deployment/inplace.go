package deployment

import (
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// inPlace says whether Machines are updated rather than replaced.
func (p *plan) inPlace() bool {
	return p.Deployment.Spec.Strategy.Type == machinev1alpha1.InPlaceUpdate
}

// updates is what the current set is told of updates in place; nil if it replaces.
func (p *plan) updates(s *set) *machinev1alpha1.MachineSetInPlaceUpdate {
	if !p.inPlace() || s != p.current || p.held() {
		return s.paused()
	}
	b := p.Deployment.Spec.Strategy.InPlaceUpdate
	return &machinev1alpha1.MachineSetInPlaceUpdate{
		ID: p.target.hash(),
		// The set counts from what it is told, which may be more than replicas, or
		// less while it is scaled.
		MaxUnavailable: max(0, s.told-p.bounds.least()),
		Orchestration:  b.Orchestration,
		Timeout:        b.Timeout,
	}
}

// paused is what a set was told of updates in place, but that none shall begin.
func (s *set) paused() *machinev1alpha1.MachineSetInPlaceUpdate {
	if s.Spec.InPlaceUpdate == nil {
		return nil
	}
	u := *s.Spec.InPlaceUpdate
	u.Paused = true
	return &u
}

// mixed means that the set updates in place and has Machines of earlier templates.
func (s *set) mixed() bool {
	return s.Spec.InPlaceUpdate != nil && s.Status.UpdatedReplicas < s.Status.Replicas
}

// fill a set that updates in place. Machines of it may still be going, given up for a
// move that was taken back: only who merely scales need not wait for them.
func (p *plan) fill(s *set) {
	n := p.withSurge(s)
	if !p.wasComplete() {
		n = p.upTo(s, n, p.bounds.most())
	}
	p.tell(s, n)
}

// withSurge is how many Machines a set shall have that updates in place: those above
// replicas are new ones, and spare as many old ones the update in the end.
func (p *plan) withSurge(s *set) int32 {
	most := p.bounds.replicas
	manual := p.Deployment.Spec.Strategy.InPlaceUpdate.Orchestration == machinev1alpha1.OrchestrationManual
	outdated := max(0, s.Status.Replicas-max(0, s.Status.UpdatedReplicas))
	if manual || p.held() || s != p.current || s.missing || p.isUpdated(s) || s.Status.UpdatedAvailableReplicas >= most {
		return most
	}
	extra := max(s.told-most, min(p.bounds.surge, outdated))
	return min(add(most, extra), p.bounds.most())
}

// isUpdated says whether the set acted on the template and has no Machines of others.
func (p *plan) isUpdated(s *set) bool {
	u := s.Spec.InPlaceUpdate
	return u != nil && u.ID == p.target.hash() && s.settled() && !s.mixed()
}
