package simulator

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/deployment"
)

// A gateWatch asserts the promises of docs/rollouts.md about steps, windows and rejected templates, from the wishes of the
// user and the facts of the world. It does not know how planners decide.
//
//   - No Machine of a new template is created beyond the number of a step before all Machines of that step were
//     available for its time, its analyses passed in that time, and the user approved it.
//   - Outside of the windows no available Machine of an old template is deleted by a rollout, unless the rollout is the
//     way back from a rejected template.
//   - After a rejection has been carried out, no Machine of the rejected template is created.
//
// A deployment has no steps for its first Machines, nor for the template that was complete last.
type gateWatch struct {
	// steps of the rollout in progress, nil without one. base is the template that was complete last.
	to, base kind
	rolls    bool
	// step is the index of the step in force, and most the highest number of Machines that it ever allowed.
	step int
	most int
	// full is the time since which all its Machines have been available at some time.
	full time.Time
	// approved are the steps that the user approved.
	approved int
	// closed is the time at which the window closed, zero while it is open.
	closed time.Time
	// isOpen reports whether the window is open, nil without windows.
	isOpen func(time.Time) bool
	// rejected template, and the length of the log of sets that has the end of its creations. It is 0 until then.
	rejected *kind
	acted    bool
	seen     int
	// waits is the time since which a step waits for its time or for an approval, with the same replicas.
	waits    time.Time
	replicas int32
	// lowered is the time at which replicas was lowered last.
	lowered time.Time
}

// countOf returns the Machines of a kind that exist, and those of them that are available.
func (w *World) countOf(k kind) (all, available int) {
	for _, e := range w.machines.last {
		if m := e.object; m.DeletionTimestamp == nil && kindOf(m.Spec) == k {
			all++
			if w.Available(m) {
				available++
			}
		}
	}
	return all, available
}

func limitOf(updated intstr.IntOrString, replicas int) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(&updated, replicas, true)
	if err != nil {
		panic(err)
	}
	return n
}

// gateTick is called at each tick.
func (g *gateWatch) tick(w *World) {
	d := w.deployment()
	steps, replicas := d.Spec.Strategy.RollingUpdate.Steps, int(d.Spec.Replicas)
	wanted := w.wanted()
	if wanted != g.to {
		g.to, g.rolls, g.step, g.most, g.full, g.approved = wanted, wanted != g.base, 0, 0, time.Time{}, 0
	}
	if w.Whole() && !w.hasOld(wanted) {
		g.base, g.rolls = wanted, false
	}
	if g.rolls {
		for g.step < len(steps) {
			s := steps[g.step]
			limit := limitOf(s.Updated, replicas)
			if limit >= replicas {
				g.step = len(steps)
				break
			}
			g.most = max(g.most, limit)
			if _, available := w.countOf(g.to); available >= limit && g.full.IsZero() {
				g.full = w.Now
			}
			soak := time.Duration(0)
			if s.Soak != nil {
				soak = s.Soak.Duration
			}
			// A status has whole seconds.
			if g.full.IsZero() || w.Now.Sub(g.full) < soak-time.Second || s.Approval != "" && g.approved <= g.step || !g.havePassed(w, s.Analyses) {
				break
			}
			g.step, g.full = g.step+1, time.Time{}
		}
	}
	g.checkHeld(w)
	if g.isOpen != nil {
		switch open := g.isOpen(w.Now); {
		case open:
			g.closed = time.Time{}
		case g.closed.IsZero():
			g.closed = w.Now
		}
	}
	for ; g.seen < len(w.machines.log); g.seen++ {
		g.onWrite(w, len(steps))
	}
	if g.rejected != nil && !g.acted {
		g.acted = !w.mayStillCreate(*g.rejected)
	}
}

// havePassed reports whether all analyses of the step have passed since its Machines were available.
func (g *gateWatch) havePassed(w *World, analyses []string) bool {
	for _, name := range analyses {
		if !slices.ContainsFunc(w.passes, func(p passedAnalysis) bool {
			return p.name == name && int(p.step) == g.step+1 && !p.at.Before(g.full)
		}) {
			return false
		}
	}
	return true
}

