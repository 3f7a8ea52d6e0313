package rollout

// recreate empties the other sets, and fills the head when nothing is left of them.
func (p *plan) recreate(head *set, rest []*set) {
	if !p.scalesOnly() {
		for _, s := range rest {
			p.tell(s, 0)
		}
	}
	p.raiseIfAlone(head)
}

func (p *plan) raiseIfAlone(head *set) {
	if p.alone() {
		p.tell(head, p.bounds.replicas)
		return
	}
	p.tell(head, min(head.told, p.bounds.replicas))
}
