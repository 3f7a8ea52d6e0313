package deployment

import (
	"cmp"
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	for _, set := range p.live() {
		s.Replicas += set.Status.Replicas
		s.ReadyReplicas += set.Status.ReadyReplicas
		s.AvailableReplicas += set.Status.AvailableReplicas
		s.TerminatingReplicas += set.Status.TerminatingReplicas
		s.PreservedFailedReplicas += set.Status.PreservedFailedReplicas
		s.UnhealthyReplicas += set.Status.UnhealthyReplicas
		s.MachineSets = append(s.MachineSets, set.decided())
	}
	for _, set := range p.terminating {
		s.TerminatingReplicas += set.Status.Replicas + set.Status.TerminatingReplicas
	}
	s.Exhausted = p.exhausted()
	if p.current != nil {
		s.UpdatedReplicas = p.current.updated(p.target)
		s.Revision = p.current.revision
		s.Rollback = p.rollback
	}
	s.UnavailableReplicas = max(0, p.bounds.replicas-s.AvailableReplicas)
	s.LastProgressTime = p.lastProgress(s)
	s.Revisions = p.history(s)
	return s
}

// exhausted failure domains, by name. Of sets that tell of the same one, a set that
// still waits for a VM there knows best, and else the one that did last.
func (p *plan) exhausted() []machinev1alpha1.Exhaustion {
	var all []machinev1alpha1.Exhaustion
	for _, set := range p.live() {
		if e := set.Status.Exhausted; e != nil {
			all = append(all, *e)
		}
	}
	slices.SortStableFunc(all, func(a, b machinev1alpha1.Exhaustion) int {
		until := func(e machinev1alpha1.Exhaustion) int64 {
			if e.Until == nil {
				return math.MaxInt64
			}
			return e.Until.Unix()
		}
		return cmp.Or(cmp.Compare(a.FailureDomain, b.FailureDomain), cmp.Compare(until(b), until(a)), a.Since.Compare(b.Since.Time))
	})
	return slices.CompactFunc(all, func(a, b machinev1alpha1.Exhaustion) bool { return a.FailureDomain == b.FailureDomain })
}

// decided is what is written down of the set.
func (s *set) decided() machinev1alpha1.MachineSetReplicas {
	d := machinev1alpha1.MachineSetReplicas{Name: s.Name, Replicas: s.wants, MaxInFlight: &s.allots}
	if s.wants < s.told {
		d.Most = s.told
	}
	if !s.settled() {
		d.Most = max(d.Most, s.most)
	}
	return d
}

// updated Machines of the set: all, unless it updates them one after another.
func (s *set) updated(target rolling) int32 {
	switch u := s.Spec.InPlaceUpdate; {
	case u == nil:
		return s.Status.Replicas
	case u.ID != target.hash() && !u.Paused || !s.settled():
		return 0
	}
	return s.Status.UpdatedReplicas
}

// ready means that the set has the Machines that it shall have.
func (s *set) ready() bool {
	return !s.missing && s.settled() && s.Status.Replicas == s.told && s.Status.ReadyReplicas == s.told
}

// complete means that all Machines are of the current template and available, and
// that nothing is left of others.
func (p *plan) complete() bool {
	c := p.current
	return c != nil && (c.ready() && c.updated(p.target) == c.told || p.staysComplete()) &&
		c.wants == c.told && p.alone() && c.told == p.bounds.replicas && c.Status.AvailableReplicas == c.told
}

// staysComplete means that the deployment was complete, and that the current set has yet to
// act on a change that Drover itself made, such as the taints of Nodes at the end of a
// rollout: neither a user nor the clock has asked for anything else.
func (p *plan) staysComplete() bool {
	c, d := p.current, p.Deployment
	isUpdated := c.Spec.InPlaceUpdate == nil || c.Spec.InPlaceUpdate.ID == p.target.hash() && c.Status.UpdatedReplicas == c.told
	return p.wasComplete() && shared.IsReadyFor(d.Generation, d.Status.Conditions) && isUpdated &&
		c.Spec.Replicas == c.told && c.Status.Replicas == c.told && c.Status.ReadyReplicas == c.told
}

// wasComplete means that this revision once was complete. What happens since then
// is no rollout, but scaling and replacing.
func (p *plan) wasComplete() bool {
	c := p.condition(machinev1alpha1.ConditionProgressing)
	return p.current != nil && p.Deployment.Status.Revision == p.current.revision && c != nil && c.Reason == machinev1alpha1.ReasonNewMachineSetAvailable
}

// lastProgress is now if the rollout came further since the last status: the time is
// written together with what it is about, and at no other time.
func (p *plan) lastProgress(now machinev1alpha1.MachineDeploymentStatus) *metav1.Time {
	before := p.Deployment.Status
	resumed := false
	if c := p.condition(machinev1alpha1.ConditionProgressing); c != nil {
		resumed = c.Reason == machinev1alpha1.ReasonMachineDeploymentPaused && !p.paused()
	}
	old := func(s machinev1alpha1.MachineDeploymentStatus) int32 { return s.Replicas - s.UpdatedReplicas }
	if before.LastProgressTime == nil || resumed || now.Revision != before.Revision || now.UpdatedReplicas > before.UpdatedReplicas ||
		old(now) < old(before) || now.ReadyReplicas > before.ReadyReplicas || now.AvailableReplicas > before.AvailableReplicas {
		t := metav1.NewTime(p.now.UTC().Truncate(time.Second))
		return &t
	}
	return before.LastProgressTime
}

// untilDeadline is how long the rollout may still go without progress, and 0 or less
// when it went without for too long.
func (p *plan) untilDeadline(s machinev1alpha1.MachineDeploymentStatus) time.Duration {
	limit := p.Deployment.Spec.ProgressDeadlineSeconds
	if limit <= 0 {
		// The schema has a default: this is none that a user wrote.
		return shared.AtRest
	}
	return s.LastProgressTime.Add(time.Duration(limit) * time.Second).Sub(p.now)
}

// callAgain at once to carry out what is written down by then, soon while anything
// is in flight, and when a time comes that was asked for.
func (p *plan) callAgain(s machinev1alpha1.MachineDeploymentStatus) time.Duration {
	// A generation is reported as observed by the plan after the one that decided by it.
	if s.ObservedGeneration < p.Deployment.Generation {
		return shared.Soonest
	}
	for _, set := range p.live() {
		if set.missing || set.wants != set.told || set.allots != set.allotted {
			return shared.Soonest
		}
	}
	again := shared.AtRest
	if left, byHand := p.untilFreezeStalls(); byHand && left > 0 {
		again = left
	}
	if a := p.Deployment.Spec.Rollout.After; a != nil && p.now.Before(a.Time) {
		again = min(again, a.Sub(p.now))
	}
	// A deadline that has passed is no time to wait for.
	if left := p.untilDeadline(s); p.rollsOn() && left > 0 {
		again = min(again, max(shared.Soonest, left))
	}
	if !p.complete() || s.TerminatingReplicas > 0 || *s.DesiredReplicas != p.bounds.replicas || slices.ContainsFunc(p.live(), func(s *set) bool { return !s.settled() }) {
		again = min(again, shared.InFlight)
	}
	return again
}
