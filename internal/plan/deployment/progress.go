package deployment

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// isComplete reports whether all Machines have the current template and are available, and no
// Machine of another template is left.
func (p *plan) isComplete() bool {
	c := p.current
	return c != nil && (c.isReady() && c.updated(p.target) == c.desired || p.staysComplete()) &&
		p.nextDesired[c] == c.desired && p.isAlone() && c.desired == p.bounds.replicas && c.Status.AvailableReplicas == c.desired &&
		// Its deletion raises the generation, so that the deployment would be in progress once more.
		!slices.ContainsFunc(p.sets, p.isPrunable)
}

// staysComplete reports whether the deployment was complete, and the current set must only act on a
// change by Drover itself, such as the taints of Nodes at the end of a rollout. Neither a user nor
// the clock has requested another change.
func (p *plan) staysComplete() bool {
	c, d := p.current, p.Deployment
	isUpdated := c.Spec.InPlaceUpdate == nil || c.Spec.InPlaceUpdate.ID == p.target.hash() && c.Status.UpdatedReplicas == c.desired
	return p.wasComplete() && shared.IsReadyFor(d.Generation, d.Status.Conditions) && isUpdated &&
		c.Spec.Replicas == c.desired && c.Status.Replicas == c.desired && c.Status.ReadyReplicas == c.desired
}

// wasComplete reports whether this revision was complete at any time. Later changes are no rollout,
// but scaling and replacing.
func (p *plan) wasComplete() bool {
	c := p.condition(machinev1alpha1.ConditionProgressing)
	if p.current == nil || p.Deployment.Status.Revision != p.revision || c == nil {
		return false
	}
	last := p.lastRevision()
	return c.Reason == machinev1alpha1.ReasonNewMachineSetAvailable ||
		c.Reason == machinev1alpha1.ReasonRolloutRejected && last != nil && last.Revision == p.revision && last.Outcome == machinev1alpha1.RevisionComplete
}

// isDone reports whether there is no rollout: the revision is or was complete, and no Machine of
// another template is left.
func (p *plan) isDone() bool { return p.isComplete() || p.wasComplete() && p.isAlone() }

// rollsOn reports whether a rollout is in progress and may continue.
func (p *plan) rollsOn() bool {
	return !p.isDone() && !p.isInterrupted() && !p.isPaused() && p.problem == nil
}

// isInterrupted reports whether a freeze or a gate interrupts the rollout. A step whose Machines are not all available does
// not: its rollout must make progress.
func (p *plan) isInterrupted() bool { return p.Safety.Frozen || p.hold != nil }

// progressOf the rollout: how far it ever came, and when it last came further. Both change only
// together with the counts that show the progress. A change of replicas is no progress.
//
// A Machine that is created is no progress: a template that never runs has its Machines created again
// and again, more of them at once than before. A Machine that is Ready for the first time counts until
// the deadline is exceeded, because minReadySeconds may be long. From then on only an available one does.
func (p *plan) progressOf(s machinev1alpha1.MachineDeploymentStatus) (*machinev1alpha1.RolloutProgress, *metav1.Time) {
	before, is := p.Deployment.Status, p.stateOfRollout(s)
	furthest := before.Progress
	if before.LastProgressTime == nil || furthest == nil || s.Revision != before.Revision || p.startsAnew() {
		return &is, p.time()
	}
	next := machinev1alpha1.RolloutProgress{
		UpdatedReplicas:   max(is.UpdatedReplicas, furthest.UpdatedReplicas),
		ReadyReplicas:     max(is.ReadyReplicas, furthest.ReadyReplicas),
		AvailableReplicas: max(is.AvailableReplicas, furthest.AvailableReplicas),
		OutdatedReplicas:  min(is.OutdatedReplicas, furthest.OutdatedReplicas),
		OutdatedTotal:     min(is.OutdatedTotal, furthest.OutdatedTotal),
	}
	isFurther := next.AvailableReplicas > furthest.AvailableReplicas || next.OutdatedReplicas < furthest.OutdatedReplicas || next.OutdatedTotal < furthest.OutdatedTotal
	if isFurther || next.ReadyReplicas > furthest.ReadyReplicas && p.untilDeadline(before) > 0 {
		return &next, p.time()
	}
	return &next, p.afterFreeze()
}

