package simulator

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/deployment"
	"github.com/drover-dev/drover/internal/plan/waves"
)

var waveNames = []string{"development", "staging", "production"}

// A wavedFleet has three pools, each in a wave of its own, and the controller of RolloutPolicies. It asserts from the facts of
// the world that no Machine of a new template is created in a wave unless, at a time after the template was requested, each
// earlier wave had all Machines of its template, for the time of soak.
type wavedFleet struct {
	policy *machinev1alpha1.RolloutPolicy
	worlds []*World
	events []plan.Event
	writes int
	// seen are the members in the cache of the controller.
	seen []waves.Member
	// requested is when the template of a wave changed last, and done when all its Machines were of that, zero before.
	requested, done []time.Time
	wanted          []kind
	// begun are the templates whose Machines may be created: those that were complete, or that began by the rules.
	begun []map[kind]bool
	// passed are the waves that the platform team let pass, until they are done.
	passed []bool
	logged []int
	broken string
}

func newWavedFleet(soak time.Duration) *wavedFleet {
	f := &wavedFleet{policy: &machinev1alpha1.RolloutPolicy{ObjectMeta: metav1.ObjectMeta{Name: "fleet", Generation: 1}}}
	f.policy.Spec.Delay.Duration = time.Minute
	for _, name := range waveNames {
		f.policy.Spec.Waves = append(f.policy.Spec.Waves, machinev1alpha1.RolloutWave{
			Name: name, MatchLabels: map[string]machinev1alpha1.LabelValue{"stage": machinev1alpha1.LabelValue(name)},
			Soak: &metav1.Duration{Duration: soak}, Deadline: metav1.Duration{Duration: 24 * time.Hour},
		})
		w := NewWorld(poolOf(3, 1, 0), Cloud{ID: 30 * time.Second, Boot: time.Minute, Drain: 20 * time.Second})
		w.HasPolicies = true
		f.worlds = append(f.worlds, w)
		f.wanted, f.begun = append(f.wanted, w.wanted()), append(f.begun, map[kind]bool{w.wanted(): true})
	}
	f.requested, f.done = make([]time.Time, len(f.worlds)), make([]time.Time, len(f.worlds))
	f.passed, f.logged = make([]bool, len(f.worlds)), make([]int, len(f.worlds))
	return f
}

func uidOf(wave int) types.UID { return types.UID(waveNames[wave]) }

func (f *wavedFleet) members() []waves.Member {
	var out []waves.Member
	for i, w := range f.worlds {
		m := waves.Member{Namespace: "default", Name: waveNames[i], UID: uidOf(i), Labels: map[string]string{"stage": waveNames[i]}}
		m.State, m.Completed = deployment.MemberState(w.Deployment())
		out = append(out, m)
	}
	return out
}

// reconcile as the controller does. Its cache may be old.
func (f *wavedFleet) reconcile() {
	o := waves.Observed{Members: f.seen, Turns: map[types.UID]*machinev1alpha1.RolloutTurn{}}
	if f.policy != nil {
		o.Policies = append(o.Policies, f.policy)
	}
	for i, w := range f.worlds {
		if w.turn != nil {
			o.Turns[uidOf(i)] = w.turn
		}
	}
	now := f.now()
	d := waves.Plan(now, o)
	if d.Begins {
		o.Members = f.members()
		d = waves.Plan(now, o)
	}
	if s, changed := d.Policies["fleet"]; changed {
		f.policy.Status = s
		f.events = append(f.events, d.Events["fleet"]...)
		f.writes++
	}
	for i, w := range f.worlds {
		if s, changed := d.Answers[uidOf(i)]; changed {
			w.AnswerTurn(s)
		}
	}
}

func (f *wavedFleet) now() time.Time { return f.worlds[0].Now }

// live for some time, in which the cache of the controller is up to date at some times.
func (f *wavedFleet) live(d time.Duration, isFresh func() bool) {
	for range int(d / (10 * time.Second)) {
		for i, w := range f.worlds {
			w.Run(10 * time.Second)
			f.look(i)
		}
		if f.seen == nil || isFresh() {
			f.seen = f.members()
		}
		f.reconcile()
	}
}

func fresh() bool { return true }

// look at the Machines of a wave.
func (f *wavedFleet) look(i int) {
	w := f.worlds[i]
	f.note(i)
	if f.done[i].IsZero() && w.Whole() && !w.hasOld(w.wanted()) && deployment.Rejected(w.deployment()) == nil {
		f.done[i], f.passed[i] = w.Now, false
		f.begun[i] = map[kind]bool{w.wanted(): true}
	}
	if t := w.turn; t != nil && t.Status.AdmittedTime != nil && t.Status.Template == t.Spec.Template && f.mayBegin(i, t.Status.AdmittedTime.Time) {
		f.begun[i][w.wanted()] = true
	}
	for ; f.logged[i] < len(w.machines.log); f.logged[i]++ {
		e := w.machines.log[f.logged[i]]
		if e.gone || e.object.DeletionTimestamp != nil || e.object.Status.Phase != "" {
			continue
		}
		if k := kindOf(e.object.Spec); f.policy != nil && !f.begun[i][k] && f.broken == "" {
			f.broken = fmt.Sprintf("%s: wave %s has Machine %s of %v although an earlier wave is not complete: requested %v, done %v", w.Now, waveNames[i], e.name, k, f.requested, f.done)
		}
	}
	if len(w.Violations) > 0 && f.broken == "" {
		f.broken = waveNames[i] + ": " + w.Violations[0]
	}
}

