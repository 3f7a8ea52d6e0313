package deployment

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/schedule"
)

// hasGates reports whether the last revision that was complete must be kept to go back to.
func (f *fleet) hasGates() bool {
	return f.Deployment.Spec.Rollout.OnFailure == machinev1alpha1.FailureRollback || len(f.steps()) > 0
}

// steps of the rollout. The schema refuses steps with other strategies.
func (f *fleet) steps() []machinev1alpha1.RolloutStep {
	if s := f.Deployment.Spec.Strategy; cmp.Or(s.Type, machinev1alpha1.RollingUpdate) == machinev1alpha1.RollingUpdate {
		return s.RollingUpdate.Steps
	}
	return nil
}

// checkWindows of the rollout.
func (f *fleet) checkWindows() {
	var err error
	if f.windows, err = schedule.Parse(f.now, f.Deployment.Spec.Rollout); err != nil && f.problem == nil {
		f.problem = &shared.Problem{Reason: machinev1alpha1.ReasonInvalidWindow, Message: err.Error() + "; meanwhile no healthy Machine is replaced"}
	}
}

// analyses of the steps.
func (f *fleet) analyses() analyses {
	return analyses{now: f.now, steps: f.steps(), run: f.Analysis}
}

// checkAnalyses that the steps name. The way back from a rejected template has no steps, so it does not need them.
func (f *fleet) checkAnalyses() {
	if f.problem == nil && !f.goesBack {
		f.problem = f.analyses().problem()
	}
}

// awaitAnalyses holds a rollout before its first step until provider-drover has looked for its analyses.
func (f *fleet) awaitAnalyses() {
	unknown := f.analyses().unknown()
	if len(unknown) == 0 || f.isLastGood() {
		return
	}
	f.hold = f.unanswered(machinev1alpha1.ReasonAnalyzing, machinev1alpha1.ReasonAnalysisInconclusive,
		"the rollout waits for provider-drover to look for the RolloutAnalyses "+strings.Join(unknown, ", "))
}

// closeGates that do not depend on the set of the template.
func (f *fleet) closeGates() {
	d := f.Deployment
	if f.outdated = slices.ContainsFunc(f.oldSets, f.isOutdated); !f.outdated {
		return
	}
	f.askForTurn()
	byUser, held := d.Annotations[machinev1alpha1.AnnotationRolloutHold]
	switch {
	case held:
		f.hold = &machinev1alpha1.RolloutHold{Reason: machinev1alpha1.ReasonRolloutHeld, Message: fmt.Sprintf(
			"the annotation %s holds the rollout%s: no Machine is replaced or updated until it is removed", machinev1alpha1.AnnotationRolloutHold, cause(byUser))}
	case d.Spec.Strategy.Type == machinev1alpha1.OnDelete:
		// The user decides when each Machine is replaced.
	case f.Gate != nil && f.Gate.Hold:
		f.hold = f.heldByGate()
	case f.goesBack:
	case !f.windows.IsOpen(f.now):
		opens := metav1.NewTime(f.windows.Opens(f.now).UTC().Truncate(time.Second))
		f.hold = &machinev1alpha1.RolloutHold{Reason: machinev1alpha1.ReasonOutsideWindow, Until: &opens, Message: fmt.Sprintf(
			"outside of spec.rollout.windows: healthy Machines are replaced from %s on", opens.Format(time.RFC3339))}
	default:
		f.next = f.windows.Closes(f.now)
		if f.awaitTurn(); f.hold == nil {
			f.awaitAnalyses()
		}
	}
	if f.hold != nil && f.hold.Until != nil {
		f.next = f.hold.Until.Time
	}
}

// cause in the words of a user, for a message.
func cause(text string) string {
	if text = strings.TrimSpace(text); text == "" || text == "true" {
		return ""
	}
	return " (" + shortened(text) + ")"
}

