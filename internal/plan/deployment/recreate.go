package deployment

// recreate empties the old sets, and fills the new one when nothing is left of them. The new
// one may have been emptied as well, by a change that was taken back: what is left of it has
// to be deleted first, too. While the rollout is held, a scale-down is spread over all sets, and
// nothing is created beside Machines of other templates.
func (p *plan) recreate() {
	switch {
	case p.isAlone():
		p.scaleUpNew()
	case !p.isReplacementHeld():
		for _, s := range p.oldSets {
			p.setDesired(s, 0)
		}
		p.setDesired(p.newSet, min(p.newSet.desired, p.bounds.replicas))
	case p.awaitsMarks():
		p.waitToScale()
	default:
		p.scaleDownAll(max(0, sum(p.sets, p.nextReplicas)-p.bounds.replicas), 0)
	}
}