// mayBegin reports whether a rollout of a wave may begin at a time. A status has whole seconds, and the world is looked at every
// ten seconds.
func (f *wavedFleet) mayBegin(i int, at time.Time) bool {
	const coarse = 11 * time.Second
	for j := range i {
		soak := f.policy.Spec.Waves[j].Soak.Duration
		if !f.passed[j] && (f.done[j].IsZero() || at.Before(f.done[j].Add(soak-coarse))) {
			return false
		}
	}
	return i == 0 || !at.Before(f.requested[i].Add(f.policy.Spec.Delay.Duration-time.Second))
}

// roll out a version in a wave.
func (f *wavedFleet) roll(i int, version string) {
	f.change(i, func(d *machinev1alpha1.MachineDeployment) { d.Spec.Template.Spec.Version = version })
}

func (f *wavedFleet) change(i int, change func(*machinev1alpha1.MachineDeployment)) {
	f.worlds[i].Update(change)
	f.note(i)
}

// note whether another template is wanted: a rejection changes that, too.
func (f *wavedFleet) note(i int) {
	w := f.worlds[i]
	if now := w.wanted(); now != f.wanted[i] {
		f.wanted[i], f.requested[i], f.done[i] = now, w.Now, time.Time{}
	}
}

// pass a wave, as who may change the policy does.
func (f *wavedFleet) pass(i int) {
	if i < len(f.policy.Status.Waves) {
		f.policy.Annotations = map[string]string{machinev1alpha1.AnnotationPassWave: f.policy.Status.Waves[i].ID}
		f.passed[i] = f.policy.Status.Waves[i].ID != ""
	}
}

func (f *wavedFleet) isSettled() bool {
	return !slices.ContainsFunc(f.worlds, func(w *World) bool { return !w.Settled() || w.hasOld(w.wanted()) || w.turn != nil })
}

// settle lets everything continue until all waves have their Machines.
func (f *wavedFleet) settle(t interface {
	Fatalf(string, ...any)
	Helper()
}) {
	t.Helper()
	for range 300 {
		f.live(10*time.Minute, fresh)
		if f.broken != "" {
			t.Fatalf("%s", f.broken)
		}
		if f.isSettled() {
			return
		}
	}
	t.Fatalf("the fleet does not settle: %+v\n%s\n%s\n%s", f.policy, f.worlds[0], f.worlds[1], f.worlds[2])
}

// TestWavesKeepTheirOrder changes templates of all waves at any time, in the middle of rollouts too. Nodes of a wave do not join,
// users abort and pause rollouts, the platform team lets waves pass, and the cache of the controller lags behind. No Machine
// of a new template is created before all earlier waves are complete and have soaked. In the end all waves have their
// template, and nothing is written.
func TestWavesKeepTheirOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newWavedFleet(time.Duration(rapid.IntRange(0, 20).Draw(t, "soak")) * time.Minute)
		f.settle(t)
		for range rapid.IntRange(1, 6).Draw(t, "changes") {
			i := rapid.IntRange(0, len(waveNames)-1).Draw(t, "wave")
			switch rapid.IntRange(0, 7).Draw(t, "change") {
			case 0, 1, 2:
				f.roll(i, rapid.SampledFrom([]string{"v1", "v2", "v3"}).Draw(t, "version"))
			case 3:
				version := rapid.SampledFrom([]string{"v1", "v2", "v3"}).Draw(t, "version")
				for j := range f.worlds {
					f.roll(j, version)
				}
			case 4:
				f.worlds[i].Cloud.NoJoin = !f.worlds[i].Cloud.NoJoin
			case 5:
				f.worlds[i].Update(func(d *machinev1alpha1.MachineDeployment) {
					request(d, rapid.SampledFrom([]string{"abort", "retry"}).Draw(t, "request"), "")
				})
				f.note(i)
			case 6:
				f.change(i, func(d *machinev1alpha1.MachineDeployment) { d.Spec.Paused = !d.Spec.Paused })
			case 7:
				f.pass(i)
			}
			lag := rapid.IntRange(0, 5).Draw(t, "lag")
			f.live(time.Duration(rapid.SampledFrom([]int{1, 3, 10, 40, 100}).Draw(t, "minutes"))*time.Minute, func() bool {
				return lag == 0 || rapid.IntRange(0, lag).Draw(t, "cache") == 0
			})
			if f.broken != "" {
				t.Fatalf("%s", f.broken)
			}
		}
		for i, w := range f.worlds {
			w.Cloud.NoJoin = false
			f.change(i, func(d *machinev1alpha1.MachineDeployment) {
				d.Spec.Paused = false
				request(d, "retry", "")
			})
		}
		f.settle(t)
		f.live(2*time.Hour, fresh)
		before := f.writes
		for _, w := range f.worlds {
			before += w.Writes()
		}
		f.live(2*time.Hour, fresh)
		after := f.writes
		for _, w := range f.worlds {
			after += w.Writes()
		}
		if after > before {
			t.Fatalf("%d writes at rest", after-before)
		}
	})
}
