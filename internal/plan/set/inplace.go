package set

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
)

// updatesInPlace reports whether the set updates its Machines in place.
func (f *fleet) updatesInPlace() bool { return f.Set.Spec.InPlaceUpdate != nil }

// updateID is the ID of the template. Machines that have the template are labeled with it.
func (f *fleet) updateID() string {
	if id := f.Set.Spec.InPlaceUpdate.ID; id != "" {
		return id
	}
	t := f.Set.Spec.Template.Spec
	return names.Hash(t.Version, t.ClassRef.Key())
}

// updateIDOf is the template's ID in the Machine's spec, where its agent reads it. It changes with each
// retry that a user requests.
func (f *fleet) updateIDOf(m Machine) string {
	if retry := m.Annotations[machinev1alpha1.AnnotationUpdateRetry]; retry != "" {
		return f.updateID() + "-" + names.Hash(retry)[:8]
	}
	return f.updateID()
}

// hadUpdate is the ID under which a Machine was created or last updated. Without a label of the set, it is
// the hash of the template that the MachineDeployment made the set for.
func hadUpdate(m Machine) string {
	if id := m.Labels[machinev1alpha1.LabelUpdatedTo]; id != "" {
		return id
	}
	return m.Labels[machinev1alpha1.LabelTemplateHash]
}

// isOutdated reports whether the Machine's VM runs another template than the current one, or may do so
// because an update of it has started.
func (f *fleet) isOutdated(m Machine) bool {
	t := f.Set.Spec.Template.Spec
	return differs(m, t) || f.toUpdate(m)
}

// toUpdate reports whether an update in place brings the Machine to the current template.
func (f *fleet) toUpdate(m Machine) bool {
	if !f.updatesInPlace() || f.hasUpdated(m) {
		return false
	}
	t := f.Set.Spec.Template.Spec
	other := f.Set.Spec.InPlaceUpdate.ID != "" && hadUpdate(m) != f.updateID()
	return !m.Spec.ClassRef.Equal(t.ClassRef) || m.Spec.Version != t.Version || other || isSelected(m)
}

// hasUpdated reports whether the agent has finished the update. The Machine's spec is then changed to
// match.
func (f *fleet) hasUpdated(m Machine) bool {
	want, is := m.Spec.InPlaceUpdate, m.Status.Update
	return f.updatesInPlace() && want != nil && is != nil &&
		is.State == machinev1alpha1.UpdateSucceeded && is.ID == want.ID && is.ID == f.updateIDOf(m)
}

// isSelected reports whether the Machine's spec requests its update now.
func isSelected(m Machine) bool {
	return m.Spec.InPlaceUpdate != nil && m.Spec.InPlaceUpdate.Selected
}

// isUpdating reports whether the Machine's Node is, or is about to be, cordoned for an update: it does not
// count as available.
func (p *plan) isUpdating(m Machine) bool {
	u := m.Status.Update
	return isSelected(m) || p.isListed(m) || u != nil && u.State != machinev1alpha1.UpdateCandidate
}

// list the Machine as one that is being updated.
func (p *plan) list(m Machine) {
	p.updating = append(p.updating, m.Name)
	p.listed.Insert(m.Name)
}

func (p *plan) isListed(m Machine) bool { return p.listed.Has(m.Name) }

func updateFailed(m Machine) bool {
	return m.Status.Update != nil && m.Status.Update.State == machinev1alpha1.UpdateFailed
}

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

// composeUpdate sets the fields of a Machine that concern updates in place.
func (f *fleet) composeUpdate(d *Desired, m Machine) {
	id, labeled := m.Labels[machinev1alpha1.LabelUpdatedTo]
	t := f.Set.Spec.Template.Spec
	switch {
	case f.hasUpdated(m):
		d.Spec.ClassRef, d.Spec.Version = t.ClassRef, t.Version
		id, labeled = f.updateID(), true
	case f.toUpdate(m) && hasVM(m):
		d.Spec.InPlaceUpdate = &machinev1alpha1.MachineUpdate{
			ID:       f.updateIDOf(m),
			Version:  t.Version,
			ClassRef: t.ClassRef,
			Selected: isSelected(m) || f.recorded.updating.Has(m.Name),
			// Always set: a value that the schema defaulted would stay when the other fields are removed.
			Timeout: cmp.Or(f.Set.Spec.InPlaceUpdate.Timeout, metav1.Duration{Duration: machinev1alpha1.DefaultUpdateTimeout}),
		}
	}
	if labeled {
		d.Labels[machinev1alpha1.LabelUpdatedTo] = id
	}
}
