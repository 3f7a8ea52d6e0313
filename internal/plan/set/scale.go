package set

// scaleDown deletes excess Machines. Deleting a Machine that is being replaced, or its
// replacement, also cancels the extra replica, so the excess is computed again.
func (p *plan) scaleDown() {
	if len(p.kept) <= p.wanted() {
		return
	}
	order, n := p.worstFirst(p.kept), 0
	for excess := len(p.kept) - p.wanted(); excess > 0; excess = len(p.kept) - p.wanted() {
		p.drop(order[n : n+excess]...)
		n += excess
	}
	p.events = append(p.events, p.deletedEvent(order[:n], order[n:]))
}
