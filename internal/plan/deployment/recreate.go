package deployment

// recreate empties the other sets, and fills the head when nothing is left of them.
// The head may have been emptied as well, by a change that was taken back: what is
// left of it has to go first, too.
func (p *plan) recreate(head *set, rest []*set) {
	if !p.scalesOnly() {
		for _, s := range rest {
			p.tell(s, 0)
		}
	}
	if p.alone() {
		p.raise(head)
		return
	}
	p.tell(head, min(head.told, p.bounds.replicas))
}
