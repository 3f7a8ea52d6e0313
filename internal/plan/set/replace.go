package set

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// toReplace says whether a Machine is to be replaced: it failed, or somebody asks for it.
func (f *fleet) toReplace(m Machine) bool {
	return !f.isPreserved(m) && (isFailed(m) || asksForAnother(m))
}

// asksForAnother means that somebody asks for another Machine in place of this one.
func asksForAnother(m Machine) bool {
	return m.Status.ReplaceRequested || m.Annotations[machinev1alpha1.AnnotationReplace] == "true"
}

// isUnhealthy says whether the Machine counts for the share above which none is replaced. A
// VM that is gone does not: it can only be replaced. What is reported as gone, and has a Node
// that works, does count: what reports it may be wrong about all VMs.
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

func (p *plan) unhealthy() int32 { return p.unhealthyOf(p.kept) }

func (f *fleet) unhealthyOf(ms []Machine) int32 {
	n := int32(0)
	for _, m := range ms {
		count(&n, f.isUnhealthy(m))
	}
	return n
}

// starting is how many Machines come up, or have yet to be created. One that failed
// before it had a Node still is to be created. A set that creates none counts those that
// another set creates for it, as far as anybody lowers its replicas for that.
func (p *plan) starting() int {
	n := max(0, p.wanted()+len(p.paired)-len(p.kept))
	if p.createsNone() && metav1.GetControllerOf(p.Set) == nil {
		n = len(p.dropping) + len(p.dropped)
	}
	for _, m := range p.kept {
		if m.Status.Phase.IsOnItsWay() || !p.createsNone() && p.toRetry(m) {
			n++
		}
	}
	return n
}

// toRetry says whether the creation of a Machine is to be tried again, with another. That
// takes nothing from anybody, and no part of the budget that it has not already.
func (f *fleet) toRetry(m Machine) bool {
	return isFailed(m) && !hadNode(m) && !f.isPreserved(m)
}

// wanted Machines, with those above replicas that others are to hand over to.
func (p *plan) wanted() int { return max(0, int(p.Set.Spec.Replicas)) + len(p.replacing) }

