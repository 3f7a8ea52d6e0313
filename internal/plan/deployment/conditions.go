package deployment

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/remediation"
	machineset "github.com/drover-dev/drover/internal/plan/set"
)

const (
	isTrue    = string(metav1.ConditionTrue)
	isFalse   = string(metav1.ConditionFalse)
	isUnknown = string(metav1.ConditionUnknown)
)

func (p *plan) conditions(s machinev1alpha1.MachineDeploymentStatus) []shared.Condition {
	valid, progressing, failure := p.valid(), p.progressing(s), p.replicaFailure()
	stalled := shared.Stalled(p.stalledBy(s, valid, progressing, failure))
	out := []shared.Condition{
		valid, p.available(s), progressing, failure,
		p.reconciling(s, progressing, stalled), stalled,
	}
	for _, c := range []*shared.Condition{p.exhaustedCondition(s), p.remediationAllowed(), p.annotationsValid(), p.healthValid()} {
		if c != nil {
			out = append(out, *c)
		}
	}
	return out
}

func (p *plan) valid() shared.Condition {
	if p.problem != nil {
		return shared.Condition{Type: machinev1alpha1.ConditionValid, Status: isFalse, Reason: p.problem.Reason, Message: p.problem.Message}
	}
	// Old sets do not count: the rollout replaces their template.
	if p.newSet != nil {
		if c := meta.FindStatusCondition(p.newSet.Status.Conditions, machinev1alpha1.ConditionValid); c != nil && c.Status == metav1.ConditionFalse {
			return shared.Condition{Type: machinev1alpha1.ConditionValid, Status: isFalse, Reason: c.Reason, Message: fmt.Sprintf("MachineSet %s: %s", p.newSet.Name, c.Message)}
		}
	}
	return shared.Condition{Type: machinev1alpha1.ConditionValid, Status: isTrue, Reason: machinev1alpha1.ReasonValid}
}

// available does not expect preserved Failed Machines to be available.
func (p *plan) available(s machinev1alpha1.MachineDeploymentStatus) shared.Condition {
	least := max(0, p.bounds.least()-s.PreservedFailedReplicas)
	c := shared.Condition{
		Type: machinev1alpha1.ConditionAvailable, Status: isTrue, Reason: machinev1alpha1.ReasonMinimumReplicasAvailable,
		Message: fmt.Sprintf("%s, at least %d must be", shared.Numbers{Desired: p.bounds.replicas, Available: s.AvailableReplicas}, least),
	}
	if s.AvailableReplicas < least {
		c.Status, c.Reason = isFalse, machinev1alpha1.ReasonMinimumReplicasUnavailable
	}
	return c
}

func (p *plan) annotationsValid() *shared.Condition {
	return shared.AnnotationsValid(shared.InvalidSwitchesOfSet("MachineDeployment", p.Deployment), p.Deployment.Status.Conditions)
}

// healthValid is that of the set of the template. Old sets do not count: the health of their Machines is that of the
// template, too.
func (p *plan) healthValid() *shared.Condition {
	var of []shared.Reporter
	if p.newSet != nil {
		of = append(of, shared.Reporter{Name: "MachineSet " + p.newSet.Name, Conditions: p.newSet.Status.Conditions})
	}
	return shared.HealthValidOf(of, p.Deployment.Status.Conditions)
}

// numbers of the Machines of all sets.
func (p *plan) numbers(s machinev1alpha1.MachineDeploymentStatus) shared.Numbers {
	return shared.Numbers{
		Desired: p.bounds.replicas, Available: s.AvailableReplicas,
		Starting:    sum(p.sets, func(s *set) int32 { return s.Status.StartingReplicas }),
		Terminating: s.TerminatingReplicas,
		Waiting:     p.waiting(),

		WaitingForReboot: p.waitingForReboot(),
	}
}

