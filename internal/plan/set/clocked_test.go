package set

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// A cloud in which the Machines of a clockwork start.
type cloud struct {
	// id is the time from the request of a VM to its ID, and boot the time from there to
	// its Node.
	id, boot time.Duration
	// hangs reports whether the nth Machine never gets its VM, nor an error.
	hangs func(n int) bool
	outage
	// reportsAfter is the time from a request to its refusal.
	reportsAfter time.Duration
}

// An outage of the cloud, or of the way in which Machines join.
type outage struct {
	kind     outageKind
	from, to time.Time
}

func (o outage) covers(t time.Time) bool { return !t.Before(o.from) && t.Before(o.to) }

type outageKind string

const (
	// refuses requests: the provider repeats them.
	refuses outageKind = "the cloud refuses creations"
	// fails VMs after they were accepted.
	fails outageKind = "VMs fail after they were accepted"
	// joinsLate: a Machine that was created before the end of the outage joins after it.
	joinsLate outageKind = "Machines join when it is over"
	// neverJoins: a Machine that booted before the end of the outage never joins.
	neverJoins outageKind = "Machines that booted in it never join"
)

const (
	creationTimeout = 20 * time.Minute
	// providerRetries is the interval between requests that are refused, and deletionTakes the time until a
	// deleted Machine is gone.
	providerRetries = time.Minute
	deletionTakes   = 30 * time.Second
	// notifiedAfter is the time from a change of a Machine to the plan that observes it.
	notifiedAfter = time.Second
)

// A change of a Machine's status at a time.
type change struct {
	at     time.Time
	status func(*machinev1alpha1.MachineStatus)
}

// life returns the status changes of the nth Machine of the cloud, which was created at this time.
func (c cloud) life(name string, n int, created time.Time) []change {
	set := func(phase machinev1alpha1.MachinePhase) func(*machinev1alpha1.MachineStatus) {
		return func(s *machinev1alpha1.MachineStatus) { s.Phase = phase }
	}
	timeout := func(since time.Time) change {
		return change{since.Add(creationTimeout), func(s *machinev1alpha1.MachineStatus) {
			s.Phase, s.FailureReason, s.FailureMessage = failed, machinev1alpha1.FailureJoinTimeout, "no Node joined within 20m"
		}}
	}
	since, requested := created, created.Add(time.Second)
	out := []change{{requested, set(provisioning)}}
	if c.kind == refuses && c.covers(requested) {
		out = append(out, change{requested.Add(c.reportsAfter), func(s *machinev1alpha1.MachineStatus) {
			s.LastOperation = &machinev1alpha1.LastOperation{Type: machinev1alpha1.OperationCreate, State: machinev1alpha1.OperationProcessing, ErrorCode: "Transient", Description: "out of order"}
		}})
		for requested = requested.Add(providerRetries); c.covers(requested); requested = requested.Add(providerRetries) {
		}
		since = requested
		out = append(out, change{requested, func(s *machinev1alpha1.MachineStatus) {
			at := metav1.NewTime(since)
			s.LastOperation, s.RefusedUntil = nil, &at
		}})
	}
	if c.hangs != nil && c.hangs(n) {
		return append(out, timeout(since))
	}
	running := requested.Add(c.id)
	if c.kind == fails && c.covers(running) {
		return append(out, change{running, func(s *machinev1alpha1.MachineStatus) {
			s.Phase, s.FailureReason, s.FailureMessage = failed, machinev1alpha1.FailureCreateFailed, "no host"
			s.LastOperation = &machinev1alpha1.LastOperation{State: machinev1alpha1.OperationFailed, ErrorCode: "Transient", Description: "no host"}
		}})
	}
	out = append(out, change{running, func(s *machinev1alpha1.MachineStatus) {
		s.Phase, s.ProviderID = joining, "local:///zone-a/"+name
	}})
	joins := running.Add(c.boot)
	if c.kind == neverJoins && c.covers(joins) {
		return append(out, timeout(since))
	}
	if c.kind == joinsLate && c.covers(joins) {
		joins = c.to
	}
	if end := timeout(since); joins.After(end.at) {
		return append(out, end)
	}
	return append(out, change{joins, func(s *machinev1alpha1.MachineStatus) {
		at := metav1.NewTime(joins)
		s.Phase, s.ReadySince = machinev1alpha1.MachineRunning, &at
		s.NodeRef = &machinev1alpha1.NodeReference{Kind: "Node", Name: name}
	}})
}

