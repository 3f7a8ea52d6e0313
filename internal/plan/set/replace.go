package set

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

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

// retryingEvent reports that Machines that failed before they joined are created again.
func retryingEvent(ms []Machine) shared.Event {
	e := replacingEvent(ms[0], "")
	if len(ms) > 1 {
		e.Message = fmt.Sprintf("Replacing %s, which failed before they joined, first with %s: %s", list(namesOf(ms)),
			cmp.Or(string(ms[0].Status.FailureReason), "no reason"), cmp.Or(ms[0].Status.Failure(), "no message"))
	}
	return e
}

// replacingEvent reports why a Machine is replaced, and by which Machine if it waits for its replacement.
func replacingEvent(m Machine, by string) shared.Event {
	e := shared.Event{Warning: isFailed(m), Reason: machinev1alpha1.EventReplacingMachine, Message: "Replacing Machine " + m.Name}
	if by != "" {
		e.Message += " by " + by
	}
	if !isFailed(m) {
		e.Message += ", as " + machinev1alpha1.AnnotationReplace + " asks"
		return e
	}
	e.Message += fmt.Sprintf(", which failed with %s: %s",
		cmp.Or(string(m.Status.FailureReason), "no reason"), cmp.Or(m.Status.Failure(), "no message"))
	return e
}

// withoutHeld returns the Machines whose creation is retried now. Machines that failed for lack of room
// stay until the backoff is over: the autoscaler has to see them. After that, only as many are retried as
// there is room for creations, so that an exhausted cloud gets one request per backoff, however many
// Machines wait.
func (p *plan) withoutHeld(ms []Machine) []Machine {
	room := 0
	if !p.backingOff() {
		room = max(0, p.room()-p.missing())
	}
	return slices.DeleteFunc(p.worstFirst(ms), func(m Machine) bool {
		if !failedForRoom(m) || p.isOutdated(m) {
			return false
		}
		room--
		return room < 0
	})
}
