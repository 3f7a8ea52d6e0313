package deployment

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// untilAnswered is how long provider-drover may take to look for analyses, or to begin with them, until that is reported.
const untilAnswered = 10 * time.Minute

// analyses of the steps of a rollout, with the findings of provider-drover.
type analyses struct {
	now   time.Time
	steps []machinev1alpha1.RolloutStep
	// run that was observed, nil if there is none.
	run *machinev1alpha1.RolloutAnalysisRun
}

// names that the steps have, in order and each once.
func (a analyses) names() []string {
	var out []string
	for _, s := range a.steps {
		out = append(out, s.Analyses...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// fieldOf returns the first field that names an analysis.
func (a analyses) fieldOf(analysis string) string {
	for i, s := range a.steps {
		if j := slices.Index(s.Analyses, analysis); j >= 0 {
			return fmt.Sprintf("spec.strategy.rollingUpdate.steps[%d].analyses[%d]", i, j)
		}
	}
	return "spec.strategy.rollingUpdate.steps"
}

// problem of an analysis that a step names and that cannot be carried out, nil if there is none.
func (a analyses) problem() *shared.Problem {
	if a.run == nil {
		return nil
	}
	needed := a.names()
	for _, p := range a.run.Status.Problems {
		if slices.Contains(needed, p.Name) {
			return &shared.Problem{Reason: p.Reason, Message: fmt.Sprintf("%s: invalid value %q: %s; meanwhile no healthy Machine is replaced", a.fieldOf(p.Name), p.Name, p.Message)}
		}
	}
	return nil
}

// unknown are the analyses that provider-drover has not looked for.
func (a analyses) unknown() []string {
	return slices.DeleteFunc(a.names(), func(name string) bool {
		return a.run != nil && (slices.Contains(a.run.Status.Found, name) || slices.ContainsFunc(a.run.Status.Problems, func(p machinev1alpha1.AnalysisProblem) bool { return p.Name == name }))
	})
}

// RetryID is the value of the annotation rollout-retry that lets a step begin again, with its analyses.
func RetryID(rollout string, reached metav1.Time) string {
	return fmt.Sprintf("%s@%d", rollout, reached.Unix())
}

// A judgement has the findings of the analyses of a step so far. At most one of its first two fields is set.
type judgement struct {
	// failed has the numbers of a failed analysis, "" if none failed.
	failed string
	// overdue has the cause for which an analysis has no verdict in its time, "" if none is overdue.
	overdue string
	// pending are the analyses without a verdict, and until is the time at which that is reported.
	pending []string
	until   time.Time
	// begins means that an analysis has not begun yet, so that until is not its timeout.
	begins bool
	// passed are the analyses that passed, with their numbers.
	passed []string
}

// judge a step by the verdicts about it. Verdicts of another step, of another rollout, or from before a Machine of the
// step was not available do not count.
func (a analyses) judge(step machinev1alpha1.AnalyzedStep) judgement {
	var j judgement
	results := a.resultsOf(step)
	for _, name := range a.steps[step.Step-1].Analyses {
		until, why := step.Since.Add(untilAnswered), "provider-drover did not measure anything; look at its Deployment and its log"
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
		case !a.now.Before(until):
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
func (a analyses) resultsOf(step machinev1alpha1.AnalyzedStep) map[string]machinev1alpha1.AnalysisResult {
	out := map[string]machinev1alpha1.AnalysisResult{}
	if a.run == nil || step.Rollout == "" || !isSameStep(a.run.Status.Step, step) {
		return out
	}
	for _, r := range a.run.Status.Results {
		out[r.Name] = r
	}
	return out
}

func isSameStep(s *machinev1alpha1.AnalyzedStep, other machinev1alpha1.AnalyzedStep) bool {
	return s != nil && s.Rollout == other.Rollout && s.Step == other.Step && s.Since.Equal(&other.Since)
}
