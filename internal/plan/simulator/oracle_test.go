package simulator

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// mostRatio is the longest time that the planners may take, as a multiple of the oracle's.
const mostRatio = 1.15

// A task for the planners and for the oracle: to roll a pool from one template to another, or to
// resize it.
type task struct {
	from, to           int
	rolls              bool
	surge, unavailable int
	// class of the new template, if it is another one.
	class string
	cloud Cloud
	// hangs is the index of the VM that hangs among the created ones, from 0. It is -1 if none
	// hangs.
	hangs int
	// then happens after a time, unless it is zero.
	then event
	// gates that hold the rollout.
	gates
}

// gates are the steps of a rollout and its windows: the first hours of each four. Without hours, the window is always open.
type gates struct {
	steps []rolloutStep
	hours int
}

// A rolloutStep allows a number of Machines of the new template until they have been available for a time.
type rolloutStep struct {
	updated int
	soak    time.Duration
}

// every is the time from the begin of a window to the next one.
const every = 4 * time.Hour

func (g gates) isOpen(at time.Time) bool {
	return g.hours == 0 || at.Sub(at.Truncate(every)) < time.Duration(g.hours)*time.Hour
}

// change returns when the window opens or closes next.
func (g gates) change(at time.Time) time.Time {
	begin := at.Truncate(every)
	if g.isOpen(at) {
		return begin.Add(time.Duration(g.hours) * time.Hour)
	}
	return begin.Add(every)
}

// set the gates of a deployment.
func (g gates) set(d *machinev1alpha1.MachineDeployment) {
	for _, s := range g.steps {
		d.Spec.Strategy.RollingUpdate.Steps = append(d.Spec.Strategy.RollingUpdate.Steps, machinev1alpha1.RolloutStep{Updated: intstr.FromInt(s.updated), Soak: &metav1.Duration{Duration: s.soak}})
	}
	if g.hours > 0 {
		d.Spec.Rollout.Windows = []machinev1alpha1.TimeWindow{{Schedule: "0 */4 * * *", Duration: metav1.Duration{Duration: time.Duration(g.hours) * time.Hour}}}
	}
}

// An event in the middle of a task.
type event struct {
	after time.Duration
	// to is another number of replicas, again another change of the template, and lost the number of
	// old VMs that are lost.
	to    int
	again bool
	lost  int
}

// kinds of tasks.
var kinds = map[string]task{
	"create 300":                   {to: 300},
	"create 20":                    {to: 20},
	"scale from 10 to 50":          {from: 10, to: 50},
	"scale from 50 to 10":          {from: 50, to: 10},
	"roll 1 by 1":                  {from: 1, to: 1, rolls: true, surge: 1},
	"roll 10 by 1":                 {from: 10, to: 10, rolls: true, surge: 1},
	"roll 10 by 3, 2 unavailable":  {from: 10, to: 10, rolls: true, surge: 3, unavailable: 2},
	"roll 10, 3 unavailable":       {from: 10, to: 10, rolls: true, unavailable: 3},
	"roll 20 by 1, 19 unavailable": {from: 20, to: 20, rolls: true, surge: 1, unavailable: 19},
	"roll 50 by 10":                {from: 50, to: 50, rolls: true, surge: 10},
	"roll 50 by 50":                {from: 50, to: 50, rolls: true, surge: 50},
	"roll 50 by 50 to a new class": {from: 50, to: 50, rolls: true, surge: 50, class: "new"},
	"roll 10 by 3 to a new class":  {from: 10, to: 10, rolls: true, surge: 3, class: "new"},
	"roll and scale from 2 to 4":   {from: 2, to: 4, rolls: true, surge: 1},
	"roll and scale from 10 to 20": {from: 10, to: 20, rolls: true, surge: 2},
	"roll and scale from 20 to 10": {from: 20, to: 10, rolls: true, surge: 2},

	"roll 10 by 2 in steps":                  {from: 10, to: 10, rolls: true, surge: 2, gates: gates{steps: []rolloutStep{{1, 30 * time.Minute}, {5, 10 * time.Minute}}}},
	"roll 10 in a step, 3 unavailable":       {from: 10, to: 10, rolls: true, unavailable: 3, gates: gates{steps: []rolloutStep{{2, time.Hour}}}},
	"roll 50 by 10 in steps":                 {from: 50, to: 50, rolls: true, surge: 10, gates: gates{steps: []rolloutStep{{1, time.Hour}, {10, time.Hour}, {25, time.Hour}}}},
	"roll 10 by 2 within windows":            {from: 10, to: 10, rolls: true, surge: 2, gates: gates{hours: 2}},
	"roll 50 by 2 within windows":            {from: 50, to: 50, rolls: true, surge: 2, gates: gates{hours: 1}},
	"roll 50, 2 unavailable, within windows": {from: 50, to: 50, rolls: true, unavailable: 2, gates: gates{hours: 1}},
	"roll 50 by 5 in steps within windows":   {from: 50, to: 50, rolls: true, surge: 5, gates: gates{steps: []rolloutStep{{1, 90 * time.Minute}, {20, 30 * time.Minute}}, hours: 1}},

	"roll 20 by 2, 5 old VMs are lost":      {from: 20, to: 20, rolls: true, surge: 2, then: event{after: 6 * time.Minute, lost: 5}},
	"roll 3 by 1, soon scale to 10":         {from: 3, to: 3, rolls: true, surge: 1, then: event{after: 30 * time.Second, to: 10}},
	"roll 10 by 2, later scale to 20":       {from: 10, to: 10, rolls: true, surge: 2, then: event{after: 7 * time.Minute, to: 20}},
	"roll 10 by 2, later scale to 5":        {from: 10, to: 10, rolls: true, surge: 2, then: event{after: 7 * time.Minute, to: 5}},
	"roll 6 by 2, soon to another template": {from: 6, to: 6, rolls: true, surge: 2, then: event{after: 20 * time.Second, again: true}},
}

