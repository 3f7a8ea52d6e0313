package set

import (
	"math"
	"slices"
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
)

// create what is missing, as far as the template has proven itself.
func (p *plan) create() {
	n := 0
	if p.mayCreate() && !p.backingOff() {
		room := max(0, p.window()-p.inFlight())
		replacements := p.missingReplacements()
		p.creates = append(p.creates, replacements[:min(room, len(replacements))]...)
		n = min(p.missing(), room-len(p.creates))
	}
	p.name(max(0, n))
}

func (p *plan) mayCreate() bool {
	return !p.createsNone() && p.Problem == nil && !p.Safety.Frozen
}

func (p *plan) createsNone() bool {
	return p.Set.Spec.Creation == machinev1alpha1.CreationDisabled
}

// missing Machines, without those that are to replace a certain one. What is dropped now
// is missing when that is written down, and what is adopted now is there then.
func (p *plan) missing() int {
	return max(0, p.wanted()-len(p.missingReplacements())-len(p.kept)-len(p.dropped)-len(p.takesOn))
}

// window is how many Machines may wait for their VM at a time. The first one of a template
// tries it out alone. A VM that exists, or a class that another set has proven, opens the
// window for all Machines that the set wants: from there on, the provider's and the cloud's
// rates limit the creations. After failures, the window is the number of proven Machines and
// one, halved by each failure in a row. It is 1 as long as creations fail that began after
// the last one that succeeded.
func (p *plan) window() int {
	proven := 0
	for _, m := range p.kept {
		if p.proves(m) {
			proven++
		}
	}
	last := p.lastSuccess()
	fails := func(m Machine) bool { return isInFlight(m) && inError(m) && m.CreationTimestamp.After(last) }
	switch {
	case proven == 0 && !p.isClassProven() || slices.ContainsFunc(p.kept, fails):
		return 1
	case p.backoff != nil:
		return max(1, (proven+1)>>min(p.backoff.Failures, 30))
	}
	return math.MaxInt32
}

func (p *plan) isClassProven() bool {
	return p.Set.Annotations[machinev1alpha1.AnnotationClassProven] == "true"
}

func (p *plan) inFlight() int {
	n := 0
	for _, m := range p.kept {
		if isInFlight(m) {
			n++
		}
	}
	return n
}

// lastSuccess is when the youngest Machine was created that got a VM from the
// template. What failed before proves nothing any more.
func (p *plan) lastSuccess() time.Time {
	var last time.Time
	for _, m := range p.kept {
		if p.proves(m) && m.CreationTimestamp.After(last) {
			last = m.CreationTimestamp.Time
		}
	}
	return last
}

// proves says whether the template was good for this Machine's VM. The provider's
// word is enough: it is the earliest that there is.
func (p *plan) proves(m Machine) bool {
	return hasVM(m) && m.Status.Phase != machinev1alpha1.MachineFailed && !p.isOutdated(m)
}

// name n Machines that shall be created, with names that no Machine of the set has.
// Names that are taken were created, and not counted yet: the set's status was refused
// then, because somebody had changed the set.
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

// reserve the next name.
func (p *plan) reserve() string {
	p.skip()
	name := names.Machine(p.Set.Name, p.Set.UID, p.created)
	p.created++
	return name
}

// skip names that are taken.
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
