package deployment

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// complete is the time since which the Machines of the step are available.
var complete = metav1.NewTime(now.Add(-5 * time.Minute).UTC().Truncate(time.Second))

func atCompleteStep(d *machinev1alpha1.MachineDeployment) {
	atStep(1)(d)
	d.Status.Rollout.ReachedTime = &complete
}

// analyzed has one step, of which analyses must pass.
func analyzed(names ...string) deploymentOption {
	return func(d *machinev1alpha1.MachineDeployment) {
		d.Spec.Strategy.RollingUpdate.Steps = []machinev1alpha1.RolloutStep{{Updated: intstr.FromInt32(1), Analyses: names}}
	}
}

func onFailure(p machinev1alpha1.FailurePolicy) deploymentOption {
	return func(d *machinev1alpha1.MachineDeployment) { d.Spec.Rollout.OnFailure = p }
}

type runOption func(*machinev1alpha1.RolloutAnalysisRun)

// verdict of an analysis, which began when the Machines of the step were available.
func verdict(name string, v machinev1alpha1.AnalysisVerdict, timeout time.Duration) runOption {
	return func(r *machinev1alpha1.RolloutAnalysisRun) {
		r.Status.Results = append(r.Status.Results, machinev1alpha1.AnalysisResult{
			Name: name, Verdict: v, Message: "4 of 5 pods", StartTime: complete, Deadline: metav1.NewTime(complete.Add(timeout)),
		})
	}
}

// about another step than the present one.
func about(change func(*machinev1alpha1.AnalyzedStep)) runOption {
	return func(r *machinev1alpha1.RolloutAnalysisRun) { change(r.Status.Step) }
}

