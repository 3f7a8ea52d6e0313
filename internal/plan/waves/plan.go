package waves

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

// Observed is the view of all policies.
type Observed struct {
	Policies []*machinev1alpha1.RolloutPolicy
	Members  []Member
	// Turns by the UID of the MachineDeployment that controls each.
	Turns map[types.UID]*machinev1alpha1.RolloutTurn
}

// A Decision has the statuses that change.
type Decision struct {
	// Policies are the statuses that differ, by name. They have the times that the answers follow from, so they are written first.
	Policies map[string]machinev1alpha1.RolloutPolicyStatus
	// Answers that differ, by the UID of the MachineDeployment.
	Answers map[types.UID]machinev1alpha1.RolloutTurnStatus
	// Events of policies, by name.
	Events map[string][]plan.Event
	// Begins means that an answer lets a rollout of a later wave begin. It must follow from members that were read from the API
	// server, because a cache may lack the rollout of an earlier wave.
	Begins bool
	// Next is when the decision changes by itself, zero if it does not.
	Next time.Time
}

// Plan decides the state of all policies, and the answers to all turns.
func Plan(now time.Time, o Observed) Decision {
	d := Decision{Policies: map[string]machinev1alpha1.RolloutPolicyStatus{}, Answers: map[types.UID]machinev1alpha1.RolloutTurnStatus{}, Events: map[string][]plan.Event{}}
	policies := make([]*machinev1alpha1.RolloutPolicy, 0, len(o.Policies))
	for _, p := range o.Policies {
		s := Status(now, p, o.Members)
		for _, w := range s.Waves {
			if w.Until != nil {
				d.wake(w.Until.Time)
			}
		}
		if !equality.Semantic.DeepEqual(p.Status, s) {
			d.Policies[p.Name], d.Events[p.Name] = s, Events(p.Status, s)
		}
		decided := *p
		decided.Status = s
		policies = append(policies, &decided)
	}
	slices.SortFunc(policies, func(a, b *machinev1alpha1.RolloutPolicy) int { return cmp.Compare(a.Name, b.Name) })
	for _, m := range o.Members {
		turn := o.Turns[m.UID]
		if turn == nil {
			continue
		}
		s, next := Answer(now, policies, m, turn)
		d.wake(next)
		if equality.Semantic.DeepEqual(turn.Status, s) {
			continue
		}
		d.Answers[m.UID] = s
		if s.Held == nil && slices.ContainsFunc(policies, func(p *machinev1alpha1.RolloutPolicy) bool { return WaveOf(p, m) > 0 }) {
			d.Begins = true
		}
	}
	return d
}

// wake at a time at the latest.
func (d *Decision) wake(at time.Time) {
	if !at.IsZero() && (d.Next.IsZero() || at.Before(d.Next)) {
		d.Next = at
	}
}