// A clockwork carries out the decisions of a set. Its clock advances to the next change of a Machine, or to
// the next time at which the set requested a reconcile.
type clockwork struct {
	t     *testing.T
	start time.Time
	now   time.Time
	wake  time.Time
	set   *machinev1alpha1.MachineSet
	cloud cloud
	ms    []Machine
	lives map[string][]change
	gone  map[string]time.Time

	// creations has the time of each Machine's creation.
	creations []time.Time
	// promised is the time of the next creation according to the last event BackingOff, and late lists the
	// events whose time was missed.
	promised time.Time
	late     []string
	// vacantSince is the start of the current vacancy: a place has had no Machine since then.
	vacantSince time.Time
	// longestVacancy is the longest one after judgeFrom.
	judgeFrom      time.Time
	longestVacancy time.Duration
}

func newClockwork(t *testing.T, s *machinev1alpha1.MachineSet, runs int, c cloud) *clockwork {
	w := &clockwork{t: t, start: now, now: now, set: s, cloud: c, lives: map[string][]change{}, gone: map[string]time.Time{}}
	for i := range runs {
		w.ms = append(w.ms, machine(fmt.Sprintf("old-%03d", i), running, withVM, withNode))
	}
	return w
}

// until runs the clock until the condition holds, and returns how long that took from since. If it
// does not hold within the limit, it returns the limit.
func (w *clockwork) until(since time.Time, limit time.Duration, holds func() bool) time.Duration {
	w.t.Helper()
	for {
		w.step()
		if holds() {
			return w.now.Sub(since)
		}
		next := w.next()
		if next.Sub(since) > limit {
			return limit
		}
		w.now = next
	}
}

// runs is the number of Machines that run and are not being deleted.
func (w *clockwork) runs() int {
	n := 0
	for _, m := range w.ms {
		if m.Status.Phase == running && !m.Terminating {
			n++
		}
	}
	return n
}

// isWhole reports whether all Machines of the spec run, and there are no further ones.
func (w *clockwork) isWhole() bool {
	return w.runs() == int(w.set.Spec.Replicas) && len(w.ms) == w.runs()
}

// next returns the time of the next change. One plan handles all changes of one time.
func (w *clockwork) next() time.Time {
	next := w.wake
	for _, life := range w.lives {
		if len(life) > 0 && life[0].at.Add(notifiedAfter).Before(next) {
			next = life[0].at.Add(notifiedAfter)
		}
	}
	for _, at := range w.gone {
		if at.Before(next) {
			next = at
		}
	}
	if !next.After(w.now) {
		next = w.now.Add(time.Millisecond)
	}
	return next
}

func (w *clockwork) step() {
	w.t.Helper()
	for i := range w.ms {
		m := &w.ms[i]
		for life := w.lives[m.Name]; len(life) > 0 && !w.now.Before(life[0].at); life = w.lives[m.Name] {
			if !m.Terminating {
				life[0].status(&m.Status)
			}
			w.lives[m.Name] = life[1:]
		}
	}
	w.ms = slices.DeleteFunc(w.ms, func(m Machine) bool {
		at, ok := w.gone[m.Name]
		over := ok && !w.now.Before(at)
		if over {
			delete(w.gone, m.Name)
			delete(w.lives, m.Name)
		}
		return over
	})
	w.judge()

	d := Plan(w.now, Observed{Set: w.set, Machines: slices.Clone(w.ms)})
	w.set.Status = d.Status
	// Crossplane does the same with the result of a composition.
	w.set.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, ObservedGeneration: w.set.Generation}}
	w.wake = w.now.Add(d.CallAgain)
	for _, e := range d.Events {
		if e.Reason == "BackingOff" {
			w.promised = d.Status.Backoff.Until.Time
		}
	}
	known := map[string]bool{}
	for _, m := range w.ms {
		known[m.Name] = true
	}
	for _, m := range d.Machines {
		if known[m.Name] {
			continue
		}
		if !w.promised.IsZero() && w.now.Sub(w.promised).Abs() > 5*time.Second {
			w.late = append(w.late, fmt.Sprintf("the event says that the next Machine is created at %s, and it is at %s", w.promised.Sub(w.start), w.now.Sub(w.start)))
		}
		w.promised = time.Time{}
		// The API server stores timestamps in whole seconds.
		at := w.now.Truncate(time.Second)
		made := machine(m.Name, pending, func(m *Machine) { m.CreationTimestamp = metav1.NewTime(at) })
		w.ms = append(w.ms, made)
		w.lives[m.Name] = w.cloud.life(m.Name, len(w.creations), w.now)
		w.creations = append(w.creations, w.now)
		w.vacantSince = time.Time{}
	}
	for _, name := range d.Delete {
		if _, ok := w.gone[name]; !ok {
			w.gone[name] = w.now.Add(deletionTakes)
			i := slices.IndexFunc(w.ms, func(m Machine) bool { return m.Name == name })
			w.ms[i].Terminating = true
		}
	}
	if len(d.Delete) > 0 {
		w.wake = w.now.Add(notifiedAfter) // The set observes that they are terminating.
	}
}

