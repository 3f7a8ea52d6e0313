package set

import machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"

// scaleDown deletes excess Machines. Deleting a Machine that is being replaced, or its replacement, also
// cancels the extra replica, so the excess is computed again.
func (p *plan) scaleDown() {
	if p.excess() <= 0 {
		return
	}
	order, n := p.worstFirst(p.kept), 0
	for excess := p.excess(); excess > 0; excess = p.excess() {
		p.drop(order[n : n+excess]...)
		n += excess
	}
	if p.isRolledOut() {
		for _, m := range order[:n] {
			p.record(m, machinev1alpha1.ReplacedRollout)
		}
	}
	p.events = append(p.events, p.deletedEvent(order[:n], order[n:]))
}

// excess is the number of excess Machines. A replacement that is not created yet counts as existing.
// Otherwise its Machine would be deleted only after the creation, and take a place in the budget of
// replacements until then.
func (p *plan) excess() int {
	return len(p.kept) + len(p.missingReplacements()) - p.wanted()
}
