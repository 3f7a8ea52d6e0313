package deployment

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// messageEvery is the shortest interval between two messages of a condition that has numbers of
// Machines in its message, as long as status and reason do not change. The counts in the status are
// always current. Crossplane writes a changed condition in a separate request. That write and the
// next one, which changes only field owners, each requeue the MachineDeployment and cost tokens of
// its circuit breaker.
const messageEvery = 5 * time.Second

// holdMessages keeps the messages whose last change is too recent, unless another condition is
// written anyway. It returns the time until they may change, and false if it keeps none.
func (p *plan) holdMessages(conditions []shared.Condition) (until time.Duration, held bool) {
	// A generation counts as observed when its conditions are written.
	if p.Deployment.Status.ObservedGeneration != p.Deployment.Generation {
		return 0, false
	}
	until = messageEvery
	var hold []*shared.Condition
	for i := range conditions {
		c := &conditions[i]
		if !c.IsNew(p.Deployment.Status.Conditions) {
			continue
		}
		left := p.untilMessage(*c)
		if left <= 0 {
			return 0, false
		}
		until = min(until, left)
		hold = append(hold, c)
	}
	for _, c := range hold {
		c.Message = p.condition(c.Type).Message
	}
	return until, len(hold) > 0
}

// untilMessage returns the time until the message of a condition may change, 0 if it may change
// now.
func (p *plan) untilMessage(c shared.Condition) time.Duration {
	o := p.condition(c.Type)
	numbers := c.Type == machinev1alpha1.ConditionAvailable || c.Type == machinev1alpha1.ConditionReconciling
	if !numbers || o == nil || o.Status != metav1.ConditionStatus(c.Status) || o.Reason != c.Reason {
		return 0
	}
	// A time in the future comes from a clock that differs, and is ignored.
	age := p.now.Sub(o.LastTransitionTime.Time)
	if age < 0 {
		return 0
	}
	return max(0, messageEvery-age)
}
