package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// ObservedGeneration returns the status.observedGeneration of an XR. It is the generation of the
// spec once the conditions for this generation are written, and the previous generation until then.
//
// Crossplane writes the result of a composition in two requests: first the status with the old
// conditions, then the new conditions. If the first request contained the new generation, a reader
// would take the old conditions for those of the new generation. So the next composition reports
// the generation: condition Ready shows for which generation the conditions were written.
func ObservedGeneration(generation, before int64, conditions []metav1.Condition) int64 {
	if c := meta.FindStatusCondition(conditions, machinev1alpha1.ConditionReady); c != nil && c.ObservedGeneration == generation {
		return generation
	}
	// An object that was restored from a backup may have a status of a later generation.
	return max(0, min(before, generation-1))
}

// IsReadyFor reports whether an XR was Ready for this generation of its spec.
func IsReadyFor(generation int64, conditions []metav1.Condition) bool {
	c := meta.FindStatusCondition(conditions, machinev1alpha1.ConditionReady)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == generation
}

// Stalled returns the condition Stalled with the reason and message of its cause. It is False if
// the cause is nil.
func Stalled(because *Condition) Condition {
	if because == nil {
		return Condition{Type: machinev1alpha1.ConditionStalled, Status: "False", Reason: machinev1alpha1.ReasonNotStalled}
	}
	return Condition{Type: machinev1alpha1.ConditionStalled, Status: "True", Reason: because.Reason, Message: because.Message}
}

// Numbers are counts of Machines for a message.
type Numbers struct {
	// Desired and Available Machines.
	Desired, Available int32
	// Starting, Terminating and Waiting Machines are mentioned if there are any. Waiting Machines
	// shall be replaced, and WaitingForReboot ones rebooted, but that has not begun.
	Starting, Terminating, Waiting, WaitingForReboot int32
}

// String is a clause such as "3 of 5 Machines are available, 1 starting, 2 terminating".
func (n Numbers) String() string {
	out := fmt.Sprintf("%d of %d Machines are available", n.Available, n.Desired)
	if n.Available > n.Desired {
		out = fmt.Sprintf("%d Machines are available, %d are desired", n.Available, n.Desired)
	}
	for _, part := range []struct {
		n    int32
		what string
	}{{n.Starting, "starting"}, {n.Terminating, "terminating"}, {n.Waiting, "waiting to be replaced"}, {n.WaitingForReboot, "waiting to be rebooted"}} {
		if part.n > 0 {
			out += fmt.Sprintf(", %d %s", part.n, part.what)
		}
	}
	return out
}
