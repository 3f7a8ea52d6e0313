package set

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	shared "github.com/drover-dev/drover/internal/plan"
)

// A plan is the decisions of the stages so far. A predicate that depends on decisions is a method of the
// plan, and one that depends on the facts alone is a method of the fleet.
type plan struct {
	*fleet

	// kept Machines stay, and dropped ones are deleted by this plan. They exist until the deletion is
	// recorded.
	kept, dropped []Machine
	// replaced are the entries of status.replacements that this plan adds.
	replaced []machinev1alpha1.ReplacedMachine
	// byName has the kept Machines. steps counts the Machines that this plan looked at in passes over
	// all kept ones: the number of passes does not depend on the number of Machines.
	byName map[string]Machine
	steps  int
	// adopting names all Machines that are being adopted, and takesOn those of them that this plan adds.
	adopting, takesOn []string
	// creates names the Machines to create, and created is the counter after them. counted names Machines
	// that exist, but were not counted before.
	creates []string
	created int64
	counted []string
	// replacing has the Machines that stay until their replacements are available, and paired the pairs
	// that this plan adds: their replacements are created once the pairs are recorded.
	replacing, paired []machinev1alpha1.Replacement
	// released pairs have a replacement that failed and is set aside. They are listed until the replacement
	// shows its mark.
	released []machinev1alpha1.Replacement
	// setAside Machines are marked for deletion and preserved: they do not count as replicas.
	setAside []Machine
	// backoff of the template, while its creations fail.
	backoff *machinev1alpha1.Backoff
	// exhausted is set while the cloud has no room for another Machine of the template, and exhaustedBy is
	// the error that reports it.
	exhausted   *machinev1alpha1.Exhaustion
	exhaustedBy string
	// updating names the Machines that are being updated in place, and updated those that finished since
	// the last plan. selected Machines are those that this plan adds: their specs are changed once the
	// selection is recorded.
	updating, updated []string
	listed            sets.Set[string]
	selected          []Machine
	// rebooting names the Machines that may reboot because they are unhealthy.
	rebooting sets.Set[string]

	events []shared.Event
}

// newPlan returns a plan that has decided nothing.
func newPlan(f *fleet) *plan {
	p := &plan{
		fleet: f, created: f.Set.Status.Created, kept: slices.Clone(f.active), setAside: slices.Clone(f.aside),
		byName: make(map[string]Machine, len(f.active)), listed: sets.New[string](), rebooting: sets.New[string](),
	}
	for _, m := range p.kept {
		p.byName[m.Name] = m
	}
	return p
}

// all kept Machines, for a pass over them.
func (p *plan) all() []Machine {
	p.steps += len(p.kept)
	return p.kept
}

// find returns a kept Machine by its name.
func (p *plan) find(name string) (Machine, bool) {
	m, kept := p.byName[name]
	return m, kept
}

// drop Machines. A stage drops all of its Machines at once.
func (p *plan) drop(ms ...Machine) {
	p.dropped = append(p.dropped, ms...)
	p.leave(sets.New(namesOf(ms)...))
}

// leave removes Machines from the kept ones.
func (p *plan) leave(names sets.Set[string]) {
	p.kept = slices.DeleteFunc(p.all(), func(m Machine) bool { return names.Has(m.Name) })
	for name := range names {
		delete(p.byName, name)
		p.rebooting.Delete(name)
	}
	p.forget(names)
}

// forget removes the pairs that lost one of their Machines: there is nothing to hand over any more.
func (p *plan) forget(dropped sets.Set[string]) {
	lost := func(r machinev1alpha1.Replacement) bool { return dropped.Has(r.Machine) || dropped.Has(r.By) }
	p.replacing = slices.DeleteFunc(p.replacing, lost)
}

// list the Machine as one that is being updated.
func (p *plan) list(m Machine) {
	p.updating = append(p.updating, m.Name)
	p.listed.Insert(m.Name)
}

func (p *plan) isListed(m Machine) bool { return p.listed.Has(m.Name) }

// isUpdating reports whether the Machine's Node is, or is about to be, cordoned for an update: it does not
// count as available.
func (p *plan) isUpdating(m Machine) bool {
	u := m.Status.Update
	return isSelected(m) || p.isListed(m) || u != nil && u.State != machinev1alpha1.UpdateCandidate
}

func (p *plan) isAvailable(m Machine) bool {
	return isReady(m) && p.untilAvailable(m) <= 0 && !p.isUpdating(m)
}

// wanted is the number of Machines that the set wants, including the extra replicas of pending
// replacements.
func (p *plan) wanted() int { return max(0, int(p.Set.Spec.Replicas)) + len(p.replacing) }

// missingReplacements returns the recorded names of replacements that are not created yet.
func (p *plan) missingReplacements() []string {
	var out []string
	for _, r := range p.replacing {
		if !p.exists(r.By) {
			out = append(out, r.By)
		}
	}
	return out
}

// missing is the number of Machines to create, without replacements of certain Machines. Machines in
// dropped count as missing only once their deletion is recorded. Machines in takesOn count as present: they
// are there by then. A Machine that was deleted first because of its age is missing when its VM is gone.
func (p *plan) missing() int {
	return max(0, p.wanted()-len(p.missingReplacements())-len(p.kept)-len(p.dropped)-len(p.takesOn)-p.awaited())
}

// excess is the number of excess Machines. A replacement that is not created yet counts as existing.
// Otherwise its Machine would be deleted only after the creation, and take a place in the budget of
// replacements until then.
func (p *plan) excess() int {
	return len(p.kept) + len(p.missingReplacements()) - p.wanted()
}

// pairs returns all pairs of Machines and replacements, including released ones.
func (p *plan) pairs() []machinev1alpha1.Replacement {
	return slices.Concat(p.replacing, p.paired, p.released)
}

// backingOff reports whether the backoff lasts: nothing may be created or replaced yet.
func (p *plan) backingOff() bool {
	return p.backoff != nil && p.now.Before(p.backoff.Until.Time)
}

// failedBefore reports whether the Machine was created in an attempt whose failure is already counted.
func (p *plan) failedBefore(m Machine) bool {
	return p.backoff != nil && m.CreationTimestamp.Before(&p.backoff.Until)
}

// lastFailure is the reason of the last failed attempt. If the template has not failed, it is CreateFailed:
// then a VM is proof enough.
func (p *plan) lastFailure() machinev1alpha1.FailureReason {
	if p.backoff == nil {
		return machinev1alpha1.FailureCreateFailed
	}
	return p.backoff.Reason
}

// withholdsVMs reports whether the Machines that the set creates now get no VM: the cloud has no room, and
// the set shows each missing Machine as Failed. An autoscaler expects that a missing Machine will be
// created soon, and waits for it.
func (p *plan) withholdsVMs() bool {
	return p.backingOff() && fn.ErrorCode(p.backoff.ErrorCode).IsExhausted() && machinev1alpha1.CapacityTimeoutOf(p.Set, p.Set.Spec.Template.Spec) != nil
}

// reserve returns the next free name and counts it.
func (p *plan) reserve() string {
	p.skip()
	name := names.Machine(p.Set.Name, p.Set.UID, p.created)
	p.created++
	return name
}

// skip counts the names that are taken.
func (p *plan) skip() {
	for {
		name := names.Machine(p.Set.Name, p.Set.UID, p.created)
		if !p.taken.Has(name) {
			return
		}
		p.counted = append(p.counted, name)
		p.created++
	}
}