// mayStillCreate reports whether a set of a kind may still act on a number from before a rejection.
func (w *World) mayStillCreate(k kind) bool {
	for _, e := range w.sets.last {
		s := e.object
		if kindOf(s.Spec.Template.Spec) == k && (s.Spec.Creation != machinev1alpha1.CreationDisabled || s.Status.DecidedGeneration < s.Generation || len(s.Status.Creating) > 0) {
			return true
		}
	}
	return false
}

// hasOld reports whether there are Machines of other kinds, terminating ones included.
func (w *World) hasOld(k kind) bool {
	for _, e := range w.machines.last {
		if kindOf(e.object.Spec) != k {
			return true
		}
	}
	return false
}

// onWrite checks the next write of a Machine.
func (g *gateWatch) onWrite(w *World, steps int) {
	e := w.machines.log[g.seen]
	m := e.object
	if m == nil {
		return
	}
	before := w.previous(g.seen)
	k := kindOf(m.Spec)
	isNew := before == nil && m.DeletionTimestamp == nil
	if isNew && g.rolls && g.step < steps && k == g.to {
		if all, _ := w.countOf(k); all > max(g.most, 1) && w.hasOld(k) {
			w.violated("%s: creation of %s: there are %d Machines of the new template %v, and step %d allows %d", w.Now.Format(time.RFC3339), m.Name, all, k, g.step+1, g.most)
		}
	}
	if isNew && g.rejected != nil && g.acted && k == *g.rejected {
		w.violated("%s: creation of %s of the rejected template %v", w.Now.Format(time.RFC3339), m.Name, k)
	}
	goes := m.DeletionTimestamp != nil && before != nil && before.DeletionTimestamp == nil
	if goes && !g.closed.IsZero() && w.Now.Sub(g.closed) > 10*time.Second && k != g.to && g.rejected == nil && !isMarked(m) && w.Available(before) &&
		w.losses[m.Name] == nil && w.Now.Sub(g.lowered) > 10*time.Minute {
		w.violated("%s: deletion of %s, which is healthy and of the template %v, outside of the window since %s", w.Now.Format(time.RFC3339), m.Name, k, g.closed.Format(time.RFC3339))
	}
}

// previous returns the Machine of a write as it was before, nil if it was not there.
func (w *World) previous(i int) *machinev1alpha1.Machine {
	name := w.machines.log[i].name
	for j := i - 1; j >= 0; j-- {
		if e := w.machines.log[j]; e.name == name {
			return e.object
		}
	}
	return nil
}

// checkHeld asserts that no Machine is missing while a step waits: holding costs no availability.
func (g *gateWatch) checkHeld(w *World) {
	d := w.deployment()
	r := d.Status.Rollout
	waits := r != nil && r.Held != nil && slices.Contains([]string{
		machinev1alpha1.ReasonSoaking, machinev1alpha1.ReasonAwaitingApproval, machinev1alpha1.ReasonAnalyzing, machinev1alpha1.ReasonAnalysisFailed, machinev1alpha1.ReasonAnalysisInconclusive,
	}, r.Held.Reason) && !d.Spec.Paused
	switch {
	case !waits || g.replicas != d.Spec.Replicas:
		if d.Spec.Replicas < g.replicas {
			g.lowered = w.Now
		}
		g.waits, g.replicas = time.Time{}, d.Spec.Replicas
	case g.waits.IsZero():
		g.waits = w.Now
	case w.Now.Sub(g.waits) > 5*time.Minute:
		n := int32(0)
		for _, s := range d.Status.MachineSets {
			n += s.Replicas
		}
		if n < d.Spec.Replicas {
			w.violated("%s: %d Machines are desired of %d while the rollout is held (%s) since %s", w.Now.Format(time.RFC3339), n, d.Spec.Replicas, r.Held.Reason, g.waits.Format(time.RFC3339))
		}
	}
}