// heldByGate is the hold of a step of the user's own. A time that has passed holds on, because that step still does.
func (f *fleet) heldByGate() *machinev1alpha1.RolloutHold {
	g := f.Gate
	h := &machinev1alpha1.RolloutHold{Reason: machinev1alpha1.ReasonGateHolds, Message: "a step of the pipeline holds the rollout"}
	if g.Reason != "" {
		h.Message += ": " + shortened(g.Reason)
	}
	if g.Message != "" {
		h.Message += ": " + shortened(g.Message)
	}
	if g.Until != nil && f.now.Before(g.Until.Time) {
		h.Until = g.Until
		h.Message += "; until " + g.Until.UTC().Format(time.RFC3339)
	}
	return h
}

// isOutdated reports whether a set has, or may get, Machines of another template.
func (f *fleet) isOutdated(s *set) bool {
	if s.total() == 0 {
		return false
	}
	if !rollingOf(s.Spec.Template).same(f.target) {
		return true
	}
	if f.updatesInPlace() {
		return s.Spec.InPlaceUpdate != nil && (s.Spec.InPlaceUpdate.ID != f.target.hash() || s.isMixed())
	}
	return s.isMixed() || !f.isYoungEnough(s)
}

// reject the template, if a user aborted its rollout, or if an analysis failed or its deadline is exceeded and the policy is to
// roll back. The rejection is recorded first, and carried out when it is read back. Without a revision to go back to, none
// is rejected.
func (f *fleet) reject() {
	d := f.Deployment
	if f.rejected != nil || d.Spec.RollbackTo != nil || f.id == "" {
		return
	}
	last := f.lastRevision()
	if last.Outcome == machinev1alpha1.RevisionComplete || lastGood(d.Status.Revisions, last.Revision) == nil {
		return
	}
	r := &machinev1alpha1.RejectedTemplate{ID: f.id, Hash: HashOfSpec(d), Revision: last.Revision, Time: metav1.NewTime(f.now.UTC().Truncate(time.Second))}
	overdue := f.condition(machinev1alpha1.ConditionProgressing)
	rollsBack, failed := d.Spec.Rollout.OnFailure == machinev1alpha1.FailureRollback, f.failedAnalysis()
	switch {
	case d.Annotations[machinev1alpha1.AnnotationRolloutAbort] == f.id:
		r.Reason, r.Message = machinev1alpha1.RejectionAborted, fmt.Sprintf("a user aborted the rollout when %d of %d Machines were updated, %d of them available",
			f.newSet.Status.Replicas, f.bounds.replicas, f.newSet.available())
	case rollsBack && failed != "":
		r.Reason, r.Message = machinev1alpha1.ReasonAnalysisFailed, fmt.Sprintf("step %d of %d: %s", d.Status.Rollout.Step, len(f.steps()), failed)
	case rollsBack && last.Outcome == machinev1alpha1.RevisionDeadlineExceeded &&
		overdue != nil && overdue.Reason == machinev1alpha1.ReasonProgressDeadlineExceeded:
		r.Reason, r.Message = machinev1alpha1.ReasonProgressDeadlineExceeded, overdue.Message
		if s := f.condition(machinev1alpha1.ConditionStalled); s != nil && s.Reason == overdue.Reason {
			r.Message = s.Message
		}
	default:
		return
	}
	f.rejected, f.isNew = r, true
}

// failedAnalysis is the failure of an analysis of the recorded step, "" if none failed.
func (f *fleet) failedAnalysis() string {
	s := f.recordedStep()
	if s == nil || f.isRetried(s.Since) {
		return ""
	}
	return f.analyses().judge(*s).failed
}

// recordedStep is the step of the rollout that the status has as complete, nil if there is none.
func (f *fleet) recordedStep() *machinev1alpha1.AnalyzedStep {
	before := f.Deployment.Status.Rollout
	if before == nil || f.id == "" || before.ID != f.id || before.ReachedTime == nil || before.Step < 1 || int(before.Step) > len(f.steps()) {
		return nil
	}
	return &machinev1alpha1.AnalyzedStep{Rollout: f.id, Step: before.Step, Since: *before.ReachedTime}
}

// isRetried reports whether a user lets the step begin again that has been complete since a time.
func (f *fleet) isRetried(reached metav1.Time) bool {
	return f.Deployment.Annotations[machinev1alpha1.AnnotationRolloutRetry] == RetryID(f.id, reached)
}

