package pool

import (
	"k8s.io/utils/ptr"
)

// resize decides the next number of Machines of each failure domain of a pool with a size. Step by step,
// within maxSurge and maxUnavailable, the numbers approach the even division that goals returns.
func (p *plan) resize() {
	if p.problem != nil || p.isAutoscaled() {
		return
	}
	p.goal = p.goals(p.size(), (*member).kept, (*member).decidedReplicas)
	room := p.room()
	spare := sum(p.members, (*member).available) - (p.size() - p.unavailable)
	for i, m := range p.members {
		next := &p.next[i]
		next.MinSize, next.MaxSize = nil, nil
		p.settle(i, m)
		if m.decided.MaxSize != nil {
			p.withdraw(i, m)
		}
		room = p.raise(i, m, p.goal[m]-m.decided.DesiredReplicas, room)
	}
	// Unwanted members come last in the list, and are lowered first.
	for i := len(p.members) - 1; i >= 0; i-- {
		m := p.members[i]
		down := max(0, m.decided.DesiredReplicas-p.goal[m])
		// A MachineDeployment deletes unavailable Machines first.
		missing := min(down, m.decided.DesiredReplicas-m.available())
		taken := max(0, min(down-missing, spare))
		spare -= taken
		p.lower(i, m, missing+taken)
	}
}

// settle clears the values that were kept until an earlier decision was carried out.
func (p *plan) settle(i int, m *member) {
	if m.hasActed() {
		p.next[i].Most, p.next[i].Least = 0, nil
	}
	if m.isLowered(p.now) {
		p.next[i].PreviousMaxSize = 0
	}
}

// room for more Machines in the whole pool. It is negative if there may be too many.
func (p *plan) room() int32 { return p.size() + p.surge - sum(p.members, p.mayHave) }

// mayHave returns the number of Machines that may exist in the failure domain, by the pool's
// decisions or by a decision that the autoscaler may still make.
func (p *plan) mayHave(m *member) int32 {
	return max(m.most(), p.readMost(m))
}

// raise the number of Machines of a member as far as there is room, and return the remaining room.
// Machines that the autoscaler may create anyway are counted already.
func (p *plan) raise(i int, m *member, by, room int32) int32 {
	counted := p.mayHave(m) - m.most()
	if by = min(by, counted+room); by <= 0 {
		return room
	}
	next := &p.next[i]
	next.Most, next.Least = m.most()+by, ptr.To(m.least())
	next.DesiredReplicas += by
	return room - max(0, by-counted)
}

// lower the number of Machines of a member.
func (p *plan) lower(i int, m *member, by int32) {
	if by <= 0 {
		return
	}
	next := &p.next[i]
	next.Most, next.Least = max(next.Most, m.most()), nil
	next.DesiredReplicas -= by
	if least := m.least(); least < next.DesiredReplicas {
		next.Least = &least
	}
}

// withdraw the maximum of a failure domain. The autoscaler may act on the old maximum for some
// time.
func (p *plan) withdraw(i int, m *member) {
	p.next[i].PreviousMaxSize, p.next[i].LoweredTime = p.readMost(m), p.time()
}

// readMost returns the largest maximum that the autoscaler may have read and may still act on.
func (p *plan) readMost(m *member) int32 {
	most := ptr.Deref(m.decided.MaxSize, 0)
	if !m.isLowered(p.now) {
		most = max(most, m.offered(), m.decided.PreviousMaxSize)
	}
	return most
}
