package set

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// preserve Failed Machines that nobody said anything of, the newest first, as many as
// spec.autoPreserveFailedMachineMax. Those that are preserved already stay so, as long
// as that is enough for them.
func (p *plan) preserve() {
	p.auto = sets.New[string]()
	newestFirst := slices.SortedFunc(slices.Values(p.kept), func(a, b Machine) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	left := int(p.Set.Spec.AutoPreserveFailedMachineMax)
	for _, m := range newestFirst {
		switch {
		case !isAuto(m):
		case p.isExpired(m):
			// Without its value it would be preserved anew.
			p.auto.Insert(m.Name)
		case left > 0:
			p.auto.Insert(m.Name)
			left--
		}
	}
	for _, m := range newestFirst {
		if left > 0 && mayPreserve(m) {
			p.auto.Insert(m.Name)
			left--
		}
	}
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
func (p *plan) isPreserved(m Machine) bool {
	if m.Status.Preservation != nil {
		return !p.isExpired(m)
	}
	if m.Status.Preserve != "" {
		return false
	}
	switch preserveOf(m) {
	case machinev1alpha1.PreserveNow:
		return true
	case machinev1alpha1.PreserveWhenFailed:
		return isFailed(m)
	}
	return p.auto.Has(m.Name)
}

func (p *plan) isExpired(m Machine) bool {
	return m.Status.Preservation != nil && !p.now.Before(m.Status.Preservation.Until.Time)
}

// preserved is 0 for a Machine that is not, less for one that the set preserved by
// itself than for one that somebody did.
func (p *plan) preserved(m Machine) int {
	switch {
	case !p.isPreserved(m):
		return 0
	case isAuto(m) || p.auto.Has(m.Name):
		return 1
	}
	return 2
}

// preservedUntil tells preserved Machines apart: the one that is kept for less long
// goes first.
func (p *plan) preservedUntil(m Machine) int64 {
	if m.Status.Preservation == nil || !p.isPreserved(m) {
		return 0
	}
	return m.Status.Preservation.Until.Unix()
}
