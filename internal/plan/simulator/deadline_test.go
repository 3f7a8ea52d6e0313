package simulator

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"pgregory.net/rapid"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// distance is how far a rollout ever came, counted without the planners.
type distance struct {
	ready, available int
	old, oldTotal    int
}

func (w *World) distance() distance {
	var d distance
	for _, e := range w.machines.last {
		m := e.object
		stays := m.DeletionTimestamp == nil
		switch {
		case w.IsOld(m):
			d.oldTotal++
			if stays {
				d.old++
			}
		case stays:
			if m.Status.Phase == machinev1alpha1.MachineRunning && m.Status.ReadySince != nil {
				d.ready++
			}
			if w.Available(m) {
				d.available++
			}
		}
	}
	return d
}

// furthest of two distances, and whether the second is further than the first in any respect.
func furthest(a, b distance) (distance, bool) {
	out := distance{max(a.ready, b.ready), max(a.available, b.available), min(a.old, b.old), min(a.oldTotal, b.oldTotal)}
	return out, out != a
}

// A deadlineWatch asserts, at each tick of a rollout, that a verdict is made when the deadline has
// passed without progress, and is withdrawn only by progress.
type deadlineWatch struct {
	w        *World
	deadline time.Duration
	furthest distance
	since    time.Time
	// sinceNew is the time of the last progress without that of old Machines: an old one that is lost
	// and replaced is no progress.
	sinceNew time.Time
	// last distance, and the time at which old Machines became fewer.
	last     distance
	fell     time.Time
	exceeded bool
	// withdrawn is the time of a withdrawal without progress so far. The planners record a deletion
	// before it is requested.
	withdrawn time.Time
	verdicts  int
	wrong     string
}

// late is the time that a status may need.
const late = time.Minute

func (d *deadlineWatch) begin() {
	d.furthest, d.since, d.sinceNew = d.w.distance(), d.w.Now, d.w.Now
	d.last = d.furthest
}

func (d *deadlineWatch) tick() {
	now := d.w.distance()
	if now.old < d.last.old || now.oldTotal < d.last.oldTotal {
		// An old set may have lost the same number of Machines before, and replaced them.
		d.fell, d.withdrawn = d.w.Now, time.Time{}
	}
	d.last = now
	if f, further := furthest(d.furthest, now); further {
		onlyReady := f.available == d.furthest.available && f.old == d.furthest.old && f.oldTotal == d.furthest.oldTotal
		if f.ready > d.furthest.ready || f.available > d.furthest.available {
			d.sinceNew = d.w.Now
		}
		d.furthest = f
		if !onlyReady || !d.exceeded {
			d.since, d.withdrawn = d.w.Now, time.Time{}
		}
	}
	if !d.withdrawn.IsZero() && d.w.Now.Sub(d.withdrawn) > late {
		d.fail("the verdict was withdrawn without progress")
	}
	c := meta.FindStatusCondition(d.w.deployment().Status.Conditions, machinev1alpha1.ConditionProgressing)
	is := c != nil && c.Reason == machinev1alpha1.ReasonProgressDeadlineExceeded
	done := c != nil && c.Reason == machinev1alpha1.ReasonNewMachineSetAvailable
	idle := d.w.Now.Sub(d.since)
	switch {
	case is && !d.exceeded:
		d.verdicts++
		if idle := d.w.Now.Sub(d.sinceNew); idle < d.deadline-late {
			d.fail("the deadline is reported after %s without progress", idle)
		}
	case !is && d.exceeded && !done && idle > late && d.w.Now.Sub(d.fell) > late:
		d.withdrawn = d.w.Now
	case !is && !done && d.withdrawn.IsZero() && min(idle, d.w.Now.Sub(d.fell)) > d.deadline+late:
		d.fail("the deadline is not reported after %s without progress", idle)
	}
	d.exceeded = is
}

func (d *deadlineWatch) fail(format string, args ...any) {
	if d.wrong == "" {
		d.wrong = fmt.Sprintf("after %s: ", d.w.Now.Sub(start)) + fmt.Sprintf(format, args...)
	}
}

// A record of the condition Progressing over time.
type record struct {
	w *World
	// first is the time until the deadline was reported, and exceeded the time for which it was.
	first, exceeded time.Duration
	// reasons in their order.
	reasons     []string
	began, last time.Time
}

func (r *record) tick() {
	now := r.w.Now
	if n := len(r.reasons); n > 0 && r.reasons[n-1] == machinev1alpha1.ReasonProgressDeadlineExceeded {
		r.exceeded += now.Sub(r.last)
	}
	r.last = now
	c := meta.FindStatusCondition(r.w.deployment().Status.Conditions, machinev1alpha1.ConditionProgressing)
	if c == nil || len(r.reasons) > 0 && r.reasons[len(r.reasons)-1] == c.Reason {
		return
	}
	r.reasons = append(r.reasons, c.Reason)
	if c.Reason == machinev1alpha1.ReasonProgressDeadlineExceeded && r.first == 0 {
		r.first = now.Sub(r.began)
	}
}

