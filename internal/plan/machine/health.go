package machine

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/workernode"
)

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