func (p *plan) progressing(s machinev1alpha1.MachineDeploymentStatus) shared.Condition {
	c := shared.Condition{Type: machinev1alpha1.ConditionProgressing, Status: isTrue}
	switch {
	case p.isSpecRejected():
		c.Status, c.Reason, c.Message = isFalse, machinev1alpha1.ReasonRolloutRejected, p.rejection()
	case p.isDone():
		c.Reason = machinev1alpha1.ReasonNewMachineSetAvailable
		c.Message = fmt.Sprintf("All Machines are of revision %d, MachineSet %s", p.revision, p.current.Name)
	case p.Safety.Frozen && !p.isOverdue(s):
		c.Status, c.Reason, c.Message = isFalse, machinev1alpha1.ReasonFrozen, p.Safety.Message
	case p.problem != nil:
		c.Status, c.Reason, c.Message = isFalse, p.problem.Reason, p.problem.Message
	case p.isPaused():
		c.Status, c.Reason, c.Message = isUnknown, machinev1alpha1.ReasonMachineDeploymentPaused, p.pauseMessage()
	case p.hold != nil && !p.isOverdue(s):
		c.Status, c.Reason, c.Message = isUnknown, p.hold.Reason, p.hold.Message
		switch {
		case goesOn(p.hold.Reason):
			c.Status = isTrue
		case needsUser(p.hold.Reason):
			c.Status = isFalse
		}
	case p.isOverdue(s):
		c.Status, c.Reason = isFalse, machinev1alpha1.ReasonProgressDeadlineExceeded
		next := "it goes on all the same"
		if p.Deployment.Spec.Rollout.OnFailure == machinev1alpha1.FailureRollback && lastGood(p.revisions, p.revision) != nil {
			next = "its template is rejected"
		}
		c.Message = fmt.Sprintf("The rollout of revision %d, MachineSet %s, made no progress for %d seconds; %s",
			p.revision, p.current.Name, p.Deployment.Spec.ProgressDeadlineSeconds, next)
	case p.current.isMissing:
		c.Reason = machinev1alpha1.ReasonMachineSetCreated
		c.Message = fmt.Sprintf("Created MachineSet %s for revision %d", p.current.Name, p.revision)
	default:
		c.Reason = machinev1alpha1.ReasonMachineSetUpdated
		c.Message = fmt.Sprintf("Rolling out revision %d, MachineSet %s", p.revision, p.current.Name)
	}
	return c
}

// rejection names the cause, the revision that is rolled out instead, and what ends the rejection.
func (p *plan) rejection() string {
	r, instead := p.rejected, ""
	if n := len(p.revisions); p.goesBack && p.current != nil && n > 0 {
		instead = fmt.Sprintf("; revision %d is rolled out instead", p.revision)
	}
	return fmt.Sprintf("Revision %d was rejected at %s (%s: %s)%s; correct spec.template, or run kubectl drover rollout retry",
		r.Revision, r.Time.UTC().Format(time.RFC3339), r.Reason, r.Message, instead)
}

// pauseMessage names what pauses the rollout, and what ends that.
func (p *plan) pauseMessage() string {
	if p.Deployment.Spec.Paused {
		return "spec.paused is true: no Machine is replaced or updated until it is false"
	}
	return "the annotation " + machinev1alpha1.AnnotationPaused + " is set: no Machine is replaced or updated until it is removed, whatever its value is"
}

// replicaFailure returns the failure of the newest set that has one. A set that is about to be
// deleted creates no Machine any more: its failure is over.
func (p *plan) replicaFailure() shared.Condition {
	for _, s := range slices.Backward(p.sets) {
		if c := p.failureOf(s); c != nil && (s == p.newSet || p.nextDesired[s] > 0) {
			return shared.Condition{Type: machinev1alpha1.ConditionReplicaFailure, Status: isTrue, Reason: c.Reason,
				Message: fmt.Sprintf("MachineSet %s: %s", s.Name, c.Message)}
		}
	}
	return shared.Condition{Type: machinev1alpha1.ConditionReplicaFailure, Status: isFalse, Reason: machinev1alpha1.ReasonNoFailure}
}

// reconciling is True while the deployment differs from its spec and makes progress.
func (p *plan) reconciling(s machinev1alpha1.MachineDeploymentStatus, progressing, stalled shared.Condition) shared.Condition {
	c := shared.Condition{Type: machinev1alpha1.ConditionReconciling, Status: isFalse, Reason: progressing.Reason}
	switch {
	case p.isComplete() || progressing.Status != isTrue:
	case stalled.Status == isTrue:
		c.Reason = stalled.Reason
	case p.isDone():
		c.Status, c.Reason, c.Message = isTrue, machinev1alpha1.ReasonScaling, p.numbers(s).String()
	default:
		c.Status = isTrue
		c.Message = fmt.Sprintf("%s: %d of %d Machines are updated; %s", progressing.Message, s.UpdatedReplicas, p.bounds.replicas, p.numbers(s))
	}
	return c
}

// exhaustedCondition is nil for a deployment without an exhausted failure domain now or earlier.
func (p *plan) exhaustedCondition(s machinev1alpha1.MachineDeploymentStatus) *shared.Condition {
	typ := machinev1alpha1.ConditionCapacityExhausted
	for _, set := range p.sets {
		c := meta.FindStatusCondition(set.Status.Conditions, typ)
		if set.Status.Exhausted != nil && c != nil && c.Status == metav1.ConditionTrue {
			return &shared.Condition{Type: typ, Status: isTrue, Reason: c.Reason, Message: fmt.Sprintf("MachineSet %s: %s", set.Name, c.Message)}
		}
	}
	switch {
	case len(s.Exhausted) > 0:
		// The set's condition arrives with a later view.
		return &shared.Condition{Type: typ, Status: isTrue, Reason: s.Exhausted[0].Code}
	case p.condition(typ) != nil:
		return &shared.Condition{Type: typ, Status: isFalse, Reason: machinev1alpha1.ReasonRoomAvailable}
	}
	return nil
}

