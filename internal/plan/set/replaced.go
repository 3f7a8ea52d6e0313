package set

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan/history"
)

// dropReplaced drops Machines that are replaced: they failed, a replacement was requested, or their age is due.
func (p *plan) dropReplaced(ms ...Machine) {
	for _, m := range ms {
		p.record(m, causeOf(m))
	}
	p.drop(ms...)
}

// record a Machine that this plan drops, in the same status as the decision to drop it.
func (p *plan) record(m Machine, reason machinev1alpha1.ReplacementReason) {
	if e, counts := history.Of(m.Machine, p.now, reason); counts {
		p.replaced = append(p.replaced, e)
	}
}

// deleting names the Machines that are being deleted, by this set or by another client. One that is gone is
// among them until the MachineGroup reports it, and does not list it as a member: a MachineDeployment keeps an
// old set until then, because only the report has the duration of the drain.
func (f *fleet) deleting() []string {
	out := namesOf(f.terminating)
	known := f.recorded.dropping.Union(f.recorded.deleting).Union(f.recorded.setAside)
	there := sets.Set[string]{}
	if len(known) > 0 {
		there.Insert(namesOf(f.Machines)...)
	}
	for name := range known {
		if !there.Has(name) && (f.IsBehind || f.isMember(name)) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// isKnown reports whether the deletion of a Machine was recorded before: the set decided on it, or observed it. A
// Machine that was set aside counts as deleted.
func (f *fleet) isKnown(name string) bool {
	return f.recorded.dropping.Has(name) || f.recorded.deleting.Has(name) || f.recorded.setAside.Has(name)
}

// deletedAt returns when the deletion of a Machine was requested.
func (f *fleet) deletedAt(m Machine) time.Time {
	if m.DeletionTimestamp == nil {
		return f.now
	}
	return m.DeletionTimestamp.Time
}

// replacements returns the last replacements: those that were recorded, those of this plan, and those of
// Machines that another client deleted.
func (p *plan) replacements() []machinev1alpha1.ReplacedMachine {
	found := slices.Clone(p.replaced)
	for _, m := range p.terminating {
		if p.isKnown(m.Name) {
			continue
		}
		// The time of the deletion is a fact: an entry that later ones displaced is older than these.
		if e, counts := history.Of(m.Machine, p.deletedAt(m), machinev1alpha1.ReplacedDeleted); counts {
			found = append(found, e)
		}
	}
	for _, r := range p.Released {
		if !p.exists(r.Name) && !p.isKnown(r.Name) && p.isMember(r.Name) {
			found = append(found, history.OfReleased(r))
		}
	}
	// Also those that are deleted: a Machine is dropped in the plan that first sees that its last reboot did not help.
	for _, m := range p.Machines {
		if e, ok := history.OfReboot(m.Machine); ok {
			found = append(found, e)
		}
	}
	return history.WithDrains(history.Merge(p.now, p.Set.Status.Replacements, found), p.Released)
}

// isMember reports whether the MachineGroup was to keep a Machine. Its members are sorted by name.
func (f *fleet) isMember(name string) bool {
	_, found := slices.BinarySearchFunc(f.Members, name, func(m machinev1alpha1.GroupMember, name string) int { return strings.Compare(m.Name, name) })
	return found
}

// vanished returns the Machines that another client deleted, and whose deletion is not recorded. They stay
// members of the MachineGroup, which creates none of them, until the status has them and the group reported those
// that are gone: by that the set knows them as its own that it did not delete.
func (p *plan) vanished(s machinev1alpha1.MachineSetStatus) []machinev1alpha1.GroupMember {
	unrecorded := sets.New[string]()
	for _, e := range s.Replacements {
		if !e.Reason.IsReboot() {
			unrecorded.Insert(e.Machine)
		}
	}
	for _, e := range p.Set.Status.Replacements {
		if !e.Reason.IsReboot() {
			unrecorded.Delete(e.Machine)
		}
	}
	if !p.IsBehind && len(unrecorded) == 0 {
		return nil
	}
	unreported, terminating, orphans := p.unreported(), sets.New(namesOf(p.terminating)...), sets.New(namesOf(p.Orphans)...)
	var out []machinev1alpha1.GroupMember
	for _, m := range p.Members {
		stays := p.exists(m.Name) && !terminating.Has(m.Name) || orphans.Has(m.Name) || p.isKnown(m.Name)
		if unreported.Has(m.Name) || !stays && unrecorded.Has(m.Name) {
			m.Create = false
			out = append(out, m)
		}
	}
	return out
}

// unreported names the members of the MachineGroup that are gone although the set did not delete them, and that
// the group may still report. Only its report has the time of the deletion and the Node.
func (f *fleet) unreported() sets.Set[string] {
	out := sets.New[string]()
	if !f.IsBehind {
		return out
	}
	orphans := sets.New(namesOf(f.Orphans)...)
	for _, m := range f.Members {
		if !f.exists(m.Name) && !orphans.Has(m.Name) && !f.isKnown(m.Name) {
			out.Insert(m.Name)
		}
	}
	return out
}
