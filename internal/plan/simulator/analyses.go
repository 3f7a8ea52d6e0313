package simulator

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

const (
	// analysisTakes is the time from the begin of an analysis to its verdict, and analysisTimeout its timeout.
	analysisTakes, analysisTimeout = 5 * time.Minute, 30 * time.Minute
)

// analyses are the RolloutAnalysisRun of the MachineDeployment, and the verdict of its analyses.
type analyses struct {
	run *machinev1alpha1.RolloutAnalysisRun
	// runWrites counts the writes of the run.
	runWrites int
	// Finds is the verdict of all analyses. The default is Pass.
	Finds machinev1alpha1.AnalysisVerdict
	// passes are the analyses that passed.
	passes []passedAnalysis
	// Unanswered means that no controller carries out analyses.
	Unanswered bool
	// MissingAnalysis is the name of an analysis that does not exist.
	MissingAnalysis string
}

// A passedAnalysis passed at a time, for a step from 1.
type passedAnalysis struct {
	name string
	step int32
	at   time.Time
}

// apply the run as Crossplane does.
func (c *analyses) apply(desired *machinev1alpha1.RolloutAnalysisRun, uid func() types.UID) {
	switch {
	case desired == nil && c.run == nil:
	case desired == nil:
		c.run = nil
		c.runWrites++
	case c.run == nil:
		c.run = desired.DeepCopy()
		c.run.UID, c.run.Generation = uid(), 1
		c.runWrites++
	case !equality.Semantic.DeepEqual(c.run.Spec, desired.Spec):
		c.run.Spec = *desired.Spec.DeepCopy()
		c.run.Generation++
		c.runWrites++
	}
}

// analyze as provider-drover does. It returns when to look again, 0 for not before the spec changes.
func (c *analyses) analyze(now time.Time) time.Duration {
	if c.run == nil || c.Unanswered {
		return 0
	}
	next := time.Duration(0)
	s := machinev1alpha1.RolloutAnalysisRunStatus{ObservedGeneration: c.run.Generation, Step: c.run.Spec.Step}
	for _, name := range c.run.Spec.Analyses {
		if name == c.MissingAnalysis {
			s.Problems = append(s.Problems, machinev1alpha1.AnalysisProblem{Name: name, Reason: machinev1alpha1.ReasonAnalysisNotFound, Message: "the namespace default has no RolloutAnalysis of the name, and no other one"})
		} else {
			s.Found = append(s.Found, name)
		}
	}
	for _, name := range c.run.Spec.Run {
		if !slices.Contains(s.Found, name) {
			continue
		}
		start := metav1.NewTime(now.UTC().Truncate(time.Second))
		r := machinev1alpha1.AnalysisResult{Name: name, Verdict: machinev1alpha1.AnalysisRunning, StartTime: start, Deadline: metav1.NewTime(start.Add(analysisTimeout))}
		if before := c.run.Status; before.Step != nil && equality.Semantic.DeepEqual(before.Step, s.Step) {
			if i := slices.IndexFunc(before.Results, func(r machinev1alpha1.AnalysisResult) bool { return r.Name == name }); i >= 0 {
				r = before.Results[i]
			}
		}
		if r.Verdict != machinev1alpha1.AnalysisPass && r.Verdict != machinev1alpha1.AnalysisFail {
			if left := r.StartTime.Add(analysisTakes).Sub(now); left > 0 {
				next = left
			} else {
				if r.Verdict = cmp.Or(c.Finds, machinev1alpha1.AnalysisPass); r.Verdict == machinev1alpha1.AnalysisPass {
					c.passes = append(c.passes, passedAnalysis{name, s.Step.Step, now})
				}
				r.Message = map[machinev1alpha1.AnalysisVerdict]string{
					machinev1alpha1.AnalysisPass:         "all limits hold for 5 pods on 1 of 1 new Nodes, compared with 15 pods on 3 of 3 old ones",
					machinev1alpha1.AnalysisFail:         "crashingPods: 4 of 5 pods on the new Nodes, 0 of 15 on the old ones; allowed is at most 10 percentage points above the old Nodes",
					machinev1alpha1.AnalysisInconclusive: "the query to https://prometheus.example.org failed: connection refused",
				}[r.Verdict]
			}
		}
		s.Results = append(s.Results, r)
	}
	if !equality.Semantic.DeepEqual(c.run.Status, s) {
		c.run.Status = s
		c.runWrites++
	}
	return next
}
