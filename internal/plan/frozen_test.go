package plan

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

func TestAFreezeByHandStallsAfterItsLimit(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	byHand := Safety{Frozen: true, Reason: machinev1alpha1.ReasonManualFreeze}
	since := func(minutes int, status metav1.ConditionStatus, reason string) []metav1.Condition {
		at := metav1.NewTime(now.Add(-time.Duration(minutes) * time.Minute))
		return []metav1.Condition{{Type: machinev1alpha1.ConditionFrozen, Status: status, Reason: reason, LastTransitionTime: at}}
	}
	for name, tc := range map[string]struct {
		safety Safety
		before []metav1.Condition
		want   time.Duration
		byHand bool
	}{
		"no freeze":                             {Safety{Reason: machinev1alpha1.ReasonManualFreeze}, since(10, "True", machinev1alpha1.ReasonManualFreeze), 0, false},
		"a freeze that ends by itself":          {Safety{Frozen: true, Reason: "Overshoot"}, since(10, "True", "Overshoot"), 0, false},
		"a freeze by hand that begins":          {byHand, nil, 30 * time.Minute, true},
		"a freeze by hand for ten minutes":      {byHand, since(10, "True", machinev1alpha1.ReasonManualFreeze), 20 * time.Minute, true},
		"a freeze by hand for an hour":          {byHand, since(60, "True", machinev1alpha1.ReasonManualFreeze), -30 * time.Minute, true},
		"a freeze by hand after no freeze":      {byHand, since(10, "False", machinev1alpha1.ReasonManualFreeze), 30 * time.Minute, true},
		"a freeze by hand after another freeze": {byHand, since(10, "True", "Overshoot"), 30 * time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := UntilFreezeStalls(now, tc.safety, tc.before, machinev1alpha1.DefaultFreezeLimit); got != tc.want || ok != tc.byHand {
				t.Errorf("%s, by hand %t, want %s, %t", got, ok, tc.want, tc.byHand)
			}
		})
	}
}
