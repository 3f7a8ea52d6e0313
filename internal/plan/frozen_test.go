package plan

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAFreezeByHandStallsAfterItsLimit(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	byHand := Safety{Frozen: true, Reason: ReasonManualFreeze}
	since := func(minutes int, status metav1.ConditionStatus, reason string) []metav1.Condition {
		at := metav1.NewTime(now.Add(-time.Duration(minutes) * time.Minute))
		return []metav1.Condition{{Type: ConditionFrozen, Status: status, Reason: reason, LastTransitionTime: at}}
	}
	for name, tc := range map[string]struct {
		safety Safety
		before []metav1.Condition
		want   time.Duration
		byHand bool
	}{
		"no freeze":                             {Safety{Reason: ReasonManualFreeze}, since(10, "True", ReasonManualFreeze), 0, false},
		"a freeze that ends by itself":          {Safety{Frozen: true, Reason: "Overshoot"}, since(10, "True", "Overshoot"), 0, false},
		"a freeze by hand that begins":          {byHand, nil, 30 * time.Minute, true},
		"a freeze by hand for ten minutes":      {byHand, since(10, "True", ReasonManualFreeze), 20 * time.Minute, true},
		"a freeze by hand for an hour":          {byHand, since(60, "True", ReasonManualFreeze), -30 * time.Minute, true},
		"a freeze by hand after no freeze":      {byHand, since(10, "False", ReasonManualFreeze), 30 * time.Minute, true},
		"a freeze by hand after another freeze": {byHand, since(10, "True", "Overshoot"), 30 * time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := UntilFreezeStalls(now, tc.safety, tc.before, DefaultFreezeLimit); got != tc.want || ok != tc.byHand {
				t.Errorf("%s, by hand %t, want %s, %t", got, ok, tc.want, tc.byHand)
			}
		})
	}
}
