package deployment

import (
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// updateOf returns the update of a set that updates in place, nil for a set that replaces Machines.
func (p *plan) updateOf(s *set) *machinev1alpha1.MachineSetInPlaceUpdate {
	if !p.updatesInPlace() || s != p.current || p.isHeld() {
		return s.pausedUpdate()
	}
	b := p.Deployment.Spec.Strategy.InPlaceUpdate
	return &machinev1alpha1.MachineSetInPlaceUpdate{
		ID: p.target.hash(),
		// The set counts from its own number, which may be less than replicas during a scale-up.
		// Machines that are about to be deleted leave no room for updates: marked ones are deleted
		// although they are available.
		MaxUnavailable: max(0, min(s.desired, p.withSurge(s))-p.bounds.least()),
		Orchestration:  b.Orchestration,
		Timeout:        b.Timeout,
	}
}

// scaleInPlace scales a set that updates in place. Some of its Machines may still terminate because
// of a scale-down that was reverted: without a rollout, a scale-up need not wait for them. A
// Machine that a scale-down marked does not serve as surge: it is deleted, and another one is
// created for the update.
func (p *plan) scaleInPlace() {
	n := p.withSurge(p.newSet)
	if !p.wasComplete() {
		n = p.upTo(p.newSet, n, p.bounds.most())
	}
	if fewer := p.lowered(); fewer > 0 && n > p.bounds.replicas {
		if !p.newSet.hasCountedFor(p.bounds.replicas) {
			p.waitToScale()
			return
		}
		n = min(n, p.newSet.desired-min(fewer, p.marked(p.newSet)))
	}
	p.scaleNew(n)
}

// withSurge returns the number of Machines that a set that updates in place shall have.
func (f *fleet) withSurge(s *set) int32 {
	if f.needsSurge(s) {
		return add(f.bounds.replicas, 1)
	}
	return f.bounds.replicas
}

// needsSurge reports whether the set needs a Machine above replicas. If Machines may be
// unavailable, updates need none. Otherwise one new Machine replaces each Machine during its
// update, one after another, and finally the last outdated one. More than one would be VMs that the
// update does not need.
func (f *fleet) needsSurge(s *set) bool {
	b := f.bounds
	manual := f.Deployment.Spec.Strategy.InPlaceUpdate.Orchestration == machinev1alpha1.OrchestrationManual
	if b.unavailable > 0 || b.replicas == 0 || manual {
		return false
	}
	hasSurge := s.desired > max(b.replicas, ptr.Deref(f.Deployment.Status.DesiredReplicas, 0))
	switch {
	case f.isHeld() || s != f.current || s.isMissing:
		return hasSurge
	case f.hasUpdated(s):
		return false
	}
	return hasSurge || s.Status.UpdatedReplicas < s.Status.Replicas
}

// hasUpdated reports whether the set no longer needs the Machine above replicas. A marked Machine
// would be deleted instead of an unavailable one.
func (f *fleet) hasUpdated(s *set) bool {
	return f.isUpdated(s) && s.Status.MarkedReplicas == 0 ||
		s.Status.UpdatedAvailableReplicas-min(1, s.Status.MarkedReplicas) >= f.bounds.replicas
}

// isUpdated reports whether the set has acted on the template and has no Machines of earlier
// templates.
func (f *fleet) isUpdated(s *set) bool {
	u := s.Spec.InPlaceUpdate
	return u != nil && u.ID == f.target.hash() && s.isSettled() && !s.isMixed()
}
