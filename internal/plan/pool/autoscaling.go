package pool

import (
	"k8s.io/utils/ptr"
)

// divideBounds decides the bounds of each failure domain of a pool with autoscaling. The
// cluster-autoscaler decides the replicas between them.
func (p *plan) divideBounds() {
	if p.problem != nil || !p.isAutoscaled() {
		return
	}
	bounds := p.Pool.Spec.Autoscaling
	p.goal = p.goals(bounds.Max, (*member).replicas, (*member).size)
	smallest := p.goals(bounds.Min, (*member).replicas, (*member).size)
	room := bounds.Max - sum(p.members, p.offeredMost)
	for i, m := range p.members {
		next := &p.next[i]
		was := ptr.Deref(m.decided.MaxSize, 0)
		size := was
		p.settle(i, m)
		switch goal, has := p.goal[m], p.offeredMost(m); {
		case goal > was:
			// Machines that it may have already need no additional room.
			size = min(goal, has+max(0, room))
			room -= max(0, size-has)
		case goal < was:
			size = goal
			p.withdraw(i, m)
		}
		next.MinSize, next.MaxSize = ptr.To(min(smallest[m], size)), &size
		if !m.wanted {
			next.MinSize, next.MaxSize = nil, nil
		}
	}
	p.followBounds()
}

// followBounds adjusts numbers of Machines that the autoscaler does not own yet.
func (p *plan) followBounds() {
	room := p.room()
	for i, m := range p.members {
		switch next := p.next[i]; {
		case !m.wanted:
			p.leave(i, m)
		case !m.isScaledByOthers():
			n := min(max(m.decided.DesiredReplicas, *next.MinSize), *next.MaxSize)
			room = p.raise(i, m, n-m.decided.DesiredReplicas, room)
			p.lower(i, m, m.decided.DesiredReplicas-n)
		}
	}
}

// leave a failure domain, a few Machines at a time: the autoscaler creates Machines elsewhere for
// their pods. If the MachineDeployment is being deleted, all its Machines are lost.
func (p *plan) leave(i int, m *member) {
	switch n := m.decided.DesiredReplicas; {
	case m.isLetGo():
		p.lower(i, m, n)
	case m.hasActed() && m.status().TerminatingReplicas == 0:
		p.lower(i, m, min(n, max(1, p.surge, p.unavailable)))
	}
}

// withdraw the maximum of a failure domain. The autoscaler may act on the old maximum for some
// time.
func (p *plan) withdraw(i int, m *member) {
	p.next[i].PreviousMaxSize, p.next[i].LoweredTime = p.readMost(m), p.time()
}

// size that the autoscaler decided.
func (m *member) size() int32 { return m.replicas() }

// readMost returns the largest maximum that the autoscaler may have read and may still act on.
func (p *plan) readMost(m *member) int32 {
	most := ptr.Deref(m.decided.MaxSize, 0)
	if !m.isLowered(p.now) {
		most = max(most, m.offered(), m.decided.PreviousMaxSize)
	}
	return most
}

// offeredMost returns the number of Machines that a failure domain has, or may get by a maximum
// that the autoscaler may have read.
func (p *plan) offeredMost(m *member) int32 { return max(p.readMost(m), m.replicas()) }

// isScaledByOthers reports whether another client, such as the autoscaler, decides the number of
// Machines. If autoscaling is removed from a pool, that is so until the pool has recorded the
// number.
func (m *member) isScaledByOthers() bool {
	return m.decided.MaxSize != nil && m.is != nil && m.is.ScaledByOthers
}
