package schedule

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

func at(t *testing.T, s string) time.Time {
	t.Helper()
	out, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return out.UTC()
}

func of(schedule, duration, zone string) machinev1alpha1.TimeWindow {
	d, err := time.ParseDuration(duration)
	if err != nil {
		panic(err)
	}
	return machinev1alpha1.TimeWindow{Schedule: schedule, Duration: metav1.Duration{Duration: d}, TimeZone: zone}
}

func TestWindows(t *testing.T) {
	type windows = []machinev1alpha1.TimeWindow
	nightly := of("0 2 * * *", "2h", "Europe/Berlin")
	for name, tc := range map[string]struct {
		windows, blackouts windows
		now                string
		open               bool
		// next is the time at which it opens, or closes if it is open.
		next string
	}{
		"in a window":                          {windows{nightly}, nil, "2026-01-10T01:30:00Z", true, "2026-01-10T03:00:00Z"},
		"at its first moment":                  {windows{nightly}, nil, "2026-01-10T01:00:00Z", true, "2026-01-10T03:00:00Z"},
		"at its end":                           {windows{nightly}, nil, "2026-01-10T03:00:00Z", false, "2026-01-11T01:00:00Z"},
		"in summer it is an hour earlier":      {windows{nightly}, nil, "2026-07-10T03:00:00Z", false, "2026-07-11T00:00:00Z"},
		"the night in which 02:00 is skipped":  {windows{nightly}, nil, "2026-03-29T00:30:00Z", false, "2026-03-30T00:00:00Z"},
		"a window across the skipped hour":     {windows{of("0 1 * * *", "2h", "Europe/Berlin")}, nil, "2026-03-29T01:30:00Z", true, "2026-03-29T02:00:00Z"},
		"the hour that comes twice":            {windows{of("30 2 * * *", "1h", "Europe/Berlin")}, nil, "2026-10-25T00:45:00Z", true, "2026-10-25T01:30:00Z"},
		"the default time zone is UTC":         {windows{of("0 2 * * *", "2h", "")}, nil, "2026-07-10T02:00:00Z", true, "2026-07-10T04:00:00Z"},
		"on Saturdays only":                    {windows{of("0 2 * * 6", "4h", "")}, nil, "2026-01-12T12:00:00Z", false, "2026-01-17T02:00:00Z"},
		"of two windows the first counts":      {windows{of("0 2 * * 6", "4h", ""), of("0 12 * * 2", "1h", "")}, nil, "2026-01-12T12:00:00Z", false, "2026-01-13T12:00:00Z"},
		"windows that overlap":                 {windows{of("0 2 * * *", "2h", ""), of("0 3 * * *", "4h", "")}, nil, "2026-01-12T03:30:00Z", true, "2026-01-12T07:00:00Z"},
		"a window longer than its interval":    {windows{of("0 * * * *", "90m", "")}, nil, "2026-01-12T03:45:00Z", true, "2026-01-12T04:30:00Z"},
		"two windows that began":               {windows{of("0 * * * *", "90m", "")}, nil, "2026-01-12T03:15:00Z", true, "2026-01-12T04:30:00Z"},
		"the shortest window":                  {windows{of("0 2 * * *", "1m", "")}, nil, "2026-01-12T02:00:00Z", true, "2026-01-12T02:01:00Z"},
		"the longest window":                   {windows{of("0 2 1 1 *", "8760h", "")}, nil, "2026-01-12T02:00:00Z", true, "2027-01-01T02:00:00Z"},
		"a blackout alone":                     {nil, windows{of("0 8 * * 1-5", "10h", "")}, "2026-01-12T12:00:00Z", false, "2026-01-12T18:00:00Z"},
		"before a blackout":                    {nil, windows{of("0 8 * * 1-5", "10h", "")}, "2026-01-12T07:00:00Z", true, "2026-01-12T08:00:00Z"},
		"a blackout covers windows":            {windows{nightly}, windows{of("0 0 20 12 *", "384h", "Europe/Berlin")}, "2026-12-24T01:30:00Z", false, "2027-01-05T01:00:00Z"},
		"a blackout ends within a window":      {windows{nightly}, windows{of("0 1 * * *", "90m", "Europe/Berlin")}, "2026-01-10T01:10:00Z", false, "2026-01-10T01:30:00Z"},
		"a blackout begins within a window":    {windows{nightly}, windows{of("0 3 * * *", "8h", "Europe/Berlin")}, "2026-01-10T01:10:00Z", true, "2026-01-10T02:00:00Z"},
		"on February 29 of the next leap year": {windows{of("0 2 29 2 *", "2h", "")}, nil, "2026-01-10T01:10:00Z", false, "2028-02-29T02:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			now := at(t, tc.now)
			w, err := Parse(now, machinev1alpha1.Rollout{Windows: tc.windows, Blackouts: tc.blackouts})
			if err != nil {
				t.Fatal(err)
			}
			if got := w.IsOpen(now); got != tc.open {
				t.Errorf("IsOpen = %t", got)
			}
			next := w.Closes(now)
			if !tc.open {
				next = w.Opens(now)
			}
			if want := at(t, tc.next); !next.Equal(want) {
				t.Errorf("next change at %s, want %s", next.UTC(), want)
			}
		})
	}
}