// stalledBy returns the reason why the deployment makes no progress until a user acts, with the
// possible actions. It is nil if it makes progress.
func (p *plan) stalledBy(s machinev1alpha1.MachineDeploymentStatus, valid, progressing, failure shared.Condition) *shared.Condition {
	if valid.Status == isFalse {
		return &valid
	}
	// A rollout replaces the template of an old set, and with it the cause of its failure.
	isOfRollout := p.newSet == nil || p.isReplacementHeld() || p.failureOf(p.newSet) != nil
	if failure.Status == isTrue && isOfRollout && shared.NeedsUser(failure.Reason) {
		return &failure
	}
	if progressing.Status == isFalse && progressing.Reason != machinev1alpha1.ReasonFrozen {
		return p.overdue(s, progressing)
	}
	because := p.updateFailed()
	// A rollout replaces unhealthy Machines too.
	if because == nil && p.isDone() {
		because = remediation.Stalled(p.remediationAllowed(), p.waiting()+p.waitingForReboot())
	}
	if left, byHand := p.untilFreezeStalls(); because == nil && byHand && left <= 0 {
		frozen := shared.FreezeStalled(p.freezeLimit())
		because = &frozen
	}
	if because != nil {
		because.Message = fmt.Sprintf("%s; %s", p.numbers(s), because.Message)
	}
	return because
}

// overdue returns the verdict of the deadline with its cause and the remedy. Its numbers are only those that
// do not change with each Machine that is created again.
func (p *plan) overdue(s machinev1alpha1.MachineDeploymentStatus, verdict shared.Condition) *shared.Condition {
	if verdict.Reason == machinev1alpha1.ReasonProgressDeadlineExceeded {
		numbers := shared.Numbers{Desired: p.bounds.replicas, Available: s.AvailableReplicas}
		verdict.Message = fmt.Sprintf("%s; %s; %s", verdict.Message, numbers, p.causeOfDelay())
	}
	return &verdict
}

// causeOfDelay is the likely cause of a rollout without progress, with the remedy.
func (p *plan) causeOfDelay() string {
	c := p.current
	failure, update, starting := p.failureOf(c), p.updateFailed(), max(0, c.Status.StartingReplicas)
	old, terminating := sum(p.oldSets, p.nextReplicas), sum(p.sets, func(s *set) int32 { return s.Status.TerminatingReplicas })+sum(p.terminating, (*set).total)
	switch {
	case p.Safety.Frozen:
		return p.Safety.Message
	case update != nil:
		return update.Message
	case failure != nil && len(p.revisions) > 1:
		return fmt.Sprintf("its Machines fail with %s: %s; correct that, or go back to an earlier revision by spec.rollbackTo", failure.Reason, failure.Message)
	case failure != nil:
		return fmt.Sprintf("its Machines fail with %s: %s; correct that, or spec.template", failure.Reason, failure.Message)
	case strategyIs(machinev1alpha1.OnDelete)(p) && old > 0:
		return fmt.Sprintf("Machines of earlier templates that stay until a user deletes them: %d; delete them, or change spec.strategy.type", old)
	case starting > 0:
		return fmt.Sprintf("%d starting, none failed so far; read the conditions of the starting Machines", starting)
	case terminating > 0:
		return fmt.Sprintf("Machines that are being deleted: %d; their conditions have what they wait for", terminating)
	}
	return "read the conditions of the Machines that are not available"
}

// updateFailed is the failure of updates in place, nil if there is none.
func (p *plan) updateFailed() *shared.Condition {
	if p.current == nil || p.current.Spec.InPlaceUpdate == nil || !p.current.isSettled() {
		return nil
	}
	c := meta.FindStatusCondition(p.current.Status.Conditions, machinev1alpha1.ConditionUpdated)
	if c == nil || c.Reason != machinev1alpha1.ReasonUpdateFailed {
		return nil
	}
	return &shared.Condition{Reason: c.Reason, Message: fmt.Sprintf("MachineSet %s: %s; %s", p.current.Name, c.Message, machineset.RemedyOfUpdate)}
}

// freezeLimit is the time for which a freeze by hand may delay a change before it is reported as
// Stalled.
func (p *plan) freezeLimit() time.Duration {
	if s := p.Deployment.Spec.ProgressDeadlineSeconds; s > 0 {
		return time.Duration(s) * time.Second
	}
	return machinev1alpha1.DefaultFreezeLimit
}

// untilFreezeStalls is false if no freeze by hand delays a change.
func (p *plan) untilFreezeStalls() (time.Duration, bool) {
	if p.isComplete() {
		return 0, false
	}
	return shared.UntilFreezeStalls(p.now, p.Safety, p.Deployment.Status.Conditions, p.freezeLimit())
}
