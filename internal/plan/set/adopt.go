package set

import (
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// adopt adds the Machines that match the selector and have no controller. They are named in the status
// first, so that the event is recorded only once.
func (p *plan) adopt() {
	for _, m := range p.Orphans {
		p.adopting = append(p.adopting, m.Name)
		if !p.recorded.adopting.Has(m.Name) {
			p.takesOn = append(p.takesOn, m.Name)
		}
	}
	if len(p.takesOn) > 0 {
		p.events = append(p.events, shared.Event{
			Reason:  machinev1alpha1.EventAdoptingMachine,
			Message: "Adopting " + list(p.takesOn) + ", which spec.selector matches and which have no controller",
		})
	}
}