// TestGates drives rollouts with steps, windows, holds and rejections through hours of losses and changes. The
// watch must see no violation, and in the end the pool has the template of the spec, or the last good one.
func TestGates(t *testing.T) { rapid.Check(t, gatesHold) }

func gatesHold(t *rapid.T) {
	s := poolOf(rapid.IntRange(1, 6).Draw(t, "replicas"), rapid.IntRange(0, 2).Draw(t, "surge"), rapid.IntRange(0, 3).Draw(t, "unavailable"))
	s.ProgressDeadlineSeconds = 1800
	s.Remediation.MaxUnhealthy = &intstr.IntOrString{Type: intstr.String, StrVal: "100%"}
	s.Strategy.RollingUpdate.Steps = stepsFor(t)
	s.RevisionHistoryLimit = rapid.Int32Range(0, 3).Draw(t, "revisionHistoryLimit")
	g := &gateWatch{}
	if rapid.Bool().Draw(t, "has windows") {
		// Two hours of four.
		s.Rollout.Windows = []machinev1alpha1.TimeWindow{{Schedule: "0 */4 * * *", Duration: metav1.Duration{Duration: 2 * time.Hour}}}
		g.isOpen = func(at time.Time) bool { return at.Hour()%4 < 2 }
	}
	if rapid.Bool().Draw(t, "rolls back") {
		s.Rollout.OnFailure = machinev1alpha1.FailureRollback
	}
	w := NewWorld(s, Cloud{ID: 30 * time.Second, Boot: time.Minute, Drain: 20 * time.Second})
	if !w.RunUntil(time.Hour, w.Settled) {
		t.Fatalf("the pool did not begin:\n%s", w)
	}
	w.OnTick = func() {
		if r := deployment.Rejected(w.deployment()); r == nil {
			g.rejected, g.acted = nil, false
		} else if k := kindOf(w.deployment().Spec.Template.Spec); g.rejected == nil || *g.rejected != k {
			g.rejected, g.acted = &k, false
		}
		g.tick(w)
	}
	g.tick(w)
	g.seen = len(w.machines.log)
	user := func(verb, arg string) {
		w.Update(func(d *machinev1alpha1.MachineDeployment) { request(d, verb, arg) })
		w.touch()
	}
	approve := func() {
		r := w.Deployment().Status.Rollout
		if r == nil || r.Step == 0 {
			return
		}
		user("approve", fmt.Sprint(r.Step))
		if g.rolls && r.ID == deployment.IDOf(w.Deployment().Status.Revisions[len(w.Deployment().Status.Revisions)-1]) {
			g.approved = max(g.approved, int(r.Step))
		}
	}
	versions := 1
	for range rapid.IntRange(1, 8).Draw(t, "events") {
		machine := ""
		if ms := w.Machines(); len(ms) > 0 {
			machine = ms[rapid.IntRange(0, len(ms)-1).Draw(t, "machine")].Name
		}
		switch rapid.IntRange(0, 14).Draw(t, "event") {
		case 0, 1, 2:
			versions++
			w.Cloud.NoJoin = rapid.IntRange(0, 3).Draw(t, "never joins") == 0
			w.Update(func(d *machinev1alpha1.MachineDeployment) {
				d.Spec.Template.Spec.Version = fmt.Sprintf("v%d", versions)
			})
		case 3:
			w.Update(func(d *machinev1alpha1.MachineDeployment) {
				d.Spec.Replicas = int32(rapid.IntRange(1, 8).Draw(t, "replicas"))
			})
		case 4:
			w.LoseVM(machine)
		case 5:
			w.KillNode(machine)
		case 6, 7, 8:
			approve()
		case 9:
			user("hold", "incident")
		case 10:
			user("hold", "no")
		case 11:
			user("abort", "")
		case 12:
			user("retry", "")
		case 13:
			w.Gate = nil
			if rapid.Bool().Draw(t, "gate holds") {
				w.Gate = &plan.RolloutGate{Hold: true, Reason: "Maintenance"}
			}
			w.touch()
		case 14:
			w.Finds = rapid.SampledFrom([]machinev1alpha1.AnalysisVerdict{machinev1alpha1.AnalysisPass, machinev1alpha1.AnalysisFail, machinev1alpha1.AnalysisInconclusive}).Draw(t, "analyses find")
			w.touch()
		}
		w.Run(time.Duration(rapid.SampledFrom([]int{1, 3, 10, 40, 100, 300}).Draw(t, "minutes")) * time.Minute)
		fail(t, w, g)
	}
	w.Cloud.NoJoin, w.Gate, w.Finds = false, nil, machinev1alpha1.AnalysisPass
	user("hold", "no")
	// Failed Machines of a template that never joined are created again at increasing delays.
	for range 100 {
		approve()
		if h := w.Deployment().Status.Rollout; h != nil && h.Held != nil && h.Held.Reason == machinev1alpha1.ReasonAnalysisFailed {
			user("retry", "")
		}
		w.Run(30 * time.Minute)
		fail(t, w, g)
		if w.Whole() && !w.hasOld(w.wanted()) {
			rested(t, w)
			return
		}
	}
	t.Fatalf("does not arrive, the wanted kind is %v:\n%+v\n%s", w.wanted(), *g, w)
}

