package set

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// autoPreserved returns the names of Failed Machines that the set preserves automatically: the newest ones
// without a user's annotation, up to spec.autoPreserveFailedMachineMax. Machines that are preserved already
// stay so, as long as the maximum allows it.
func (f *fleet) autoPreserved() sets.Set[string] {
	auto := sets.New[string]()
	newestFirst := slices.SortedFunc(slices.Values(slices.Concat(f.active, f.aside)), func(a, b Machine) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	left := int(f.Set.Spec.AutoPreserveFailedMachineMax)
	for _, m := range newestFirst {
		switch {
		case !isAuto(m):
		case f.isExpired(m):
			// Without its value, the Machine would be preserved a second time.
			auto.Insert(m.Name)
		case left > 0:
			auto.Insert(m.Name)
			left--
		}
	}
	for _, m := range newestFirst {
		if left > 0 && mayPreserve(m) {
			auto.Insert(m.Name)
			left--
		}
	}
	return auto
}

// isAuto reports whether the set has preserved the Machine, and no user has overridden that.
func isAuto(m Machine) bool {
	return isFailed(m) && preserveOf(m) == machinev1alpha1.PreserveAuto &&
		(m.Status.Preserve == "" || m.Status.Preserve == machinev1alpha1.PreserveAuto)
}

// mayPreserve reports whether the set may preserve a Failed Machine: its VM exists, and no preserve
// annotation is set.
func mayPreserve(m Machine) bool {
	return isFailed(m) && hasVM(m) && m.Status.FailureReason != machinev1alpha1.FailureVMLost &&
		preserveOf(m) == "" && m.Status.Preserve == "" && m.Status.Preservation == nil
}

func preserveOf(m Machine) string { return m.Annotations[machinev1alpha1.AnnotationPreserve] }

// isPreserved reports whether the Machine is kept for analysis, or is about to be. The Machine's status has
// the end of the preservation.
func (f *fleet) isPreserved(m Machine) bool {
	if m.Status.Preservation != nil {
		return !f.isExpired(m)
	}
	if m.Status.Preserve != "" {
		return false
	}
	switch preserveOf(m) {
	case machinev1alpha1.PreserveNow:
		return true
	case machinev1alpha1.PreserveWhenFailed:
		return isFailed(m) && m.Status.FailureReason != machinev1alpha1.FailureCapacityTimeout
	}
	return f.auto.Has(m.Name)
}

func (f *fleet) isExpired(m Machine) bool {
	return m.Status.Preservation != nil && !f.now.Before(m.Status.Preservation.Until.Time)
}

// preserved is 0 for a Machine that is not preserved, 1 if the set preserved it, and 2 if a user did.
func (f *fleet) preserved(m Machine) int {
	switch {
	case !f.isPreserved(m):
		return 0
	case isAuto(m) || f.auto.Has(m.Name):
		return 1
	}
	return 2
}

// preservedUntil orders preserved Machines: the one whose preservation ends first is deleted first.
func (f *fleet) preservedUntil(m Machine) int64 {
	if m.Status.Preservation == nil || !f.isPreserved(m) {
		return 0
	}
	return m.Status.Preservation.Until.Unix()
}

// isSetAside reports whether an earlier decision set the Machine aside, so that it does not count as a
// replica. If its mark is removed, it counts again as soon as the selector matches it.
func (f *fleet) isSetAside(m Machine) bool {
	return f.recorded.setAside.Has(m.Name) && (isMarked(m) || f.isToBeMarked(m) || !f.isSelected(m))
}

// failedReplacement is the mark's value if the set itself marks a replacement that it set aside. The set
// keeps applying this value only: the mark of another client belongs to that client.
const failedReplacement = "failed-replacement"

// isToBeMarked reports whether the Machine is a replacement that was set aside and does not show the set's
// mark yet. Until it does, only its pair distinguishes it from a Machine whose mark a user has removed.
func (f *fleet) isToBeMarked(m Machine) bool {
	return !isMarked(m) && f.recorded.replacements.Has(m.Name) && f.recorded.setAside.Has(m.Name)
}

func (f *fleet) isSelected(m Machine) bool { return f.Set.Spec.Selector.Matches(m.Labels) }

// hide removes the labels by which the cluster-autoscaler finds a Machine of the set. For a Machine without
// a Node, it would lower replicas in each of its loops, and the set would delete a healthy Machine each
// time.
func (f *fleet) hide(d *Desired) {
	for k := range f.Set.Spec.Selector.MatchLabels {
		if k != machinev1alpha1.LabelDeployment {
			delete(d.Labels, k)
		}
	}
}

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
