package deployment

// rollingUpdate replaces Machines within the bounds.
func (p *plan) rollingUpdate() {
	p.scaleUpNew()
	p.scaleDownOld()
	if p.isLimited() && p.isHeld() {
		p.fillOld()
	}
}

// scaleUpNew scales the new set up as far as there is room, or down to replicas. It uses the
// arithmetic of Kubernetes' Deployment controller.
func (p *plan) scaleUpNew() {
	most := p.bounds.most()
	if p.isReplacementHeld() {
		most = p.bounds.replicas
	}
	n := p.upTo(p.newSet, p.newMost(), most)
	if n < p.newSet.desired && p.deletesMarkedFirst() {
		return
	}
	p.scaleNew(n)
}

// deletesMarkedFirst reports whether the rollout deletes marked Machines of old sets first. Until
// then, the new set keeps its Machines above replicas, if the bounds allow that. A held rollout
// keeps them too.
func (p *plan) deletesMarkedFirst() bool {
	return sum(p.oldSets, p.marked) > 0 && sum(p.sets, (*set).desiredReplicas) <= p.bounds.most()
}

// scaleDownOld scales old sets down, oldest first. It deletes unavailable Machines first, which
// reduces no availability, and then available ones above the least.
func (p *plan) scaleDownOld() {
	// Machines above the bounds of a rollout are deleted in any case: the bounds changed.
	tooMuch := max(0, sum(p.sets, p.nextReplicas)-p.bounds.most())

	// Machines of the new set that are not available yet do not replace old ones, because they will
	// become available.
	unmissed := max(tooMuch, sum(p.sets, (*set).desiredReplicas)-p.bounds.least()-p.newSet.unavailable())
	spare := sum(p.sets, (*set).available) - p.bounds.least()
	held := p.isReplacementHeld()
	if held {
		unmissed = tooMuch
		spare = min(spare, tooMuch)
	}

	// A step keeps the Machines that the new set may not replace yet.
	most := max(tooMuch, sum(p.oldSets, p.nextReplicas)-p.oldLeast())
	reduced := int32(0)
	for _, s := range p.replacedFirst() {
		n := max(p.costless(s), min(s.unavailable(), max(0, unmissed-reduced)))
		n = max(min(n, most-reduced), p.lostOfRejected(s))
		if p.reduceDesired(s, n) {
			reduced += n
		}
	}
	if held {
		spare -= reduced
	}
	spare = min(spare, most-reduced)
	for _, s := range p.replacedFirst() {
		n := min(p.nextDesired[s], max(0, spare))
		if p.reduceDesired(s, n) {
			spare -= n
		} else if n > 0 && p.isLimited() {
			// No Machine of another set goes in the place of one of this set, which goes soon.
			break
		}
	}
}

// lostOfRejected is the number of Machines that the set of a rejected template has lost. It creates none in their
// place, so the new set does.
func (p *plan) lostOfRejected(s *set) int32 {
	if !p.isRejected(s) || !s.createsNone() {
		return 0
	}
	return max(0, p.nextDesired[s]-s.Status.Replicas)
}

// costless returns the number of Machines of an old set that the rollout deletes regardless of the
// bounds, because their deletion makes nothing unavailable: missing ones, ones that boot, and ones
// that wait to be replaced. Machines that ran and are not Ready may be Ready again, and stay within
// the bounds. While the new template has no available Machine and the old one runs, the old set
// keeps all of them: they may be the only Machines that ever run.
func (p *plan) costless(s *set) int32 {
	if p.isReplacementHeld() || s.isMissing || s.Status.ReadyReplicas > 0 && !p.hasProof() {
		return 0
	}
	n := max(0, s.Status.BootingReplicas)
	if p.limitsProblem == nil && p.limits.Allows(p.unhealthy()) {
		n = add(n, max(0, s.Status.ReplaceableReplicas))
	} else {
		// The set would delete unhealthy Machines first.
		n = max(0, n-s.Status.UnhealthyReplicas)
	}
	return min(n, s.unavailable())
}
