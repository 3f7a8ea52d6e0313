package set

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// setAsideMarked sets preserved and marked Machines aside, as far as there are excess Machines: the
// cluster-autoscaler has lowered replicas for them, so no other Machine may be deleted instead.
func (p *plan) setAsideMarked() {
	excess := p.excess()
	// If both Machines of a pair exist, its extra replica is canceled with the first of them.
	pairs := slices.DeleteFunc(slices.Clone(p.replacing), func(r machinev1alpha1.Replacement) bool { return !p.exists(r.By) })
	drop := func(m Machine) {
		n := len(pairs)
		pairs = slices.DeleteFunc(pairs, func(r machinev1alpha1.Replacement) bool { return r.Machine == m.Name || r.By == m.Name })
		excess -= 1 - (n - len(pairs))
	}
	var marked []Machine
	for _, m := range p.kept {
		switch {
		case !isMarked(m):
		case p.isPreserved(m):
			marked = append(marked, m)
		default:
			drop(m)
		}
	}
	for _, m := range p.worstFirst(marked) {
		if excess > 0 {
			drop(m)
			p.putAside(m, machinev1alpha1.AnnotationDeleteMachine+" marks it for deletion")
		}
	}
}

// putAside sets a preserved Machine aside: it does not count as a replica.
func (p *plan) putAside(m Machine, because string) {
	p.leave(sets.New(m.Name))
	p.setAside = append(p.setAside, m)
	until := ""
	if m.Status.Preservation != nil {
		until = " until " + m.Status.Preservation.Until.UTC().Format(time.RFC3339)
	}
	p.events = append(p.events, shared.Event{Reason: machinev1alpha1.EventSetAsideMachine, Message: fmt.Sprintf(
		"Set aside Machine %s: %s, and %s keeps it%s; it does not count as a replica", m.Name, because, machinev1alpha1.AnnotationPreserve, until)})
}

// deleteSetAside deletes Machines that were set aside and are no longer preserved.
func (p *plan) deleteSetAside() {
	p.setAside = slices.DeleteFunc(p.setAside, func(m Machine) bool {
		if p.isPreserved(m) || !isMarked(m) && !p.isToBeMarked(m) {
			return false
		}
		p.dropped = append(p.dropped, m)
		if p.isFailedReplacement(m) {
			p.record(m, causeOf(m))
		}
		p.events = append(p.events, shared.Event{Reason: machinev1alpha1.EventDeletedMachine, Message: fmt.Sprintf(
			"Deleted Machine %s: %s marks it for deletion, and it is preserved no longer", m.Name, machinev1alpha1.AnnotationDeleteMachine)})
		return true
	})
}