// afterFreeze is the time of the last progress, later by the time of an interruption that has ended.
func (p *plan) afterFreeze() *metav1.Time {
	last, since := p.Deployment.Status.LastProgressTime, p.Deployment.Status.FrozenSince
	if since == nil || p.isInterrupted() {
		return last
	}
	later := metav1.NewTime(last.Add(max(0, p.now.Sub(since.Time))).UTC().Truncate(time.Second))
	if later.After(p.now) {
		return p.time()
	}
	return &later
}

// frozenSince is the time at which a freeze or a gate interrupted the rollout, nil if none does.
func (p *plan) frozenSince() *metav1.Time {
	switch {
	case !p.isInterrupted() || p.isDone():
		return nil
	case p.Deployment.Status.FrozenSince != nil:
		return p.Deployment.Status.FrozenSince
	}
	return p.time()
}

// stateOfRollout counts the Machines of the current template and of other ones. An old set counts with
// its desired number: a Machine that it loses and replaces is no progress.
func (p *plan) stateOfRollout(s machinev1alpha1.MachineDeploymentStatus) machinev1alpha1.RolloutProgress {
	is := machinev1alpha1.RolloutProgress{
		UpdatedReplicas:  s.UpdatedReplicas,
		OutdatedReplicas: sum(p.oldSets, (*set).desiredReplicas),
		OutdatedTotal:    sum(p.oldSets, (*set).total) + sum(p.terminating, (*set).total),
	}
	c := p.current
	switch {
	case c == nil:
	case c.Spec.InPlaceUpdate == nil:
		is.ReadyReplicas, is.AvailableReplicas = c.Status.ReadyReplicas, c.Status.AvailableReplicas
	default:
		outdated := max(0, c.Status.Replicas-s.UpdatedReplicas)
		is.OutdatedReplicas += outdated
		is.OutdatedTotal += outdated
		is.ReadyReplicas = min(s.UpdatedReplicas, c.Status.UpdatedAvailableReplicas)
		is.AvailableReplicas = is.ReadyReplicas
	}
	return is
}

// startsAnew reports whether the rollout continues after a user held it, or begins after the
// deployment was complete. The time before does not count. A freeze only interrupts a rollout: a template
// whose Machines fail at once may cause one again and again.
func (p *plan) startsAnew() bool {
	c := p.condition(machinev1alpha1.ConditionProgressing)
	if c == nil || !p.rollsOn() {
		return false
	}
	switch r := c.Reason; {
	case r == machinev1alpha1.ReasonMachineSetCreated, r == machinev1alpha1.ReasonMachineSetUpdated,
		r == machinev1alpha1.ReasonProgressDeadlineExceeded, r == machinev1alpha1.ReasonRolloutRejected:
		return false
	case r == machinev1alpha1.ReasonFrozen, goesOn(r), IsGate(r):
		// If it interrupted no rollout, the rollout began after that.
		return p.Deployment.Status.FrozenSince == nil
	}
	return true
}

// time is the present time as a status has it.
func (p *plan) time() *metav1.Time {
	t := metav1.NewTime(p.now.UTC().Truncate(time.Second))
	return &t
}

// isOverdue reports whether the deadline of the rollout has passed. A freeze after that does not change the
// verdict.
func (p *plan) isOverdue(s machinev1alpha1.MachineDeploymentStatus) bool {
	return p.current != nil && p.problem == nil && !p.isPaused() && p.untilDeadline(s) <= 0
}

// untilDeadline returns the time that the rollout may still go without progress, by a status. It is 0 or
// less if the deadline has passed. No time passes during a freeze.
func (p *plan) untilDeadline(s machinev1alpha1.MachineDeploymentStatus) time.Duration {
	limit, at := p.Deployment.Spec.ProgressDeadlineSeconds, p.now
	if limit <= 0 {
		// The schema has a default, so no user set this value.
		return shared.AtRest
	}
	if s.FrozenSince != nil {
		at = s.FrozenSince.Time
	}
	return s.LastProgressTime.Add(time.Duration(limit) * time.Second).Sub(at)
}
