package pool

import (
	"strconv"

	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
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

// size that the autoscaler decided.
func (m *member) size() int32 { return m.replicas() }

// offeredMost returns the number of Machines that a failure domain has, or may get by a maximum
// that the autoscaler may have read.
func (p *plan) offeredMost(m *member) int32 { return max(p.readMost(m), m.replicas()) }

// offerSizes offers the recorded sizes of a member to the cluster-autoscaler. A smaller size is
// offered at once, before it is recorded: that creates no Machines, and a size that a user edited
// in the status is not offered. The minimum is never above the maximum, because such a pair stops
// the autoscaler for all its groups.
func (p *plan) offerSizes(m *member, next machinev1alpha1.PoolDomain) {
	if m.decided.MaxSize == nil || !m.wanted {
		return
	}
	to := m.desired.Annotations
	to[machinev1alpha1.AnnotationCapacityLabels] = labelsOf(m.desired.Spec.Template.Spec.Metadata.Labels)
	// While the pool is invalid, the sizes do not change.
	if p.problem != nil {
		for _, key := range []string{machinev1alpha1.AnnotationNodeGroupMinSize, machinev1alpha1.AnnotationNodeGroupMaxSize} {
			if size, has := m.is.Annotations[key]; has {
				to[key] = size
			}
		}
		return
	}
	// A pool without autoscaling has no next sizes. Until that is recorded, it offers the old ones.
	most := max(0, min(*m.decided.MaxSize, ptr.Deref(next.MaxSize, m.offered())))
	least := max(0, min(ptr.Deref(m.decided.MinSize, 0), ptr.Deref(next.MinSize, most), most))
	to[machinev1alpha1.AnnotationNodeGroupMinSize] = strconv.Itoa(int(least))
	to[machinev1alpha1.AnnotationNodeGroupMaxSize] = strconv.Itoa(int(most))
}
