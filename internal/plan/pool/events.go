package pool

import (
	"fmt"
	"slices"
	"strings"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// events of this decision.
func (p *plan) events(conditions []shared.Condition) (out []shared.Event) {
	if p.problem != nil {
		i := slices.IndexFunc(conditions, func(c shared.Condition) bool { return c.Type == machinev1alpha1.ConditionValid })
		if conditions[i].IsNew(p.Pool.Status.Conditions) {
			out = append(out, shared.Event{Warning: true, Reason: p.problem.Reason, Message: p.problem.Message})
		}
		return out
	}
	var changes []string
	for i, m := range p.members {
		next := p.next[i]
		if p.isAutoscaled() {
			if m.wanted && (!equal(next.MaxSize, m.decided.MaxSize) || !equal(next.MinSize, m.decided.MinSize)) {
				changes = append(changes, fmt.Sprintf("failure domain %q: %d to %d", m.domain, *next.MinSize, *next.MaxSize))
			}
			continue
		}
		if next.DesiredReplicas != m.decided.DesiredReplicas {
			changes = append(changes, fmt.Sprintf("failure domain %q: %d instead of %d", m.domain, next.DesiredReplicas, m.decided.DesiredReplicas))
		}
	}
	if len(changes) == 0 {
		return out
	}
	reason := machinev1alpha1.ReasonScaling
	if p.isMoving() {
		reason = machinev1alpha1.ReasonRebalancing
	}
	return append(out, shared.Event{Reason: reason, Message: "Machines " + strings.Join(changes, ", ")})
}
