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

// autoPreserved are the names of Failed Machines that the set preserves by itself: those that
// no user said anything of, the newest first, as many as spec.autoPreserveFailedMachineMax.
// Those that are preserved already stay so, as long as that is enough for them.
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
			// Without its value it would be preserved anew.
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

// isAuto means that the set has preserved the Machine, and nobody said otherwise.
func isAuto(m Machine) bool {
	return isFailed(m) && preserveOf(m) == machinev1alpha1.PreserveAuto &&
		(m.Status.Preserve == "" || m.Status.Preserve == machinev1alpha1.PreserveAuto)
}

// mayPreserve a Failed Machine of which nobody said anything, and whose VM there is to
// be analysed.
func mayPreserve(m Machine) bool {
	return isFailed(m) && hasVM(m) && m.Status.FailureReason != machinev1alpha1.FailureVMLost &&
		preserveOf(m) == "" && m.Status.Preserve == "" && m.Status.Preservation == nil
}

func preserveOf(m Machine) string { return m.Annotations[machinev1alpha1.AnnotationPreserve] }

// isPreserved says whether the Machine is kept for analysis, or is about to be: the
// Machine itself says until when.
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

// preserved is 0 for a Machine that is not, less for one that the set preserved by
// itself than for one that somebody did.
func (f *fleet) preserved(m Machine) int {
	switch {
	case !f.isPreserved(m):
		return 0
	case isAuto(m) || f.auto.Has(m.Name):
		return 1
	}
	return 2
}

// preservedUntil tells preserved Machines apart: the one that is kept for less long
// goes first.
func (f *fleet) preservedUntil(m Machine) int64 {
	if m.Status.Preservation == nil || !f.isPreserved(m) {
		return 0
	}
	return m.Status.Preservation.Until.Unix()
}

// isSetAside reports whether the Machine counts as gone, by an earlier decision. Without its
// mark it counts again, as soon as the selector matches it.
func (f *fleet) isSetAside(m Machine) bool {
	return slices.Contains(f.Set.Status.SetAside, m.Name) && (isMarked(m) || f.isToBeMarked(m) || !f.isSelected(m))
}

// failedReplacement is the value of the mark that the set itself gives a replacement that it set
// aside. The set keeps applying it: a mark of another client is that client's.
const failedReplacement = "failed-replacement"

// isToBeMarked reports whether the Machine is a replacement that was set aside, and does not show
// the mark yet that the set gives it. Until it does, its pair is what tells it from a Machine
// whose mark a user has removed.
func (f *fleet) isToBeMarked(m Machine) bool {
	return !isMarked(m) && slices.ContainsFunc(f.Set.Status.Replacing, func(r machinev1alpha1.Replacement) bool {
		return r.By == m.Name && slices.Contains(f.Set.Status.SetAside, r.By)
	})
}

func (f *fleet) isSelected(m Machine) bool { return f.Set.Spec.Selector.Matches(m.Labels) }

// hide a Machine from the cluster-autoscaler, which lists the Machines that the selector
// matches. It would lower replicas in each of its loops for one that has no Node, and the set
// would delete a healthy Machine each time.
func (f *fleet) hide(d *Desired) {
	for k := range f.Set.Spec.Selector.MatchLabels {
		if k != machinev1alpha1.LabelDeployment {
			delete(d.Labels, k)
		}
	}
}

// setAsideMarked Machines that are preserved, as far as there are too many Machines: the
// cluster-autoscaler has lowered replicas for them, so that no other one may be deleted
// instead.
func (p *plan) setAsideMarked() {
	excess := p.excess()
	// The extra replica of a pair goes with the first of its two Machines, if both are there.
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

// putAside a preserved Machine: it counts as gone.
func (p *plan) putAside(m Machine, because string) {
	p.kept = slices.DeleteFunc(p.kept, func(k Machine) bool { return k.Name == m.Name })
	p.forget(sets.New(m.Name))
	p.setAside = append(p.setAside, m)
	until := ""
	if m.Status.Preservation != nil {
		until = " until " + m.Status.Preservation.Until.UTC().Format(time.RFC3339)
	}
	p.events = append(p.events, shared.Event{Reason: machinev1alpha1.EventSetAsideMachine, Message: fmt.Sprintf(
		"Set aside Machine %s: %s, and %s keeps it%s; it does not count as a replica", m.Name, because, machinev1alpha1.AnnotationPreserve, until)})
}

// deleteSetAside deletes Machines that were set aside, and are preserved no longer.
func (p *plan) deleteSetAside() {
	p.setAside = slices.DeleteFunc(p.setAside, func(m Machine) bool {
		if p.isPreserved(m) || !isMarked(m) && !p.isToBeMarked(m) {
			return false
		}
		p.dropped = append(p.dropped, m)
		p.events = append(p.events, shared.Event{Reason: machinev1alpha1.EventDeletedMachine, Message: fmt.Sprintf(
			"Deleted Machine %s: %s marks it for deletion, and it is preserved no longer", m.Name, machinev1alpha1.AnnotationDeleteMachine)})
		return true
	})
}
