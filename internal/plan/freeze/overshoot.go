package freeze

import (
	"fmt"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// remember which Machines are there although the spec does not want them any more. A
// scale-down leaves Machines that drain for hours, and is no overshoot: neither it nor a
// scale-up that follows. What comes in addition, by whatever mistake, is.
func (m Machines) remember() machinev1alpha1.SafetyStatus {
	s := machinev1alpha1.SafetyStatus{Expected: m.Expected}
	if was := m.Remembered; was != nil {
		s.Leaving = max(0, was.Leaving) + max(0, was.Expected-m.Expected)
	}
	s.Leaving = min(s.Leaving, m.Terminating+max(0, m.Existing-m.Expected))
	return s
}

// overshoot says what is too much, "" if nothing is.
func (m Machines) overshoot(s machinev1alpha1.SafetyStatus, margins Margins, was bool) string {
	// An int: sums of what users may write must not overflow.
	total := int(m.Existing) + int(m.Terminating)
	allowed := int(s.Expected) + int(s.Leaving)
	most, thaws := allowed+int(margins.Up), allowed+int(max(0, margins.Up-margins.Down))
	if total <= thaws || total <= most && !was {
		return ""
	}
	return fmt.Sprintf("there are %d Machines, %d of them being deleted: it freezes above %d (%d by the spec, %d left of scale-downs, a margin of %d) and thaws at %d",
		total, m.Terminating, most, s.Expected, s.Leaving, margins.Up, thaws)
}
