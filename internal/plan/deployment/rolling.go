package deployment

// raise the head as far as there is room, or lower it to what is wanted. It is the
// arithmetic of Kubernetes' Deployment controller.
func (p *plan) raise(head *set) {
	most := p.bounds.most()
	if p.scalesOnly() {
		most = p.bounds.replicas
	}
	p.tell(head, p.upTo(head, p.bounds.replicas, most))
}

// lower the other sets, oldest first: Machines that are not available, because
// they are not missed, and then as many as are available above the least.
func (p *plan) lower(head *set, rest []*set) {
	// What is too much even for a rollout goes in any case: the bounds changed.
	tooMuch := max(0, sum(p.live(), (*set).wanted)-p.bounds.most())

	// Machines of the head that are not available yet will be, so that they do
	// not make up for old ones.
	unmissed := max(tooMuch, sum(p.live(), (*set).hasToHave)-p.bounds.least()-head.unavailable())
	spare := sum(p.live(), (*set).available) - p.bounds.least()
	held := p.scalesOnly()
	if held {
		unmissed = tooMuch
		spare = min(spare, tooMuch)
	}

	lowered := int32(0)
	for _, s := range rest {
		n := min(s.unavailable(), max(0, unmissed-lowered))
		if p.tellLess(s, n) {
			lowered += n
		}
	}
	if held {
		spare -= lowered
	}
	for _, s := range rest {
		n := min(s.wants, max(0, spare))
		if p.tellLess(s, n) {
			spare -= n
		}
	}
}
