package deployment

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/remediation"
)

// allot the budget of replacements. One set has all of it: the one that has Machines
// to replace. It passes to another when the set that had it has acted on having none,
// and what that set still has in flight is taken off it, so that all sets together
// never have more than the budget.
func (p *plan) allot() {
	sets := p.live()
	if p.Safety.Frozen || len(sets) == 0 {
		return
	}
	budget := p.limits.InFlight
	// A set that is alone knows itself how many are unhealthy.
	if p.unlimited != nil || len(sets) > 1 && !p.limits.Allows(p.unhealthy()) {
		budget = 0
	}
	holder := p.holder(sets)
	rest := budget
	for _, s := range sets {
		if s != holder {
			rest = max(0, rest-s.reserved())
			s.allot(0)
		}
	}
	switch {
	case holder.createsNone():
		holder.allot(max(0, rest-p.owed()))
	case len(sets) == 1:
		holder.allot(rest)
	case holder.allotted > budget:
		holder.allot(budget)
	case rest > holder.allotted && (holder.allotted == 0 || holder.Status.ReplaceableReplicas > 0):
		holder.allot(rest)
	}
}

// owed Machines are those that one set has given up and no other was told yet to create:
// they are in flight, and no set counts them.
func (p *plan) owed() int32 { return max(0, p.bounds.replicas-sum(p.live(), (*set).wanted)) }

// holder of the budget: who has it keeps it, until only others can use it. Of those the
// newest goes first, since old ones are on their way out.
func (p *plan) holder(sets []*set) *set {
	has := func(s *set) bool { return s.allotted > 0 }
	if i := slices.IndexFunc(sets, has); i >= 0 && (p.canReplace(sets[i]) || !slices.ContainsFunc(sets, p.canReplace)) {
		return sets[i]
	}
	for _, s := range slices.Backward(sets) {
		if p.canReplace(s) {
			return s
		}
	}
	return p.head()
}

// canReplace says whether the set has Machines to replace, and may do so now.
func (p *plan) canReplace(s *set) bool {
	b := s.Status.Backoff
	return s.Status.ReplaceableReplicas > 0 && (b == nil || !p.now.Before(b.Until.Time))
}

// allot a set its part of the budget, if it has acted on the one that it had.
func (s *set) allot(n int32) {
	if s.missing || s.toldInFlight() == s.allotted && s.Status.DecidedGeneration >= s.Generation {
		s.allots = n
	}
}

// toldInFlight is what the set was told.
func (s *set) toldInFlight() int32 {
	if s.Spec.Remediation.MaxInFlight == nil {
		return 1
	}
	return s.Spec.Remediation.MaxInFlight.IntVal
}

// reserved is how much of the budget a set may have in flight.
func (s *set) reserved() int32 {
	return max(s.allotted, s.starting(), s.maxTold())
}

func (s *set) maxTold() int32 {
	if s.missing {
		return 0
	}
	return s.toldInFlight()
}

// starting Machines that the set has, or will have when it acts on what it is told.
func (s *set) starting() int32 {
	n := max(0, s.Status.StartingReplicas)
	if s.settled() {
		return add(n, max(0, s.wants-s.told))
	}
	return add(n, max(0, max(s.told, s.wants)-max(0, s.Status.Replicas)))
}

func (p *plan) unhealthy() int32 {
	return sum(p.live(), func(s *set) int32 { return s.Status.UnhealthyReplicas })
}

// remediation of a set: its part of the budget, and the limits of all sets.
func (p *plan) remediation(s *set) machinev1alpha1.Remediation {
	inFlight, unhealthy := intstr.FromInt32(s.allotted), intstr.FromString("100%")
	if p.limits.Unhealthy != nil {
		unhealthy = intstr.FromInt32(*p.limits.Unhealthy)
	}
	return machinev1alpha1.Remediation{MaxInFlight: &inFlight, MaxUnhealthy: &unhealthy, Order: p.Deployment.Spec.Remediation.Order}
}

func (p *plan) remediationAllowed() *shared.Condition {
	sets := p.live()
	return remediation.Condition(p.limits, p.unlimited, remediation.State{
		Machines:  sum(sets, func(s *set) int32 { return s.Status.Replicas }),
		Starting:  sum(sets, func(s *set) int32 { return s.Status.StartingReplicas }),
		Unhealthy: p.unhealthy(),
		Waiting:   p.waiting(),
	}, p.Deployment.Status.Conditions)
}
