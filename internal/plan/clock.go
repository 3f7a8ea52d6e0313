package plan

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// longestBackoff is the longest backoff of a set.
const longestBackoff = time.Hour

// A clock that jumped ahead and back leaves times in a status that are ahead of it. A wait that counts from such a time
// would last until the clock arrives there. So the start of a wait that is ahead of the clock counts as now.

// SettleStatus replaces recorded times of a Machine's status that are ahead of the clock. It changes the status in
// place, so that the caller must own it.
func SettleStatus(now time.Time, s *machinev1alpha1.MachineStatus) {
	for _, t := range []*metav1.Time{s.ReadySince, s.NotReadySince, s.NodeGoneSince, s.RefusedUntil, s.ExhaustedSince} {
		settle(now, t)
	}
	if u := s.Unhealthy; u != nil {
		settle(now, &u.Since)
		settle(now, u.Until)
		for i := range u.Conditions {
			settle(now, &u.Conditions[i].Since)
		}
	}
	if t := s.InstanceType; t != nil {
		for i := range t.Refused {
			settle(now, &t.Refused[i].Time)
		}
	}
	if s.Update != nil {
		settle(now, &s.Update.Since)
	}
	if p := s.Preservation; p != nil {
		lasts := p.Until.Sub(p.Since.Time)
		if settle(now, &p.Since) {
			p.Until = metav1.NewTime(p.Since.Add(lasts))
		}
	}
	if s.Deletion != nil {
		settle(now, &s.Deletion.Since)
		settle(now, s.Deletion.NodeDeletedTime)
	}
	SettleDrain(now, s.Drain)
}

// SettleDrain does the same for the status of a drain, which may be nil.
func SettleDrain(now time.Time, d *machinev1alpha1.DrainStatus) {
	if d == nil {
		return
	}
	settle(now, &d.StartTime)
	settle(now, d.StageSince)
	for i := range d.Volumes {
		settle(now, &d.Volumes[i].Since)
	}
}

// SettleBackoff ends a backoff that would last longer than any backoff does. It changes the backoff in place; nil is
// none.
func SettleBackoff(now time.Time, b *machinev1alpha1.Backoff) {
	if b != nil && b.Until.Sub(now) > longestBackoff {
		b.Until = metav1.NewTime(now.UTC().Truncate(time.Second))
	}
}

// SettleReady makes a Machine available whose readySince is further ahead of the clock than minReady, the time for
// which a Machine must be Ready. A smaller difference is one between the clocks of two processes.
func SettleReady(now time.Time, s *machinev1alpha1.MachineStatus, minReady time.Duration) {
	if s.ReadySince != nil && s.ReadySince.Sub(now) > minReady {
		s.ReadySince = new(metav1.NewTime(now.UTC().Truncate(time.Second).Add(-minReady)))
	}
}

// settle reports whether it changed the time.
func settle(now time.Time, t *metav1.Time) bool {
	if t == nil || !t.After(now) {
		return false
	}
	*t = metav1.NewTime(now.UTC().Truncate(time.Second))
	return true
}
