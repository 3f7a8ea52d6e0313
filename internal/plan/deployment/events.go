package deployment

import (
	"fmt"
	"slices"
	"strings"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/remediation"
)

// allEvents of this decision, in the order in which the changes happen.
func (p *plan) allEvents(conditions []shared.Condition) []shared.Event {
	events := p.conditionEvents(conditions)
	events = append(events, remediation.Events(p.remediationAllowed(), p.Deployment.Status.Conditions)...)
	events = append(events, p.rollbackEvents()...)
	if len(p.passed) > 0 {
		events = append(events, shared.Event{Reason: machinev1alpha1.EventAnalysisPassed, Message: "The analyses of a step passed: " + strings.Join(p.passed, "; ")})
	}
	for _, s := range p.sets {
		switch {
		case !s.isRecorded:
			events = append(events, shared.Event{Reason: machinev1alpha1.EventNewMachineSet, Message: fmt.Sprintf("Created machine set %s for revision %d", s.Name, p.revisionOf(s))})
		case !s.Observed:
			events = append(events, shared.Event{Reason: machinev1alpha1.EventReadoptedMachineSet, Message: "Adopted again what a stale write had forgotten: machine set " + s.Name})
		}
		if p.isNotable(s) {
			direction := "up"
			if p.nextDesired[s] < s.desired {
				direction = "down"
			}
			events = append(events, shared.Event{
				Reason:  machinev1alpha1.EventScalingMachineSet,
				Message: fmt.Sprintf("Scaled %s machine set %s from %d to %d", direction, s.Name, s.desired, p.nextDesired[s]),
			})
		}
	}
	if p.startsInPlaceUpdate() {
		events = append(events, shared.Event{
			Reason:  machinev1alpha1.EventUpdatingMachineSet,
			Message: fmt.Sprintf("Updating machine set %s in place to revision %d", p.current.Name, p.revision),
		})
	}
	for _, recorded := range p.Deployment.Status.MachineSets {
		if !slices.ContainsFunc(p.sets, func(s *set) bool { return s.Name == recorded.Name }) {
			events = append(events, shared.Event{Reason: machinev1alpha1.EventDeletedMachineSet, Message: "Deleted machine set " + recorded.Name})
		}
	}
	if p.isComplete() && !p.wasComplete() && !p.isSpecRejected() {
		events = append(events, shared.Event{
			Reason:  machinev1alpha1.EventRolloutComplete,
			Message: fmt.Sprintf("Revision %d is rolled out: %d Machines of machine set %s are available", p.revision, p.bounds.replicas, p.current.Name),
		})
	}
	return events
}

// isNotable reports whether a change of a set's number gets an event. During a rollout, that is
// when a set begins to change, and when it is halfway. The end of a rollout has an event of its
// own. An API client sends at most 25 events of an object, and then one per five minutes.
// Crossplane itself uses up to seven when an object is created, and a second rollout must still
// have room for all its events.
func (p *plan) isNotable(s *set) bool {
	if p.nextDesired[s] == s.desired {
		return false
	}
	begins := s.desired == 0 || s.desired >= p.bounds.replicas
	half := func(n int32) bool { return 2*n >= p.bounds.replicas }
	return p.isAlone() || p.isRescaled() || begins || half(p.nextDesired[s]) != half(s.desired)
}

// conditionEvents report invalid input, a missed deadline, and the beginning and end of a pause.
func (p *plan) conditionEvents(conditions []shared.Condition) []shared.Event {
	var events []shared.Event
	for _, c := range conditions {
		before := p.condition(c.Type)
		switch {
		case c.Type == machinev1alpha1.ConditionValid && c.Status == isFalse && c.IsNew(p.Deployment.Status.Conditions),
			c.Reason == machinev1alpha1.ReasonProgressDeadlineExceeded && c.Type == machinev1alpha1.ConditionProgressing && (before == nil || before.Reason != c.Reason):
			events = append(events, shared.Event{Warning: true, Reason: c.Reason, Message: c.Message})
		case c.Type == machinev1alpha1.ConditionProgressing && IsGate(c.Reason) && (before == nil || before.Reason != c.Reason):
			events = append(events, shared.Event{Warning: c.Reason == machinev1alpha1.ReasonRolloutRejected || needsUser(c.Reason), Reason: c.Reason, Message: c.Message})
		case c.Type == machinev1alpha1.ConditionProgressing && c.Reason == machinev1alpha1.ReasonMachineDeploymentPaused && (before == nil || before.Reason != c.Reason):
			events = append(events, shared.Event{Reason: machinev1alpha1.ReasonMachineDeploymentPaused, Message: c.Message})
		case c.Type == machinev1alpha1.ConditionProgressing && before != nil && before.Reason == machinev1alpha1.ReasonMachineDeploymentPaused && c.Reason != machinev1alpha1.ReasonMachineDeploymentPaused:
			events = append(events, shared.Event{Reason: machinev1alpha1.EventMachineDeploymentResumed, Message: "The pause has ended"})
		}
	}
	return events
}

func (p *plan) rollbackEvents() []shared.Event {
	before := p.Deployment.Status.Rollback
	switch {
	case p.rollback != nil && p.current != nil && (before == nil || before.Requested != p.rollback.Requested):
		return []shared.Event{{
			Reason:  machinev1alpha1.EventRolledBack,
			Message: fmt.Sprintf("Going back to spec.rollbackTo.revision %d, as revision %d", p.rollback.Requested, p.rollback.Revision),
		}}
	case p.rollback == nil && before != nil && p.problem == nil:
		return []shared.Event{{Reason: machinev1alpha1.EventRollbackEnded, Message: "spec.rollbackTo is gone: spec.template is rolled out"}}
	}
	return nil
}

// startsInPlaceUpdate reports whether the current set gets a new template in this plan.
func (p *plan) startsInPlaceUpdate() bool {
	return p.updatesInPlace() && p.current != nil && p.current.isRecorded && p.revision != p.current.revision
}
