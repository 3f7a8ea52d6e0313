package deployment

import (
	"k8s.io/utils/ptr"

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
		// The set counts from its own number, which may be less than replicas while it is
		// scaled up. Machines that are about to be deleted leave no room for updates: marked
		// ones are deleted although they are available.
		MaxUnavailable: max(0, min(s.told, p.withSurge(s))-p.bounds.least()),
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

// withSurge is how many Machines a set shall have that updates in place.
func (p *plan) withSurge(s *set) int32 {
	if p.needsSurge(s) {
		return add(p.bounds.replicas, 1)
	}
	return p.bounds.replicas
}

// needsSurge reports whether the set needs a Machine above replicas. If some may be
// unavailable, updates need none. Otherwise one new Machine takes the place of the Machines
// that are updated, one after another, and of the last outdated one for good: each further
// one would be a VM that the update could do without.
func (p *plan) needsSurge(s *set) bool {
	b := p.bounds
	manual := p.Deployment.Spec.Strategy.InPlaceUpdate.Orchestration == machinev1alpha1.OrchestrationManual
	if b.unavailable > 0 || b.replicas == 0 || manual {
		return false
	}
	hasSurge := s.told > max(b.replicas, ptr.Deref(p.Deployment.Status.DesiredReplicas, 0))
	switch {
	case p.held() || s != p.current || s.missing:
		return hasSurge
	case p.hasUpdated(s):
		return false
	}
	return hasSurge || s.Status.UpdatedReplicas < s.Status.Replicas
}

// hasUpdated reports whether the set can do without the Machine above replicas. A marked
// Machine would be deleted in place of one that is not available.
func (p *plan) hasUpdated(s *set) bool {
	return p.isUpdated(s) && s.Status.MarkedReplicas == 0 ||
		s.Status.UpdatedAvailableReplicas-min(1, s.Status.MarkedReplicas) >= p.bounds.replicas
}

// isUpdated says whether the set acted on the template and has no Machines of others.
func (p *plan) isUpdated(s *set) bool {
	u := s.Spec.InPlaceUpdate
	return u != nil && u.ID == p.target.hash() && s.settled() && !s.mixed()
}
