package deployment

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

func maxAge(d time.Duration) deploymentOption {
	return func(md *machinev1alpha1.MachineDeployment) { md.Spec.Rollout.MaxAge = &metav1.Duration{Duration: d} }
}

// dueAt is the time from which the oldest Machine of the set is replaced.
func dueAt(d time.Duration) setOption {
	return func(s *Set) {
		s.Status.Aging = &machinev1alpha1.AgingMachine{Machine: "old", DueTime: metav1.NewTime(now.Add(d))}
	}
}

// TestWhenAMachineIsReplacedByItsAge has a deployment of three Machines that is complete, at noon.
func TestWhenAMachineIsReplacedByItsAge(t *testing.T) {
	hour := func(n time.Duration) string { return now.Add(n * time.Hour).UTC().Format("15") }
	const due = -time.Hour
	for name, tc := range map[string]struct {
		options []deploymentOption
		set     []setOption
		gate    *shared.RolloutGate
		replace string
		// again is the longest delay until the next call, any if 0.
		again time.Duration
	}{
		"one that is due is":                               {replace: "old"},
		"one that is due later is not, until then":         {set: []setOption{dueAt(20 * time.Minute)}, again: 20 * time.Minute},
		"one that is due out of a window waits for it":     {options: []deploymentOption{window(hour(1))}, again: time.Hour},
		"it is taken back when the window closes":          {options: []deploymentOption{window(hour(-1))}, replace: "old", again: time.Hour},
		"one that is due in a window later":                {options: []deploymentOption{window(hour(0))}, set: []setOption{dueAt(20 * time.Minute)}, again: 20 * time.Minute},
		"not while a user holds":                           {options: []deploymentOption{note(machinev1alpha1.AnnotationRolloutHold, "incident")}},
		"not during a pause":                               {options: []deploymentOption{func(d *machinev1alpha1.MachineDeployment) { d.Spec.Paused = true }}},
		"not while a gate holds":                           {gate: &shared.RolloutGate{Hold: true}, again: shared.InFlight},
		"not while a gate holds, until its time":           {gate: &shared.RolloutGate{Hold: true, Until: &metav1.Time{Time: now.Add(40 * time.Minute)}}, again: 40 * time.Minute},
		"not while a Machine is not available":             {set: []setOption{available(2)}},
		"not while the VM of the one before is there":      {set: []setOption{terminating(1)}},
		"not while the cloud has no room":                  {set: []setOption{func(s *Set) { s.Status.Exhausted = &machinev1alpha1.Exhaustion{Code: "QuotaExceeded"} }}},
		"not during a rollout":                             {options: []deploymentOption{func(d *machinev1alpha1.MachineDeployment) { d.Spec.Template = template("v3") }}},
		"not while it scales":                              {options: []deploymentOption{func(d *machinev1alpha1.MachineDeployment) { d.Spec.Replicas = 4 }}},
		"none without an age":                              {options: []deploymentOption{func(d *machinev1alpha1.MachineDeployment) { d.Spec.Rollout.MaxAge = nil }}},
		"none while the age is too short":                  {options: []deploymentOption{maxAge(time.Minute)}},
		"the name stays while the set has not acted on it": {set: []setOption{unsettled}, options: []deploymentOption{ready(metav1.ConditionTrue, 9)}, replace: "old"},
	} {
		t.Run(name, func(t *testing.T) {
			d := deployment(3, append([]deploymentOption{completed(1), recorded("v2", 3), ready(metav1.ConditionTrue, 9), maxAge(100 * time.Hour)}, tc.options...)...)
			set := machineSet("v2", 1, 3, append([]setOption{dueAt(due)}, tc.set...)...)
			p := Plan(now, Observed{Deployment: d, Sets: []Set{set}, ClassFound: true, Gate: tc.gate})
			got := ""
			for _, s := range p.Sets {
				if s.Spec.Aging != nil {
					got += s.Spec.Aging.Replace
				}
			}
			if got != tc.replace {
				t.Errorf("replaces %q, want %q", got, tc.replace)
			}
			if tc.again > 0 && (p.CallAgain > tc.again || p.CallAgain < tc.again-time.Minute) {
				t.Errorf("called again after %s, want %s", p.CallAgain, tc.again)
			}
		})
	}
}

func TestTheOrderOfAReplacementByAgeIsThatOfTheBounds(t *testing.T) {
	for name, tc := range map[string]struct {
		bounds deploymentOption
		want   machinev1alpha1.RemediationOrder
	}{
		"with a surge the new one is first":    {ints(1, 0), machinev1alpha1.CreateFirst},
		"without one the old one goes first":   {ints(0, 1), machinev1alpha1.DeleteFirst},
		"with Recreate too, which has none":    {func(d *machinev1alpha1.MachineDeployment) { d.Spec.Strategy.Type = machinev1alpha1.Recreate }, machinev1alpha1.DeleteFirst},
		"in place by the bounds of the update": {inPlaceBounds(0, 1, machinev1alpha1.OrchestrationAuto), machinev1alpha1.DeleteFirst},
	} {
		t.Run(name, func(t *testing.T) {
			d := deployment(3, completed(1), recorded("v2", 3), ready(metav1.ConditionTrue, 9), maxAge(100*time.Hour), tc.bounds)
			p := Plan(now, Observed{Deployment: d, Sets: []Set{machineSet("v2", 1, 3, updated(3))}, ClassFound: true})
			if a := p.Sets[0].Spec.Aging; a == nil || a.Order != tc.want {
				t.Errorf("%+v, want %s", a, tc.want)
			}
		})
	}
}

func TestAnAgeThatIsTooShortIsReported(t *testing.T) {
	p := Plan(now, Observed{Deployment: deployment(3, maxAge(time.Minute)), ClassFound: true})
	if got := condition(p, "Valid"); !strings.HasPrefix(got, `False InvalidMaxAge`) {
		t.Errorf("Valid %s", got)
	}
	for _, c := range p.Conditions {
		if c.Type == "Valid" && c.Message != `spec.rollout.maxAge: invalid value "1m0s": must be at least 1h0m0s; meanwhile no healthy Machine is replaced` {
			t.Errorf("message %s", c.Message)
		}
	}
}
