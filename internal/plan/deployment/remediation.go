package deployment

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/remediation"
)

// assignBudget of replacements. One set has all of it: the one that has Machines
// to replace. It passes to another when the set that had it has acted on having none,
// and what that set still has in flight is subtracted, so that all sets together
// never have more than the budget.
func (p *plan) assignBudget() {
	if p.Safety.Frozen || len(p.sets) == 0 {
		return
	}
	budget := p.limits.InFlight
	// A set that is alone knows itself how many are unhealthy.
	if p.limitsProblem != nil || len(p.sets) > 1 && !p.limits.Allows(p.unhealthy()) {
		budget = 0
	}
	holder := p.budgetHolder()
	left := budget
	for _, s := range p.sets {
		if s != holder {
			left = max(0, left-p.reserved(s))
			p.setBudget(s, 0)
		}
	}
	switch {
	case holder.createsNone():
		p.setBudget(holder, max(0, left-p.unassignedReplacements()))
	case len(p.sets) == 1:
		p.setBudget(holder, left)
	case holder.budget > budget:
		p.setBudget(holder, budget)
	case left > holder.budget && (holder.budget == 0 || holder.Status.ReplaceableReplicas > 0):
		p.setBudget(holder, left)
	}
}

// unassignedReplacements are of Machines that one set has given up, and that no other set shall
// create yet: they are in flight, and no set counts them.
func (p *plan) unassignedReplacements() int32 {
	return max(0, p.bounds.replicas-sum(p.sets, p.nextReplicas))
}

// budgetHolder keeps the budget until only others can use it. Of those the newest set is the
// first, since old ones are on their way out.
func (p *plan) budgetHolder() *set {
	has := func(s *set) bool { return s.budget > 0 }
	if i := slices.IndexFunc(p.sets, has); i >= 0 && (p.canReplace(p.sets[i]) || !slices.ContainsFunc(p.sets, p.canReplace)) {
		return p.sets[i]
	}
	for _, s := range slices.Backward(p.sets) {
		if p.canReplace(s) {
			return s
		}
	}
	return p.newSet
}

// canReplace reports whether the set has Machines to replace, and may do so now.
func (f *fleet) canReplace(s *set) bool {
	b := s.Status.Backoff
	return s.Status.ReplaceableReplicas > 0 && (b == nil || !f.now.Before(b.Until.Time))
}

// setBudget of a set, if it has acted on the one that it had.
func (p *plan) setBudget(s *set, n int32) {
	if s.isMissing || s.observedBudget() == s.budget && s.Status.DecidedGeneration >= s.Generation {
		p.nextBudget[s] = n
	}
}

// reserved is how much of the budget a set may have in flight.
func (p *plan) reserved(s *set) int32 {
	n := max(s.budget, p.starting(s))
	if !s.isMissing {
		n = max(n, s.observedBudget())
	}
	return n
}

// starting Machines that the set has, or will have when it acts on its desired number.
func (p *plan) starting(s *set) int32 {
	n, next := max(0, s.Status.StartingReplicas), p.nextDesired[s]
	if s.isSettled() {
		return add(n, max(0, next-s.desired))
	}
	return add(n, max(0, max(s.desired, next)-max(0, s.Status.Replicas)))
}

func (p *plan) unhealthy() int32 {
	return sum(p.sets, func(s *set) int32 { return s.Status.UnhealthyReplicas })
}

// waiting Machines are to be replaced, and no set replaces them yet.
func (p *plan) waiting() int32 {
	return sum(p.sets, func(s *set) int32 { return s.Status.ReplaceableReplicas })
}

// remediation of a set: its part of the budget, and the limits of all sets.
func (p *plan) remediation(s *set) machinev1alpha1.Remediation {
	inFlight, unhealthy := intstr.FromInt32(s.budget), intstr.FromString("100%")
	if p.limits.Unhealthy != nil {
		unhealthy = intstr.FromInt32(*p.limits.Unhealthy)
	}
	return machinev1alpha1.Remediation{MaxInFlight: &inFlight, MaxUnhealthy: &unhealthy, Order: p.Deployment.Spec.Remediation.Order}
}

func (p *plan) remediationAllowed() *shared.Condition {
	sets := p.sets
	return remediation.Condition(p.limits, p.limitsProblem, remediation.State{
		Machines:  sum(sets, func(s *set) int32 { return s.Status.Replicas }),
		Starting:  sum(sets, func(s *set) int32 { return s.Status.StartingReplicas }),
		Unhealthy: p.unhealthy(),
		Waiting:   p.waiting(),
	}, p.Deployment.Status.Conditions)
}