// judge measures the vacancy before a plan.
func (w *clockwork) judge() {
	places := int(w.set.Spec.Replicas)
	for _, m := range w.ms {
		if !m.Terminating && m.Status.Phase != failed {
			places--
		}
	}
	switch {
	case places <= 0 || w.now.Before(w.judgeFrom):
		w.vacantSince = time.Time{}
	case w.vacantSince.IsZero():
		w.vacantSince = w.now
	}
	if !w.vacantSince.IsZero() {
		w.longestVacancy = max(w.longestVacancy, w.now.Sub(w.vacantSince))
	}
}

// firstCreation returns how long after this time the first Machine was created.
func (w *clockwork) firstCreation(after time.Time) time.Duration {
	for _, at := range w.creations {
		if !at.Before(after) {
			return at.Sub(after)
		}
	}
	return -1
}

// TestAfterAJoinOutageAPoolGrowsWithinOneBackoff is the case of a pool that is scaled from 10
// to 40 Machines while no Machine can join for 25 minutes.
func TestAfterAJoinOutageAPoolGrowsWithinOneBackoff(t *testing.T) {
	for _, kind := range []outageKind{joinsLate, neverJoins} {
		t.Run(string(kind), func(t *testing.T) {
			end := now.Add(25 * time.Minute)
			w := newClockwork(t, set(40, created(0)), 10, cloud{id: 30 * time.Second, boot: time.Minute, outage: outage{kind, now, end}})
			took := w.until(end, 12*time.Hour, w.isWhole)
			first := w.firstCreation(end)
			t.Logf("first creation %s, all Machines %s after the end of the outage", first, took)
			if first < 0 || first > 10*time.Minute {
				t.Errorf("the first creation is %s after the end of the outage, want 10m at most", first)
			}
			if took > creationTimeout+15*time.Minute {
				t.Errorf("the pool is whole %s after the end of the outage", took)
			}
		})
	}
}

// TestAfterAnyOutageAPoolIsWholeSoon holds for pools that are scaled up at any time of an outage. Once it
// is over, no place is vacant for longer than the longest backoff. The pool is whole at most 15 minutes
// after the Machines that will never join have failed.
func TestAfterAnyOutageAPoolIsWholeSoon(t *testing.T) {
	pools := []int32{3, 30, 300}
	if testing.Short() {
		pools = []int32{3}
	}
	for _, kind := range []outageKind{refuses, fails, joinsLate, neverJoins} {
		for _, replicas := range pools {
			for _, runs := range []int32{0, replicas / 3, replicas - 1} {
				var slowest, vacant time.Duration
				most := 0
				for _, lasts := range []time.Duration{5 * time.Minute, 25 * time.Minute, 3 * time.Hour} {
					// The pool is scaled at the start of the outage, or shortly before its end.
					for _, from := range []time.Time{now, now.Add(time.Minute - lasts)} {
						o := outage{kind, from, from.Add(lasts)}
						w := newClockwork(t, set(replicas, created(0)), int(runs), cloud{id: 30 * time.Second, boot: 90 * time.Second, reportsAfter: 3 * time.Second, outage: o})
						w.judgeFrom = o.to
						took := w.until(o.to, 24*time.Hour, w.isWhole)
						slowest, vacant, most = max(slowest, took), max(vacant, w.longestVacancy), max(most, len(w.creations))
						for _, late := range w.late {
							t.Errorf("%s for %s, %d of %d run: %s", kind, lasts, runs, replicas, late)
						}
					}
				}
				t.Logf("%s, %d of %d run: whole after %s, a place vacant for %s, %d Machines made", kind, runs, replicas, slowest, vacant, most)
				if slowest > creationTimeout+15*time.Minute {
					t.Errorf("%s: a pool of %d, of which %d run, is whole after %s", kind, replicas, runs, slowest)
				}
				if vacant > 10*time.Minute {
					t.Errorf("%s: a place of a pool of %d, of which %d run, is vacant for %s", kind, replicas, runs, vacant)
				}
			}
		}
	}
}

