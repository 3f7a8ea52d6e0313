package deployment

// onDelete lets the other sets keep what they have, and the head make up for what
// they lose. They create none anew, so that a Machine that goes is gone from them.
func (p *plan) onDelete(head *set, rest []*set) {
	for _, s := range rest {
		if !p.held() && s.settled() && s.createsNone() {
			p.tell(s, max(0, min(s.told, s.Status.Replicas)))
		}
	}
	tooMuch := max(0, sum(p.live(), (*set).wanted)-p.bounds.replicas)
	// Marked Machines go first, whatever set they are of. Those of the head do as soon as it
	// may be told.
	fewer := min(head.marked(), tooMuch)
	tooMuch -= fewer
	for _, takes := range []func(*set) int32{(*set).marked, (*set).unavailable, (*set).wanted} {
		for _, s := range rest {
			n := min(takes(s), s.wants, tooMuch)
			if p.tellLess(s, n) {
				tooMuch -= n
			}
		}
	}
	has := sum(rest, (*set).present)
	// What a set that has not acted on its last number can give up, it does when it has: a
	// Machine of the new template must not go in its place.
	fewer += max(0, tooMuch-sum(rest, (*set).wanted))
	p.tell(head, max(0, head.told-fewer)+max(0, p.bounds.replicas-add(has, head.told)))
}
