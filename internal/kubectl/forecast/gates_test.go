package forecast_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/forecast"
	"github.com/drover-dev/drover/internal/plan/simulator"
)

// TestAForecastHasStepsAndWindows changes the version of four Machines at midnight.
func TestAForecastHasStepsAndWindows(t *testing.T) {
	w := simulator.NewWorld(spec(), simulator.Cloud{ID: 30 * time.Second, Boot: time.Minute, Drain: 20 * time.Second})
	if !w.RunUntil(time.Hour, w.Settled) {
		t.Fatal("the pool did not begin")
	}
	var missing []string
	var policies []machinev1alpha1.RolloutPolicy
	of := func(change func(*machinev1alpha1.MachineDeployment)) forecast.Forecast {
		in := forecast.Input{Before: w.Deployment(), After: w.Deployment(), TargetRead: true, AnalysesMissing: missing, Policies: policies, Labels: map[string]string{"stage": "production"}}
		in.After.Spec.Template.Spec.Version = "v2"
		change(in.After)
		for _, s := range w.Sets() {
			in.Sets = append(in.Sets, *s)
		}
		for _, m := range w.Machines() {
			in.Machines = append(in.Machines, *m)
		}
		return forecast.Of(w.Now, in)
	}
	window := func(schedule string) func(*machinev1alpha1.MachineDeployment) {
		return func(d *machinev1alpha1.MachineDeployment) {
			d.Spec.Rollout.Windows = []machinev1alpha1.TimeWindow{{Schedule: schedule, Duration: metav1.Duration{Duration: time.Hour}}}
		}
	}
	if f := of(func(*machinev1alpha1.MachineDeployment) {}); len(f.Steps) > 0 || f.Window != "" {
		t.Errorf("without any: %v, %q", f.Steps, f.Window)
	}
	f := of(func(d *machinev1alpha1.MachineDeployment) {
		d.Spec.Strategy.RollingUpdate.Steps = []machinev1alpha1.RolloutStep{
			{Updated: intstr.FromString("25%"), Soak: &metav1.Duration{Duration: time.Hour}, Approval: machinev1alpha1.ApprovalManual, Analyses: []string{"pods"}},
			{Updated: intstr.FromString("100%"), Soak: &metav1.Duration{Duration: time.Hour}},
		}
	})
	if len(f.Steps) != 1 || f.Steps[0].Updated != 1 || f.Steps[0].Soak.Duration != time.Hour || f.Steps[0].Approval != machinev1alpha1.ApprovalManual || len(f.Steps[0].Analyses) != 1 {
		t.Errorf("steps %+v", f.Steps)
	}
	if f := of(window("0 2 * * *")); f.Window != "It begins at 2026-01-01T02:00:00Z, when the next window opens" || len(f.Replaced) != 4 {
		t.Errorf("outside of a window: %q, %d are replaced", f.Window, len(f.Replaced))
	}
	if f := of(window("0 0 * * *")); f.Window != "It begins at once, and pauses when the window closes at 2026-01-01T01:00:00Z" {
		t.Errorf("in a window: %q", f.Window)
	}
	f = of(window("0 2 30 2 *"))
	if len(f.Blocks) == 0 || f.Blocks[0].Reason != machinev1alpha1.ReasonInvalidWindow || !strings.Contains(f.Blocks[0].Message, "there is no such day") {
		t.Errorf("a window that never comes: %+v", f.Blocks)
	}
	analyzed := func(d *machinev1alpha1.MachineDeployment) {
		d.Spec.Strategy.RollingUpdate.Steps = []machinev1alpha1.RolloutStep{{Updated: intstr.FromInt32(1), Analyses: []string{"pods", "errors"}}}
	}
	if f := of(analyzed); len(f.Blocks) > 0 {
		t.Errorf("analyses that exist: %+v", f.Blocks)
	}
	missing = []string{"errors"}
	if f := of(analyzed); len(f.Blocks) == 0 || f.Blocks[0].Reason != machinev1alpha1.ReasonAnalysisNotFound || !f.Blocks[0].All || len(f.Replaced) > 0 ||
		!strings.Contains(f.Blocks[0].Message, `spec.strategy.rollingUpdate.steps[0].analyses[1]: invalid value "errors": the namespace default has no RolloutAnalysis of the name`) {
		t.Errorf("an analysis that does not exist: %+v, %d are replaced", f.Blocks, len(f.Replaced))
	}
	missing = nil
	policies = []machinev1alpha1.RolloutPolicy{{}}
	policies[0].Name = "fleet"
	policies[0].Spec.Waves = []machinev1alpha1.RolloutWave{{Name: "dev", MatchLabels: map[string]machinev1alpha1.LabelValue{"stage": "development"}}, {Name: "prod", MatchLabels: map[string]machinev1alpha1.LabelValue{"stage": "production"}}}
	if f := of(func(*machinev1alpha1.MachineDeployment) {}); len(f.Waves) != 1 || !strings.HasPrefix(f.Waves[0], "It is in wave prod of RolloutPolicy fleet, and begins when") {
		t.Errorf("with a policy: %q", f.Waves)
	}
	policies = nil
	f = of(func(d *machinev1alpha1.MachineDeployment) {
		d.Annotations = map[string]string{machinev1alpha1.AnnotationRolloutHold: "incident"}
	})
	if len(f.Blocks) == 0 || f.Blocks[0].Reason != machinev1alpha1.ReasonRolloutHeld || len(f.Replaced) > 0 {
		t.Errorf("a hold: %+v, %d are replaced", f.Blocks, len(f.Replaced))
	}
}