// TestAnalysesOfAStep has four Machines of v1 and one of v2: a rollout that goes on deletes one of v1.
func TestAnalysesOfAStep(t *testing.T) {
	const (
		running, pass, fail, inconclusive = machinev1alpha1.AnalysisRunning, machinev1alpha1.AnalysisPass, machinev1alpha1.AnalysisFail, machinev1alpha1.AnalysisInconclusive
		waits, goes, failed, overdue      = "True Analyzing", "True MachineSetUpdated", "False AnalysisFailed", "False AnalysisInconclusive"
	)
	retry := func(d *machinev1alpha1.MachineDeployment) {
		d.Annotations = map[string]string{machinev1alpha1.AnnotationRolloutRetry: RetryID(IDOf(d.Status.Revisions[1]), complete)}
	}
	for name, tc := range map[string]struct {
		options []deploymentOption
		run     []runOption
		// old are the Machines of v1 that remain.
		old         int32
		progressing string
		// message is a part of the condition.
		message string
	}{
		"without a verdict it waits":                      {run: nil, old: 4, progressing: waits, message: "without a verdict yet: pods"},
		"one that runs is waited for until its timeout":   {run: []runOption{verdict("pods", running, time.Hour)}, old: 4, progressing: waits, message: "must have one until " + complete.Add(time.Hour).UTC().Format(time.RFC3339)},
		"one that passed lets the next step begin":        {run: []runOption{verdict("pods", pass, time.Hour)}, old: 3, progressing: goes},
		"one that passed is not overdue":                  {run: []runOption{verdict("pods", pass, time.Minute)}, old: 3, progressing: goes},
		"one that failed holds":                           {run: []runOption{verdict("pods", fail, time.Hour)}, old: 4, progressing: failed, message: "step 1 of 1: the analysis pods failed: 4 of 5 pods; correct spec.template, or run kubectl drover rollout abort or kubectl drover rollout retry"},
		"one that failed rolls back":                      {options: []deploymentOption{onFailure(machinev1alpha1.FailureRollback)}, run: []runOption{verdict("pods", fail, time.Hour)}, old: 4, progressing: "False RolloutRejected", message: "AnalysisFailed: step 1 of 1: the analysis pods failed: 4 of 5 pods"},
		"one that is inconclusive waits":                  {run: []runOption{verdict("pods", inconclusive, time.Hour)}, old: 4, progressing: waits},
		"one that is inconclusive is reported in the end": {run: []runOption{verdict("pods", inconclusive, time.Minute)}, old: 4, progressing: overdue, message: "the analysis pods has no verdict after its timeout at " + complete.Add(time.Minute).UTC().Format(time.RFC3339) + ": 0 measurements passed and 0 failed; the last one: 4 of 5 pods"},
		"one that is inconclusive does not roll back":     {options: []deploymentOption{onFailure(machinev1alpha1.FailureRollback)}, run: []runOption{verdict("pods", inconclusive, time.Minute)}, old: 4, progressing: overdue},
		"one that nothing answers is reported in the end": {options: []deploymentOption{func(d *machinev1alpha1.MachineDeployment) {
			d.Status.Rollout.ReachedTime = &metav1.Time{Time: now.Add(-11 * time.Minute)}
		}}, old: 4, progressing: overdue, message: "provider-drover did not measure anything"},
		"two must pass":                                      {options: []deploymentOption{analyzed("pods", "errors")}, run: []runOption{verdict("pods", pass, time.Hour)}, old: 4, progressing: waits, message: "without a verdict yet: errors"},
		"two that passed":                                    {options: []deploymentOption{analyzed("pods", "errors")}, run: []runOption{verdict("pods", pass, time.Hour), verdict("errors", pass, time.Hour)}, old: 3, progressing: goes},
		"one of two that failed":                             {options: []deploymentOption{analyzed("pods", "errors")}, run: []runOption{verdict("pods", pass, time.Hour), verdict("errors", fail, time.Hour)}, old: 4, progressing: failed, message: "the analysis errors failed"},
		"one that failed is not waited for":                  {options: []deploymentOption{analyzed("pods", "errors")}, run: []runOption{verdict("errors", fail, time.Hour)}, old: 4, progressing: failed},
		"one that the step does not name does not count":     {run: []runOption{verdict("others", fail, time.Hour), verdict("pods", pass, time.Hour)}, old: 3, progressing: goes},
		"a verdict about another rollout does not count":     {run: []runOption{verdict("pods", pass, time.Hour), about(func(s *machinev1alpha1.AnalyzedStep) { s.Rollout = "1-x" })}, old: 4, progressing: waits},
		"a verdict about another step does not count":        {run: []runOption{verdict("pods", pass, time.Hour), about(func(s *machinev1alpha1.AnalyzedStep) { s.Step = 2 })}, old: 4, progressing: waits},
		"a verdict from before an outage does not count":     {run: []runOption{verdict("pods", pass, time.Hour), about(func(s *machinev1alpha1.AnalyzedStep) { s.Since = metav1.NewTime(complete.Add(-time.Minute)) })}, old: 4, progressing: waits},
		"a failure of another rollout rejects nothing":       {options: []deploymentOption{onFailure(machinev1alpha1.FailureRollback)}, run: []runOption{verdict("pods", fail, time.Hour), about(func(s *machinev1alpha1.AnalyzedStep) { s.Rollout = "1-x" })}, old: 4, progressing: waits},
		"a retry begins the step again":                      {options: []deploymentOption{retry}, run: []runOption{verdict("pods", fail, time.Hour)}, old: 4, progressing: waits},
		"a retry begins the step again in place of a reject": {options: []deploymentOption{retry, onFailure(machinev1alpha1.FailureRollback)}, run: []runOption{verdict("pods", fail, time.Hour)}, old: 4, progressing: waits},
		"an approval does not replace a verdict": {options: []deploymentOption{func(d *machinev1alpha1.MachineDeployment) {
			d.Spec.Strategy.RollingUpdate.Steps[0].Approval = machinev1alpha1.ApprovalManual
		}, note(machinev1alpha1.AnnotationRolloutApprove, "ID/1")}, run: []runOption{verdict("pods", fail, time.Hour)}, old: 4, progressing: failed},
		"an approval is needed as well": {options: []deploymentOption{func(d *machinev1alpha1.MachineDeployment) {
			d.Spec.Strategy.RollingUpdate.Steps[0].Approval = machinev1alpha1.ApprovalManual
		}}, run: []runOption{verdict("pods", pass, time.Hour)}, old: 4, progressing: "Unknown AwaitingApproval"},
		"a soak is needed as well": {options: []deploymentOption{func(d *machinev1alpha1.MachineDeployment) {
			d.Spec.Strategy.RollingUpdate.Steps[0].Soak = &metav1.Duration{Duration: time.Hour}
		}}, run: []runOption{verdict("pods", pass, time.Hour)}, old: 4, progressing: "True Soaking"},
		"a failure does not wait for the soak": {options: []deploymentOption{func(d *machinev1alpha1.MachineDeployment) {
			d.Spec.Strategy.RollingUpdate.Steps[0].Soak = &metav1.Duration{Duration: time.Hour}
		}}, run: []runOption{verdict("pods", fail, time.Hour)}, old: 4, progressing: failed},
	} {
		t.Run(name, func(t *testing.T) {
			d := deployment(4, append([]deploymentOption{inRollout(2), analyzed("pods"), atCompleteStep}, tc.options...)...)
			o := Observed{Deployment: d, Sets: []Set{machineSet("v1", 1, 4), machineSet("v2", 2, 1)}, ClassFound: true, Analysis: &machinev1alpha1.RolloutAnalysisRun{}}
			o.Analysis.Status = machinev1alpha1.RolloutAnalysisRunStatus{
				Found: []string{"errors", "pods"}, Step: &machinev1alpha1.AnalyzedStep{Rollout: IDOf(d.Status.Revisions[1]), Step: 1, Since: complete},
			}
			for _, option := range tc.run {
				option(o.Analysis)
			}
			p := Plan(now, o)
			if got := p.Status.MachineSets[0].Replicas; got != tc.old {
				t.Errorf("%d Machines of v1 remain, want %d", got, tc.old)
			}
			if got := condition(p, "Progressing"); got != tc.progressing {
				t.Errorf("Progressing is %q, want %q", got, tc.progressing)
			}
			if got := messageOf(p, "Progressing"); !strings.Contains(got, tc.message) {
				t.Errorf("the message is %q, want %q in it", got, tc.message)
			}
			if isStalled := strings.HasPrefix(condition(p, "Stalled"), "True"); isStalled != strings.HasPrefix(tc.progressing, "False") {
				t.Errorf("Stalled is %q", condition(p, "Stalled"))
			}
			if hasPassed := slices.ContainsFunc(p.Events, func(e shared.Event) bool { return e.Reason == machinev1alpha1.EventAnalysisPassed }); hasPassed != (tc.old == 3) {
				t.Errorf("events %v", p.Events)
			}
		})
	}
}

