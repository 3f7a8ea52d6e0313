package set

import (
	"fmt"
	"slices"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// resumeUpdates continues the updates of Machines that were selected before.
func (p *plan) resumeUpdates() {
	if !p.updatesInPlace() {
		return
	}
	for _, m := range p.all() {
		was := p.recorded.updating.Has(m.Name)
		switch {
		case (was || isSelected(m)) && p.toUpdate(m):
			p.list(m)
		case p.hasUpdated(m) && was:
			p.updated = append(p.updated, m.Name)
		}
	}
	if len(p.updated) > 0 {
		p.events = append(p.events, updatedEvent(p.updated, p.Set.Spec.Template.Spec))
	}
}

// remake deletes outdated Machines that have no VM yet: there is nothing to update. Preserved Machines
// stay.
func (p *plan) remake() {
	if !p.mayCreate() {
		return
	}
	var early []Machine
	for _, m := range p.all() {
		if isInFlight(m) && p.toUpdate(m) && !p.isPreserved(m) {
			early = append(early, m)
		}
	}
	if len(early) > 0 {
		p.drop(early...)
		p.events = append(p.events, remakingEvent(early))
	}
}

// selectUpdates selects Machines to update, as many as leave enough Machines available, and those in
// trouble first. Their specs are changed when the selection is read back.
func (p *plan) selectUpdates() {
	u := p.Set.Spec.InPlaceUpdate
	if u == nil || u.Paused || p.Safety.Frozen || p.Problem != nil {
		return
	}
	var candidates []Machine
	available := 0
	for _, m := range p.all() {
		if p.isAvailable(m) {
			available++
		}
		if p.mayUpdate(m) {
			candidates = append(candidates, m)
		}
	}
	spare := available - int(p.Set.Spec.Replicas-u.MaxUnavailable)
	for _, m := range p.worstFirst(candidates) {
		cost := 0
		if p.isAvailable(m) {
			cost = 1
		}
		if spare < cost {
			continue
		}
		spare -= cost
		p.selected = append(p.selected, m)
	}
	for _, m := range p.selected {
		p.list(m)
	}
	if len(p.selected) > 0 {
		slices.Sort(p.updating)
		p.events = append(p.events, updatingEvent(p.selected, p.Set.Spec.Template.Spec))
	}
}

// mayUpdate reports whether an update of the Machine may start, apart from the availability of the set. The
// Machine needs a Node whose agent can do it.
func (p *plan) mayUpdate(m Machine) bool {
	if !p.toUpdate(m) || p.isListed(m) || !hadNode(m) || isFailed(m) {
		return false
	}
	manual := p.Set.Spec.InPlaceUpdate.Orchestration == machinev1alpha1.OrchestrationManual
	return !manual || p.isRequested(m)
}

// isRequested reports whether a user selected the Machine, or its Node, for this update.
func (f *fleet) isRequested(m Machine) bool {
	id, u := f.updateIDOf(m), m.Status.Update
	return machinev1alpha1.SelectsUpdate(m.Annotations[machinev1alpha1.LabelUpdateSelected], id) || u != nil && u.ID == id && u.Requested
}

func updatingEvent(selected []Machine, t machinev1alpha1.MachineSpec) shared.Event {
	return shared.Event{Reason: machinev1alpha1.EventUpdatingMachine, Message: fmt.Sprintf("Selected %s for an update in place to %s", list(namesOf(selected)), version(t))}
}

func updatedEvent(updated []string, t machinev1alpha1.MachineSpec) shared.Event {
	return shared.Event{Reason: machinev1alpha1.EventUpdatedMachine, Message: fmt.Sprintf("Updated %s in place to %s", list(updated), version(t))}
}

func remakingEvent(early []Machine) shared.Event {
	return shared.Event{Reason: machinev1alpha1.EventDeletedMachine, Message: fmt.Sprintf("Deleted %s, made from an earlier template and without a VM yet", list(namesOf(early)))}
}
