package deployment

import (
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// A scaling decides the number of Machines of each set. Totals include terminating Machines.
type scaling struct {
	applies func(*plan) bool
	scale   func(*plan)
}

// scalings of which the first that applies decides.
var scalings = []scaling{
	{func(p *plan) bool { return p.isAlone() && p.updatesInPlace() }, (*plan).scaleInPlace},
	{func(p *plan) bool { return p.isAlone() && p.wasComplete() }, (*plan).scaleAlone},
	{strategyIs(machinev1alpha1.Recreate), (*plan).recreate},
	{strategyIs(machinev1alpha1.OnDelete), (*plan).onDelete},
	{(*plan).isRescaled, (*plan).rescale},
	{func(*plan) bool { return true }, (*plan).rollingUpdate},
}

func strategyIs(t machinev1alpha1.StrategyType) func(*plan) bool {
	return func(p *plan) bool { return p.Deployment.Spec.Strategy.Type == t }
}

// scale the sets.
func (p *plan) scale() {
	if p.newSet == nil {
		return
	}
	for _, s := range scalings {
		if s.applies(p) {
			s.scale(p)
			return
		}
	}
}

// scaleAlone scales without a rollout: users need the Machines, so it does not wait for the end of
// terminating ones.
func (p *plan) scaleAlone() { p.scaleNew(p.bounds.replicas) }

// scaleNew scales the new set. While its number may not change, the sets stay scaled for the
// previous replicas. Otherwise the amount of a scale-down would be lost.
func (p *plan) scaleNew(n int32) {
	if !p.setDesired(p.newSet, n) {
		p.waitToScale()
	}
}

// waitToScale until the sets can be scaled for a new number of replicas.
func (p *plan) waitToScale() {
	if before := p.Deployment.Status.DesiredReplicas; before != nil {
		p.scaledFor = *before
	}
}

// setDesired sets the number of Machines of a set if it may change, and reports whether it may.
func (p *plan) setDesired(s *set, n int32) bool {
	if !s.isSettled() || n > s.desired && p.Safety.Frozen {
		return false
	}
	p.nextDesired[s] = n
	return true
}

// reduceDesired decides that a set shall have n Machines less.
func (p *plan) reduceDesired(s *set, n int32) bool { return p.setDesired(s, p.nextDesired[s]-n) }

func (p *plan) nextReplicas(s *set) int32 { return p.nextDesired[s] }

// marked Machines are deleted first, regardless of their set.
func (p *plan) marked(s *set) int32 { return max(0, min(s.Status.MarkedReplicas, p.nextDesired[s])) }
