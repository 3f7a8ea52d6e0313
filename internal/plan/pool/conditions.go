package pool

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/deployment"
)

const (
	isTrue  = string(metav1.ConditionTrue)
	isFalse = string(metav1.ConditionFalse)
)

func (p *plan) conditions(s machinev1alpha1.NodePoolStatus) []shared.Condition {
	stalled := shared.Stalled(p.stalledBy())
	out := []shared.Condition{p.valid(), p.available(s), p.failure(), p.reconciling(s, stalled), stalled}
	for _, c := range []*shared.Condition{p.exhausted(), p.annotationsValid(), p.healthValid()} {
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
	return shared.Condition{Type: machinev1alpha1.ConditionValid, Status: isTrue, Reason: machinev1alpha1.ReasonValid}
}

func (p *plan) annotationsValid() *shared.Condition {
	return shared.AnnotationsValid(shared.InvalidSwitchesOfSet("NodePool", p.Pool), p.Pool.Status.Conditions)
}

// healthValid is that of the first MachineDeployment that has a fault.
func (p *plan) healthValid() *shared.Condition {
	var of []shared.Reporter
	for _, m := range p.members {
		of = append(of, shared.Reporter{Name: "MachineDeployment " + m.name, Conditions: m.status().Conditions})
	}
	return shared.HealthValidOf(of, p.Pool.Status.Conditions)
}

func (p *plan) available(s machinev1alpha1.NodePoolStatus) shared.Condition {
	least := max(0, s.DesiredReplicas-p.unavailable)
	if !p.isAutoscaled() {
		least = max(0, p.size()-p.unavailable)
	}
	c := shared.Condition{
		Type: machinev1alpha1.ConditionAvailable, Status: isTrue, Reason: machinev1alpha1.ReasonMinimumReplicasAvailable,
		Message: fmt.Sprintf("%s, at least %d must be", shared.Numbers{Desired: s.DesiredReplicas, Available: s.AvailableReplicas}, least),
	}
	if s.AvailableReplicas < least {
		c.Status, c.Reason = isFalse, machinev1alpha1.ReasonMinimumReplicasUnavailable
	}
	return c
}

// first returns the first MachineDeployment whose condition is True, and the condition.
func (p *plan) first(typ string) (*member, *metav1.Condition) {
	for _, m := range p.members {
		if c := meta.FindStatusCondition(m.status().Conditions, typ); c != nil && c.Status == metav1.ConditionTrue {
			return m, c
		}
	}
	return nil, nil
}

func (p *plan) failure() shared.Condition {
	m, c := p.first(machinev1alpha1.ConditionReplicaFailure)
	if c == nil {
		return shared.Condition{Type: machinev1alpha1.ConditionReplicaFailure, Status: isFalse, Reason: machinev1alpha1.ReasonNoFailure}
	}
	return shared.Condition{Type: machinev1alpha1.ConditionReplicaFailure, Status: isTrue, Reason: machinev1alpha1.ReasonMachineDeploymentFailing, Message: quote(m, c)}
}

// stalledBy returns the reason why the pool makes no progress until a user acts, nil if there is
// none.
func (p *plan) stalledBy() *shared.Condition {
	if p.problem != nil {
		return &shared.Condition{Reason: p.problem.Reason, Message: p.problem.Message}
	}
	for _, m := range p.members {
		c := meta.FindStatusCondition(m.status().Conditions, machinev1alpha1.ConditionStalled)
		// Another template may fix it.
		if c != nil && c.Status == metav1.ConditionTrue && m.isApplied() && m.status().ObservedGeneration == m.is.Generation {
			return &shared.Condition{Reason: machinev1alpha1.ReasonMachineDeploymentStalled, Message: quote(m, c)}
		}
	}
	return nil
}

// reconciling is True while the pool differs from its spec and makes progress.
func (p *plan) reconciling(s machinev1alpha1.NodePoolStatus, stalled shared.Condition) shared.Condition {
	c := shared.Condition{Type: machinev1alpha1.ConditionReconciling, Status: isFalse, Reason: machinev1alpha1.ReasonSettled}
	numbers := shared.Numbers{Desired: s.DesiredReplicas, Available: s.AvailableReplicas, Terminating: s.TerminatingReplicas}.String()
	switch {
	case p.isComplete():
	case stalled.Status == isTrue:
		c.Reason = stalled.Reason
	case p.isPaused():
		c.Reason, c.Message = machinev1alpha1.ReasonNodePoolPaused, "spec.paused is true: no Machine is replaced or updated until it is false"
	case p.heldBy() != nil:
		m, held := p.heldBy().member, p.heldBy().condition
		c.Reason, c.Message = held.Reason, quote(m, held)
	case p.isMoving():
		c.Status, c.Reason = isTrue, machinev1alpha1.ReasonRebalancing
		c.Message = fmt.Sprintf("%s; %s", numbers, p.movement())
	case !p.isUpdated():
		c.Status, c.Reason = isTrue, machinev1alpha1.ReasonRollingOut
		c.Message = fmt.Sprintf("%d of %d Machines are updated; %s", s.UpdatedReplicas, s.DesiredReplicas, numbers)
		if turns := p.turnsText(); turns != "" {
			c.Message += "; " + turns
		}
	default:
		c.Status, c.Reason, c.Message = isTrue, machinev1alpha1.ReasonScaling, numbers
	}
	return c
}

// isPaused reports whether only paused rollouts prevent the pool from being complete.
func (p *plan) isPaused() bool {
	if !p.Pool.Spec.Paused || p.hasDecided() || p.isMoving() {
		return false
	}
	return !slices.ContainsFunc(p.members, func(m *member) bool {
		if m.isComplete() {
			return false
		}
		c := meta.FindStatusCondition(m.status().Conditions, machinev1alpha1.ConditionProgressing)
		return !m.isApplied() || m.status().ObservedGeneration != m.is.Generation || c == nil || c.Reason != machinev1alpha1.ReasonMachineDeploymentPaused
	})
}

// held is a member whose rollout a gate holds, with its condition Progressing.
type held struct {
	member    *member
	condition *metav1.Condition
}

// heldBy returns the first member that a gate holds, nil unless only such members prevent the pool from being complete.
func (p *plan) heldBy() *held {
	if p.hasDecided() || p.isMoving() {
		return nil
	}
	var first *held
	for _, m := range p.members {
		if m.isComplete() {
			continue
		}
		c := meta.FindStatusCondition(m.status().Conditions, machinev1alpha1.ConditionProgressing)
		if !m.isApplied() || m.status().ObservedGeneration != m.is.Generation || c == nil || c.Status != metav1.ConditionUnknown || !deployment.IsGate(c.Reason) {
			return nil
		}
		if first == nil {
			first = &held{m, c}
		}
	}
	return first
}

// movement describes the Machines that move between failure domains.
func (p *plan) movement() string {
	var out []string
	for _, m := range p.members {
		is, goal := p.recorded(m), p.goal[m]
		because := ""
		if e := m.exhausted(); e != nil {
			because = fmt.Sprintf(", which is exhausted (%s)", e.Code)
		}
		switch {
		case !m.wanted:
			out = append(out, fmt.Sprintf("failure domain %q is being left: %d Machines are left", m.domain, m.existing()))
		case is != goal:
			out = append(out, fmt.Sprintf("failure domain %q%s: %d of %d", m.domain, because, is, goal))
		}
	}
	return strings.Join(out, ", ")
}

// exhausted is nil for a pool without an exhausted failure domain now or earlier.
func (p *plan) exhausted() *shared.Condition {
	typ := machinev1alpha1.ConditionCapacityExhausted
	var out []string
	code := ""
	for _, m := range p.members {
		if e := m.exhausted(); e != nil {
			code = e.Code
			out = append(out, fmt.Sprintf("failure domain %q: %s", m.domain, e.Code))
		}
	}
	switch {
	case len(out) > 0:
		return &shared.Condition{Type: typ, Status: isTrue, Reason: code, Message: strings.Join(out, ", ")}
	case meta.FindStatusCondition(p.Pool.Status.Conditions, typ) != nil:
		return &shared.Condition{Type: typ, Status: isFalse, Reason: machinev1alpha1.ReasonRoomAvailable}
	}
	return nil
}

func quote(m *member, c *metav1.Condition) string {
	return fmt.Sprintf("MachineDeployment %s: %s: %s", m.name, c.Reason, c.Message)
}
