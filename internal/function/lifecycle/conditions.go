package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
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

func conditions(now time.Time, o Observed, n node, s machinev1alpha1.MachineStatus) []step.Condition {
	out := []step.Condition{valid(o), infrastructureReady(o, n), nodeReady(o, n)}
	for _, c := range []*step.Condition{nodeHealthy(now, o, n, s), updatedCondition(o, s), preservedCondition(now, o, s), annotationsValid(o, n)} {
		if c != nil {
			out = append(out, *c)
		}
	}
	return out
}

func valid(o Observed) step.Condition {
	if p := o.problem(); p != nil {
		return step.Condition{Type: TypeValid, Status: isFalse, Reason: p.Reason, Message: p.Message}
	}
	return step.Condition{Type: TypeValid, Status: isTrue, Reason: ReasonValid}
}

func infrastructureReady(o Observed, n node) step.Condition {
	c := step.Condition{Type: TypeInfrastructureReady, Status: isFalse, Message: o.VM.Message}
	switch o.VM.State {
	case step.VMRunning:
		c.Status, c.Reason = isTrue, ReasonVMRunning
	case step.VMFailed:
		c.Reason = string(machinev1alpha1.FailureVMFailed)
	case step.VMLost:
		c.Reason = string(machinev1alpha1.FailureVMLost)
	case step.VMCreateUnknown:
		c.Reason = string(machinev1alpha1.FailureCreateUnknown)
	case step.VMCreating:
		switch {
		case o.Bootstrap.Waiting != "":
			c.Reason, c.Message = ReasonWaiting, o.Bootstrap.Waiting
		case o.VM.ErrorCode != "":
			c.Reason = o.VM.ErrorCode
		case everJoined(o, n):
			c.Reason = ReasonVMNotRunning
		default:
			c.Reason = ReasonVMCreating
		}
	default:
		c.Reason, c.Message = ReasonWaiting, waitsFor(o, n)
	}
	return c
}

func nodeReady(o Observed, n node) step.Condition {
	c := step.Condition{Type: TypeNodeReady, Status: isFalse, Message: n.message}
	switch {
	case n.starting:
		c.Reason = ReasonNodeStarting
	case n.ready:
		c.Status, c.Reason = isTrue, ReasonNodeReady
	case !everJoined(o, n):
		c.Reason = ReasonNodeNotJoined
	case !n.joined || n.status == "" && len(n.Conditions) == 0:
		c.Status, c.Reason = isUnknown, ReasonNodeGone
	case n.status == isFalse || n.status == "":
		c.Reason = ReasonNodeNotReady
	default:
		c.Status, c.Reason = isUnknown, ReasonNodeUnknown
	}
	return c
}

func updatedCondition(o Observed, s machinev1alpha1.MachineStatus) *step.Condition {
	switch {
	case s.Update != nil:
		return &step.Condition{Type: TypeUpdated, Status: isFalse, Reason: reasonOf(s.Update.State), Message: describe(o.Machine, s.Update)}
	case meta.FindStatusCondition(o.Machine.Status.Conditions, TypeUpdated) != nil:
		return &step.Condition{Type: TypeUpdated, Status: isTrue, Reason: ReasonUpToDate}
	}
	return nil
}
