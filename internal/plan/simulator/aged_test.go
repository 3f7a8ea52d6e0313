package simulator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

// An ageWatch knows what forbids replacements because of age, and since when.
type ageWatch struct {
	isOpen    func(time.Time) bool
	forbidden map[string]time.Time
}

// tick notes since when each cause forbids a replacement.
func (a *ageWatch) tick(w *World) {
	d := w.deployment()
	_, held := d.Annotations[machinev1alpha1.AnnotationRolloutHold]
	for cause, is := range map[string]bool{
		"outside of the window": a.isOpen != nil && !a.isOpen(w.Now),
		"a hold":                held,
		"a pause":               d.Spec.Paused,
		"a gate":                w.Gate != nil && w.Gate.Hold,
		"a freeze":              d.Labels[machinev1alpha1.LabelFreeze] == "true",
	} {
		if _, known := a.forbidden[cause]; !is {
			delete(a.forbidden, cause)
		} else if !known {
			a.forbidden[cause] = w.Now
		}
	}
}

// TestMachinesAreReplacedByTheirAge drives pools with a maximum age through days of losses, changes, holds and windows. The
// watcher sees one replacement at a time, of a Machine that is due, within the bounds, and this watch sees none that a window or
// a user forbids. In the end no Machine is older than allowed, by more than the windows and the others take.
func TestMachinesAreReplacedByTheirAge(t *testing.T) { rapid.Check(t, agesHold) }

func agesHold(t *rapid.T) {
	replicas := rapid.IntRange(1, 5).Draw(t, "replicas")
	s := poolOf(replicas, rapid.IntRange(0, 2).Draw(t, "surge"), rapid.IntRange(0, 2).Draw(t, "unavailable"))
	s.ProgressDeadlineSeconds = 1800
	s.Remediation.MaxUnhealthy = &intstr.IntOrString{Type: intstr.String, StrVal: "100%"}
	maxAge := time.Duration(rapid.IntRange(8, 20).Draw(t, "maxAge")) * time.Hour
	s.Rollout.MaxAge = &metav1.Duration{Duration: maxAge}
	strategy := rapid.SampledFrom([]string{"RollingUpdate", "RollingUpdate", "Recreate", "InPlaceUpdate"}).Draw(t, "strategy")
	if err := setFields(&s, []string{"strategy", strategy}); err != nil {
		t.Fatal(err)
	}
	a := &ageWatch{forbidden: map[string]time.Time{}}
	if rapid.Bool().Draw(t, "has windows") {
		// Two hours of four.
		s.Rollout.Windows = []machinev1alpha1.TimeWindow{{Schedule: "0 */4 * * *", Duration: metav1.Duration{Duration: 2 * time.Hour}}}
		a.isOpen = func(at time.Time) bool { return at.Hour()%4 < 2 }
	}
	w := NewWorld(s, Cloud{ID: 30 * time.Second, Boot: time.Minute, Drain: 20 * time.Second, Update: 40 * time.Second})
	if !w.RunUntil(time.Hour, w.Settled) {
		t.Fatalf("the pool did not begin:\n%s", w)
	}
	w.OnTick = func() { a.tick(w) }
	replaced := 0
	w.OnAged = func(m *machinev1alpha1.Machine) {
		replaced++
		for cause, since := range a.forbidden {
			if w.Now.Sub(since) > 10*time.Second {
				w.violated("%s: replacement of %s by its age, in spite of %s since %s", w.Now.Format(time.RFC3339), m.Name, cause, since.Format(time.RFC3339))
			}
		}
	}
	check := func() {
		if len(w.Violations) > 0 {
			t.Fatalf("%s\n%s", w.Violations[0], w)
		}
	}
	versions := 1
	for range rapid.IntRange(1, 8).Draw(t, "events") {
		machine := ""
		if ms := w.Machines(); len(ms) > 0 {
			machine = ms[rapid.IntRange(0, len(ms)-1).Draw(t, "machine")].Name
		}
		spec := func(change func(*machinev1alpha1.MachineDeployment)) { w.Update(change); w.touch() }
		switch rapid.IntRange(0, 12).Draw(t, "event") {
		case 0:
			versions++
			spec(func(d *machinev1alpha1.MachineDeployment) {
				d.Spec.Template.Spec.Version = fmt.Sprintf("v%d", versions)
			})
		case 1:
			spec(func(d *machinev1alpha1.MachineDeployment) {
				d.Spec.Replicas = int32(rapid.IntRange(1, 6).Draw(t, "replicas"))
			})
		case 2:
			w.LoseVM(machine)
		case 3:
			w.KillNode(machine)
		case 4:
			if machine != "" {
				w.DeleteByUser(machine)
			}
		case 5:
			spec(func(d *machinev1alpha1.MachineDeployment) { request(d, "hold", "incident") })
		case 6:
			spec(func(d *machinev1alpha1.MachineDeployment) { request(d, "hold", "no") })
		case 7:
			spec(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Paused = !d.Spec.Paused })
		case 8:
			w.Gate = nil
			if rapid.Bool().Draw(t, "gate holds") {
				w.Gate = &plan.RolloutGate{Hold: true, Reason: "Maintenance"}
			}
			w.touch()
		case 9:
			spec(func(d *machinev1alpha1.MachineDeployment) {
				d.Spec.Rollout.MaxAge = &metav1.Duration{Duration: time.Duration(rapid.IntRange(8, 20).Draw(t, "maxAge")) * time.Hour}
			})
		case 10:
			spec(func(d *machinev1alpha1.MachineDeployment) {
				if d.Labels = nil; rapid.Bool().Draw(t, "freeze") {
					d.Labels = map[string]string{machinev1alpha1.LabelFreeze: "true"}
				}
			})
		case 11:
			w.Cloud.NoJoin = rapid.Bool().Draw(t, "no Node joins")
		case 12:
			// Time passes.
		}
		w.Run(time.Duration(rapid.SampledFrom([]int{1, 3, 10, 100, 500}).Draw(t, "minutes")) * time.Minute)
		check()
	}
	w.Cloud.NoJoin, w.Gate = false, nil
	w.Update(func(d *machinev1alpha1.MachineDeployment) {
		request(d, "hold", "no")
		d.Spec.Paused, d.Labels, d.Spec.Rollout.MaxAge = false, nil, &metav1.Duration{Duration: maxAge}
	})
	w.touch()
	// Failed Machines of a template that never joined are created again at increasing delays.
	w.Run(8*time.Hour + maxAge)
	check()
	n := len(w.Machines())
	for _, m := range w.Machines() {
		// The next window is two hours away at most, and others may be due at the same time.
		if age := w.Now.Sub(m.CreationTimestamp.Time); age > maxAge+2*time.Hour+time.Duration(n)*10*time.Minute {
			t.Fatalf("%s is %s old, of at most %s:\n%s", m.Name, age, maxAge, w)
		}
	}
	if replaced == 0 {
		t.Fatalf("no Machine was replaced because of its age:\n%s", w)
	}
}

