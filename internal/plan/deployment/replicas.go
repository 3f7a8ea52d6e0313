package deployment

import (
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

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

func strategyIs(t machinev1alpha1.StrategyType) func(*plan) bool {
	return func(p *plan) bool { return p.Deployment.Spec.Strategy.Type == t }
}
