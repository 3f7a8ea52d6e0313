package aging

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/schedule"
)

var created = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func machine(name string) *machinev1alpha1.Machine {
	return &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(created)}}
}

// TestMachinesOfOneTimeAreDueAtDifferentTimes takes a fleet that was created together, with UIDs that differ in one character
// alone: none is due before 80 % of the age or after it, and each tenth of that time has its share.
func TestMachinesOfOneTimeAreDueAtDifferentTimes(t *testing.T) {
	const n, maxAge = 1000, 1000 * time.Hour
	tenths := make([]int, 10)
	for i := range n {
		m := machine(fmt.Sprint(i))
		due := Due(m, maxAge)
		after := due.Sub(created)
		if after < 800*time.Hour-time.Second || after > maxAge {
			t.Fatalf("%s is due after %s", m.Name, after)
		}
		tenths[min(9, int((after-800*time.Hour)/(20*time.Hour)))]++
		if again := Due(machine(m.Name), maxAge); !again.Equal(due) {
			t.Fatalf("%s is due at %s and at %s", m.Name, due, again)
		}
	}
	if slices.Min(tenths) < n/20 || slices.Max(tenths) > n/5 {
		t.Errorf("the tenths have %v", tenths)
	}
}

func TestTheNextMachineIsTheOneThatIsDueFirst(t *testing.T) {
	ms := []*machinev1alpha1.Machine{machine("a"), machine("b"), machine("c")}
	next := Next(ms, 100*time.Hour)
	for _, m := range ms {
		if due := Due(m, 100*time.Hour); due.Before(next.DueTime.Time) {
			t.Errorf("%s is due at %s, before %+v", m.Name, due, next)
		}
	}
	slices.Reverse(ms)
	if again := Next(ms, 100*time.Hour); *again != *next {
		t.Errorf("in another order it is %+v, not %+v", again, next)
	}
	// Two Machines may be due in the same second.
	for _, m := range ms {
		m.UID = "uid"
	}
	for range 2 {
		if first := Next(ms, 100*time.Hour); first.Machine != "a" {
			t.Errorf("of Machines that are due at the same time, %s is the first", first.Machine)
		}
		slices.Reverse(ms)
	}
	if Next(nil, time.Hour) != nil {
		t.Error("there is a next one of none")
	}
}

