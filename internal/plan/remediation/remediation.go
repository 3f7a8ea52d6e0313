// Package remediation limits how many Machines are replaced at a time. The planners of
// MachineDeployments and of MachineSets share it, so that both report the same. LimitsOf computes the
// budget of either. A MachineDeployment gives its budget to one of its sets at a time: see assignBudget
// of package deployment.
package remediation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

// Limits of replacements at a time.
type Limits struct {
	// InFlight is the maximal number of starting Machines, including the replacement of the next
	// one.
	InFlight int32
	// Unhealthy is how many Machines may be unhealthy, nil for any number.
	Unhealthy *int32
}

// LimitsOf returns the limits for a number of replicas. If there is a problem, no Machine may be
// replaced.
func LimitsOf(r machinev1alpha1.Remediation, replicas int32) (Limits, *plan.Problem) {
	inFlight, problem := scaled("maxInFlight", r.MaxInFlight, intstr.FromInt32(machinev1alpha1.DefaultMaxInFlight), replicas)
	if problem != nil {
		return Limits{}, problem
	}
	l := Limits{InFlight: inFlight}
	unhealthy, problem := scaled("maxUnhealthy", r.MaxUnhealthy, intstr.FromString(machinev1alpha1.DefaultMaxUnhealthy), replicas)
	if problem != nil {
		return Limits{}, problem
	}
	if r.MaxUnhealthy == nil || r.MaxUnhealthy.String() != "100%" {
		l.Unhealthy = &unhealthy
	}
	return l, nil
}

// scaled rounds up, so that one Machine of a small fleet may always be replaced.
func scaled(field string, v *intstr.IntOrString, otherwise intstr.IntOrString, replicas int32) (int32, *plan.Problem) {
	if v == nil {
		v = &otherwise
	}
	n, invalid := plan.Scaled(v, replicas, true)
	if invalid != "" {
		return 0, &plan.Problem{Reason: machinev1alpha1.ReasonInvalidRemediation, Message: fmt.Sprintf("spec.remediation.%s: %s; no Machine is replaced until it is", field, invalid)}
	}
	return n, nil
}

// Allows reports whether Machines may be replaced while the given number is unhealthy.
func (l Limits) Allows(unhealthy int32) bool { return l.Unhealthy == nil || unhealthy <= *l.Unhealthy }

// A State counts the existing Machines.
type State struct {
	// Machines are all. Starting ones do not run yet or are out of use for a reboot, Unhealthy ones are unhealthy,
	// Waiting ones wait to be replaced, and Rebooting ones to be rebooted.
	Machines, Starting, Unhealthy, Waiting, Rebooting int32
}

// Condition returns RemediationAllowed, with the reason if no Machine may be replaced. It is nil if
// no Machine ever had to be replaced.
func Condition(l Limits, problem *plan.Problem, s State, before []metav1.Condition) *plan.Condition {
	c := &plan.Condition{Type: machinev1alpha1.ConditionRemediationAllowed, Status: "False"}
	waiting, w := s.Waiting+s.Rebooting, wordsFor(s)
	switch {
	case problem != nil:
		c.Reason, c.Message = problem.Reason, problem.Message
	case !l.Allows(s.Unhealthy):
		c.Reason = machinev1alpha1.ReasonTooManyUnhealthy
		c.Message = fmt.Sprintf("%d of %d Machines are unhealthy: none is %s while more than %d are", s.Unhealthy, s.Machines, w.done, *l.Unhealthy)
	case waiting > 0 && l.InFlight == 0:
		c.Reason, c.Message = machinev1alpha1.ReasonNoBudget, fmt.Sprintf("maxInFlight is 0: %s, and none is", w.wait)
	case waiting > 0 && s.Starting >= l.InFlight:
		c.Reason = machinev1alpha1.ReasonWaitingForMachines
		c.Message = fmt.Sprintf("%s, %d are starting, and the next is %s when fewer than %d are; to %s it sooner, delete a Machine that does not start, or raise spec.remediation.maxInFlight",
			w.wait, s.Starting, w.done, l.InFlight, w.do)
	case c.IsKnown(before):
		c.Status, c.Reason = "True", machinev1alpha1.ReasonRemediationAllowed
	default:
		return nil
	}
	return c
}

// words for what Machines wait for.
type words struct{ wait, do, done string }

func wordsFor(s State) words {
	w := words{fmt.Sprintf("%d wait to be replaced", s.Waiting), "replace", "replaced"}
	switch {
	case s.Waiting == 0 && s.Rebooting > 0:
		w = words{fmt.Sprintf("%d wait to be rebooted", s.Rebooting), "reboot", "rebooted"}
	case s.Rebooting > 0:
		w.wait += fmt.Sprintf(" and %d to be rebooted", s.Rebooting)
	}
	return w
}

// Events report when replacements begin to be refused, and when they are allowed again. There is no
// event for replacements that wait for one another, which is normal.
func Events(now *plan.Condition, before []metav1.Condition) []plan.Event {
	was := ""
	if c := meta.FindStatusCondition(before, machinev1alpha1.ConditionRemediationAllowed); c != nil {
		was = c.Reason
	}
	refused := func(reason string) bool {
		return reason == machinev1alpha1.ReasonTooManyUnhealthy || reason == machinev1alpha1.ReasonInvalidRemediation
	}
	switch {
	case now == nil || now.Reason == was:
	case refused(now.Reason):
		return []plan.Event{{Warning: true, Reason: now.Reason, Message: now.Message}}
	case refused(was):
		return []plan.Event{{Reason: machinev1alpha1.ReasonRemediationAllowed, Message: "Machines are replaced again"}}
	}
	return nil
}
