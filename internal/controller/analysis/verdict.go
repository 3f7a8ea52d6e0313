package analysis

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/text"
)

const (
	// maxMessage is the maximum length of a message in a result.
	maxMessage = 512
	// maxNumbers is how many numbers a result keeps. Those above their limits are kept first.
	maxNumbers = 8
)

// A measurement of an analysis.
type measurement struct {
	// problem is why nothing could be measured, "" if it could.
	problem string
	// passed means that all numbers are within their limits.
	passed  bool
	numbers []machinev1alpha1.AnalysisNumber
	message string
}

func inconclusive(problem string) measurement { return measurement{problem: problem} }

// interval between two measurements.
func interval(a *machinev1alpha1.RolloutAnalysis) time.Duration {
	return cmp.Or(a.Spec.Interval.Duration, machinev1alpha1.DefaultAnalysisInterval)
}

// begin returns the result of an analysis before its first measurement.
func begin(now time.Time, a *machinev1alpha1.RolloutAnalysis) machinev1alpha1.AnalysisResult {
	start := metav1.NewTime(now.UTC().Truncate(time.Second))
	return machinev1alpha1.AnalysisResult{
		Name: a.Name, ObservedGeneration: a.Generation, Verdict: machinev1alpha1.AnalysisRunning, StartTime: start,
		Deadline: metav1.NewTime(start.Add(cmp.Or(a.Spec.Timeout.Duration, machinev1alpha1.DefaultAnalysisTimeout))),
	}
}

// isFinal reports whether a verdict stays.
func isFinal(v machinev1alpha1.AnalysisVerdict) bool {
	return v == machinev1alpha1.AnalysisPass || v == machinev1alpha1.AnalysisFail
}

// wait returns how long the next measurement must wait, by the last one that counted.
func wait(now time.Time, a *machinev1alpha1.RolloutAnalysis, r machinev1alpha1.AnalysisResult) time.Duration {
	if r.MeasuredTime == nil {
		return 0
	}
	return max(0, r.MeasuredTime.Add(interval(a)).Sub(now))
}

// add a measurement to a result.
func add(now time.Time, a *machinev1alpha1.RolloutAnalysis, r machinev1alpha1.AnalysisResult, m measurement) machinev1alpha1.AnalysisResult {
	if m.problem != "" {
		r.Verdict, r.Message = machinev1alpha1.AnalysisInconclusive, text.Shorten(m.problem, maxMessage)
		return r
	}
	at := metav1.NewTime(now.UTC().Truncate(time.Second))
	r.MeasuredTime, r.Message, r.Numbers = &at, text.Shorten(m.message, maxMessage), kept(m.numbers)
	if m.passed {
		r.Passed++
	} else {
		r.Failed++
	}
	switch {
	case r.Failed > a.Spec.FailureLimit:
		r.Verdict = machinev1alpha1.AnalysisFail
	case r.Passed >= max(1, a.Spec.Count):
		r.Verdict = machinev1alpha1.AnalysisPass
	default:
		r.Verdict = machinev1alpha1.AnalysisRunning
	}
	return r
}

// kept returns the numbers that a result keeps, in their order.
func kept(all []machinev1alpha1.AnalysisNumber) []machinev1alpha1.AnalysisNumber {
	exceeded := 0
	for _, n := range all {
		if n.Exceeded {
			exceeded++
		}
	}
	others := max(0, maxNumbers-exceeded)
	var out []machinev1alpha1.AnalysisNumber
	for _, n := range all {
		if !n.Exceeded {
			if others == 0 {
				continue
			}
			others--
		}
		if len(out) < maxNumbers {
			out = append(out, n)
		}
	}
	return out
}
