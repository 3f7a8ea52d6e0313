package set

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/remediation"
)

const (
	// RemedyOfUpdate is the instruction for users to retry a failed update.
	RemedyOfUpdate = "to retry, set the annotation " + machinev1alpha1.AnnotationUpdateRetry + " of the Machine to a new value"
)

func (p *plan) conditions(allowed *shared.Condition) []shared.Condition {
	out := []shared.Condition{p.valid(), p.replicaFailure()}
	for _, c := range []*shared.Condition{p.exhaustedCondition(), p.updatedCondition(), p.exclusive(), p.annotationsValid(), p.healthValid(), allowed} {
		if c != nil {
			out = append(out, *c)
		}
	}
	return out
}

func (p *plan) valid() shared.Condition {
	if p.Problem != nil {
		return shared.Condition{
			Type:    machinev1alpha1.ConditionValid,
			Status:  "False",
			Reason:  p.Problem.Reason,
			Message: p.Problem.Message + "; no Machines are created until that is mended",
		}
	}
	// What keeps each new Machine from its VM is a fault of the template, or of an object that it names.
	if c := p.invalidMachine(); c != nil {
		return shared.Condition{Type: machinev1alpha1.ConditionValid, Status: "False", Reason: c.Reason, Message: c.Message}
	}
	return shared.Condition{Type: machinev1alpha1.ConditionValid, Status: "True", Reason: machinev1alpha1.ReasonValid}
}

