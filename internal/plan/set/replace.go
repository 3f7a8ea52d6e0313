package set

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// toReplace reports whether a Machine is to be replaced: it failed, or a replacement was requested.
func (f *fleet) toReplace(m Machine) bool {
	return !f.isPreserved(m) && (isFailed(m) || asksForAnother(m))
}

// asksForAnother reports whether a replacement of this Machine was requested.
func asksForAnother(m Machine) bool {
	return m.Status.ReplaceRequested || m.Annotations[machinev1alpha1.AnnotationReplace] == "true"
}

// isUnhealthy reports whether the Machine counts towards the share above which no Machine is replaced. A
// Machine whose VM is gone does not count: it can only be replaced. A VM that is reported as gone while its
// Node works does count: such a report may be wrong about all VMs.
func (f *fleet) isUnhealthy(m Machine) bool {
	switch {
	case f.isPreserved(m), failedForRoom(m), isConfirmedLost(m):
		return false
	case isFailed(m), m.Status.Phase == machinev1alpha1.MachineUnknown:
		return true
	}
	return isInFlight(m) && inError(m)
}

func isConfirmedLost(m Machine) bool {
	return isFailed(m) && m.Status.LossConfirmed
}

func (p *plan) unhealthy() int32 { return p.unhealthyOf(p.all()) }

func (f *fleet) unhealthyOf(ms []Machine) int32 {
	n := int32(0)
	for _, m := range ms {
		count(&n, f.isUnhealthy(m))
	}
	return n
}

// starting is the number of Machines that are starting or still to be created. A Machine that failed before
// it had a Node is still to be created. A set of a deployment that creates no Machines counts its missing
// ones, which another set creates, until its replicas are lowered. A standalone one counts the Machines
// that it deletes instead, because its replicas stay.
func (p *plan) starting() int {
	n := max(0, p.wanted()+len(p.paired)-len(p.kept))
	if p.createsNone() && metav1.GetControllerOf(p.Set) == nil {
		n = len(p.dropping) + len(p.dropped)
	}
	for _, m := range p.all() {
		if p.isStarting(m) {
			n++
		}
	}
	return n
}

// nodeGrace is the time for which a VM without a Node may still turn out to have one. After a restore, all
// Machines return to VMs whose Nodes run, and learn of their Nodes after their VMs. In a set with Ready
// Machines, a Node is worth waiting for as long as joinPatience.
const nodeGrace = time.Minute

// graceForNodes is the time that a Machine with a VM may take to get a Node until it counts as booting.
func (p *plan) graceForNodes() time.Duration {
	if slices.ContainsFunc(p.all(), isReady) {
		return joinPatience
	}
	return nodeGrace
}

// booting is the number of missing Machines and of those that serve no pods. It is 0 unless a rollout
// replaces the set: only the rollout reads it.
func (p *plan) booting() int {
	if !p.isRolledOut() && !p.createsNone() {
		return 0
	}
	n, grace := p.missing(), p.graceForNodes()
	for _, m := range p.all() {
		if left, boots := p.untilBoots(m, grace); boots && left <= 0 {
			n++
		}
	}
	return n
}

// untilBoots returns the time until a Machine counts as booting, with the grace for Nodes. It is false for a
// Machine that has a Node, or may have one.
func (f *fleet) untilBoots(m Machine, grace time.Duration) (time.Duration, bool) {
	if !m.Status.Phase.IsOnItsWay() || hadNode(m) || m.Status.Join.At(machinev1alpha1.JoinNodeRegistered) != nil {
		return 0, false
	}
	if !hasVM(m) {
		return 0, true
	}
	ran := m.Status.Join.At(machinev1alpha1.JoinVMRunning)
	if ran == nil {
		return 0, false
	}
	return grace - f.now.Sub(ran.Time), true
}

// isStarting reports whether the Machine is starting, still to be created, or out of use for a reboot.
func (p *plan) isStarting(m Machine) bool {
	return m.Status.Phase.IsOnItsWay() || isRebooting(m) || p.rebooting.Has(m.Name) || !p.createsNone() && p.toRetry(m)
}

// toRetry reports whether the creation of the Machine is to be retried with another Machine. The retry
// makes nothing unavailable, and the failed Machine is already counted in the budget.
func (f *fleet) toRetry(m Machine) bool {
	return isFailed(m) && !hadNode(m) && !f.isPreserved(m)
}

// wanted is the number of Machines that the set wants, including the extra replicas of pending
// replacements.
func (p *plan) wanted() int { return max(0, int(p.Set.Spec.Replicas)) + len(p.replacing) }

// resumeReplacing continues the recorded replacements whose Machine is still to be replaced, or due by its age, and whose
// replacement was not deleted. A set that creates no Machines continues those whose replacement exists. If there are enough Machines without a pair, its Machines are deleted like
// other excess Machines.
func (p *plan) resumeReplacing() {
	unmarked := sets.New[string]()
	for _, m := range p.setAside {
		if p.isToBeMarked(m) {
			unmarked.Insert(m.Name)
		}
	}
	for _, r := range p.Set.Status.Replacing {
		if unmarked.Has(r.By) {
			p.released = append(p.released, r)
		}
	}
	others := len(p.kept)
	for _, r := range p.Set.Status.Replacing {
		m, kept := p.find(r.Machine)
		_, by := p.find(r.By)
		if !kept || !p.toReplace(m) && !p.isAged(m) || !by && (p.exists(r.By) || p.createsNone()) || p.recorded.gone.Has(r.By) {
			continue
		}
		p.replacing = append(p.replacing, r)
		others--
		if by {
			others--
		}
	}
	needed := max(0, int(p.Set.Spec.Replicas)-others)
	p.replacing = p.replacing[:min(needed, len(p.replacing))]
}

