package set

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
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

// isFailedReplacement reports whether a Machine failed before it could replace another one, and was kept for
// analysis meanwhile. Other Machines that were set aside left with a scale-down.
func (f *fleet) isFailedReplacement(m Machine) bool {
	return m.Annotations[machinev1alpha1.AnnotationDeleteMachine] == failedReplacement || f.isToBeMarked(m)
}