func TestAnAgeMustLetMachinesStart(t *testing.T) {
	hours := func(n int) *metav1.Duration { return &metav1.Duration{Duration: time.Duration(n) * time.Hour} }
	slow := machinev1alpha1.MachineSpec{CreationTimeout: metav1.Duration{Duration: 4 * time.Hour}}
	for name, tc := range map[string]struct {
		maxAge   *metav1.Duration
		template machinev1alpha1.MachineSpec
		minReady int32
		want     string
	}{
		"any age is allowed":          {},
		"a day is allowed":            {maxAge: hours(24)},
		"an hour is the shortest":     {maxAge: hours(1)},
		"less than an hour is not":    {maxAge: &metav1.Duration{Duration: 59 * time.Minute}, want: `spec.rollout.maxAge: invalid value "59m0s": must be at least 1h0m0s`},
		"none is replaced at once":    {maxAge: hours(0), want: `spec.rollout.maxAge: invalid value "0s": must be at least 1h0m0s`},
		"a slow Machine needs longer": {maxAge: hours(5), template: slow, minReady: 3600, want: `spec.rollout.maxAge: invalid value "5h0m0s": must be at least 6h15m0s, because a Machine is due at 80 % of it, and may take 4h0m0s (creationTimeout) and 1h0m0s (minReadySeconds) to be available`},
		"the shortest age suffices":   {maxAge: &metav1.Duration{Duration: 59 * time.Minute}, template: machinev1alpha1.MachineSpec{CreationTimeout: metav1.Duration{Duration: 48 * time.Minute}}, want: `spec.rollout.maxAge: invalid value "59m0s": must be at least 1h0m0s`},
		"and then it may be":          {maxAge: &metav1.Duration{Duration: 6*time.Hour + 15*time.Minute}, template: slow, minReady: 3600},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if p := Problem(machinev1alpha1.Rollout{MaxAge: tc.maxAge}, tc.template, tc.minReady); p != nil {
				got = p.Message
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// windowsOf a schedule, with two hours each.
func windowsOf(t *testing.T, now time.Time, cron string) *schedule.Windows {
	t.Helper()
	w, err := schedule.Parse(now, machinev1alpha1.Rollout{Windows: []machinev1alpha1.TimeWindow{{Schedule: cron, Duration: metav1.Duration{Duration: 2 * time.Hour}}}})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestTheTurnOfAMachine has a Machine that is due at noon, and what else decides when it is replaced.
func TestTheTurnOfAMachine(t *testing.T) {
	noon := time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)
	nightly, atNoon := windowsOf(t, created, "0 2 * * *"), windowsOf(t, created, "0 12 * * *")
	holds := func(until time.Duration) *plan.RolloutGate {
		g := &plan.RolloutGate{Hold: true}
		if until != 0 {
			u := metav1.NewTime(noon.Add(until))
			g.Until = &u
		}
		return g
	}
	const never = -1
	for name, tc := range map[string]struct {
		reason string
		turn   Turn
		// after is the time since noon.
		after   time.Duration
		replace bool
		// until is when the turn is to be looked at again, never if not before another event.
		until time.Duration
	}{
		"BeforeItsTime":                   {"the time decides", Turn{IsFree: true}, -time.Hour, false, time.Hour},
		"AnInstantBefore":                 {"the next look is not at once", Turn{IsFree: true}, -time.Millisecond, false, plan.Soonest},
		"AtItsTime":                       {"nothing ends the turn", Turn{IsFree: true}, 0, true, never},
		"LongAfter":                       {"the turn stays", Turn{IsFree: true}, 100 * time.Hour, true, never},
		"AnotherMachineIsReplaced":        {"the end of that wakes the plan", Turn{}, time.Hour, false, never},
		"AnotherOneBeforeItsTime":         {"the time comes first", Turn{}, -time.Hour, false, time.Hour},
		"AGateThatDoesNotHold":            {"it may have a time nevertheless", Turn{IsFree: true, Gate: &plan.RolloutGate{Until: holds(2 * time.Hour).Until}}, time.Hour, true, never},
		"AGateHolds":                      {"the step is asked again as often as any", Turn{IsFree: true, Gate: holds(0)}, time.Hour, false, plan.InFlight},
		"AGateHoldsUntilATime":            {"the step named when to ask it", Turn{IsFree: true, Gate: holds(3 * time.Hour)}, time.Hour, false, 2 * time.Hour},
		"AGateHoldsUntilNow":              {"a time that has come says nothing more", Turn{IsFree: true, Gate: holds(time.Hour)}, time.Hour, false, plan.InFlight},
		"AGateHoldsBeforeItsTime":         {"the gate does not matter yet", Turn{IsFree: true, Gate: holds(3 * time.Hour)}, -time.Hour, false, time.Hour},
		"InTheWindow":                     {"the turn ends with the window", Turn{IsFree: true, Windows: atNoon}, 30 * time.Minute, true, 90 * time.Minute},
		"AGateHoldsInTheWindow":           {"the gate counts first", Turn{IsFree: true, Windows: atNoon, Gate: holds(0)}, 30 * time.Minute, false, plan.InFlight},
		"AnotherMachineInTheWindow":       {"the end of that wakes the plan", Turn{Windows: atNoon}, 30 * time.Minute, false, never},
		"OutsideOfTheWindow":              {"the next window is waited for", Turn{IsFree: true, Windows: nightly}, 0, false, 14 * time.Hour},
		"AGateHoldsOutsideOfTheWindow":    {"the window counts first", Turn{IsFree: true, Windows: nightly, Gate: holds(time.Hour)}, 0, false, 14 * time.Hour},
		"TheWindowAtItsTimeHasPassed":     {"it was not replaced then", Turn{IsFree: true, Windows: atNoon}, 3 * time.Hour, false, 21 * time.Hour},
		"BeforeItsTimeOutsideOfTheWindow": {"the window after its time is waited for", Turn{IsFree: true, Windows: nightly}, -time.Hour, false, 15 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			tc.turn.Next = &machinev1alpha1.AgingMachine{Machine: "m", DueTime: metav1.NewTime(noon)}
			now := noon.Add(tc.after)
			if got := tc.turn.Replace(now); (got == "m") != tc.replace {
				t.Errorf("%s: replaces %q, want %t", tc.reason, got, tc.replace)
			}
			got, ok := tc.turn.Until(now)
			if !ok {
				got = never
			}
			if got != tc.until {
				t.Errorf("%s: looks again in %s, want %s", tc.reason, got, tc.until)
			}
		})
	}
}

func TestATurnOfNoMachine(t *testing.T) {
	turn := Turn{IsFree: true}
	if got := turn.Replace(created); got != "" {
		t.Errorf("replaces %q", got)
	}
	if got, ok := turn.Until(created); ok {
		t.Errorf("looks again in %s", got)
	}
}

// TestATurnWhoseWindowDoesNotComeAnyMore: 2100 is no leap year, and no February 29 comes within five years of 2096.
func TestATurnWhoseWindowDoesNotComeAnyMore(t *testing.T) {
	now := time.Date(2096, 3, 1, 0, 0, 0, 0, time.UTC)
	turn := Turn{IsFree: true, Windows: windowsOf(t, now.AddDate(0, -2, 0), "0 2 29 2 *"), Next: &machinev1alpha1.AgingMachine{Machine: "m", DueTime: metav1.NewTime(now)}}
	if got := turn.Replace(now); got != "" {
		t.Errorf("replaces %q", got)
	}
	if got, ok := turn.Until(now); ok {
		t.Errorf("looks again in %s", got)
	}
}
