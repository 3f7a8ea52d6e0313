package deployment

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// updated Machines of the set: all, unless the set updates them one after another.
func (s *set) updated(target rolling) int32 {
	switch u := s.Spec.InPlaceUpdate; {
	case u == nil:
		return s.Status.Replicas
	case u.ID != target.hash() && !u.Paused || !s.isSettled():
		return 0
	}
	return s.Status.UpdatedReplicas
}

// isComplete reports whether all Machines have the current template and are available, and no
// Machine of another template is left.
func (p *plan) isComplete() bool {
	c := p.current
	return c != nil && (c.isReady() && c.updated(p.target) == c.desired || p.staysComplete()) &&
		p.nextDesired[c] == c.desired && p.isAlone() && c.desired == p.bounds.replicas && c.Status.AvailableReplicas == c.desired
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
	return p.current != nil && p.Deployment.Status.Revision == p.revision && c != nil && c.Reason == machinev1alpha1.ReasonNewMachineSetAvailable
}

// isDone reports whether there is no rollout: the revision is or was complete, and no Machine of
// another template is left.
func (p *plan) isDone() bool { return p.isComplete() || p.wasComplete() && p.isAlone() }

// rollsOn reports whether a rollout is in progress and may continue.
func (p *plan) rollsOn() bool { return !p.isDone() && !p.isHeld() && p.problem == nil }

// lastProgress returns the present time if the rollout made progress since the last status. The
// time changes only together with the counts that show the progress.
func (p *plan) lastProgress(now machinev1alpha1.MachineDeploymentStatus) *metav1.Time {
	before := p.Deployment.Status
	resumed := false
	if c := p.condition(machinev1alpha1.ConditionProgressing); c != nil {
		resumed = c.Reason == machinev1alpha1.ReasonMachineDeploymentPaused && !p.isPaused()
	}
	old := func(s machinev1alpha1.MachineDeploymentStatus) int32 { return s.Replicas - s.UpdatedReplicas }
	if before.LastProgressTime == nil || resumed || now.Revision != before.Revision || now.UpdatedReplicas > before.UpdatedReplicas ||
		old(now) < old(before) || now.ReadyReplicas > before.ReadyReplicas || now.AvailableReplicas > before.AvailableReplicas {
		t := metav1.NewTime(p.now.UTC().Truncate(time.Second))
		return &t
	}
	return before.LastProgressTime
}

// untilDeadline returns the time that the rollout may still go without progress. It is 0 or less if
// the deadline has passed.
func (p *plan) untilDeadline(s machinev1alpha1.MachineDeploymentStatus) time.Duration {
	limit := p.Deployment.Spec.ProgressDeadlineSeconds
	if limit <= 0 {
		// The schema has a default, so no user set this value.
		return shared.AtRest
	}
	return s.LastProgressTime.Add(time.Duration(limit) * time.Second).Sub(p.now)
}