// resumeReplacing of Machines that still are to be replaced, and whose replacement was
// not given up. Where there are enough without them, they go like any that are too
// much.
func (p *plan) resumeReplacing() {
	for _, r := range p.Set.Status.Replacing {
		if slices.ContainsFunc(p.setAside, func(m Machine) bool { return m.Name == r.By && p.isToBeMarked(m) }) {
			p.released = append(p.released, r)
		}
	}
	if p.createsNone() {
		return
	}
	others := len(p.kept)
	for _, r := range p.Set.Status.Replacing {
		m, kept := p.find(r.Machine)
		_, by := p.find(r.By)
		if !kept || !p.toReplace(m) || !by && p.exists(r.By) || slices.Contains(p.Gone, r.By) {
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

// find a Machine that is kept.
func (p *plan) find(name string) (Machine, bool) {
	i := slices.IndexFunc(p.kept, func(m Machine) bool { return m.Name == name })
	if i < 0 {
		return Machine{}, false
	}
	return p.kept[i], true
}

// exists says whether there is such a Machine, be it kept or not.
func (f *fleet) exists(name string) bool { return f.taken.Has(name) }

// retry the creation of Machines that failed before they joined: all of them are given up,
// whatever the budget of replacements. When others are created in their place is a matter of
// the backoff and of the room for creations.
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

// replace Machines, the worst first, as long as the budget lasts. One is dropped here,
// and then missing, or is kept until another has taken its place. A set that creates none
// gives it up for another set to replace.
func (p *plan) replace() {
	if !p.mayGiveUp() {
		return
	}
	// What is given up in this plan is unhealthy still.
	allowed := p.unlimited == nil && p.limits.Allows(p.unhealthy()+p.unhealthyOf(p.dropped))
	for _, m := range p.worstFirst(p.waiting()) {
		switch {
		case !p.mayReplace(m, allowed):
		case p.handsOver(m):
			r := machinev1alpha1.Replacement{Machine: m.Name, By: p.reserve()}
			p.paired = append(p.paired, r)
			p.events = append(p.events, replacingEvent(m, r.By))
		default:
			p.drop(m)
			p.events = append(p.events, replacingEvent(m, ""))
		}
	}
}

// mayGiveUp says whether a Machine may go for which another is to be created.
func (f *fleet) mayGiveUp() bool {
	return !f.Safety.Frozen && (f.Problem == nil || f.createsNone())
}

// mayReplace a Machine that had a Node, or whose replacement is another set's, now. What made
// one fail may make all fail.
func (p *plan) mayReplace(m Machine, allowed bool) bool {
	budget := int(p.limits.InFlight)
	switch {
	case p.createsNone():
		return allowed && p.starting() < budget
	case p.backingOff():
		return false
	}
	// Who waits for a replacement to become available is above replicas all the while.
	return allowed && max(p.starting(), len(p.replacing)+len(p.paired)) < budget
}

// pairs of Machines and their replacements, whatever becomes of them.
func (p *plan) pairs() []machinev1alpha1.Replacement {
	return slices.Concat(p.replacing, p.paired, p.released)
}

// waiting Machines are to be replaced, and nobody does so yet.
func (p *plan) waiting() []Machine {
	var out []Machine
	pairs := p.pairs()
	for _, m := range p.kept {
		is := func(r machinev1alpha1.Replacement) bool { return r.Machine == m.Name || r.By == m.Name }
		if p.toReplace(m) && !slices.ContainsFunc(pairs, is) {
			out = append(out, m)
		}
	}
	return out
}

// handsOver says whether the Machine is kept until another is there in its place. One
// without VM or Node has nothing to hand over.
func (f *fleet) handsOver(m Machine) bool {
	return f.Set.Spec.Remediation.Order == machinev1alpha1.CreateFirst && !f.createsNone() &&
		hasVM(m) && hadNode(m) && m.Status.FailureReason != machinev1alpha1.FailureVMLost
}

// handOver gives up Machines whose replacement is available, and replacements that failed. One
// that failed and is preserved is set aside, and another is created: neither its Machine nor the
// budget waits for the end of the analysis. So many are set aside as may be in flight; a further
// one keeps its pair, because each costs a VM.
func (p *plan) handOver() {
	if !p.mayGiveUp() {
		return
	}
	for _, r := range slices.Clone(p.replacing) {
		by, there := p.find(r.By)
		m, stays := p.find(r.Machine)
		switch {
		case !there || !stays:
		case p.isAvailable(by):
			p.drop(m)
			p.events = append(p.events, shared.Event{Reason: machinev1alpha1.EventReplacedMachine, Message: fmt.Sprintf("Replaced Machine %s by %s", m.Name, by.Name)})
		case isFailed(by) && !p.isPreserved(by):
			p.drop(by)
			p.events = append(p.events, replacingEvent(by, ""))
		case isFailed(by) && len(p.setAside) < int(p.limits.InFlight):
			p.putAside(by, fmt.Sprintf("it failed before it could replace Machine %s", m.Name))
			p.released = append(p.released, r)
		}
	}
}

// missingReplacements are to be created under the names that were written down.
func (p *plan) missingReplacements() []string {
	var out []string
	for _, r := range p.replacing {
		if !p.exists(r.By) {
			out = append(out, r.By)
		}
	}
	return out
}

// forget replacements that lost one of the two: nothing is handed over any more.
func (p *plan) forget(dropped sets.Set[string]) {
	lost := func(r machinev1alpha1.Replacement) bool { return dropped.Has(r.Machine) || dropped.Has(r.By) }
	p.replacing = slices.DeleteFunc(p.replacing, lost)
}
