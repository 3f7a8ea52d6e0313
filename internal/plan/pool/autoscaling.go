package pool

import (
	"k8s.io/utils/ptr"
)

// divideBounds decides on the bounds of each failure domain of a pool with autoscaling. The
// cluster-autoscaler decides between them.
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
		if m.isLowered(p.now) {
			next.Most = 0
		}
		switch goal, has := p.goal[m], p.offeredMost(m); {
		case goal > was:
			// What it may have already takes no room.
			size = min(goal, has+max(0, room))
			room -= max(0, size-has)
		case goal < was:
			size = goal
			next.Most, next.LoweredTime = p.offeredMost(m), p.time()
		}
		next.MaxSize = &size
		next.MinSize = ptr.To(min(smallest[m], size))
		if !m.wanted {
			next.MinSize, next.MaxSize = nil, nil
			p.leave(i, m)
			continue
		}
		// The number counts until the autoscaler decides.
		if !m.isScaledByOthers() {
			next.DesiredReplicas = min(max(m.decided.DesiredReplicas, *next.MinSize), size)
		}
	}
}

// leave a failure domain, a few Machines at a time: the autoscaler makes room elsewhere for
// their pods.
func (p *plan) leave(i int, m *member) {
	if m.hasActed() && m.status().TerminatingReplicas == 0 {
		p.lower(i, m, min(m.decided.DesiredReplicas, max(1, p.surge, p.unavailable)))
	}
}

// size that the autoscaler has decided on.
func (m *member) size() int32 { return m.replicas() }

// offeredMost is how many Machines the autoscaler may make of a failure domain by what it may have
// read.
func (p *plan) offeredMost(m *member) int32 {
	most := max(ptr.Deref(m.decided.MaxSize, 0), m.replicas())
	if !m.isLowered(p.now) {
		most = max(most, m.offered(), m.decided.Most)
	}
	return most
}

// isScaledByOthers reports whether somebody else decides on the number of Machines. In a pool whose
// autoscaling ends, that is so until the number is recorded.
func (m *member) isScaledByOthers() bool {
	return m.decided.MaxSize != nil && m.is != nil && m.is.ScaledByOthers
}
