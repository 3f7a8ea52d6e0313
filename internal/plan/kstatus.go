package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// ObservedGeneration returns the status.observedGeneration of an XR: the generation of its
// spec once the conditions that were decided by it are written, and the one before until
// then.
//
// Crossplane writes the result of a composition in two requests: first the status with the
// conditions of before, then the conditions. A status with the new generation in the first
// request would let a reader take the old conditions for those of the new generation. So the
// generation is reported by the next composition, which reads in Ready for which generation
// the conditions were written.
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

// Stalled because of another condition, or not if that is nil.
func Stalled(because *Condition) Condition {
	if because == nil {
		return Condition{Type: machinev1alpha1.ConditionStalled, Status: "False", Reason: machinev1alpha1.ReasonNotStalled}
	}
	return Condition{Type: machinev1alpha1.ConditionStalled, Status: "True", Reason: because.Reason, Message: because.Message}
}

// Numbers of Machines for a message.
type Numbers struct {
	// Desired and Available Machines.
	Desired, Available int32
	// Starting, Terminating and Waiting Machines are named if there are any. Waiting ones
	// are to be replaced, and are not being replaced.
	Starting, Terminating, Waiting int32
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
	}{{n.Starting, "starting"}, {n.Terminating, "terminating"}, {n.Waiting, "waiting to be replaced"}} {
		if part.n > 0 {
			out += fmt.Sprintf(", %d %s", part.n, part.what)
		}
	}
	return out
}
