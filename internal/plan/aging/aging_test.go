package aging

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
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