// seen is the time after which the end of a step is seen: a Machine, its set and its deployment report it in turn.
const seen = 10 * time.Second

// most ratios of tasks in whose middle something happens: the planners do not know what will.
const mostRatioOfEvents = 1.3

// tasksOf returns the variants of a kind, by the properties of the cloud.
func tasksOf(kind task) map[string]task {
	out := map[string]task{}
	add := func(id time.Duration, jitter float64, seed int64, hangs int) {
		k := kind
		k.hangs = hangs
		k.cloud = Cloud{ID: id, Boot: time.Minute, Drain: 30 * time.Second, Jitter: jitter, Seed: seed}
		name := fmt.Sprintf("ID after %s", id)
		if jitter > 0 {
			name += fmt.Sprintf(" ±%d %%", int(100*jitter))
		}
		if hangs >= 0 {
			name += fmt.Sprintf(", VM %d hangs", hangs+1)
		}
		out[name] = k
	}
	for _, id := range []time.Duration{0, time.Minute, 3 * time.Minute} {
		add(id, 0, 0, -1)
	}
	if kind.then != (event{}) {
		return out
	}
	add(3*time.Minute, 0.5, 1, -1)
	if kind.to > 100 || kind.hours > 0 {
		return out
	}
	add(30*time.Second, 0.5, 2, -1)
	made := kind.to
	if !kind.rolls {
		made = kind.to - kind.from
	}
	for _, place := range []int{0, made / 2, made - 1} {
		if place >= 0 && place < made {
			add(3*time.Minute, 0, 0, place)
		}
	}
	return out
}

// oracle is a greedy planner with perfect information. It knows all latencies, acts at once, and
// always does all that the bounds allow. It waits for a hanging VM until creationTimeout, because a
// hanging VM and a slow one cannot be distinguished. The task begins at a time of the day, for the windows.
func oracle(k task, begins time.Time) (took time.Duration, made int) {
	type machine struct {
		n     int
		ready time.Duration
		fails time.Duration
	}
	const never = time.Duration(1 << 62)
	old, next := k.from, k.from
	if !k.rolls {
		old = 0
	}
	keeps := k.from - old
	most, least := k.to+k.surge, max(0, k.to-k.unavailable)
	happens := k.then.after
	if happens == 0 {
		happens = never
	}
	var now time.Duration
	var news []machine
	var leaving []time.Duration
	steps := k.steps
	full := never // since when all Machines of the step have been available
	for {
		if now >= happens {
			happens = never
			old = max(0, old-k.then.lost)
			if k.then.to > 0 {
				k.to = k.then.to
				most, least = k.to+k.surge, max(0, k.to-k.unavailable)
			}
			if k.then.again {
				// None that starts is worth waiting for.
				for _, m := range news {
					if m.ready <= now {
						old++
					}
				}
				news = nil
			}
		}
		available := old + keeps
		for _, m := range news {
			if m.ready <= now {
				available++
			}
		}
		upcoming := happens
		for len(steps) > 0 {
			switch s := steps[0]; {
			case available-old-keeps < s.updated:
				full = never
			case full == never:
				full = now
			}
			if full == never {
				break
			}
			if end := full + steps[0].soak; end > now {
				upcoming = min(upcoming, end)
				break
			}
			steps, full = steps[1:], never
		}
		limit := k.to
		if len(steps) > 0 {
			limit = steps[0].updated
		}
		isOpen := k.isOpen(begins.Add(now))
		if k.hours > 0 && old > 0 {
			upcoming = min(upcoming, k.change(begins.Add(now)).Sub(begins))
		}
		for keeps+old+len(news) > k.to && keeps > k.to {
			_, _, drain := k.cloud.Latencies(keeps - 1)
			leaving = append(leaving, now+drain)
			keeps--
			available--
		}
		for isOpen && old > 0 && available > least && (len(steps) == 0 || old+keeps+limit > k.to) {
			_, _, drain := k.cloud.Latencies(old - 1)
			leaving = append(leaving, now+drain)
			old--
			available--
		}
		for isOpen && keeps+len(news) < limit && keeps+old+len(news)+len(leaving) < most {
			id, boot, _ := k.cloud.Latencies(next)
			m := machine{n: next, ready: now + id + boot, fails: never}
			if k.hangs == next-k.from {
				m.ready, m.fails = never, now+20*time.Minute
			}
			next++
			made++
			news = append(news, m)
		}
		for _, m := range news {
			if m.ready > now {
				upcoming = min(upcoming, m.ready, m.fails)
			}
		}
		for _, at := range leaving {
			upcoming = min(upcoming, at)
		}
		if upcoming == never {
			return now, made
		}
		now = upcoming
		leaving = slices.DeleteFunc(leaving, func(at time.Duration) bool { return at <= now })
		news = slices.DeleteFunc(news, func(m machine) bool { return m.fails <= now })
	}
}

