package deployment

// recreate empties the old sets, and fills the new one when nothing is left of them. The new
// one may have been emptied as well, by a change that was taken back: what is left of it has
// to be deleted first, too.
func (p *plan) recreate() {
	if !p.isReplacementHeld() {
		for _, s := range p.oldSets {
			p.setDesired(s, 0)
		}
	}
	if p.isAlone() {
		p.scaleUpNew()
		return
	}
	p.setDesired(p.newSet, min(p.newSet.desired, p.bounds.replicas))
}
