package freeze

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

// lookAgain is the delay until an unreachable or missing cluster is checked again, because Crossplane does not
// watch its configuration. A check is one read from a cache.
const lookAgain = 15 * time.Second

// Plan decides whether to freeze.
func Plan(now time.Time, o Observed) Decision {
	was := meta.FindStatusCondition(o.Conditions, machinev1alpha1.ConditionFrozen)
	wasFrozen := was != nil && was.Status == metav1.ConditionTrue
	d := Decision{CallAgain: plan.AtRest}
	overshoot, until := "", time.Time{}
	if o.Machines != nil {
		status := o.Machines.remember()
		overshoot, until = o.Machines.overshoot(now, &status, o.Margins, wasFrozen && was.Reason == machinev1alpha1.ReasonOvershoot)
		d.Status = &status
	}

	reason, message := o.found(overshoot)
	label, labeled := o.Labels[machinev1alpha1.LabelFreeze]
	switch {
	case label == "true":
		d.freeze(o.byHand())
		d.Safety.Sets = label
	case label == "false":
		d.thaw(reason, message)
		d.Safety.Sets = label
	case reason != "":
		d.freeze(reason, message+": no Machines are created or replaced meanwhile")
		if reason == machinev1alpha1.ReasonOvershoot {
			d.Safety.Sets = "true"
		}
	default:
		d.Condition = plan.Condition{Type: machinev1alpha1.ConditionFrozen, Status: "False", Reason: machinev1alpha1.ReasonNotFrozen}
		if labeled {
			d.Condition.Reason = machinev1alpha1.ReasonFreezeLabelInvalid
			d.Condition.Message = fmt.Sprintf("label %s: %q must be \"true\" or \"false\", and is passed over", machinev1alpha1.LabelFreeze, label)
		}
	}
	d.Safety.Problem = o.Problem
	if o.Problem != nil || o.Cluster != nil && o.Cluster.Unreachable {
		d.CallAgain = lookAgain
	}
	if !until.IsZero() {
		d.CallAgain = min(d.CallAgain, max(plan.Soonest, until.Sub(now)))
	}
	d.emitTransition(was, wasFrozen)
	return d
}

// found returns the reason to freeze, "" if there is none.
func (o Observed) found(overshoot string) (reason, message string) {
	switch c := o.Cluster; {
	case c != nil && c.Unreachable && c.Reason == clusterv1alpha1.ReasonInjectedIdentityNotAllowed:
		return machinev1alpha1.ReasonInjectedIdentityNotAllowed, fmt.Sprintf("%s %q has spec.credentials.source InjectedIdentity, and the flag --injected-identity-for of provider-drover does not name it", c.Kind, c.Name)
	case c != nil && c.Unreachable:
		return machinev1alpha1.ReasonTargetUnreachable, fmt.Sprintf("%s %q is not Reachable since %s (%s)", c.Kind, c.Name, c.Since.UTC().Format(time.RFC3339), c.Reason)
	case overshoot != "":
		return machinev1alpha1.ReasonOvershoot, overshoot
	}
	return "", ""
}

// byHand returns the reason of a freeze by the label, which a user or the deployment set.
func (o Observed) byHand() (reason, message string) {
	if by := o.Annotations[machinev1alpha1.AnnotationFreezeReason]; by != "" {
		return machinev1alpha1.ReasonDeploymentFrozen, fmt.Sprintf("MachineDeployment %s is frozen (%s): no Machines are created or replaced until it thaws", o.Labels[machinev1alpha1.LabelDeployment], by)
	}
	return machinev1alpha1.ReasonManualFreeze, "label " + machinev1alpha1.LabelFreeze + ` is "true": no Machines are created or replaced until it is removed`
}

func (d *Decision) freeze(reason, message string) {
	d.Safety = plan.Safety{Frozen: true, Reason: reason, Message: message}
	d.Condition = plan.Condition{Type: machinev1alpha1.ConditionFrozen, Status: "True", Reason: reason, Message: message}
}

// thaw because of the label, regardless of any reason to freeze.
func (d *Decision) thaw(reason, message string) {
	d.Condition = plan.Condition{Type: machinev1alpha1.ConditionFrozen, Status: "False", Reason: machinev1alpha1.ReasonNotFrozen}
	if reason != "" {
		d.Condition.Reason = machinev1alpha1.ReasonFreezeOverridden
		d.Condition.Message = fmt.Sprintf("label %s is \"false\": Machines are created and replaced in spite of %s: %s", machinev1alpha1.LabelFreeze, reason, message)
	}
}

// emitTransition emits an event when a freeze begins, changes its reason or ends.
func (d *Decision) emitTransition(was *metav1.Condition, wasFrozen bool) {
	c := d.Condition
	switch {
	case was != nil && string(was.Status) == c.Status && was.Reason == c.Reason:
	case c.Status == "True":
		d.Events = append(d.Events, plan.Event{Warning: true, Reason: c.Reason, Message: "Frozen: " + c.Message})
	case c.Reason != machinev1alpha1.ReasonNotFrozen:
		d.Events = append(d.Events, plan.Event{Warning: true, Reason: c.Reason, Message: c.Message})
	case wasFrozen:
		d.Events = append(d.Events, plan.Event{Reason: c.Reason, Message: fmt.Sprintf("Thawed after %s: Machines are created and replaced again", was.Reason)})
	}
}
