package set

import (
	"slices"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan/aging"
)

// isAged reports whether a Machine is due because of its age. Which one is replaced when, the MachineDeployment decides.
func (f *fleet) isAged(m Machine) bool {
	a := f.Set.Spec.Aging
	return a != nil && f.mayAge(m) && !f.now.Before(aging.Due(m.Machine, a.MaxAge.Duration))
}

// mayAge reports whether the age of a Machine counts. A preserved one stays, one that is marked is deleted by a scale-down,
// and one that was not observed yet has no UID.
func (f *fleet) mayAge(m Machine) bool { return !f.isPreserved(m) && !isMarked(m) && m.UID != "" }

// awaited is the number of Machines that were deleted because of their age and whose VMs still exist. Without a surge,
// each of them takes the place of the next one.
func (f *fleet) awaited() int {
	a, n := f.Set.Spec.Aging, 0
	if a == nil || a.Order == machinev1alpha1.CreateFirst {
		return 0
	}
	for _, m := range slices.Concat(f.dropping, f.terminating) {
		if slices.ContainsFunc(f.Set.Status.Replacements, func(e machinev1alpha1.ReplacedMachine) bool {
			return e.Machine == m.Name && e.Reason == machinev1alpha1.ReplacedAged
		}) {
			n++
		}
	}
	return n
}
