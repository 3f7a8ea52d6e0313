package deployment

import (
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// scale says how many Machines each set shall have. Totals include what is
// terminating.
func (p *plan) scale() {
	p.scaledFor = p.bounds.replicas
	head := p.head()
	if head == nil {
		return
	}
	rest := p.others(head)
	switch {
	case p.alone() && p.inPlace():
		p.fill(head)
	case p.alone() && p.wasComplete():
		// There is no rollout, but somebody who needs Machines: they need not
		// wait for others to be gone.
		p.tell(head, p.bounds.replicas)
	case p.Deployment.Spec.Strategy.Type == machinev1alpha1.Recreate:
		p.recreate(head, rest)
	case p.Deployment.Spec.Strategy.Type == machinev1alpha1.OnDelete:
		p.onDelete(head, rest)
	case p.rescaled():
		p.rescale(head, rest)
	default:
		p.raise(head)
		p.lower(head, rest)
	}
}

// tell a set how many Machines it shall have, if it may be told.
func (p *plan) tell(s *set, n int32) bool {
	if !s.settled() || n > s.told && p.Safety.Frozen {
		return false
	}
	s.wants = n
	return true
}

// tellLess tells a set to have n Machines less.
func (p *plan) tellLess(s *set, n int32) bool { return p.tell(s, s.wants-n) }

// alone means that no other set has Machines.
func (p *plan) alone() bool {
	return sum(p.others(p.head()), (*set).total)+sum(p.terminating, (*set).total) == 0
}

// upTo is n, or as many as a set may have while there are at most so many in all.
func (p *plan) upTo(s *set, n, most int32) int32 { return min(n, s.told+p.room(most)) }

// room is how many Machines may be added.
func (p *plan) room(most int32) int32 {
	return max(0, most-sum(p.live(), (*set).total)-sum(p.terminating, (*set).total))
}