// measure the time and the Machines that the planners need for a task.
func measure(t *testing.T, k task) (began time.Time, took time.Duration, made int) {
	t.Helper()
	s := poolOf(k.from, k.surge, k.unavailable)
	if k.from == 0 {
		s.Replicas = int32(k.to)
	}
	k.cloud.Hangs = func(n int) bool { return k.hangs >= 0 && n == k.from+k.hangs }
	w := NewWorld(s, k.cloud)
	if k.from > 0 {
		if !w.RunUntil(4*time.Hour, w.Settled) {
			t.Fatalf("the pool did not begin: %s", w)
		}
		w.Run(time.Minute)
		w.Update(func(d *machinev1alpha1.MachineDeployment) {
			d.Spec.Replicas = int32(k.to)
			if k.rolls {
				d.Spec.Template.Spec.Version = "v2"
			}
			if k.class != "" {
				d.Spec.Template.Spec.ClassRef.Name = k.class
			}
			k.set(d)
		})
	}
	began = w.Now
	before := w.Made
	if k.then.after > 0 {
		w.Run(k.then.after)
		w.happens(t, k.then)
	}
	if !w.RunUntil(24*time.Hour, w.Whole) {
		t.Fatalf("not whole after a day:\n%s", w)
	}
	return began, w.Now.Sub(began), w.Made - before
}

// happens lets an event happen.
func (w *World) happens(t *testing.T, e event) {
	t.Helper()
	lost := 0
	for _, m := range w.Machines() {
		if lost < e.lost && m.DeletionTimestamp == nil && w.IsOld(m) {
			lost++
			w.LoseVM(m.Name)
		}
	}
	if lost < e.lost {
		t.Fatalf("%d old Machines are left, want %d to lose:\n%s", lost, e.lost, w)
	}
	w.Update(func(d *machinev1alpha1.MachineDeployment) {
		if e.to > 0 {
			d.Spec.Replicas = int32(e.to)
		}
		if e.again {
			d.Spec.Template.Spec.Version = "v3"
		}
	})
}

// poolOf returns the spec of a pool with these bounds.
func poolOf(replicas, surge, unavailable int) machinev1alpha1.MachineDeploymentSpec {
	labels := map[string]machinev1alpha1.LabelValue{"pool": "a"}
	s := machinev1alpha1.MachineDeploymentSpec{
		Selector: machinev1alpha1.Selector{MatchLabels: labels},
		Template: machinev1alpha1.MachineTemplate{
			Metadata: machinev1alpha1.TemplateMetadata{Labels: labels},
			Spec:     machinev1alpha1.MachineSpec{ClassRef: machinev1alpha1.ClassReference{Name: "small"}, Version: "v1"},
		},
		ProgressDeadlineSeconds: 600,
		RevisionHistoryLimit:    10,
	}
	fields := fmt.Sprintf("strategy RollingUpdate replicas %d surge %d unavailable %d", replicas, surge, unavailable)
	if err := setFields(&s, strings.Fields(fields)); err != nil {
		panic(err)
	}
	return s
}

// TestPlannersKeepUpWithTheOracle measures all tasks.
func TestPlannersKeepUpWithTheOracle(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tasks := tasksOf(kind)
			for _, cloud := range slices.Sorted(maps.Keys(tasks)) {
				k := tasks[cloud]
				began, took, made := measure(t, k)
				ideal, least := oracle(k, began)
				// The time that gates ask for is no excuse for more, beside some seconds in which the end of a step is seen.
				ungated := k
				ungated.gates = gates{}
				free, _ := oracle(ungated, began)
				ratio := (took - ideal - time.Duration(len(k.steps))*seen + free).Seconds() / free.Seconds()
				limit := mostRatio
				if k.then != (event{}) {
					limit = mostRatioOfEvents
				}
				if ratio > limit || made > least {
					t.Errorf("%-40s took %9s, ideal %9s, ratio %5.2f; made %3d, ideal %3d", cloud, took.Round(time.Second), ideal.Round(time.Second), ratio, made, least)
				}
			}
		})
	}
}