// identify the rollout, if the status has its revision.
func (f *fleet) identify() {
	if last := f.lastRevision(); f.outdated && last != nil && equal(content(*last), f.target) {
		f.id = IDOf(*last)
	}
}

// enterStep finds the step of the rollout. Going back to the revision that was complete last is no trial, and has
// none.
func (f *fleet) enterStep() {
	steps := f.steps()
	if len(steps) == 0 || !f.outdated || f.isNew || f.newSet != f.current || f.current == nil {
		return
	}
	f.step = 1
	switch before := f.Deployment.Status.Rollout; {
	case f.goesBack || f.isLastGood():
		f.step = int32(len(steps)) + 1
	case before != nil && f.id != "" && before.ID == f.id:
		f.step, f.reached = max(1, before.Step), before.ReachedTime
		if f.reached != nil && f.isRetried(*f.reached) {
			f.reached = nil
		}
	}
	for ; int(f.step) <= len(steps); f.step, f.reached = f.step+1, nil {
		s := steps[f.step-1]
		if f.limit = resolveStep(s.Updated, f.bounds.replicas); f.limit >= f.bounds.replicas || !f.passes(s) {
			break
		}
	}
	if int(f.step) > len(steps) || f.limit >= f.bounds.replicas {
		f.limit, f.reached = unlimited, nil
	}
}

// A Step of a rollout, with the number of updated Machines for the replicas of its deployment.
type Step struct {
	Updated  int32
	Soak     time.Duration
	Approval machinev1alpha1.Approval
	Analyses []string
}

// StepsOf a deployment.
func StepsOf(d *machinev1alpha1.MachineDeployment) []Step {
	f := &fleet{Observed: Observed{Deployment: d}}
	var out []Step
	for _, s := range f.steps() {
		step := Step{Updated: resolveStep(s.Updated, d.Spec.Replicas), Approval: s.Approval, Analyses: s.Analyses}
		if s.Soak != nil {
			step.Soak = s.Soak.Duration
		}
		out = append(out, step)
	}
	return out
}

// AnalysesFound is the RolloutAnalysisRun of a deployment all of whose analyses exist, without verdicts, for a forecast.
func AnalysesFound(d *machinev1alpha1.MachineDeployment) *machinev1alpha1.RolloutAnalysisRun {
	f := &fleet{Observed: Observed{Deployment: d}}
	return &machinev1alpha1.RolloutAnalysisRun{Status: machinev1alpha1.RolloutAnalysisRunStatus{Found: f.analyses().names()}}
}

func resolveStep(updated intstr.IntOrString, replicas int32) int32 {
	n, invalid := shared.Scaled(&updated, replicas, true)
	if invalid != "" {
		// The schema refuses it. The safest limit is the smallest.
		return 1
	}
	return max(1, n)
}