// TestAWindowThatDoesNotComeAnyMoreHidesNoOther: 2100 is no leap year, and no February 29 comes within five years of 2097.
func TestAWindowThatDoesNotComeAnyMoreHidesNoOther(t *testing.T) {
	leap, nightly := of("0 2 29 2 *", "2h", ""), of("0 2 * * *", "2h", "")
	for name, windows := range map[string][]machinev1alpha1.TimeWindow{"first": {leap, nightly}, "last": {nightly, leap}} {
		w, err := Parse(at(t, "2096-01-01T00:00:00Z"), machinev1alpha1.Rollout{Windows: windows})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := w.Opens(at(t, "2097-01-01T12:00:00Z")), at(t, "2097-01-02T02:00:00Z"); !got.Equal(want) {
			t.Errorf("it is %s: opens at %s, want %s", name, got, want)
		}
	}
}

func TestNoWindowsAreAlwaysOpen(t *testing.T) {
	w, err := Parse(time.Time{}, machinev1alpha1.Rollout{})
	if err != nil || !w.IsOpen(time.Time{}) || !w.Closes(time.Time{}).IsZero() {
		t.Errorf("%v, %v", w, err)
	}
}

func TestWindowsThatAreNotAllowed(t *testing.T) {
	for name, tc := range map[string]struct {
		window machinev1alpha1.TimeWindow
		want   string
	}{
		"a day that there is not":  {of("0 0 30 2 *", "1h", ""), `spec.rollout.windows[0].schedule: invalid value "0 0 30 2 *": there is no such day: must come within five years`},
		"an unknown time zone":     {of("0 0 * * *", "1h", "Europe/Bern"), `spec.rollout.windows[0].timeZone: invalid value "Europe/Bern": must be a name of the IANA time zone database, like Europe/Berlin`},
		"the zone of the process":  {of("0 0 * * *", "1h", "Local"), `timeZone: invalid value "Local"`},
		"a path as the time zone":  {of("0 0 * * *", "1h", "../../etc/passwd"), `timeZone: invalid value "../../etc/passwd"`},
		"a zone in the schedule":   {of("TZ=UTC 0 0 * * *", "1h", ""), `must not have a time zone`},
		"a minute that is too big": {of("61 0 * * *", "1h", ""), `schedule: invalid value "61 0 * * *": `},
		"a descriptor":             {of("@every 1h", "1h", ""), `must be five fields of cron`},
		"no time at all":           {of("0 0 * * *", "0s", ""), `duration: invalid value "0s": must be from 1m to 8760h`},
		"less than a minute":       {of("0 0 * * *", "59s", ""), `duration: invalid value "59s": must be from 1m to 8760h`},
		"more than a year":         {of("0 0 * * *", "8761h", ""), `duration: invalid value "8761h0m0s": must be from 1m to 8760h`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(at(t, "2026-01-01T00:00:00Z"), machinev1alpha1.Rollout{Windows: []machinev1alpha1.TimeWindow{tc.window}})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
	_, err := Parse(at(t, "2026-01-01T00:00:00Z"), machinev1alpha1.Rollout{
		Windows: []machinev1alpha1.TimeWindow{of("0 2 * * *", "2h", "")}, Blackouts: []machinev1alpha1.TimeWindow{of("0 1 * * *", "5h", "")},
	})
	if err == nil || !strings.Contains(err.Error(), "spec.rollout.blackouts: they leave no time") {
		t.Errorf("error %v for blackouts that cover all windows", err)
	}
}
