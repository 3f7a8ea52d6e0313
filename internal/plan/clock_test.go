package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

func TestTimesAheadOfTheClockCountAsNow(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	status := func(since time.Time, until time.Duration) machinev1alpha1.MachineStatus {
		at := func() *metav1.Time { t := metav1.NewTime(since); return &t }
		return machinev1alpha1.MachineStatus{
			ReadySince: at(), NotReadySince: at(), NodeGoneSince: at(), RefusedUntil: at(), ExhaustedSince: at(),
			Unhealthy:    &machinev1alpha1.Unhealthiness{Since: *at(), Until: at(), Conditions: []machinev1alpha1.UnhealthyCondition{{Type: "Ready", Since: *at()}}},
			Update:       &machinev1alpha1.UpdateStatus{Since: *at()},
			Preservation: &machinev1alpha1.Preservation{Since: *at(), Until: metav1.NewTime(since.Add(until))},
			Deletion:     &machinev1alpha1.DeletionStatus{Since: *at()},
			Drain:        &machinev1alpha1.DrainStatus{StartTime: *at(), StageSince: at(), Volumes: []machinev1alpha1.MovingVolume{{Name: "v", Since: *at()}}},
		}
	}
	for name, tc := range map[string]struct{ since, want time.Time }{
		"AStartInThePastStays":      {now.Add(-time.Hour), now.Add(-time.Hour)},
		"AStartNowStays":            {now, now},
		"AStartAheadCountsAsNow":    {now.Add(time.Second), now},
		"AStartFarAheadCountsAsNow": {now.Add(1000 * time.Hour), now},
	} {
		t.Run(name, func(t *testing.T) {
			got := status(tc.since, 96*time.Hour)
			SettleStatus(now, &got)
			if d := cmp.Diff(status(tc.want, 96*time.Hour), got); d != "" {
				t.Errorf("status (-want +got):\n%s", d)
			}
		})
	}
	SettleStatus(now, &machinev1alpha1.MachineStatus{}) // Absent times stay absent.
}

func TestDelaysFurtherAheadThanTheLongestAreOver(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		ahead time.Duration
		want  time.Duration
	}{
		"ABackoffThatIsOver":           {-time.Minute, -time.Minute},
		"TheLongestBackoff":            {time.Hour, time.Hour},
		"ABackoffOfAClockThatJumped":   {time.Hour + time.Second, 0},
		"ABackoffOfAClockYearsAhead":   {5 * 8760 * time.Hour, 0},
		"ABackoffOfAFewSecondsStays":   {10 * time.Second, 10 * time.Second},
		"ABackoffThatEndsRightNowEnds": {0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := &machinev1alpha1.Backoff{Until: metav1.NewTime(now.Add(tc.ahead))}
			if SettleBackoff(now, b); b.Until.Sub(now) != tc.want {
				t.Errorf("the backoff lasts for %s, want %s", b.Until.Sub(now), tc.want)
			}
		})
	}
	SettleBackoff(now, nil)
	for name, tc := range map[string]struct{ ahead, minReady, want time.Duration }{
		"AMachineThatBecameReady":                        {-10 * time.Second, time.Minute, 50 * time.Second},
		"AClockOfAnotherProcessThatIsASecondAhead":       {time.Second, time.Minute, 61 * time.Second},
		"AClockThatJumped":                               {61 * time.Second, time.Minute, 0},
		"AClockThatJumpedWithoutATimeToBeReady":          {time.Second, 0, 0},
		"AMachineThatWasReadyLongBeforeIsStillAvailable": {-time.Hour, time.Minute, time.Minute - time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			s := &machinev1alpha1.MachineStatus{ReadySince: &metav1.Time{Time: now.Add(tc.ahead)}}
			if SettleReady(now, s, tc.minReady); s.ReadySince.Add(tc.minReady).Sub(now) != tc.want {
				t.Errorf("available after %s, want %s", s.ReadySince.Add(tc.minReady).Sub(now), tc.want)
			}
		})
	}
	SettleReady(now, &machinev1alpha1.MachineStatus{}, time.Minute)
}
