package rollout

// scale says how many Machines each set shall have. It is the arithmetic of
// Kubernetes' Deployment controller, with totals that include what is terminating.
func (p *plan) scale() {
	head := p.head()
	if head == nil {
		return
	}
	if p.alone() && p.wasComplete() {
		// There is no rollout, but somebody who needs Machines: they need not
		// wait for others to be gone.
		p.tell(head, p.bounds.replicas)
		return
	}
	p.raise(head)
	p.lower(head, p.others(head))
}

// head is the set that Machines are wanted of: the current one, or, as long as
// there may be none, the newest that there is.
func (p *plan) head() *set {
	if p.current == nil && len(p.old) > 0 {
		return p.old[len(p.old)-1]
	}
	return p.current
}

func (p *plan) others(head *set) []*set {
	var rest []*set
	for _, s := range p.live() {
		if s != head {
			rest = append(rest, s)
		}
	}
	return rest
}

// paused means that no Machine may be replaced: only replicas counts.
func (p *plan) paused() bool {
	return p.Safety.Frozen || p.current == nil || p.problem != nil && p.problem.Reason == reasonInvalidStrategy
}

// raise the head as far as there is room, or lower it to what is wanted.
func (p *plan) raise(head *set) {
	most := p.bounds.most()
	if p.paused() {
		most = p.bounds.replicas
	}
	room := most - sum(p.live(), (*set).total) - sum(p.terminating, (*set).total)
	p.tell(head, min(p.bounds.replicas, head.told+max(0, room)))
}

// lower the other sets, oldest first: Machines that are not available, because
// they are not missed, and then as many as are available above the least.
func (p *plan) lower(head *set, rest []*set) {
	told := func(s *set) int32 { return s.told }
	wants := func(s *set) int32 { return s.wants }

	// What is too much even for a rollout goes in any case: somebody scaled down.
	tooMuch := max(0, sum(p.live(), wants)-p.bounds.most())

	// Machines of the head that are not available yet will be, so that they do
	// not make up for old ones.
	unmissed := max(tooMuch, sum(p.live(), told)-p.bounds.least()-head.unavailable())
	spare := sum(p.live(), (*set).available) - p.bounds.least()
	if p.paused() {
		unmissed = tooMuch
		spare = min(spare, tooMuch)
	}

	lowered := int32(0)
	for _, s := range rest {
		n := min(s.unavailable(), max(0, unmissed-lowered))
		if p.tell(s, s.told-n) {
			lowered += n
		}
	}
	if p.paused() {
		spare -= lowered
	}
	for _, s := range rest {
		n := min(s.wants, max(0, spare))
		if p.tell(s, s.wants-n) {
			spare -= n
		}
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
