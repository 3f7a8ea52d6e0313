// Package aging computes when a Machine is replaced because of its age. The time follows only from the Machine and the
// configured age, so that it is the same in each view, and nothing has to be recorded.
package aging

import (
	"fmt"
	"hash/fnv"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/schedule"
)

const (
	// jitter is the part of the age by which Machines are due at different times.
	jitter = 0.2
	// shortest age that is allowed.
	shortest = time.Hour
)

// Due returns the time from which a Machine is replaced: when it has 80 % to 100 % of the age. The share depends on its
// UID, so that Machines that were created together are due at different times.
func Due(m *machinev1alpha1.Machine, maxAge time.Duration) time.Time {
	h := fnv.New64a()
	// Writes to a hash never fail.
	_, _ = h.Write([]byte(m.UID))
	// FNV changes the low bits most, and the times of similar UIDs must differ, too.
	share := float64(h.Sum64()*0x9E3779B97F4A7C15>>11) / float64(1<<53)
	return m.CreationTimestamp.Add(maxAge - time.Duration(jitter*share*float64(maxAge))).UTC().Truncate(time.Second)
}

// Problem returns the problem with spec.rollout.maxAge, nil if there is none: a Machine must be available before it is
// due, because it would be replaced again and again otherwise.
func Problem(r machinev1alpha1.Rollout, template machinev1alpha1.MachineSpec, minReadySeconds int32) *plan.Problem {
	if r.MaxAge == nil {
		return nil
	}
	start := plan.CreationTimeout(&machinev1alpha1.Machine{Spec: template})
	ready := time.Duration(minReadySeconds) * time.Second
	least := shortest
	because := ""
	if needed := time.Duration(math.Ceil(float64(start+ready)/(1-jitter)/float64(time.Second))) * time.Second; needed > least {
		least, because = needed, fmt.Sprintf(", because a Machine is due at 80 %% of it, and may take %s (creationTimeout) and %s (minReadySeconds) to be available", start, ready)
	}
	if r.MaxAge.Duration >= least {
		return nil
	}
	return &plan.Problem{Reason: machinev1alpha1.ReasonInvalidMaxAge, Message: fmt.Sprintf("spec.rollout.maxAge: invalid value %q: must be at least %s%s", r.MaxAge.Duration, least, because)}
}

// Next returns the Machine of some that is due first, nil if there are none.
func Next(ms []*machinev1alpha1.Machine, maxAge time.Duration) *machinev1alpha1.AgingMachine {
	var next *machinev1alpha1.AgingMachine
	for _, m := range ms {
		due := Due(m, maxAge)
		if next == nil || due.Before(next.DueTime.Time) || due.Equal(next.DueTime.Time) && m.Name < next.Machine {
			next = &machinev1alpha1.AgingMachine{Machine: m.Name, DueTime: metav1.NewTime(due)}
		}
	}
	return next
}

// From returns the time from which a Machine that is due is replaced: when a window is open, and now at the earliest. It is zero
// if no window opens any more.
func From(now, due time.Time, windows *schedule.Windows) time.Time {
	if due.Before(now) {
		due = now
	}
	return windows.Opens(due)
}

// A Turn is the state in which a Machine of a deployment may be replaced because of its age.
type Turn struct {
	// Next is the Machine that is due first, nil if there is none.
	Next *machinev1alpha1.AgingMachine
	// Windows of rollouts, nil without any.
	Windows *schedule.Windows
	// Gate of a step of the user's own, nil without one.
	Gate *plan.RolloutGate
	// IsFree means that nothing but the time and the gate keeps the deployment from replacing a Machine.
	IsFree bool
}

// Replace returns the Machine to replace now, "" if there is none.
func (t Turn) Replace(now time.Time) string {
	if t.Next == nil || !t.IsFree || t.isHeld() || now.Before(t.Next.DueTime.Time) || !t.Windows.IsOpen(now) {
		return ""
	}
	return t.Next.Machine
}

func (t Turn) isHeld() bool { return t.Gate != nil && t.Gate.Hold }

// Until returns the time until a Machine may be replaced, or until that must be taken back because a window closes. It is
// false if another event decides that.
func (t Turn) Until(now time.Time) (time.Duration, bool) {
	if t.Next == nil {
		return 0, false
	}
	at := From(now, t.Next.DueTime.Time, t.Windows)
	isDue := !at.IsZero() && !at.After(now)
	switch {
	case t.Replace(now) != "":
		at = t.Windows.Closes(now)
	case isDue && t.isHeld() && t.Gate.Until != nil && now.Before(t.Gate.Until.Time):
		at = t.Gate.Until.Time
	case isDue && t.isHeld():
		return plan.InFlight, true
	case isDue:
		return 0, false
	}
	if at.IsZero() {
		return 0, false
	}
	return max(plan.Soonest, at.Sub(now)), true
}
