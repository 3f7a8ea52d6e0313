package set

import (
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// create adds the missing Machines, as far as the template is proven. The plan only names them: the
// controller of MachineGroups creates them (internal/controller/machinegroup/apply.go).
func (p *plan) create() {
	n := 0
	if p.mayCreate() && !p.backingOff() {
		room := p.room()
		replacements := p.missingReplacements()
		p.creates = append(p.creates, replacements[:min(room, len(replacements))]...)
		n = min(p.missing(), room-len(p.creates))
	}
	p.name(max(0, n))
}

// name reserves names for n Machines to create, with names that no Machine of the set has. A name that is
// taken belongs to a Machine that was created but not counted: the API server refused the set's status
// then, because the set had changed.
func (p *plan) name(n int) {
	for range n {
		name := p.reserve()
		p.creates, p.counted = append(p.creates, name), append(p.counted, name)
	}
	p.skip()
	if len(p.counted) > 0 {
		p.events = append(p.events, createdEvent(p.counted))
	}
}

// createWithoutVMs creates the Machines that are missing while the cloud has no room for them.
func (p *plan) createWithoutVMs() {
	if p.mayCreate() && p.withholdsVMs() {
		p.name(p.missing())
	}
}

func createdEvent(created []string) shared.Event {
	return shared.Event{Reason: machinev1alpha1.EventCreatedMachine, Message: "Created " + list(created)}
}
