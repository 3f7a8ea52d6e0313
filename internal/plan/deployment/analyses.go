package deployment

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	shared "github.com/drover-dev/drover/internal/plan"
)

// untilAnswered is how long provider-drover may take to look for analyses, or to begin with them, until that is reported.
const untilAnswered = 10 * time.Minute

// analyses that the steps name, in order and each once.
func (f *fleet) analyses() []string {
	var out []string
	for _, s := range f.steps() {
		out = append(out, s.Analyses...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// AnalysesFound is the RolloutAnalysisRun of a deployment all of whose analyses exist, without verdicts, for a forecast.
func AnalysesFound(d *machinev1alpha1.MachineDeployment) *machinev1alpha1.RolloutAnalysisRun {
	f := &fleet{Observed: Observed{Deployment: d}}
	return &machinev1alpha1.RolloutAnalysisRun{Status: machinev1alpha1.RolloutAnalysisRunStatus{Found: f.analyses()}}
}

// fieldOf returns the first field that names an analysis.
func (f *fleet) fieldOf(analysis string) string {
	for i, s := range f.steps() {
		if j := slices.Index(s.Analyses, analysis); j >= 0 {
			return fmt.Sprintf("spec.strategy.rollingUpdate.steps[%d].analyses[%d]", i, j)
		}
	}
	return "spec.strategy.rollingUpdate.steps"
}

// checkAnalyses that the steps name. The way back from a rejected template has no steps, so it does not need them.
func (f *fleet) checkAnalyses() {
	if f.problem != nil || f.goesBack || f.Analysis == nil {
		return
	}
	needed := f.analyses()
	for _, p := range f.Analysis.Status.Problems {
		if slices.Contains(needed, p.Name) {
			f.problem = &shared.Problem{Reason: p.Reason, Message: fmt.Sprintf("%s: invalid value %q: %s; meanwhile no healthy Machine is replaced", f.fieldOf(p.Name), p.Name, p.Message)}
			return
		}
	}
}

// awaitAnalyses holds a rollout before its first step until provider-drover has looked for its analyses.
func (f *fleet) awaitAnalyses() {
	var unknown []string
	for _, name := range f.analyses() {
		if f.Analysis == nil || !slices.Contains(f.Analysis.Status.Found, name) && !slices.ContainsFunc(f.Analysis.Status.Problems, func(p machinev1alpha1.AnalysisProblem) bool { return p.Name == name }) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 || f.isLastGood() {
		return
	}
	f.hold = &machinev1alpha1.RolloutHold{Reason: machinev1alpha1.ReasonAnalyzing, Message: "the rollout waits for provider-drover to look for the RolloutAnalyses " + strings.Join(unknown, ", ")}
	since := f.Deployment.Status.FrozenSince
	if since == nil {
		return
	}
	if until := since.Add(untilAnswered); f.now.Before(until) {
		f.hold.Until = new(metav1.NewTime(until))
	} else {
		f.hold.Reason = machinev1alpha1.ReasonAnalysisInconclusive
		f.hold.Message += fmt.Sprintf(" since %s; look at its Deployment and its log", since.UTC().Format(time.RFC3339))
	}
}

// RetryID is the value of the annotation rollout-retry that lets a step begin again, with its analyses.
func RetryID(rollout string, reached metav1.Time) string {
	return fmt.Sprintf("%s@%d", rollout, reached.Unix())
}

// RetryOf returns the value of the annotation rollout-retry by which a user retries what a deployment rejected, or a step
// whose analysis failed or has no verdict. It is empty if there is nothing to retry.
func RetryOf(d *machinev1alpha1.MachineDeployment) string {
	if r := Rejected(d); r != nil {
		return r.ID
	}
	r := d.Status.Rollout
	if r == nil || r.Held == nil || r.ReachedTime == nil || r.ID == "" {
		return ""
	}
	switch r.Held.Reason {
	case machinev1alpha1.ReasonAnalysisFailed, machinev1alpha1.ReasonAnalysisInconclusive:
		return RetryID(r.ID, *r.ReachedTime)
	}
	return ""
}

// A judgement has what the analyses of a step found so far. At most one of its first two fields is set.
type judgement struct {
	// failed is what a failed analysis measured, "" if none failed.
	failed string
	// overdue is what an analysis without a verdict could not measure in its time, "" if none is overdue.
	overdue string
	// pending are the analyses without a verdict, and until is the time at which that is reported.
	pending []string
	until   time.Time
	// begins means that an analysis has not begun yet, so that until is not its timeout.
	begins bool
	// passed are the analyses that passed, with what they measured.
	passed []string
}

// judge a step by the verdicts about it. Verdicts of another step, of another rollout, or from before a Machine of the
// step was not available do not count.
func (f *fleet) judge(step int32, since metav1.Time) judgement {
	var j judgement
	results := f.resultsOf(machinev1alpha1.AnalysedStep{Rollout: f.id, Step: step, Since: since})
	for _, name := range f.steps()[step-1].Analyses {
		until, why := since.Add(untilAnswered), "provider-drover did not measure anything; look at its Deployment and its log"
		r, measured := results[name]
		if measured {
			until, why = r.Deadline.Time, fmt.Sprintf("%d measurements passed and %d failed", r.Passed, r.Failed)
			if r.Message != "" {
				why += "; the last one: " + shortened(r.Message)
			}
		}
		switch {
		case measured && r.Verdict == machinev1alpha1.AnalysisPass:
			j.passed = append(j.passed, fmt.Sprintf("%s (%s)", name, shortened(r.Message)))
		case measured && r.Verdict == machinev1alpha1.AnalysisFail:
			if j.failed == "" {
				j.failed = fmt.Sprintf("the analysis %s failed: %s", name, shortened(r.Message))
			}
		case !f.now.Before(until):
			if j.overdue == "" {
				j.overdue = fmt.Sprintf("the analysis %s has no verdict after its timeout at %s: %s", name, until.UTC().Format(time.RFC3339), why)
			}
			fallthrough
		default:
			j.pending, j.begins = append(j.pending, name), j.begins || !measured
			if until.After(j.until) {
				j.until = until
			}
		}
	}
	return j
}

// resultsOf returns the verdicts about a step.
func (f *fleet) resultsOf(step machinev1alpha1.AnalysedStep) map[string]machinev1alpha1.AnalysisResult {
	out := map[string]machinev1alpha1.AnalysisResult{}
	if f.Analysis == nil || step.Rollout == "" || !isSameStep(f.Analysis.Status.Step, step) {
		return out
	}
	for _, r := range f.Analysis.Status.Results {
		out[r.Name] = r
	}
	return out
}

func isSameStep(a *machinev1alpha1.AnalysedStep, b machinev1alpha1.AnalysedStep) bool {
	return a != nil && a.Rollout == b.Rollout && a.Step == b.Step && a.Since.Equal(&b.Since)
}

// failedAnalysis is the failure of an analysis of the recorded step, "" if none failed.
func (f *fleet) failedAnalysis() string {
	before := f.Deployment.Status.Rollout
	if before == nil || before.ID != f.id || before.ReachedTime == nil || before.Step < 1 || int(before.Step) > len(f.steps()) || f.isRetried(*before.ReachedTime) {
		return ""
	}
	return f.judge(before.Step, *before.ReachedTime).failed
}

// isRetried reports whether a user lets the step begin again that has been complete since a time.
func (f *fleet) isRetried(reached metav1.Time) bool {
	return f.Deployment.Annotations[machinev1alpha1.AnnotationRolloutRetry] == RetryID(f.id, reached)
}

// analysedStep is the recorded step whose Machines are all available, nil if there is none with analyses.
func (p *plan) analysedStep() *machinev1alpha1.AnalysedStep {
	before := p.Deployment.Status.Rollout
	if p.id == "" || p.step < 1 || int(p.step) > len(p.steps()) || p.reached == nil || before == nil || before.ID != p.id || before.Step != p.step || !p.reached.Equal(before.ReachedTime) {
		return nil
	}
	if len(p.steps()[p.step-1].Analyses) == 0 {
		return nil
	}
	return &machinev1alpha1.AnalysedStep{Rollout: p.id, Step: p.step, Since: *p.reached}
}

// awaitsAnalysis reports whether a step with analyses became complete in this plan. They begin when that is recorded.
func (p *plan) awaitsAnalysis() bool {
	return p.reached != nil && p.step >= 1 && int(p.step) <= len(p.steps()) && len(p.steps()[p.step-1].Analyses) > 0 && p.analysedStep() == nil && p.id != ""
}

// analysisRun is what provider-drover is to analyse, nil if the steps name no analyses.
func (p *plan) analysisRun() *machinev1alpha1.RolloutAnalysisRun {
	d, needed := p.Deployment, p.analyses()
	if len(needed) == 0 {
		return nil
	}
	r := &machinev1alpha1.RolloutAnalysisRun{
		TypeMeta:   metav1.TypeMeta{APIVersion: machinev1alpha1.SchemeGroupVersion.String(), Kind: machinev1alpha1.RolloutAnalysisRunGroupVersionKind.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: names.AnalysisRun(d.Name, d.UID), Labels: map[string]string{machinev1alpha1.LabelDeployment: d.Name}},
		Spec:       machinev1alpha1.RolloutAnalysisRunSpec{MachineDeployment: d.Name, Analyses: needed, Step: p.analysedStep()},
	}
	if r.Spec.Step == nil {
		return r
	}
	r.Spec.Run = slices.Clone(p.steps()[p.step-1].Analyses)
	r.Spec.NewMachineSet = p.newSet.Name
	for _, s := range p.oldSets {
		if s.total() > 0 {
			r.Spec.OldMachineSets = append(r.Spec.OldMachineSets, s.Name)
		}
	}
	return r
}