// rested asserts that a pool that has arrived writes nothing, and that it is Ready unless its template was rejected.
func rested(t *rapid.T, w *World) {
	w.Run(2 * time.Hour)
	before := w.Writes()
	w.Run(2 * time.Hour)
	if n := w.Writes() - before; n > 0 {
		t.Fatalf("%d writes at rest:\n%s", n, w)
	}
	d := w.deployment()
	if is, rejected := isTrue(d.Status.Conditions, "Ready"), deployment.Rejected(d) != nil; is == rejected || rejected != isTrue(d.Status.Conditions, machinev1alpha1.ConditionStalled) {
		t.Fatalf("Ready is %t, rejected %t:\n%s", is, rejected, w)
	}
}

func fail(t *rapid.T, w *World, g *gateWatch) {
	if len(w.Violations) > 0 {
		t.Fatalf("%s\n%+v\n%s", w.Violations[0], *g, w)
	}
}

// stepsFor are up to three steps, all numbers or all percentages.
func stepsFor(t *rapid.T) []machinev1alpha1.RolloutStep {
	percent := rapid.Bool().Draw(t, "percentages")
	numbers := rapid.SliceOfNDistinct(rapid.IntRange(1, 5), 0, 3, rapid.ID).Draw(t, "steps")
	slices.Sort(numbers)
	var out []machinev1alpha1.RolloutStep
	for _, n := range numbers {
		s := machinev1alpha1.RolloutStep{Updated: intstr.FromInt32(int32(n))}
		if percent {
			s.Updated = intstr.FromString(fmt.Sprintf("%d%%", 17*n))
		}
		if rapid.Bool().Draw(t, "analysis") {
			s.Analyses = []string{"pods"}
		}
		if rapid.Bool().Draw(t, "approval") {
			s.Approval = machinev1alpha1.ApprovalManual
		} else {
			s.Soak = &metav1.Duration{Duration: time.Duration(rapid.IntRange(1, 30).Draw(t, "soak")) * time.Minute}
		}
		out = append(out, s)
	}
	return out
}

