package machine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
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

// unhealthiness of the Node of a Machine that has run. It changes only with the Node's conditions, and when a reboot is
// due, not with their messages. It ends when the Node is healthy, and when an update or a reboot interrupts it.
func unhealthiness(f facts, interrupted bool) *machinev1alpha1.Unhealthiness {
	before := f.before.Unhealthy
	if !f.hasRun {
		return before
	}
	at := *whole(f.now)
	if f.node.healthy || interrupted {
		if before == nil || before.Until != nil {
			return before
		}
		after := before.DeepCopy()
		after.Until, after.RebootID = &at, ""
		return after
	}
	lasting := machinev1alpha1.Unhealthiness{Since: at}
	if before != nil && (before.Until == nil || f.now.Before(before.Until.Add(min(wellAgain, healthTimeout(f.health))))) {
		lasting = *before
	}
	s := machinev1alpha1.Unhealthiness{Since: lasting.Since}
	for _, c := range f.node.bad {
		s.Conditions = append(s.Conditions, machinev1alpha1.UnhealthyCondition{
			Type: c.Type, Status: c.Status, Reason: c.Reason, Since: since(c, lasting, f.health, at),
		})
	}
	s.RebootID = rebootDue(f, s)
	return &s
}

// since returns the time since which the Node is unhealthy because of a condition. Conditions
// without a timeout of their own share health.timeout, so they share its start too.
func since(c workernode.Condition, lasting machinev1alpha1.Unhealthiness, h machinev1alpha1.Health, at metav1.Time) metav1.Time {
	shares := ownTimeout(h, c.Type, c.Status) == nil
	for _, was := range lasting.Conditions {
		if was.Type == c.Type || shares && ownTimeout(h, was.Type, was.Status) == nil {
			if was.Since.Before(&at) {
				at = was.Since
			}
		}
	}
	return at
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

// nodeHealthy is nil for a Machine whose Node never was unhealthy.
func nodeHealthy(f facts, d decision) *plan.Condition {
	switch {
	case isUnhealthy(d.unhealthy):
		c := plan.Condition{
			Type: machinev1alpha1.ConditionNodeHealthy, Status: isFalse, Reason: machinev1alpha1.ReasonNodeUnhealthy,
			Message: describeBad(d.unhealthy.Conditions) + ": " + prospect(f, d),
		}
		if !f.node.goneSince.IsZero() {
			c.Reason, c.Message = machinev1alpha1.ReasonNodeGone, f.node.message+": "+prospect(f, d)
		}
		return &c
	case len(f.node.reported) > 0:
		return &plan.Condition{
			Type: machinev1alpha1.ConditionNodeHealthy, Status: isTrue, Reason: machinev1alpha1.ReasonNodeConditionReported,
			Message: describeObserved(f.node.reported) + ", which spec.health only reports",
		}
	case d.unhealthy != nil || meta.FindStatusCondition(f.before.Conditions, machinev1alpha1.ConditionNodeHealthy) != nil:
		return &plan.Condition{Type: machinev1alpha1.ConditionNodeHealthy, Status: isTrue, Reason: machinev1alpha1.ReasonNodeHealthy}
	}
	return nil
}

// prospect describes the next change of a Machine whose Node is unhealthy.
func prospect(f facts, d decision) string {
	at, _ := failsAt(f.health, *d.unhealthy)
	gone := f.goneUntil()
	switch {
	case d.phase == machinev1alpha1.MachineFailed:
		return "the Machine is Failed"
	case !gone.IsZero():
		return fmt.Sprintf("the Machine is Failed at %s unless its kubelet registers the Node again before", gone.UTC().Format(time.RFC3339))
	case f.Machine.Spec.Health.Disabled:
		return "the Machine stays Unknown, as spec.health.disabled requires"
	case f.skipsRemediation:
		return fmt.Sprintf("the Machine stays Unknown, as %s requires", machinev1alpha1.AnnotationSkipRemediation)
	case !f.mayFail || !f.isNodeKnown:
		return "the Node cannot be observed; the Machine stays Unknown"
	case d.unhealthy.RebootID != "":
		return fmt.Sprintf("reboot %s is due, and begins when the Machine's set has room for it within spec.remediation", d.unhealthy.RebootID)
	}
	if _, why := failsAt(f.health, *d.unhealthy); actionOn(f.health, why) == machinev1alpha1.HealthActionReboot {
		if reason := f.noReboot(); reason != "" {
			return fmt.Sprintf("the Machine is Failed at %s unless its Node is healthy before; it is not rebooted: %s", at.UTC().Format(time.RFC3339), reason)
		}
		return fmt.Sprintf("the Machine is rebooted at %s unless its Node is healthy before", at.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("the Machine is Failed at %s unless its Node is healthy before", at.UTC().Format(time.RFC3339))
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
