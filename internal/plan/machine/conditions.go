package machine

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

// Types of a Machine's conditions, beside those of Crossplane.
const (
	// TypeValid is False while something that a user wrote keeps the Machine from
	// going on. Its reasons are those of the problems.
	TypeValid = "Valid"
	// TypeInfrastructureReady is True while the VM runs.
	TypeInfrastructureReady = "InfrastructureReady"
	// TypeNodeReady is True while the Node is Ready.
	TypeNodeReady = "NodeReady"
	// TypeNodeHealthy is False while the Node of a Machine that has run is unhealthy.
	// Machines whose Node never was do not have it.
	TypeNodeHealthy = "NodeHealthy"
	// TypeUpdated is False while an update in place is asked for. Machines that never
	// were updated in place do not have it. UpToDate is Crossplane's own.
	TypeUpdated = "Updated"
	// TypePreserved is True while the Machine is preserved for analysis. Machines that
	// never were do not have it.
	TypePreserved = "Preserved"
	// TypeAnnotationsValid is False while annotations have values that are passed over.
	// Machines that never had any do not have it.
	TypeAnnotationsValid = "AnnotationsValid"
)

// Reasons of conditions and events. While its provider has an error, the reason of
// InfrastructureReady is the code of the error.
const (
	ReasonValid         = "Valid"
	ReasonWaiting       = "Waiting"
	ReasonVMCreating    = "VMCreating"
	ReasonVMNotRunning  = "VMNotRunning"
	ReasonVMRunning     = "VMRunning"
	ReasonNodeNotJoined = "NodeNotJoined"
	ReasonNodeStarting  = "NodeStarting"
	ReasonNodeReady     = "NodeReady"
	ReasonNodeNotReady  = "NodeNotReady"
	ReasonNodeUnknown   = "NodeUnknown"
	ReasonNodeGone      = "NodeGone"
	ReasonNodeHealthy   = "NodeHealthy"
	ReasonNodeUnhealthy = "NodeUnhealthy"
	ReasonUpToDate      = "UpToDate"

	ReasonPreserved           = "Preserved"
	ReasonNotPreserved        = "NotPreserved"
	ReasonPreservationExpired = "PreservationExpired"
	ReasonAnnotationInvalid   = "AnnotationInvalid"
)

const (
	isTrue    = string(corev1.ConditionTrue)
	isFalse   = string(corev1.ConditionFalse)
	isUnknown = string(corev1.ConditionUnknown)
)

func conditions(f facts, d decision) []plan.Condition {
	out := []plan.Condition{valid(f), infrastructureReady(f), nodeReady(f)}
	for _, c := range []*plan.Condition{nodeHealthy(f, d), updatedCondition(f, d.update), preservedCondition(f, d.preservation), annotationsValid(f)} {
		if c != nil {
			out = append(out, *c)
		}
	}
	return out
}

func valid(f facts) plan.Condition {
	if p := f.problem; p != nil {
		return plan.Condition{Type: TypeValid, Status: isFalse, Reason: p.Reason, Message: p.Message}
	}
	return plan.Condition{Type: TypeValid, Status: isTrue, Reason: ReasonValid}
}

func infrastructureReady(f facts) plan.Condition {
	c := plan.Condition{Type: TypeInfrastructureReady, Status: isFalse, Message: f.VM.Message}
	switch f.VM.State {
	case plan.VMRunning:
		c.Status, c.Reason = isTrue, ReasonVMRunning
	case plan.VMFailed:
		c.Reason = string(machinev1alpha1.FailureVMFailed)
	case plan.VMLost:
		c.Reason = string(machinev1alpha1.FailureVMLost)
	case plan.VMCreateUnknown:
		c.Reason = string(machinev1alpha1.FailureCreateUnknown)
	case plan.VMCreating:
		switch {
		case f.Bootstrap.Waiting != "":
			c.Reason, c.Message = ReasonWaiting, f.Bootstrap.Waiting
		case f.VM.ErrorCode != "":
			c.Reason = f.VM.ErrorCode
		case f.everJoined:
			c.Reason = ReasonVMNotRunning
		default:
			c.Reason = ReasonVMCreating
		}
	default:
		c.Reason, c.Message = ReasonWaiting, f.waitsFor
	}
	return c
}

func nodeReady(f facts) plan.Condition {
	c := plan.Condition{Type: TypeNodeReady, Status: isFalse, Message: f.node.message}
	switch {
	case f.node.starting:
		c.Reason = ReasonNodeStarting
	case f.node.ready:
		c.Status, c.Reason = isTrue, ReasonNodeReady
	case !f.everJoined:
		c.Reason = ReasonNodeNotJoined
	case !f.node.joined || f.node.status == "" && len(f.node.Conditions) == 0:
		c.Status, c.Reason = isUnknown, ReasonNodeGone
	case f.node.status == isFalse || f.node.status == "":
		c.Reason = ReasonNodeNotReady
	default:
		c.Status, c.Reason = isUnknown, ReasonNodeUnknown
	}
	return c
}

func updatedCondition(f facts, u *machinev1alpha1.UpdateStatus) *plan.Condition {
	switch {
	case u != nil:
		return &plan.Condition{Type: TypeUpdated, Status: isFalse, Reason: reasonOf(u.State), Message: describe(f.Machine, u)}
	case meta.FindStatusCondition(f.before.Conditions, TypeUpdated) != nil:
		return &plan.Condition{Type: TypeUpdated, Status: isTrue, Reason: ReasonUpToDate}
	}
	return nil
}