// TestAnalysesAreLookedForFirst has a template that changed, and steps whose analysis may not exist.
func TestAnalysesAreLookedForFirst(t *testing.T) {
	for name, tc := range map[string]struct {
		run *machinev1alpha1.RolloutAnalysisRunStatus
		// held is the time since which the rollout is held.
		held        time.Duration
		progressing string
		message     string
	}{
		"before they are looked for":          {progressing: "True Analyzing", message: "waits for provider-drover to look for the RolloutAnalyses pods"},
		"after another one was":               {run: &machinev1alpha1.RolloutAnalysisRunStatus{Found: []string{"others"}}, progressing: "True Analyzing"},
		"when nothing looks for them":         {held: 11 * time.Minute, progressing: "False AnalysisInconclusive", message: "look at its Deployment"},
		"one that exists":                     {run: &machinev1alpha1.RolloutAnalysisRunStatus{Found: []string{"pods"}}, progressing: "True MachineSetCreated"},
		"one that does not exist":             {run: &machinev1alpha1.RolloutAnalysisRunStatus{Problems: []machinev1alpha1.AnalysisProblem{{Name: "pods", Reason: machinev1alpha1.ReasonAnalysisNotFound, Message: "it must be one of canary"}}}, progressing: "False AnalysisNotFound", message: `spec.strategy.rollingUpdate.steps[0].analyses[0]: invalid value "pods": it must be one of canary; meanwhile no healthy Machine is replaced`},
		"one that cannot be carried out":      {run: &machinev1alpha1.RolloutAnalysisRunStatus{Problems: []machinev1alpha1.AnalysisProblem{{Name: "pods", Reason: machinev1alpha1.ReasonAnalysisInvalid, Message: "no CEL"}}}, progressing: "False AnalysisInvalid"},
		"a problem of one that no step names": {run: &machinev1alpha1.RolloutAnalysisRunStatus{Found: []string{"pods"}, Problems: []machinev1alpha1.AnalysisProblem{{Name: "others", Reason: machinev1alpha1.ReasonAnalysisNotFound}}}, progressing: "True MachineSetCreated"},
	} {
		t.Run(name, func(t *testing.T) {
			d := deployment(4, inRollout(2), analyzed("pods"))
			d.Status.Revisions, d.Status.MachineSets, d.Status.Revision = d.Status.Revisions[:1], d.Status.MachineSets[:1], 1
			if tc.held > 0 {
				d.Status.FrozenSince = &metav1.Time{Time: now.Add(-tc.held)}
			}
			o := Observed{Deployment: d, Sets: []Set{machineSet("v1", 1, 4)}, ClassFound: true}
			if tc.run != nil {
				o.Analysis = &machinev1alpha1.RolloutAnalysisRun{Status: *tc.run}
			}
			p := Plan(now, o)
			if got := condition(p, "Progressing"); got != tc.progressing {
				t.Errorf("Progressing is %q, want %q", got, tc.progressing)
			}
			if got := messageOf(p, "Progressing"); !strings.Contains(got, tc.message) {
				t.Errorf("the message is %q, want %q in it", got, tc.message)
			}
			if begins := len(p.Sets) == 2; begins != strings.HasPrefix(tc.progressing, "True MachineSet") {
				t.Errorf("%d sets", len(p.Sets))
			}
			if r := p.Analysis; r == nil || !slices.Equal(r.Spec.Analyses, []string{"pods"}) || r.Spec.Step != nil {
				t.Errorf("the run is %+v", r)
			}
		})
	}
}

