package set

import (
	"fmt"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// scaleDown deletes excess Machines. Deleting a Machine that is being replaced, or its replacement, also
// cancels the extra replica, so the excess is computed again.
func (p *plan) scaleDown() {
	if p.excess() <= 0 {
		return
	}
	order, n := p.worstFirst(p.kept), 0
	for excess := p.excess(); excess > 0; excess = p.excess() {
		p.drop(order[n : n+excess]...)
		n += excess
	}
	if p.isRolledOut() {
		for _, m := range order[:n] {
			p.record(m, machinev1alpha1.ReplacedRollout)
		}
	}
	p.events = append(p.events, p.deletedEvent(order[:n], order[n:]))
}

// deletedEvent reports for each deleted Machine why it was chosen before the Machines that stay.
func (p *plan) deletedEvent(goes, stays []Machine) shared.Event {
	var each []string
	for _, m := range goes {
		why := ""
		if len(stays) > 0 {
			why = " (" + p.why(m, stays[0]) + ")"
		}
		each = append(each, m.Name+why)
	}
	return shared.Event{
		Reason:  machinev1alpha1.EventDeletedMachine,
		Message: fmt.Sprintf("Deleted %s: there were %d and %d are wanted", list(each), len(goes)+len(stays), p.Set.Spec.Replicas),
	}
}
