package machine

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/healthprofile"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/workernode"
)

// wellAgain is the time for which a Node must be healthy before its unhealthiness is over. A Node
// that is Ready only for a moment after each restart of its kubelet never recovers.
const wellAgain = time.Minute

// health of the Node of a Machine: spec.health, with the conditions of its profiles.
func health(o Observed) machinev1alpha1.Health {
	return healthprofile.Apply(o.Machine.Spec.Health, o.HealthProfiles.Found)
}

// unhealthy returns the conditions of a Node, other than Ready, which make it unhealthy, and those which are only to be
// reported.
func unhealthy(conditions []workernode.Condition, h machinev1alpha1.Health) (bad, reported []workernode.Condition) {
	for _, c := range conditions {
		named := healthConditionOf(h, c.Type, c.Status)
		switch {
		case c.Type == string(corev1.NodeReady) || named == nil:
		case named.Action == machinev1alpha1.HealthReport:
			reported = append(reported, c)
		default:
			bad = append(bad, c)
		}
	}
	return bad, reported
}

// healthConditionOf returns the entry of a condition with a status, nil if there is none.
func healthConditionOf(h machinev1alpha1.Health, typ, status string) *machinev1alpha1.HealthCondition {
	i := slices.IndexFunc(h.Conditions, func(c machinev1alpha1.HealthCondition) bool { return c.Type == typ && c.Status == status })
	if i < 0 {
		return nil
	}
	return &h.Conditions[i]
}

// actionOn returns the action of a condition. Ready without an entry leads to a replacement.
func actionOn(h machinev1alpha1.Health, c machinev1alpha1.UnhealthyCondition) machinev1alpha1.HealthAction {
	if named := healthConditionOf(h, c.Type, c.Status); named != nil {
		return named.ActionOrDefault()
	}
	return machinev1alpha1.HealthReplace
}

// failsAt returns the time at which the Machine fails if its Node is not healthy by then, and the
// condition that decides.
func failsAt(h machinev1alpha1.Health, u machinev1alpha1.Unhealthiness) (time.Time, machinev1alpha1.UnhealthyCondition) {
	first, why := time.Time{}, machinev1alpha1.UnhealthyCondition{Since: u.Since}
	if len(u.Conditions) == 0 {
		return u.Since.Add(healthTimeout(h)), why
	}
	for _, c := range u.Conditions {
		if at := c.Since.Add(timeoutOf(h, c)); first.IsZero() || at.Before(first) {
			first, why = at, c
		}
	}
	return first, why
}

func timeoutOf(h machinev1alpha1.Health, c machinev1alpha1.UnhealthyCondition) time.Duration {
	if own := ownTimeout(h, c.Type, c.Status); own != nil {
		return own.Duration
	}
	return healthTimeout(h)
}

func ownTimeout(h machinev1alpha1.Health, typ, status string) *metav1.Duration {
	if c := healthConditionOf(h, typ, status); c != nil {
		return c.Timeout
	}
	return nil
}

func healthTimeout(h machinev1alpha1.Health) time.Duration {
	return plan.Timeout(h.Timeout, machinev1alpha1.DefaultHealthTimeout)
}

// healthReboot returns the limits of reboots by health. A field may have no value: who reads it applies its default.
func healthReboot(m *machinev1alpha1.Machine) machinev1alpha1.HealthReboot {
	if h := m.Spec.Health.Reboot; h != nil {
		return *h
	}
	return machinev1alpha1.HealthReboot{}
}

func describeBad(conditions []machinev1alpha1.UnhealthyCondition) string {
	if len(conditions) == 0 {
		return "Nothing is known of the Node"
	}
	var each []string
	for _, c := range conditions {
		each = append(each, describeCondition(c))
	}
	return listConditions(each)
}

// describeObserved describes conditions that the Node has.
func describeObserved(conditions []workernode.Condition) string {
	var each []string
	for _, c := range conditions {
		each = append(each, describeCondition(machinev1alpha1.UnhealthyCondition{Type: c.Type, Status: c.Status, Reason: c.Reason}))
	}
	return listConditions(each)
}

func listConditions(each []string) string {
	if len(each) > 1 {
		return "Node conditions " + strings.Join(each, ", ")
	}
	return "Node condition " + each[0]
}

func describeCondition(c machinev1alpha1.UnhealthyCondition) string {
	s := c.Type + " is " + c.Status
	if c.Reason != "" {
		s += " (" + c.Reason + ")"
	}
	return s
}
