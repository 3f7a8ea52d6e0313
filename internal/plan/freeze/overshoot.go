package freeze

import (
	"fmt"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// deletionsFreeze is the time for which Machines that are being deleted may hold creations. A drain
// may take hours, and new Machines must not wait for it.
const deletionsFreeze = 5 * time.Minute

// remember returns the counts of Machines that exist although the spec no longer wants them. A
// scale-down leaves Machines that drain for hours. Neither the scale-down nor a later scale-up is
// an overshoot, but any additional Machine is.
func (m Machines) remember() machinev1alpha1.SafetyStatus {
	s := machinev1alpha1.SafetyStatus{Expected: m.Expected}
	excess := max(0, int(m.Existing)-int(m.Expected))
	if was := m.Remembered; was != nil {
		scaledDown := max(0, int(was.Expected)-int(m.Expected))
		s.Surplus = atMost(int(was.Surplus)+scaledDown, excess)
		s.Leaving = atMost(int(was.Leaving)+scaledDown, int(m.Terminating)+excess)
		s.DeletionsSince = was.DeletionsSince
	}
	return s
}

// atMost limits n to the range from 0 to the limit. A status that a user edited may have any
// number.
func atMost(n, limit int) int32 { return int32(max(0, min(n, limit, math.MaxInt32))) }

// An excess is the number of Machines above the limits, without margins.
type excess struct {
	// existing Machines above the spec, and deleted Machines above the tolerated number.
	existing, deleted int
}

// tolerated is how many Machines may be in deletion in addition to those of scale-downs: half of
// the fleet. Users, remediation and rollouts delete Machines, and the replacements start while the
// old Machines drain.
func tolerated(s machinev1alpha1.SafetyStatus) int { return max(0, int(s.Expected)) / 2 }

func (m Machines) excess(s machinev1alpha1.SafetyStatus) excess {
	return excess{
		existing: int(m.Existing) - int(s.Expected) - int(s.Surplus),
		deleted:  int(m.Terminating) - tolerated(s) - int(s.Leaving),
	}
}

// overshoot describes the excess, "" if there is none, and returns the latest end of the freeze if
// it is known. It records in the status the values that the next call needs.
func (m Machines) overshoot(now time.Time, s *machinev1alpha1.SafetyStatus, margins Margins, was bool) (message string, until time.Time) {
	e, up, thaws := m.excess(*s), int(margins.Up), int(max(0, margins.Up-margins.Down))
	since := s.DeletionsSince
	s.DeletionsSince = nil
	there := fmt.Sprintf("there are %d Machines, %d of them being deleted: it freezes", int(m.Existing)+int(m.Terminating), m.Terminating)
	switch {
	case e.existing > up, was && since == nil && e.existing > thaws:
		allowed := int(s.Expected) + int(s.Surplus)
		return fmt.Sprintf("%s above %d that are not (%d by the spec, %d that a scale-down has yet to delete, a margin of %d) and thaws at %d",
			there, allowed+up, s.Expected, s.Surplus, margins.Up, allowed+thaws), until
	case e.deleted <= thaws, !was && e.deleted <= up:
		return "", until
	}
	if since == nil {
		since = &metav1.Time{Time: now.UTC().Truncate(time.Second)}
	}
	if since.After(now) { // The clock jumped.
		since = &metav1.Time{Time: now.UTC().Truncate(time.Second)}
	}
	if until = since.Add(deletionsFreeze); !now.Before(until) {
		// These have held creations for long enough. Only additional deletions freeze again.
		s.Leaving = atMost(int(m.Terminating)-tolerated(*s), math.MaxInt32)
		return "", time.Time{}
	}
	s.DeletionsSince = since
	allowed := tolerated(*s) + int(s.Leaving)
	return fmt.Sprintf("%s above %d that are (half of %d by the spec, %d that do not count, a margin of %d) and thaws at %d, or at %s",
		there, allowed+up, s.Expected, s.Leaving, margins.Up, allowed+thaws, until.UTC().Format(time.RFC3339)), until
}
