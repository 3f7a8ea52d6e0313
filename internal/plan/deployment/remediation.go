package deployment

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/remediation"
)

// assignBudget of replacements. One set has the whole budget: the one that has Machines to replace.
// The budget moves to another set when the previous one has acted on having none. Replacements of
// the previous set that are still in flight are subtracted, so that all sets together never exceed
// the budget.
func (p *plan) assignBudget() {
	if p.Safety.Frozen || len(p.sets) == 0 {
		return
	}
	budget := p.limits.InFlight
	// A set that is alone checks itself how many Machines are unhealthy.
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
	case left > holder.budget && (holder.budget == 0 || hasWaiting(holder)):
		p.setBudget(holder, left)
	}
}

// unassignedReplacements counts Machines that one set has deleted, and that no other set shall
// create yet. Their replacements are in flight, and no set counts them.
func (p *plan) unassignedReplacements() int32 {
	return max(0, p.bounds.replicas-sum(p.sets, p.nextReplicas))
}

// budgetHolder returns the set with the budget, until only other sets can use it. Then the newest
// of them gets it, because old sets are about to be deleted.
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

// hasWaiting reports whether the set has Machines that wait for a part of the budget.
func hasWaiting(s *set) bool {
	return s.Status.ReplaceableReplicas > 0 || s.Status.RebootableReplicas > 0
}

// canReplace reports whether the set has Machines to replace or to reboot, and may do so now.
func (f *fleet) canReplace(s *set) bool {
	b := s.Status.Backoff
	return s.Status.RebootableReplicas > 0 || s.Status.ReplaceableReplicas > 0 && (b == nil || !f.now.Before(b.Until.Time))
}

// setBudget of a set, if it has acted on its last budget.
func (p *plan) setBudget(s *set, n int32) {
	if s.isMissing || s.observedBudget() == s.budget && s.Status.DecidedGeneration >= s.Generation {
		p.nextBudget[s] = n
	}
}

// reserved is the part of the budget that a set may have in flight.
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

// waiting Machines shall be replaced, but no set replaces them yet.
func (p *plan) waiting() int32 {
	return sum(p.sets, func(s *set) int32 { return s.Status.ReplaceableReplicas })
}

// waitingForReboot is the number of Machines whose reboot is due and not allowed yet.
func (p *plan) waitingForReboot() int32 {
	return sum(p.sets, func(s *set) int32 { return s.Status.RebootableReplicas })
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
		Rebooting: p.waitingForReboot(),
	}, p.Deployment.Status.Conditions)
}