func (p *plan) replicaFailure() shared.Condition {
	c := shared.Condition{Type: machinev1alpha1.ConditionReplicaFailure, Status: "True"}
	if p.NotApplied != "" {
		c.Reason, c.Message = machinev1alpha1.ReasonMachinesNotApplied, p.NotApplied
		return c
	}
	if b := p.backoff; b != nil {
		c.Reason, c.Message = cmp.Or(b.ErrorCode, string(b.Reason)), b.Message
		return c
	}
	failing := slices.DeleteFunc(slices.Clone(p.all()), func(m Machine) bool { return !isInFlight(m) || !inError(m) })
	if len(failing) == 0 {
		for _, c := range []*shared.Condition{p.invalidMachine(), p.stuckMachine()} {
			if c != nil {
				return *c
			}
		}
		return shared.Condition{Type: machinev1alpha1.ConditionReplicaFailure, Status: "False", Reason: machinev1alpha1.ReasonNoFailure}
	}
	first := slices.MinFunc(failing, func(a, b Machine) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	c.Reason, c.Message = errorCode(first), "Machine "+first.Name+": "+first.Status.LastOperation.Description
	return p.inWordsOfBefore(c)
}

// invalidMachine reports the problem of a Machine that gets no VM. Either its VM cannot be created, for
// example because the API server of its cluster does not support its version, or the Machine was restored
// and waits for its earlier VM. It returns nil if there is no such Machine, or if the problem is the set's
// own.
func (p *plan) invalidMachine() *shared.Condition {
	isValid := func(m Machine) bool {
		return !m.Status.Phase.IsOnItsWay() || m.Status.ProviderID != "" || !meta.IsStatusConditionFalse(m.Status.Conditions, machinev1alpha1.ConditionValid)
	}
	invalid := slices.DeleteFunc(slices.Clone(p.all()), isValid)
	if p.Problem != nil || len(invalid) == 0 {
		return nil
	}
	first := slices.MinFunc(invalid, func(a, b Machine) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	valid := meta.FindStatusCondition(first.Status.Conditions, machinev1alpha1.ConditionValid)
	c := p.inWordsOfBefore(shared.Condition{
		Type: machinev1alpha1.ConditionReplicaFailure, Status: "True", Reason: valid.Reason, Message: "Machine " + first.Name + ": " + valid.Message,
	})
	return &c
}

// stuckMachine reports the oldest Machine that a condition keeps from running until a user acts, such as a step of the
// Composition whose Function is not installed. It returns nil if there is none.
func (p *plan) stuckMachine() *shared.Condition {
	var first *shared.Condition
	var oldest Machine
	for _, m := range p.all() {
		s := shared.StuckBy(m.Machine)
		if s == nil || s.Left(p.now) > 0 || first != nil && !m.CreationTimestamp.Before(&oldest.CreationTimestamp) {
			continue
		}
		oldest = m
		first = &shared.Condition{Type: machinev1alpha1.ConditionReplicaFailure, Status: "True", Reason: s.Reason, Message: "Machine " + m.Name + ": " + s.Message}
	}
	if first == nil {
		return nil
	}
	c := p.inWordsOfBefore(*first)
	return &c
}

// untilStuck returns the time until the set reports the next Machine that is stuck, AtRest if there is none.
func (p *plan) untilStuck() time.Duration {
	next := shared.AtRest
	for _, m := range p.all() {
		if s := shared.StuckBy(m.Machine); s != nil && s.Left(p.now) > 0 {
			next = min(next, s.Left(p.now))
		}
	}
	return next
}

// inWordsOfBefore keeps the message of a condition whose reason has not changed: the same error in other
// words is no news.
func (p *plan) inWordsOfBefore(c shared.Condition) shared.Condition {
	before := meta.FindStatusCondition(p.Set.Status.Conditions, c.Type)
	if before != nil && before.Status == metav1.ConditionTrue && before.Reason == c.Reason {
		c.Message = before.Message
	}
	return c
}

// exhaustedCondition returns nil for a set whose cloud has never been exhausted.
func (p *plan) exhaustedCondition() *shared.Condition {
	earlier := meta.FindStatusCondition(p.Set.Status.Conditions, machinev1alpha1.ConditionCapacityExhausted)
	e := p.exhausted
	if e == nil {
		if earlier == nil {
			return nil
		}
		return &shared.Condition{Type: machinev1alpha1.ConditionCapacityExhausted, Status: "False", Reason: machinev1alpha1.ReasonRoomAvailable}
	}
	c := &shared.Condition{Type: machinev1alpha1.ConditionCapacityExhausted, Status: "True", Reason: e.Code, Message: inDomain(e.FailureDomain) + ": " + p.exhaustedBy}
	// The same error in other words is no news.
	if e.Until != nil {
		c.Message = fmt.Sprintf("%s: no Machine waits for room any more; it counts as full until %s, or until a VM is created there", inDomain(e.FailureDomain), e.Until.UTC().Format(time.RFC3339))
		return c
	}
	if earlier != nil && earlier.Reason == e.Code && p.Set.Status.Exhausted != nil && p.Set.Status.Exhausted.FailureDomain == e.FailureDomain {
		c.Message = earlier.Message
	}
	return c
}

// updatedCondition reports the progress of updates in place. It returns nil for a set without them.
func (p *plan) updatedCondition() *shared.Condition {
	if !p.updatesInPlace() {
		return nil
	}
	c := &shared.Condition{Type: machinev1alpha1.ConditionUpdated, Status: "True", Reason: machinev1alpha1.ReasonUpToDate}
	var failed []string
	for _, m := range p.all() {
		if !p.isOutdated(m) {
			continue
		}
		c.Status, c.Reason = "False", machinev1alpha1.ReasonUpdating
		if updateFailed(m) {
			failed = append(failed, m.Name+" ("+m.Status.Update.Message+")")
		}
	}
	if len(failed) > 0 {
		c.Reason, c.Message = machinev1alpha1.ReasonUpdateFailed, "The update failed of "+list(failed)
	}
	return c
}

// exclusive returns a condition that is False while Machines match the selector that another object
// controls. A set that never saw such Machines does not have the condition.
func (f *fleet) exclusive() *shared.Condition {
	c := shared.Condition{Type: machinev1alpha1.ConditionSelectorExclusive, Status: "True", Reason: machinev1alpha1.ReasonExclusive}
	if len(f.Foreign) > 0 {
		// The message names the controllers only: it would change with each of their Machines.
		var by []string
		for _, m := range f.Foreign {
			owner := metav1.GetControllerOfNoCopy(m)
			by = append(by, owner.Kind+" "+owner.Name)
		}
		slices.Sort(by)
		c.Status, c.Reason = "False", machinev1alpha1.ReasonControlledByOthers
		c.Message = fmt.Sprintf("Machines that spec.selector matches are controlled by %s, and left alone", strings.Join(slices.Compact(by), ", "))
		return &c
	}
	if !c.IsKnown(f.Set.Status.Conditions) {
		return nil
	}
	return &c
}

func (f *fleet) annotationsValid() *shared.Condition {
	return shared.AnnotationsValid(shared.InvalidSwitchesOfSet("MachineSet", f.Set), f.Set.Status.Conditions)
}

func (f *fleet) healthValid() *shared.Condition {
	return shared.HealthValid(slices.Concat(f.HealthProblems, f.rebootTimeoutProblems()), f.Set.Status.Conditions)
}

// lacksProfile reports whether spec.health names a profile that does not exist. The other problems are of the class and its
// provider.
func (f *fleet) lacksProfile() bool {
	return slices.ContainsFunc(f.HealthProblems, func(p shared.Problem) bool { return p.Reason == machinev1alpha1.ReasonHealthProfileNotFound })
}

func (p *plan) remediationAllowed() *shared.Condition {
	return remediation.Condition(p.limits, p.unlimited, remediation.State{
		Machines:  int32(len(p.kept)),
		Starting:  int32(p.starting()),
		Unhealthy: p.unhealthy(),
		Waiting:   int32(len(p.waiting())),
		Rebooting: int32(len(p.rebootsDue())),
	}, p.Set.Status.Conditions)
}

// conditionEvents reports invalid input when it is first found.
func (p *plan) conditionEvents(conditions []shared.Condition) []shared.Event {
	var out []shared.Event
	for _, c := range conditions {
		if (c.Type == machinev1alpha1.ConditionValid || c.Type == machinev1alpha1.ConditionSelectorExclusive) && c.Status != "True" && c.IsNew(p.Set.Status.Conditions) {
			out = append(out, shared.Event{Warning: true, Reason: c.Reason, Message: c.Message})
		}
	}
	return out
}
