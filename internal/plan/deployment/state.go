package deployment

import (
	"cmp"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// A plan collects the decisions of the stages. A value that depends on decisions is a method of the
// plan, and a value that depends only on the facts is one of the fleet.
type plan struct {
	*fleet

	// sets that are composed, the new one last.
	sets []*set
	// nextDesired is the number of Machines that each set shall have, and nextBudget is its part of
	// the budget of replacements.
	nextDesired, nextBudget map[*set]int32
	// scaledFor is the number of replicas that the sets are scaled for.
	scaledFor int32

	// revision of the current set, and the history up to it.
	revision  int64
	revisions []machinev1alpha1.Revision
	// rollback that is in force, with the revision that it has become.
	rollback *machinev1alpha1.Rollback
}

// newPlan returns a plan that keeps the recorded decisions.
func newPlan(f *fleet) *plan {
	p := &plan{
		fleet: f, sets: f.live(), nextDesired: map[*set]int32{}, nextBudget: map[*set]int32{},
		scaledFor: f.bounds.replicas, revisions: slices.Clone(f.Deployment.Status.Revisions), rollback: f.rollsBackTo,
	}
	for _, s := range p.sets {
		p.nextDesired[s], p.nextBudget[s] = s.desired, s.budget
	}
	return p
}

// othersThan returns the composed sets except one.
func (p *plan) othersThan(s *set) []*set {
	return slices.DeleteFunc(slices.Clone(p.sets), func(other *set) bool { return other == s })
}

// failureOf a set to create Machines, nil if there is none.
func (p *plan) failureOf(s *set) *metav1.Condition {
	c := meta.FindStatusCondition(s.Status.Conditions, machinev1alpha1.ConditionReplicaFailure)
	if c == nil || c.Status != metav1.ConditionTrue {
		return nil
	}
	return c
}

// exhausted failure domains, by name. If several sets report the same one, a set that still waits
// for a VM there has the best information, and otherwise the set that waited last.
func (p *plan) exhausted() []machinev1alpha1.Exhaustion {
	var all []machinev1alpha1.Exhaustion
	for _, set := range p.sets {
		if e := set.Status.Exhausted; e != nil {
			all = append(all, *e)
		}
	}
	slices.SortStableFunc(all, func(a, b machinev1alpha1.Exhaustion) int {
		until := func(e machinev1alpha1.Exhaustion) int64 {
			if e.Until == nil {
				return math.MaxInt64
			}
			return e.Until.Unix()
		}
		return cmp.Or(cmp.Compare(a.FailureDomain, b.FailureDomain), cmp.Compare(until(b), until(a)), a.Since.Compare(b.Since.Time))
	})
	return slices.CompactFunc(all, func(a, b machinev1alpha1.Exhaustion) bool { return a.FailureDomain == b.FailureDomain })
}
