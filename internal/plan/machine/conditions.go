package machine

import (
	"k8s.io/apimachinery/pkg/api/meta"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

func conditions(f facts, d decision) []plan.Condition {
	out := []plan.Condition{valid(f), infrastructureReady(f), nodeReady(f)}
	for _, c := range []*plan.Condition{nodeHealthy(f, d), updatedCondition(f, d.update), rebootedCondition(f, d.reboot), preservedCondition(f, d.preservation), annotationsValid(f), healthValid(f)} {
		if c != nil {
			out = append(out, *c)
		}
	}
	return out
}

func valid(f facts) plan.Condition {
	if p := f.problem; p != nil {
		return plan.Condition{Type: machinev1alpha1.ConditionValid, Status: isFalse, Reason: p.Reason, Message: p.Message}
	}
	return plan.Condition{Type: machinev1alpha1.ConditionValid, Status: isTrue, Reason: machinev1alpha1.ReasonValid}
}

func infrastructureReady(f facts) plan.Condition {
	c := plan.Condition{Type: machinev1alpha1.ConditionInfrastructureReady, Status: isFalse, Message: f.VM.Message}
	switch f.VM.State {
	case plan.VMRunning:
		c.Status, c.Reason = isTrue, machinev1alpha1.ReasonVMRunning
	case plan.VMFailed:
		c.Reason = string(machinev1alpha1.FailureVMFailed)
	case plan.VMLost:
		c.Reason = string(machinev1alpha1.FailureVMLost)
	case plan.VMCreateUnknown:
		c.Reason = string(machinev1alpha1.FailureCreateUnknown)
	case plan.VMCreating:
		switch {
		case f.Bootstrap.Waiting != "":
			c.Reason, c.Message = machinev1alpha1.ReasonWaiting, f.Bootstrap.Waiting
		case f.VM.ErrorCode != "":
			c.Reason = f.VM.ErrorCode
		case f.VM.Unidentified:
			c.Reason, c.Message = machinev1alpha1.ReasonProviderIDEmpty, f.waitsFor
		case f.everJoined:
			c.Reason = machinev1alpha1.ReasonVMNotRunning
		default:
			c.Reason = machinev1alpha1.ReasonVMCreating
		}
	default:
		c.Reason, c.Message = machinev1alpha1.ReasonWaiting, f.waitsFor
	}
	return c
}

func nodeReady(f facts) plan.Condition {
	c := plan.Condition{Type: machinev1alpha1.ConditionNodeReady, Status: isFalse, Message: f.node.message}
	switch {
	case f.node.starting:
		c.Reason = machinev1alpha1.ReasonNodeStarting
	case f.node.ready:
		c.Status, c.Reason = isTrue, machinev1alpha1.ReasonNodeReady
	case !f.everJoined:
		c.Reason = f.notJoinedReason()
	case !f.node.goneSince.IsZero():
		c.Status, c.Reason = isUnknown, machinev1alpha1.ReasonNodeGone
	case !f.node.joined || f.node.status == "" && len(f.node.Conditions) == 0:
		c.Status, c.Reason = isUnknown, machinev1alpha1.ReasonNodeNotObserved
	case f.node.status == isFalse || f.node.status == "":
		c.Reason = machinev1alpha1.ReasonNodeNotReady
	default:
		c.Status, c.Reason = isUnknown, machinev1alpha1.ReasonNodeUnknown
	}
	return c
}

func updatedCondition(f facts, u *machinev1alpha1.UpdateStatus) *plan.Condition {
	switch {
	case u != nil:
		return &plan.Condition{Type: machinev1alpha1.ConditionUpdated, Status: isFalse, Reason: reasonsOfUpdates[u.State], Message: describe(f.Machine, u)}
	case meta.FindStatusCondition(f.before.Conditions, machinev1alpha1.ConditionUpdated) != nil:
		return &plan.Condition{Type: machinev1alpha1.ConditionUpdated, Status: isTrue, Reason: machinev1alpha1.ReasonUpToDate}
	}
	return nil
}