// TestASetStartsAsFastAsItsCloud compares the time in which all Machines run with that of a
// set that creates all of them at once.
func TestASetStartsAsFastAsItsCloud(t *testing.T) {
	const boot = time.Minute
	other := func(m *Machine) { m.Spec.Version = "v1.34.0" }
	pools := []int32{10, 50, 300}
	if testing.Short() {
		pools = []int32{10}
	}
	for _, replicas := range pools {
		for _, id := range []time.Duration{time.Second, 30 * time.Second, 90 * time.Second, 180 * time.Second} {
			cases := map[string]struct {
				set *machinev1alpha1.MachineSet
				// runs has the Machines that run from the start.
				runs []Machine
			}{
				"a class that nothing has proven":                 {set: set(replicas, created(0))},
				"a class that another set has proven":             {set: set(replicas, created(0), provenClass)},
				"a class of which another version runs":           {set: set(replicas, created(0)), runs: []Machine{machine("other", running, worked, other)}},
				"a class of which a Machine of the template runs": {set: set(replicas, created(0)), runs: []Machine{machine("old", running, worked)}},
			}
			for name, tc := range cases {
				w := newClockwork(t, tc.set, 0, cloud{id: id, boot: boot})
				w.ms = tc.runs
				took, ideal := w.until(now, time.Hour, w.isWhole), id+boot
				t.Logf("%d Machines, ID after %s, %s: %s, ideal %s", replicas, id, name, took, ideal)
				if most := ideal * 115 / 100; took > most {
					t.Errorf("%d Machines, ID after %s, %s: %s, want %s at most", replicas, id, name, took, most)
				}
			}
		}
	}
}

// TestACreationThatHangsHoldsItsOwnPlaceOnly, wherever it is in the order.
func TestACreationThatHangsHoldsItsOwnPlaceOnly(t *testing.T) {
	const boot = time.Minute
	for _, id := range []time.Duration{time.Second, 30 * time.Second, 180 * time.Second} {
		for _, hanging := range [][]int{{0}, {1}, {25}, {49}, {0, 1, 2}} {
			w := newClockwork(t, set(50, created(0)), 0, cloud{id: id, boot: boot, hangs: func(n int) bool { return slices.Contains(hanging, n) }})
			took := w.until(now, time.Hour, func() bool { return w.runs() >= 50-len(hanging) })
			most := (id + boot) * 115 / 100
			if hanging[0] == 0 && id < 10*time.Second {
				most += 10 * time.Second // The first Machine hangs before another one is tried.
			}
			t.Logf("ID after %s, %v of 50 hang: the others run after %s", id, hanging, took)
			if took > most {
				t.Errorf("ID after %s, %v of 50 hang: the others run after %s, want %s at most", id, hanging, took, most)
			}
		}
	}
}

// TestATemplateThatIsRefusedSoonStartsNoStampede counts the VMs, of 300, that are requested in the first
// half hour, before and after the refusal is known. A cloud that refuses late gets one request for each of
// them.
func TestATemplateThatIsRefusedSoonStartsNoStampede(t *testing.T) {
	for reportsAfter, most := range map[time.Duration]int{time.Second: 1, 9 * time.Second: 1, 90 * time.Second: 300, 170 * time.Second: 300} {
		c := cloud{id: 30 * time.Second, boot: time.Minute, reportsAfter: reportsAfter, outage: outage{refuses, now, now.Add(time.Hour)}}
		w := newClockwork(t, set(300, created(0)), 0, c)
		w.until(now, 30*time.Minute, func() bool { return false })
		if len(w.creations) > most {
			t.Errorf("refused after %s: %d VMs are requested, want %d at most", reportsAfter, len(w.creations), most)
		}
	}
}
