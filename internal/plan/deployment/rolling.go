package deployment

// rollingUpdate replaces Machines within the bounds.
func (p *plan) rollingUpdate() {
	p.scaleUpNew()
	p.scaleDownOld()
}

// scaleUpNew as far as there is room, or down to what is desired. It is the arithmetic of
// Kubernetes' Deployment controller.
func (p *plan) scaleUpNew() {
	most := p.bounds.most()
	if p.isReplacementHeld() {
		most = p.bounds.replicas
	}
	n := p.upTo(p.newSet, p.bounds.replicas, most)
	if n < p.newSet.desired && p.deletesMarkedFirst() {
		return
	}
	p.scaleNew(n)
}

// deletesMarkedFirst reports whether old sets have marked Machines that the rollout deletes, and
// the bounds allow for keeping what the new set has above replicas until they are gone. A
// rollout that is held keeps it, too.
func (p *plan) deletesMarkedFirst() bool {
	return sum(p.oldSets, p.marked) > 0 && sum(p.sets, (*set).desiredReplicas) <= p.bounds.most()
}

// scaleDownOld sets, oldest first: Machines that are not available, because they are not
// missed, and then as many as are available above the least.
func (p *plan) scaleDownOld() {
	// What is too much even for a rollout is deleted in any case: the bounds changed.
	tooMuch := max(0, sum(p.sets, p.nextReplicas)-p.bounds.most())

	// Machines of the new set that are not available yet will be, so that they do
	// not make up for old ones.
	unmissed := max(tooMuch, sum(p.sets, (*set).desiredReplicas)-p.bounds.least()-p.newSet.unavailable())
	spare := sum(p.sets, (*set).available) - p.bounds.least()
	held := p.isReplacementHeld()
	if held {
		unmissed = tooMuch
		spare = min(spare, tooMuch)
	}

	reduced := int32(0)
	for _, s := range p.oldSets {
		n := min(s.unavailable(), max(0, unmissed-reduced))
		if p.reduceDesired(s, n) {
			reduced += n
		}
	}
	if held {
		spare -= reduced
	}
	for _, s := range p.oldSets {
		n := min(p.nextDesired[s], max(0, spare))
		if p.reduceDesired(s, n) {
			spare -= n
		}
	}
}
