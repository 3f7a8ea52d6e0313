package pool

import (
	"slices"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/history"
	offers "github.com/drover-dev/drover/internal/plan/offer"
)

func (p *plan) status() machinev1alpha1.NodePoolStatus {
	was := p.Pool.Status
	s := machinev1alpha1.NodePoolStatus{
		ObservedGeneration: shared.ObservedGeneration(p.Pool.Generation, was.ObservedGeneration, was.Conditions),
		Selector:           machinev1alpha1.LabelNodePool + "=" + p.Pool.Name,
		Version:            was.Version,
		Offer:              was.Offer,
	}
	if p.Classes != nil {
		s.Offer = offers.Of("", p.Namespace, p.Offer, p.Classes).Status()
	}
	if p.problem == nil {
		s.Version = p.taken.version
	}
	for i, m := range p.members {
		if m.isForgotten() {
			continue
		}
		is, next := m.status(), p.next[i]
		next.Replicas, next.AvailableReplicas, next.UpdatedReplicas = is.Replicas, is.AvailableReplicas, p.updated(m)
		next.Exhausted = m.exhausted()
		s.FailureDomains = append(s.FailureDomains, next)
		s.DesiredReplicas += next.DesiredReplicas
		s.Replicas += is.Replicas
		s.UpdatedReplicas += next.UpdatedReplicas
		s.ReadyReplicas += is.ReadyReplicas
		s.AvailableReplicas += is.AvailableReplicas
		s.TerminatingReplicas += is.TerminatingReplicas
		s.UnhealthyReplicas += is.UnhealthyReplicas
	}
	lists := [][]machinev1alpha1.ReplacedMachine{was.Replacements}
	for _, m := range p.members {
		lists = append(lists, m.status().Replacements)
	}
	s.Replacements = history.Merge(p.now, lists...)
	return s
}

// updated Machines of a member. There is none until the MachineDeployment has acted on the
// template.
func (p *plan) updated(m *member) int32 {
	if !m.wanted || m.isWaiting || !m.isApplied() || m.status().ObservedGeneration != m.is.Generation {
		return 0
	}
	return m.status().UpdatedReplicas
}

// isUpdated reports whether all Machines have the current template.
func (p *plan) isUpdated() bool {
	return !slices.ContainsFunc(p.members, func(m *member) bool { return m.wanted && (m.is == nil || p.updated(m) != m.status().Replicas) })
}

// isMoving reports whether Machines move to or from a failure domain.
func (p *plan) isMoving() bool {
	if p.goal == nil {
		return false
	}
	up := slices.ContainsFunc(p.members, func(m *member) bool { return p.goal[m] > p.recorded(m) })
	down := slices.ContainsFunc(p.members, func(m *member) bool { return p.goal[m] < p.recorded(m) })
	return up && down || slices.ContainsFunc(p.members, func(m *member) bool { return !m.wanted })
}