// TestATemplateThatNeverRunsIsReportedOnce lets no Node of a template join for hours. Each of its Machines fails
// after its creationTimeout and is created again, more and more of them at once: that is no progress. Neither is the
// freeze of a pool of which many Machines fail at once.
func TestATemplateThatNeverRunsIsReportedOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		replicas int
		deadline int32
		rolls    bool
		hours    time.Duration
	}{
		"a small new pool with the deadline of the schema": {3, 1800, false, 12},
		"a new pool with the deadline of the schema":       {20, 1800, false, 3},
		"a new pool with a deadline of ten minutes":        {20, 600, false, 3},
		"a rollout with the deadline of the schema":        {3, 1800, true, 12},
		"a rollout with a deadline of ten minutes":         {3, 600, true, 12},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := poolOf(tc.replicas, 1, 0)
			s.ProgressDeadlineSeconds = tc.deadline
			w := NewWorld(s, Cloud{ID: 30 * time.Second, Boot: time.Minute, Drain: 20 * time.Second, NoJoin: !tc.rolls})
			if tc.rolls {
				if !w.RunUntil(time.Hour, w.Settled) {
					t.Fatalf("the pool did not begin:\n%s", w)
				}
				w.Cloud.NoJoin = true
				w.Update(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Template.Spec.Version = "v2" })
			}
			r, made := &record{w: w, began: w.Now}, w.Made
			w.OnTick = r.tick
			w.Run(tc.hours * time.Hour)
			w.tick()
			t.Logf("%d VMs; exceeded for %s, first after %s; %d reasons", w.Made-made, r.exceeded, r.first, len(r.reasons))
			deadline := time.Duration(tc.deadline) * time.Second
			if r.first < deadline-time.Second || r.first > deadline+late || r.exceeded < tc.hours*time.Hour-deadline-late {
				t.Errorf("the deadline of %s is reported after %s, for %s", deadline, r.first, r.exceeded)
			}
			reported := 0
			for _, reason := range r.reasons {
				if reason == machinev1alpha1.ReasonProgressDeadlineExceeded {
					reported++
				}
			}
			if reported != 1 {
				t.Errorf("the verdict changes: %v", r.reasons)
			}
		})
	}
}

// faults of a template, or of its cloud.
var faults = map[string]func(*Cloud){
	"no Node joins":          func(c *Cloud) { c.NoJoin = true },
	"the cloud refuses":      func(c *Cloud) { c.Refuses = "Transient" },
	"the request is invalid": func(c *Cloud) { c.Refuses = "InvalidRequest" },
	"no VM gets an ID":       func(c *Cloud) { c.Hangs = func(int) bool { return true } },
	"nothing":                func(*Cloud) {},
}

var faultNames = []string{"no Node joins", "no VM gets an ID", "nothing", "the cloud refuses", "the request is invalid"}

// TestTheDeadlineIsReportedOnceAndStays rolls a template out for hours that may never run, with the
// deadline of the schema or a shorter one. Meanwhile Nodes fail and recover, VMs are lost, and
// replicas changes.
func TestTheDeadlineIsReportedOnceAndStays(t *testing.T) {
	verdicts := 0
	rapid.Check(t, func(t *rapid.T) {
		s := poolOf(rapid.IntRange(1, 4).Draw(t, "replicas"), rapid.IntRange(1, 2).Draw(t, "surge"), rapid.IntRange(0, 1).Draw(t, "unavailable"))
		s.ProgressDeadlineSeconds = rapid.SampledFrom([]int32{1800, 1800, 600}).Draw(t, "deadline")
		w := NewWorld(s, Cloud{ID: 30 * time.Second, Boot: time.Minute, Drain: 20 * time.Second})
		if !w.RunUntil(time.Hour, w.Settled) {
			t.Fatalf("the pool did not begin:\n%s", w)
		}
		w.Run(time.Minute)
		faults[rapid.SampledFrom(faultNames).Draw(t, "fault")](&w.Cloud)
		w.Update(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Template.Spec.Version = "v2" })
		watch := &deadlineWatch{w: w, deadline: time.Duration(s.ProgressDeadlineSeconds) * time.Second}
		watch.begin()
		w.OnTick = watch.tick
		for range rapid.IntRange(0, 4).Draw(t, "events") {
			w.Run(time.Duration(rapid.IntRange(1, 50).Draw(t, "minutes")) * time.Minute)
			ms := w.Machines()
			if len(ms) == 0 {
				continue
			}
			name := ms[rapid.IntRange(0, len(ms)-1).Draw(t, "machine")].Name
			switch rapid.IntRange(0, 3).Draw(t, "event") {
			case 0:
				w.KillNode(name)
				w.In(time.Duration(rapid.IntRange(1, 20).Draw(t, "for minutes"))*time.Minute, func() { w.ReviveNode(name) })
			case 1:
				w.LoseVM(name)
			case 2:
				w.Update(func(d *machinev1alpha1.MachineDeployment) {
					d.Spec.Replicas = int32(rapid.IntRange(1, 5).Draw(t, "replicas"))
				})
			case 3:
				w.DeleteByUser(name)
				w.wake()
			}
		}
		w.Run(2 * time.Hour)
		verdicts += watch.verdicts
		if watch.wrong != "" {
			t.Fatalf("%s\n%s", watch.wrong, w)
		}
		if len(w.Violations) > 0 {
			t.Fatalf("%s\n%s", w.Violations[0], w)
		}
	})
	if verdicts == 0 {
		t.Error("no deadline was ever exceeded")
	}
}
