package deployment

// recreate empties the old sets, and scales up the new one when no old Machine is left. A reverted
// change may have emptied the new set as well: its remaining Machines must be deleted first, too.
// While the rollout is held, a scale-down is spread over all sets, and no Machine is created beside
// Machines of other templates.
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