// TestWhatIsAnalyzed has the run that provider-drover gets.
func TestWhatIsAnalyzed(t *testing.T) {
	plan := func(options ...deploymentOption) *machinev1alpha1.RolloutAnalysisRun {
		d := deployment(4, append([]deploymentOption{inRollout(2)}, options...)...)
		return Plan(now, Observed{Deployment: d, Sets: []Set{machineSet("v1", 1, 4), machineSet("v2", 2, 1)}, ClassFound: true, Analysis: &machinev1alpha1.RolloutAnalysisRun{
			Status: machinev1alpha1.RolloutAnalysisRunStatus{Found: []string{"pods"}},
		}}).Analysis
	}
	if r := plan(); r != nil {
		t.Errorf("without analyses there is a run: %+v", r)
	}
	if r := plan(steps(time.Hour, ""), atStep(1)); r != nil {
		t.Errorf("with steps without analyses there is a run: %+v", r)
	}
	if r := plan(analyzed("pods")); r == nil || r.Spec.Step != nil || len(r.Spec.Run) > 0 {
		t.Errorf("before the time of the step is recorded, the run is %+v", r)
	}
	r := plan(analyzed("pods"), atCompleteStep)
	if r == nil || r.Spec.Step == nil || r.Spec.Step.Step != 1 || !r.Spec.Step.Since.Equal(&complete) || !strings.HasPrefix(r.Spec.Step.Rollout, "2-") {
		t.Fatalf("the run is %+v", r)
	}
	if r.Spec.NewMachineSet != nameOf("v2") || !slices.Equal(r.Spec.OldMachineSets, []string{nameOf("v1")}) || !slices.Equal(r.Spec.Run, []string{"pods"}) || r.Spec.MachineDeployment == "" {
		t.Errorf("the run is %+v", r.Spec)
	}
}

func TestTheAnalysesOfAllSteps(t *testing.T) {
	a := analyses{steps: []machinev1alpha1.RolloutStep{{Analyses: []string{"pods", "errors"}}, {}, {Analyses: []string{"latency", "errors"}}}}
	if got := a.names(); !slices.Equal(got, []string{"errors", "latency", "pods"}) {
		t.Errorf("they are %v", got)
	}
	if got := a.unknown(); len(got) != 3 {
		t.Errorf("before they are looked for, %v are unknown", got)
	}
	a.run = &machinev1alpha1.RolloutAnalysisRun{}
	a.run.Status.Found = []string{"pods"}
	a.run.Status.Problems = []machinev1alpha1.AnalysisProblem{{Name: "errors"}}
	if got := a.unknown(); !slices.Equal(got, []string{"latency"}) {
		t.Errorf("%v are unknown, want latency", got)
	}
}

// TestAnAnalysisThatHasNotBegunHasNoTimeout: the time until which provider-drover must begin is not that of a verdict.
func TestAnAnalysisThatHasNotBegunHasNoTimeout(t *testing.T) {
	step := machinev1alpha1.AnalyzedStep{Rollout: "2-0123", Step: 1, Since: complete}
	for name, tc := range map[string]struct {
		measured []string
		begins   bool
	}{
		"neither has begun":   {nil, true},
		"the first has begun": {[]string{"pods"}, true},
		"the last has begun":  {[]string{"errors"}, true},
		"both have begun":     {[]string{"pods", "errors"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			run := &machinev1alpha1.RolloutAnalysisRun{Status: machinev1alpha1.RolloutAnalysisRunStatus{Step: &step}}
			for _, n := range tc.measured {
				verdict(n, machinev1alpha1.AnalysisRunning, time.Hour)(run)
			}
			a := analyses{now: now, steps: []machinev1alpha1.RolloutStep{{Analyses: []string{"pods", "errors"}}}, run: run}
			if j := a.judge(step); j.begins != tc.begins || len(j.pending) != 2 {
				t.Errorf("the judgement is %+v", j)
			}
		})
	}
}

func messageOf(d Decision, typ string) string {
	for _, c := range d.Conditions {
		if c.Type == typ {
			return c.Message
		}
	}
	return ""
}
