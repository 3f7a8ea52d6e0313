package deployment

import (
	"slices"
	"time"
)

// isRescaled reports whether a user changed replicas during a rollout.
func (p *plan) isRescaled() bool {
	before := p.Deployment.Status.DesiredReplicas
	return before != nil && *before != p.bounds.replicas && !p.isAlone()
}

// rescale decides, after all sets have acted on their last numbers, which sets a change of replicas
// affects. On a scale-up, the new set grows, so that no Machine is created that the rollout would
// replace. If none of its Machines is available, the decision is not final: see scaleUpOnTrial. A
// scale-down affects the old sets, whose
// Machines the rollout deletes anyway. If the new set is not proven, it affects all sets in
// proportion, so that an unproven template gets no larger share. Marked Machines are deleted in any
// case, up to the number by which replicas was lowered, even if the surge has room for them: a
// client chose each of them, and the new set would otherwise never delete its own.
func (p *plan) rescale() {
	before := *p.Deployment.Status.DesiredReplicas
	toMost := p.bounds.most() - sum(p.sets, (*set).desiredReplicas)
	unsettled := slices.ContainsFunc(p.sets, func(s *set) bool { return !s.isSettled() })
	fewer := min(p.lowered(), sum(p.sets, p.marked))
	switch {
	case unsettled || p.awaitsMarks():
		p.waitToScale()
	case toMost < 0 || fewer > 0:
		p.scaleDownAll(max(0, -toMost), fewer)
	case p.Safety.Frozen && p.bounds.replicas > before:
		p.waitToScale()
	case p.bounds.replicas > before && p.isLimited():
		p.growInStep()
	case p.bounds.replicas > before && !p.hasProof():
		p.scaleUpOnTrial(toMost)
	default:
		p.rollingUpdate()
	}
}

// trialOfGrowth is the time for which the capacity of a scale-up may depend on a template of which
// no Machine was available yet, since the last progress of its rollout. The time for which Machines
// must be Ready is added.
const trialOfGrowth = 5 * time.Minute

// isOnTrial reports whether the new template may still prove itself: the rollout made progress
// lately, and no Machine of the template failed.
func (p *plan) isOnTrial() bool {
	if p.isReplacementHeld() || p.problem != nil || p.failureOf(p.newSet) != nil || p.newSet.Status.UnhealthyReplicas > 0 {
		return false
	}
	last := p.Deployment.Status.LastProgressTime
	return last == nil || p.Deployment.Status.Revision != p.revision || p.now.Sub(last.Time) < trialOfGrowth+time.Duration(p.Deployment.Spec.MinReadySeconds)*time.Second
}

// scaleUpOnTrial scales up for a template without an available Machine. During its trial, the new
// set gets the additional Machines, and the sets stay scaled for the previous replicas. A Machine
// that becomes available makes the decision final. If the trial ends without one, the new set
// returns the additional Machines, none of which is available, and all sets grow in proportion to
// their sizes, so that the capacity does not wait for a template that may be faulty.
func (p *plan) scaleUpOnTrial(toMost int32) {
	own, room := p.newBeforeGrowth(), p.room(p.bounds.most())
	switch {
	case p.isOnTrial():
		p.rollingUpdate()
		p.waitToScale()
	case p.newSet.desired > own:
		p.setDesired(p.newSet, own)
		p.waitToScale()
	case room < toMost && p.newSet.Status.TerminatingReplicas > 0:
		// The places of the returned Machines are free when their VMs are gone.
		p.waitToScale()
	default:
		p.scaleUpProportionally(min(max(0, toMost), room))
	}
}

// newBeforeGrowth is the number of Machines that the new set has at most without the growth: the
// places that the old sets leave in the bounds of the previous replicas.
func (p *plan) newBeforeGrowth() int32 {
	before, _ := boundsFor(*p.Deployment.Status.DesiredReplicas, p.Deployment.Spec.Strategy)
	return max(1, before.most()-sum(p.oldSets, (*set).desiredReplicas))
}

func (p *plan) scaleUpProportionally(n int32) {
	for i, share := range p.shares(n) {
		p.setDesired(p.sets[i], p.sets[i].desired+share)
	}
}

// growInStep scales up during a step: the new set grows as far as the step allows, if it has proven itself, and the
// old sets by the rest.
func (p *plan) growInStep() {
	if p.newSet.available() == 0 || p.isHeld() {
		p.fillOld()
		return
	}
	p.rollingUpdate()
	if sum(p.sets, p.nextReplicas) < p.bounds.replicas {
		p.waitToScale()
	}
}