// passes reports whether the step of the limit is over, so that the next one may begin. If not, it records what the step
// waits for.
func (f *fleet) passes(s machinev1alpha1.RolloutStep) bool {
	if f.isFull = f.newSet.desired >= f.limit; !f.isFull || f.newSet.available() < f.limit {
		f.reached = nil
		return false
	}
	if f.reached == nil {
		if !f.newSet.isSettled() {
			return false
		}
		f.reached = ptr.To(metav1.NewTime(f.now.UTC().Truncate(time.Second)))
	}
	until := f.reached.Time
	if s.Soak != nil {
		until = until.Add(s.Soak.Duration)
	}
	approved := s.Approval == "" || f.approved() >= f.step
	what := fmt.Sprintf("step %d of %d: all %d updated Machines are available since %s", f.step, len(f.steps()), f.limit, f.reached.UTC().Format(time.RFC3339))
	var h *machinev1alpha1.RolloutHold
	j := f.analyses().judge(machinev1alpha1.AnalyzedStep{Rollout: f.id, Step: f.step, Since: *f.reached})
	switch {
	case j.failed != "":
		h = &machinev1alpha1.RolloutHold{Reason: machinev1alpha1.ReasonAnalysisFailed, Message: fmt.Sprintf(
			"step %d of %d: %s; correct spec.template, or run kubectl drover rollout abort or kubectl drover rollout retry", f.step, len(f.steps()), j.failed)}
	case j.overdue != "":
		h = &machinev1alpha1.RolloutHold{Reason: machinev1alpha1.ReasonAnalysisInconclusive, Message: fmt.Sprintf(
			"step %d of %d: %s; correct that, or run kubectl drover rollout abort", f.step, len(f.steps()), j.overdue)}
	case f.now.Before(until):
		h = &machinev1alpha1.RolloutHold{Reason: machinev1alpha1.ReasonSoaking, Until: ptr.To(metav1.NewTime(until)), Message: fmt.Sprintf("%s, and must be until %s", what, until.UTC().Format(time.RFC3339))}
		if len(j.pending) > 0 {
			h.Message += "; meanwhile it is analyzed by " + strings.Join(j.pending, ", ")
		}
		if !approved {
			h.Message += "; the next step needs an approval as well"
		}
	case len(j.pending) > 0:
		h = &machinev1alpha1.RolloutHold{Reason: machinev1alpha1.ReasonAnalyzing, Until: new(metav1.NewTime(j.until)), Message: fmt.Sprintf(
			"%s; analyses without a verdict yet: %s", what, strings.Join(j.pending, ", "))}
		if !j.begins {
			h.Message += ", which must have one until " + j.until.UTC().Format(time.RFC3339)
		}
		if !approved {
			h.Message += "; the next step needs an approval as well"
		}
	case !approved:
		h = &machinev1alpha1.RolloutHold{Reason: machinev1alpha1.ReasonAwaitingApproval, Message: what + "; to begin the next step, run kubectl drover rollout approve"}
	default:
		f.isFull = false
		f.passed = append(f.passed, j.passed...)
		return true
	}
	// What a user or a window holds is named first: it holds the next step as well.
	if f.hold == nil {
		f.hold = h
		if h.Until != nil && (f.next.IsZero() || h.Until.Time.Before(f.next)) {
			f.next = h.Until.Time
		}
	}
	return false
}

// approved is the last step of the rollout that a user has approved.
func (f *fleet) approved() int32 { return ApprovedStep(f.Deployment, f.id) }

// ApprovedStep returns the last step of the rollout with an ID that a user has approved, and 0 if there is none.
func ApprovedStep(d *machinev1alpha1.MachineDeployment, rollout string) int32 {
	id, step, _ := strings.Cut(d.Annotations[machinev1alpha1.AnnotationRolloutApprove], "/")
	n, err := strconv.ParseInt(step, 10, 32)
	if err != nil || rollout == "" || id != rollout {
		return 0
	}
	return int32(n)
}

// isLimited reports whether a step limits the number of Machines of the new template.
func (f *fleet) isLimited() bool { return f.limit != unlimited }

// newMost is the number of Machines that the new set may have. A limit that became smaller deletes none.
func (f *fleet) newMost() int32 { return min(f.bounds.replicas, max(f.limit, f.newSet.desired)) }

// oldLeast is the number of Machines that the old sets keep during a step, so that no Machine is missing while the step
// lasts.
func (f *fleet) oldLeast() int32 {
	if !f.isLimited() {
		return 0
	}
	return f.bounds.replicas - f.newMost()
}

// isSpecRejected reports whether the template in the spec is not rolled out because it was rejected.
func (f *fleet) isSpecRejected() bool {
	return f.rejected != nil && f.Deployment.Spec.RollbackTo == nil
}

// isRejected reports whether a set is that of the rejected template. It creates no Machine any more.
func (f *fleet) isRejected(s *set) bool {
	return f.goesBack && !f.updatesInPlace() && s.revision == f.rejected.Revision
}

// untilGate is the time until a gate opens or closes, false if there is none.
func (f *fleet) untilGate() (time.Duration, bool) {
	if f.next.IsZero() {
		return 0, false
	}
	return max(shared.Soonest, f.next.Sub(f.now)), true
}