// TestHeldRolloutsWriteNothing lets each gate hold a rollout for hours. After it is held, nothing is written.
func TestHeldRolloutsWriteNothing(t *testing.T) {
	for name, hold := range map[string]func(*World){
		"a step awaits an approval": func(w *World) {
			w.Update(func(d *machinev1alpha1.MachineDeployment) {
				d.Spec.Strategy.RollingUpdate.Steps, _ = stepsOf("1+Manual")
			})
		},
		"a step soaks": func(w *World) {
			w.Update(func(d *machinev1alpha1.MachineDeployment) {
				d.Spec.Strategy.RollingUpdate.Steps, _ = stepsOf("1+1000h")
			})
		},
		"an analysis failed": func(w *World) {
			w.Finds = machinev1alpha1.AnalysisFail
			w.Update(func(d *machinev1alpha1.MachineDeployment) {
				d.Spec.Strategy.RollingUpdate.Steps, _ = stepsOf("1+analysis:pods")
			})
		},
		"an analysis finds nothing": func(w *World) {
			w.Finds = machinev1alpha1.AnalysisInconclusive
			w.Update(func(d *machinev1alpha1.MachineDeployment) {
				d.Spec.Strategy.RollingUpdate.Steps, _ = stepsOf("1+analysis:pods")
			})
		},
		"no controller analyses": func(w *World) {
			w.Unanswered = true
			w.Update(func(d *machinev1alpha1.MachineDeployment) {
				d.Spec.Strategy.RollingUpdate.Steps, _ = stepsOf("1+analysis:pods")
			})
		},
		"outside of the window": func(w *World) {
			w.Update(func(d *machinev1alpha1.MachineDeployment) {
				d.Spec.Rollout.Windows = []machinev1alpha1.TimeWindow{{Schedule: "0 0 29 2 *", Duration: metav1.Duration{Duration: time.Hour}}}
			})
		},
		"a user holds it": func(w *World) {
			w.Update(func(d *machinev1alpha1.MachineDeployment) { request(d, "hold", "incident") })
		},
		"a gate of its own": func(w *World) { w.Gate = &plan.RolloutGate{Hold: true} },
		"an earlier wave": func(w *World) {
			w.HasPolicies = true
			w.In(time.Minute, func() {
				w.AnswerTurn(machinev1alpha1.RolloutTurnStatus{Held: &machinev1alpha1.RolloutHold{Reason: machinev1alpha1.ReasonAwaitingWave, Message: "wave b waits for wave a"}})
			})
		},
		"a provider-drover that does not answer": func(w *World) { w.HasPolicies = true },
	} {
		t.Run(name, func(t *testing.T) {
			w := NewWorld(poolOf(3, 1, 0), Cloud{ID: 30 * time.Second, Boot: time.Minute, Drain: 20 * time.Second})
			if !w.RunUntil(time.Hour, w.Settled) {
				t.Fatalf("the pool did not begin:\n%s", w)
			}
			hold(w)
			w.Update(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Template.Spec.Version = "v2" })
			w.Run(40 * time.Minute)
			before := w.Writes()
			w.Run(30 * time.Hour)
			if n := w.Writes() - before; n > 0 || w.Whole() {
				t.Errorf("%d writes in 30 hours:\n%s", n, w)
			}
		})
	}
}

// TestARolloutWithoutGatesWritesNoMore has the writes of all controllers before there were steps, windows, analyses and waves. Those
// of the deletion of the old set count: a rollout is complete afterwards.
func TestARolloutWithoutGatesWritesNoMore(t *testing.T) {
	for _, tc := range []struct{ replicas, surge, create, roll int }{{3, 1, 52, 133}, {10, 10, 87, 124}} {
		w := NewWorld(poolOf(tc.replicas, tc.surge, 0), Cloud{ID: 5 * time.Second, Boot: 10 * time.Second, Drain: 5 * time.Second})
		if !w.RunUntil(time.Hour, w.Settled) {
			t.Fatalf("the pool did not begin:\n%s", w)
		}
		created := w.Writes()
		w.Update(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Template.Spec.Version = "v2" })
		if !w.RunUntil(10*time.Hour, w.Settled) {
			t.Fatalf("the rollout did not end:\n%s", w)
		}
		if rolled := w.Writes() - created; created > tc.create || rolled > tc.roll {
			t.Errorf("%d Machines: %d writes to create and %d to roll them, want at most %d and %d", tc.replicas, created, rolled, tc.create, tc.roll)
		}
	}
}
