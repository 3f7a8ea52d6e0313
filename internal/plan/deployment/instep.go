package deployment

import (
	"cmp"
	"slices"
)

// fillOld lets the largest old set have the Machines that are missing, because a step allows no more of the new
// template.
func (p *plan) fillOld() {
	missing := min(p.bounds.replicas-sum(p.sets, p.nextReplicas), p.room(p.bounds.most()))
	if len(p.oldSets) == 0 || missing <= 0 {
		return
	}
	s := slices.MaxFunc(p.oldSets, func(a, b *set) int { return cmp.Compare(p.nextDesired[a], p.nextDesired[b]) })
	p.setDesired(s, p.nextDesired[s]+missing)
}

// replacedFirst are the old sets in the order in which a rollout replaces their Machines: oldest first. During a step, the
// newest goes first, because it may be that of a canary that was given up.
func (p *plan) replacedFirst() []*set {
	sets := slices.Clone(p.oldSets)
	if p.isLimited() {
		slices.Reverse(sets)
	}
	return sets
}