// TestAForecastHasTheNextMachineByAge changes the maximum age of four Machines of one hour.
func TestAForecastHasTheNextMachineByAge(t *testing.T) {
	w := simulator.NewWorld(spec(), simulator.Cloud{ID: 30 * time.Second, Boot: time.Minute, Drain: 20 * time.Second})
	if !w.RunUntil(time.Hour, w.Settled) {
		t.Fatal("the pool did not begin")
	}
	w.Run(time.Hour)
	of := func(change func(*machinev1alpha1.MachineDeployment)) forecast.Forecast {
		in := forecast.Input{Before: w.Deployment(), After: w.Deployment(), TargetRead: true}
		change(in.After)
		for _, s := range w.Sets() {
			in.Sets = append(in.Sets, *s)
		}
		for _, m := range w.Machines() {
			in.Machines = append(in.Machines, *m)
		}
		return forecast.Of(w.Now, in)
	}
	maxAge := func(d time.Duration) func(*machinev1alpha1.MachineDeployment) {
		return func(md *machinev1alpha1.MachineDeployment) { md.Spec.Rollout.MaxAge = &metav1.Duration{Duration: d} }
	}
	has := func(f forecast.Forecast, prefix string, parts ...string) {
		t.Helper()
		for _, p := range append(parts, prefix) {
			if !strings.Contains(f.Aging, p) {
				t.Errorf("%q has no %q", f.Aging, p)
			}
		}
	}
	if f := of(func(*machinev1alpha1.MachineDeployment) {}); f.Aging != "" {
		t.Errorf("without an age: %q", f.Aging)
	}
	f := of(maxAge(100 * time.Hour))
	has(f, "Machines are replaced one at a time when they are 100h0m0s old at most: the next one is md-", "from 2026-01-0")
	if strings.Contains(f.Aging, "are due already") || len(f.Replaced) > 0 {
		t.Errorf("none is due: %q, %v", f.Aging, f.Replaced)
	}
	has(of(maxAge(time.Hour)), "are due already", "from "+w.Now.UTC().Format(time.RFC3339)+" on")
	has(of(func(d *machinev1alpha1.MachineDeployment) {
		maxAge(time.Hour)(d)
		d.Spec.Rollout.Windows = []machinev1alpha1.TimeWindow{{Schedule: "0 12 * * *", Duration: metav1.Duration{Duration: time.Hour}}}
	}), "from 2026-01-01T12:00:00Z on")
	if f := of(func(d *machinev1alpha1.MachineDeployment) {
		maxAge(100 * time.Hour)(d)
		d.Spec.Template.Spec.Version = "v2"
	}); f.Aging != "Machines are replaced one at a time when they are 100h0m0s old at most" {
		t.Errorf("all are replaced by the change: %q", f.Aging)
	}
	if f := of(maxAge(time.Minute)); len(f.Blocks) == 0 || f.Blocks[0].Reason != machinev1alpha1.ReasonInvalidMaxAge || f.Aging != "" {
		t.Errorf("too short: %+v, %q", f.Blocks, f.Aging)
	}
}

// TestAForecastHasWhatCannotBeDoneInPlace moves four Machines to another failure domain.
func TestAForecastHasWhatCannotBeDoneInPlace(t *testing.T) {
	s := spec()
	s.Strategy.Type = machinev1alpha1.InPlaceUpdate
	s.Strategy.InPlaceUpdate.Orchestration = machinev1alpha1.OrchestrationAuto
	w := simulator.NewWorld(s, simulator.Cloud{ID: 30 * time.Second, Boot: time.Minute, Drain: 20 * time.Second})
	if !w.RunUntil(time.Hour, w.Settled) {
		t.Fatal("the pool did not begin")
	}
	for fallback, replaced := range map[machinev1alpha1.FallbackPolicy]int{machinev1alpha1.FallbackReplace: 4, machinev1alpha1.FallbackNever: 0} {
		in := forecast.Input{Before: w.Deployment(), After: w.Deployment(), TargetRead: true}
		zone := "zone-b"
		in.After.Spec.Template.Spec.FailureDomain, in.After.Spec.Strategy.InPlaceUpdate.Fallback = &zone, fallback
		for _, s := range w.Sets() {
			in.Sets = append(in.Sets, *s)
		}
		for _, m := range w.Machines() {
			in.Machines = append(in.Machines, *m)
		}
		f := forecast.Of(w.Now, in)
		blocked := len(f.Blocks) > 0 && f.Blocks[0].Reason == machinev1alpha1.ReasonCannotUpdateInPlace && f.Blocks[0].All && strings.Contains(f.Blocks[0].Message, "spec.template.spec.failureDomain")
		if len(f.Replaced) != replaced || blocked != (fallback == machinev1alpha1.FallbackNever) {
			t.Errorf("with fallback %s %d are replaced, and the blockers are %+v", fallback, len(f.Replaced), f.Blocks)
		}
	}
}