// find returns a kept Machine by its name.
func (p *plan) find(name string) (Machine, bool) {
	m, kept := p.byName[name]
	return m, kept
}

// exists reports whether the set has a Machine of this name, kept or not.
func (f *fleet) exists(name string) bool { return f.taken.Has(name) }

// retry deletes the Machines that failed before they joined, all of them, regardless of the budget of
// replacements. The backoff and the room for creations decide when their successors are created.
func (p *plan) retry() {
	if p.createsNone() || p.Safety.Frozen || p.Problem != nil {
		return
	}
	ms := p.withoutHeld(slices.DeleteFunc(p.waiting(), func(m Machine) bool { return !p.toRetry(m) }))
	if len(ms) > 0 {
		p.drop(ms...)
		p.events = append(p.events, retryingEvent(ms))
	}
}

// replace replaces Machines by deletion priority, as long as the budget lasts. A Machine is either deleted
// here, and then missing, or kept until its replacement is available. A set that creates no Machines
// deletes it, and another set replaces it.
func (p *plan) replace() {
	if !p.mayGiveUp() {
		return
	}
	if !p.mayReplace() {
		return
	}
	starting, above := p.starting(), p.aboveReplicas()
	var drops []Machine
	for _, m := range p.worstFirst(p.waiting()) {
		if max(starting, above) >= int(p.limits.InFlight) {
			break
		}
		if p.handsOver(m) {
			r := machinev1alpha1.Replacement{Machine: m.Name, By: p.reserve()}
			p.paired = append(p.paired, r)
			p.events = append(p.events, replacingEvent(m, r.By))
			starting, above = starting+1, above+1
			continue
		}
		drops = append(drops, m)
		p.events = append(p.events, replacingEvent(m, ""))
		// A Machine that is starting takes its part of the budget already.
		if !p.isStarting(m) {
			starting++
		}
	}
	p.dropReplaced(drops...)
}

// mayGiveUp reports whether the set may delete a Machine that is to be replaced.
func (f *fleet) mayGiveUp() bool {
	return !f.Safety.Frozen && (f.Problem == nil || f.createsNone())
}

// mayReplace reports whether Machines may be replaced now, within the budget, which had a Node or are
// replaced by another set. The cause of one failure may make all Machines fail.
func (p *plan) mayReplace() bool {
	return (p.createsNone() || !p.backingOff()) && p.isWithinLimits()
}

// isWithinLimits reports whether so few Machines are unhealthy that some may be replaced or rebooted. Those that this
// plan deletes still count.
func (p *plan) isWithinLimits() bool {
	return p.unlimited == nil && p.limits.Allows(p.unhealthy()+p.unhealthyOf(p.dropped))
}

// aboveReplicas is the number of Machines that wait for their available replacements. They are above
// replicas all the while.
func (p *plan) aboveReplicas() int {
	if p.createsNone() {
		return 0
	}
	return len(p.replacing) + len(p.paired)
}

// pairs returns all pairs of Machines and replacements, including released ones.
func (p *plan) pairs() []machinev1alpha1.Replacement {
	return slices.Concat(p.replacing, p.paired, p.released)
}

// waiting returns the Machines that are to be replaced and have no replacement under way.
func (p *plan) waiting() []Machine {
	paired := sets.New[string]()
	for _, r := range p.pairs() {
		paired.Insert(r.Machine, r.By)
	}
	var out []Machine
	for _, m := range p.all() {
		if p.toReplace(m) && !paired.Has(m.Name) {
			out = append(out, m)
		}
	}
	return out
}

// handsOver reports whether the Machine is kept until its replacement is available. A Machine without a VM
// or a Node has nothing to hand over.
func (f *fleet) handsOver(m Machine) bool {
	return f.Set.Spec.Remediation.Order == machinev1alpha1.CreateFirst && !f.createsNone() &&
		hasVM(m) && hadNode(m) && m.Status.FailureReason != machinev1alpha1.FailureVMLost
}

// handOver deletes Machines whose replacement is available, and replacements that failed. A replacement
// that failed and is preserved is set aside, and another one is created: neither the Machine nor the budget
// waits for the end of the analysis. At most as many are set aside as may be in flight; a further one keeps
// its pair, because each costs a VM.
func (p *plan) handOver() {
	if !p.mayGiveUp() {
		return
	}
	var drops []Machine
	for _, r := range slices.Clone(p.replacing) {
		by, there := p.find(r.By)
		m, stays := p.find(r.Machine)
		switch {
		case !there || !stays:
		case p.isAvailable(by):
			drops = append(drops, m)
			p.events = append(p.events, shared.Event{Reason: machinev1alpha1.EventReplacedMachine, Message: fmt.Sprintf("Replaced Machine %s by %s", m.Name, by.Name)})
		case isFailed(by) && !p.isPreserved(by):
			drops = append(drops, by)
			p.events = append(p.events, replacingEvent(by, ""))
		case isFailed(by) && len(p.setAside) < int(p.limits.InFlight):
			p.putAside(by, fmt.Sprintf("it failed before it could replace Machine %s", m.Name))
			p.released = append(p.released, r)
		}
	}
	p.dropReplaced(drops...)
}

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

// forget removes the pairs that lost one of their Machines: there is nothing to hand over any more.
func (p *plan) forget(dropped sets.Set[string]) {
	lost := func(r machinev1alpha1.Replacement) bool { return dropped.Has(r.Machine) || dropped.Has(r.By) }
	p.replacing = slices.DeleteFunc(p.replacing, lost)
}
