// Package schedule computes the times in which a rollout may replace healthy Machines. It is pure: the time is
// given, and the database of time zones is that of the binary, so that an image without one has the same times.
package schedule

import (
	"fmt"
	"strings"
	"time"
	// Images have no database of time zones.
	_ "time/tzdata"

	"github.com/robfig/cron/v3"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

const (
	// longest duration of a window.
	longest = 8760 * time.Hour
	// tries to find a time that no blackout covers: the windows of a year, if there is one each day.
	tries = 400
)

// A window is a TimeWindow that is valid.
type window struct {
	cron.Schedule
	duration time.Duration
}

// Windows and blackouts of a rollout.
type Windows struct {
	windows, blackouts []window
}

// parser of the five standard fields. Descriptors like @every have no fixed times.
var parser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// Parse returns the windows of a rollout, nil if it has none: it may then replace Machines at any time. The error
// names the field, its value, and what is allowed.
func Parse(now time.Time, r machinev1alpha1.Rollout) (*Windows, error) {
	if len(r.Windows)+len(r.Blackouts) == 0 {
		return nil, nil
	}
	w := &Windows{}
	for i, tw := range r.Windows {
		parsed, err := parse(now, fmt.Sprintf("spec.rollout.windows[%d]", i), tw)
		if err != nil {
			return nil, err
		}
		w.windows = append(w.windows, parsed)
	}
	for i, tw := range r.Blackouts {
		parsed, err := parse(now, fmt.Sprintf("spec.rollout.blackouts[%d]", i), tw)
		if err != nil {
			return nil, err
		}
		w.blackouts = append(w.blackouts, parsed)
	}
	if w.Opens(now).IsZero() {
		return nil, fmt.Errorf("spec.rollout.blackouts: they leave no time for the next %d windows: must leave some", tries)
	}
	return w, nil
}

func parse(now time.Time, field string, tw machinev1alpha1.TimeWindow) (window, error) {
	zone := time.UTC
	// An empty name is UTC, and "Local" would be that of the process.
	if tw.TimeZone != "" {
		var err error
		if zone, err = time.LoadLocation(tw.TimeZone); err != nil || tw.TimeZone == "Local" {
			return window{}, fmt.Errorf("%s.timeZone: invalid value %q: must be a name of the IANA time zone database, like Europe/Berlin", field, tw.TimeZone)
		}
	}
	// A time zone within the schedule would contradict the field timeZone.
	if strings.Contains(tw.Schedule, "=") {
		return window{}, fmt.Errorf("%s.schedule: invalid value %q: must not have a time zone, which is timeZone", field, tw.Schedule)
	}
	s, err := parser.Parse(tw.Schedule)
	if err != nil {
		return window{}, fmt.Errorf("%s.schedule: invalid value %q: %w: must be five fields of cron, like 0 2 * * 6 for Saturdays at 02:00", field, tw.Schedule, err)
	}
	if spec, ok := s.(*cron.SpecSchedule); ok {
		spec.Location = zone
	}
	if s.Next(now).IsZero() {
		return window{}, fmt.Errorf("%s.schedule: invalid value %q: there is no such day: must come within five years", field, tw.Schedule)
	}
	if d := tw.Duration.Duration; d < time.Minute || d > longest {
		return window{}, fmt.Errorf("%s.duration: invalid value %q: must be from 1m to 8760h", field, d)
	}
	return window{Schedule: s, duration: tw.Duration.Duration}, nil
}

// end of the window at a time, false if the time is in none.
func (w window) end(at time.Time) (time.Time, bool) {
	begin, end := w.Next(at.Add(-w.duration)), time.Time{}
	// A window may begin before the last one ended.
	for range tries {
		if begin.IsZero() || begin.After(at) {
			break
		}
		end = begin.Add(w.duration)
		begin = w.Next(begin)
	}
	return end, !end.IsZero()
}

// latest end of the windows at a time, false if the time is in none of them.
func latest(all []window, at time.Time) (time.Time, bool) {
	end, in := time.Time{}, false
	for _, w := range all {
		if e, ok := w.end(at); ok {
			in = true
			if e.After(end) {
				end = e
			}
		}
	}
	return end, in
}

func next(all []window, after time.Time) time.Time {
	first := time.Time{}
	for _, w := range all {
		if n := w.Next(after); !n.IsZero() && (first.IsZero() || n.Before(first)) {
			first = n
		}
	}
	return first
}

// IsOpen reports whether Machines may be replaced at a time.
func (w *Windows) IsOpen(at time.Time) bool {
	if w == nil {
		return true
	}
	_, out := latest(w.blackouts, at)
	if len(w.windows) == 0 {
		return !out
	}
	_, in := latest(w.windows, at)
	return in && !out
}

// Opens returns the first time from the given one on at which Machines may be replaced: that time itself if they may
// be then. It is zero if no time is found.
func (w *Windows) Opens(from time.Time) time.Time {
	at := from
	for range tries {
		if w.IsOpen(at) {
			return at
		}
		if end, out := latest(w.blackouts, at); out {
			at = end
		} else if at = next(w.windows, at); at.IsZero() {
			return at
		}
	}
	return time.Time{}
}

// Closes returns the next time after the given one, which is open, at which that may end. It is zero if there is
// none.
func (w *Windows) Closes(at time.Time) time.Time {
	if w == nil {
		return time.Time{}
	}
	closes := next(w.blackouts, at)
	if end, in := latest(w.windows, at); in && (closes.IsZero() || end.Before(closes)) {
		closes = end
	}
	return closes
}
