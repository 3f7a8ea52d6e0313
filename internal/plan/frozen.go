package plan

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// UntilFreezeStalls returns the time until a freeze by hand is reported as Stalled. It is 0 or less
// if the freeze has lasted for the limit. The second result is false without a freeze, and for
// other freezes, which end by themselves.
func UntilFreezeStalls(now time.Time, s Safety, conditions []metav1.Condition, limit time.Duration) (time.Duration, bool) {
	if !s.Frozen || s.Reason != machinev1alpha1.ReasonManualFreeze {
		return 0, false
	}
	since := now
	if c := meta.FindStatusCondition(conditions, machinev1alpha1.ConditionFrozen); c != nil && c.Status == metav1.ConditionTrue && c.Reason == s.Reason {
		since = c.LastTransitionTime.Time
	}
	return since.Add(limit).Sub(now), true
}

// FreezeStalled returns the cause of Stalled for a freeze by hand that has lasted for the limit.
func FreezeStalled(limit time.Duration) Condition {
	return Condition{
		Reason:  machinev1alpha1.ReasonManualFreeze,
		Message: fmt.Sprintf("frozen by the label %s for more than %s; to let Machines be created and replaced, remove the label", machinev1alpha1.LabelFreeze, limit),
	}
}