// TestAgesWriteNothingAtRest lets Machines age, and a gate and a closed window forbid their replacement when they are due.
func TestAgesWriteNothingAtRest(t *testing.T) {
	for name, tc := range map[string]struct {
		fields string
		gate   bool
	}{
		"not due":               {fields: "maxAge 1000h"},
		"outside of the window": {fields: "maxAge 2h window 0_0_29_2_*+1h"},
		"a gate holds":          {fields: "maxAge 2h", gate: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := poolOf(3, 1, 0)
			if err := setFields(&s, strings.Fields(tc.fields)); err != nil {
				t.Fatal(err)
			}
			w := NewWorld(s, Cloud{ID: 30 * time.Second, Boot: time.Minute, Drain: 20 * time.Second})
			if !w.RunUntil(time.Hour, w.Settled) {
				t.Fatalf("the pool did not begin:\n%s", w)
			}
			if tc.gate {
				w.Gate = &plan.RolloutGate{Hold: true}
			}
			w.Run(10 * time.Minute)
			next := w.Deployment().Status.Aging
			if next == nil || next.Machine == "" {
				t.Fatalf("the next Machine is %+v", next)
			}
			before := w.Writes()
			w.Run(100 * time.Hour)
			if n := w.Writes() - before; n > 0 || len(w.Violations) > 0 {
				t.Errorf("%d writes in 100 hours, %v:\n%s", n, w.Violations, w)
			}
			if again := w.Deployment().Status.Aging; *again != *next {
				t.Errorf("the next Machine was %+v, and is %+v", next, again)
			}
		})
	}
}
