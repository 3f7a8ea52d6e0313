package deployment

import "slices"

// onDelete keeps the Machines of the old sets, and lets the new set replace the Machines that they
// lose. Old sets create no Machines, so their numbers follow each deletion. While a user holds the
// rollout, they keep their numbers, and each set replaces its own losses.
func (p *plan) onDelete() {
	if p.awaitsMarks() {
		p.waitToScale()
		return
	}
	for _, s := range p.oldSets {
		if p.isHeld() || !s.createsNone() {
			continue
		}
		n := min(s.desired, s.Status.Replicas)
		if p.lowered() == 0 {
			// A scale-down deletes marked Machines before these.
			n = min(n, s.desired-p.costless(s))
		}
		p.setDesired(s, max(0, n))
	}
	tooMuch := max(0, sum(p.sets, p.nextReplicas)-p.bounds.replicas)
	// Marked Machines are deleted first, regardless of their set. Those of the new set are deleted
	// as soon as its number may change.
	fewer := min(p.marked(p.newSet), tooMuch)
	tooMuch -= fewer
	take := func(from func(*set) int32, most int32) {
		for _, s := range p.oldSets {
			n := min(from(s), p.nextDesired[s], tooMuch, most)
			if p.reduceDesired(s, n) {
				tooMuch -= n
				most -= n
			}
		}
	}
	take(p.marked, tooMuch)
	take(p.unmissed, tooMuch)
	// Old Machines are deleted as long as enough Machines stay available. An unavailable new
	// Machine is deleted before a further available old one.
	lost := sum(p.oldSets, func(s *set) int32 { return p.lost(s, 0) })
	take(p.nextReplicas, max(0, sum(p.sets, (*set).available)-lost-p.bounds.least()))
	if !slices.ContainsFunc(p.oldSets, func(s *set) bool { return !s.isSettled() }) {
		n := min(max(0, p.unmissed(p.newSet)-fewer), tooMuch)
		fewer += n
		tooMuch -= n
		take(p.nextReplicas, tooMuch)
	}
	// A set that has not acted on its last number scales down after it has. A Machine of the new
	// template must not be deleted in its place.
	fewer += max(0, tooMuch-sum(p.oldSets, p.nextReplicas))
	has := add(sum(p.oldSets, p.present), p.newSet.desired)
	p.setDesired(p.newSet, max(0, p.newSet.desired-fewer)+max(0, p.bounds.replicas-has))
}

// present Machines of a set do not terminate: the set has them or may get them. If the deletion of
// a Machine is only recorded, the Machine is present until the deletion is requested.
func (p *plan) present(s *set) int32 {
	n := max(p.nextDesired[s], min(s.desired, s.Status.Replicas))
	if !s.isSettled() {
		n = s.potential()
	}
	return add(n, int32(len(s.Status.Dropping)))
}
