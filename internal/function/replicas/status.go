package replicas

import (
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
)

const conditionValid = "Valid"

// status counts the Machines as they are once the plan is carried out: whoever
// reads it must not rely on a Machine that is about to go.
func (p *plan) status() machinev1alpha1.MachineSetStatus {
	s := machinev1alpha1.MachineSetStatus{
		ObservedGeneration:  p.Set.Generation,
		Selector:            p.Set.Spec.Selector.String(),
		Replicas:            int32(len(p.kept) + len(p.creates)),
		TerminatingReplicas: int32(len(p.terminating) + len(p.dropping) + len(p.dropped)),
		Created:             p.created,
	}
	for _, m := range p.kept {
		if isReady(m) {
			s.ReadyReplicas++
		}
		if p.isAvailable(m) {
			s.AvailableReplicas++
		}
	}
	for _, m := range p.dropping {
		s.Dropping = append(s.Dropping, m.Name)
	}
	for _, m := range p.dropped {
		s.Dropping = append(s.Dropping, m.Name)
	}
	return s
}

func (p *plan) valid() step.Condition {
	if p.Problem != nil {
		return step.Condition{
			Type:    conditionValid,
			Status:  "False",
			Reason:  p.Problem.Reason,
			Message: p.Problem.Message + "; no Machines are created until there is",
		}
	}
	return step.Condition{Type: conditionValid, Status: "True", Reason: "Valid"}
}

// callAgain at once to carry out what is written down by then, soon while anything
// is in flight, and when the next Machine becomes available.
func (p *plan) callAgain(ready bool) time.Duration {
	if len(p.dropped) > 0 {
		return step.Soonest
	}
	again := step.AtRest
	if !ready || len(p.terminating)+len(p.dropping) > 0 {
		again = step.InFlight
	}
	for _, m := range p.kept {
		if isReady(m) && !p.isAvailable(m) {
			again = min(again, p.untilAvailable(m))
		}
	}
	return again
}
