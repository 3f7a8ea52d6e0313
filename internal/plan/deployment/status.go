package deployment

import (
	"slices"
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

func (p *plan) status() machinev1alpha1.MachineDeploymentStatus {
	s := machinev1alpha1.MachineDeploymentStatus{
		ObservedGeneration: shared.ObservedGeneration(p.Deployment.Generation, p.Deployment.Status.ObservedGeneration, p.Deployment.Status.Conditions),
		Selector:           p.Deployment.Spec.Selector.String(),
		DesiredReplicas:    &p.scaledFor,
		Revision:           p.Deployment.Status.Revision,
	}
	for _, set := range p.sets {
		s.Replicas += set.Status.Replicas
		s.ReadyReplicas += set.Status.ReadyReplicas
		s.AvailableReplicas += set.Status.AvailableReplicas
		s.TerminatingReplicas += set.Status.TerminatingReplicas
		s.PreservedFailedReplicas += set.Status.PreservedFailedReplicas
		s.UnhealthyReplicas += set.Status.UnhealthyReplicas
		s.MachineSets = append(s.MachineSets, p.recorded(set))
	}
	for _, set := range p.terminating {
		s.TerminatingReplicas += set.Status.Replicas + set.Status.TerminatingReplicas
	}
	s.Exhausted = p.exhausted()
	if p.current != nil {
		s.UpdatedReplicas = p.current.updated(p.target)
		s.Revision = p.revision
		s.Rollback = p.rollback
	} else if r := p.Deployment.Status.Rollback; p.rollsBackTo != nil && r != nil && r.Requested == p.rollsBackTo.Requested {
		// The recorded number is the one that the revision has now: the requested number does not
		// exist any more.
		s.Rollback = r
	}
	s.UnavailableReplicas = max(0, p.bounds.replicas-s.AvailableReplicas)
	s.Progress, s.LastProgressTime = p.progressOf(s)
	s.FrozenSince = p.frozenSince()
	s.Revisions = p.history(s)
	s.Rollout = p.rolloutStatus()
	s.Aging = p.turnOfAge().Next
	s.Replacements = p.replacements(s.Revisions)
	return s
}

// recorded returns the decisions about the set for the status.
func (p *plan) recorded(s *set) machinev1alpha1.MachineSetReplicas {
	next, budget := p.nextDesired[s], p.nextBudget[s]
	d := machinev1alpha1.MachineSetReplicas{Name: s.Name, Replicas: next, MaxInFlight: &budget}
	if next < s.desired {
		d.Most = s.desired
	}
	if !s.isSettled() {
		d.Most = max(d.Most, s.upperBound)
	}
	return d
}

// callAgain returns the delay until the next call. It is short if a decision must be carried out,
// or while a change is in progress. Otherwise the next call is due at the next deadline.
func (p *plan) callAgain(s machinev1alpha1.MachineDeploymentStatus) time.Duration {
	// The plan after this one reports the generation as observed.
	if s.ObservedGeneration < p.Deployment.Generation {
		return shared.Soonest
	}
	for _, set := range p.sets {
		if set.isMissing || p.nextDesired[set] != set.desired || p.nextBudget[set] != set.budget {
			return shared.Soonest
		}
	}
	if p.isNew || p.awaitsAnalysis() {
		return shared.Soonest
	}
	again := shared.AtRest
	if left, byHand := p.untilFreezeStalls(); byHand && left > 0 {
		again = left
	}
	if a := p.Deployment.Spec.Rollout.After; a != nil && p.now.Before(a.Time) {
		again = min(again, a.Sub(p.now))
	}
	if left, waits := p.untilGate(); waits && !p.isDone() {
		again = min(again, left)
	}
	if left, waits := p.turnOfAge().Until(p.now); waits {
		again = min(again, left)
	}
	// A deadline that has passed needs no call.
	if left := p.untilDeadline(s); p.rollsOn() && left > 0 {
		again = min(again, max(shared.Soonest, left))
	}
	if !p.isComplete() || s.TerminatingReplicas > 0 || *s.DesiredReplicas != p.bounds.replicas || slices.ContainsFunc(p.sets, func(s *set) bool { return !s.isSettled() }) {
		again = min(again, shared.InFlight)
	}
	return again
}

// rolloutStatus is nil for a rollout without gates.
func (p *plan) rolloutStatus() *machinev1alpha1.RolloutStatus {
	s := machinev1alpha1.RolloutStatus{Step: p.step, ReachedTime: p.reached, Held: p.hold, Rejected: p.rejected}
	if s == (machinev1alpha1.RolloutStatus{}) {
		return nil
	}
	if n := len(p.revisions); n > 0 && p.current != nil && p.outdated {
		s.ID = IDOf(p.revisions[n-1])
	}
	return &s
}
