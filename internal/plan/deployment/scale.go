package deployment

import (
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// A scaling decides how many Machines each set shall have. Totals include what is terminating.
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

// scaleAlone scales without a rollout: users need the Machines, and need not wait for others to
// be gone.
func (p *plan) scaleAlone() { p.scaleNew(p.bounds.replicas) }

// scaleNew scales the new set. As long as its number may not change, the sets are scaled for the
// replicas of before: by how much these are lowered would be forgotten.
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

// setDesired decides how many Machines a set shall have, if its number may change, and reports
// whether it may.
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

// marked Machines are deleted first, whatever set they are of.
func (p *plan) marked(s *set) int32 { return max(0, min(s.Status.MarkedReplicas, p.nextDesired[s])) }
