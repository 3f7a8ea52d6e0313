package machine

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/karpenter/internal/drover"
)

// A Progress is how far the creation of a VM is.
type Progress int

// Progress of a creation.
const (
	// Creating waits for the VM.
	Creating Progress = iota
	// Created has a providerID.
	Created
	// Exhausted means that the cloud has no room, or that the account has no quota. Another offering may have.
	Exhausted
	// Refused means that nothing is created until a user corrects the cause in the message.
	Refused
	// Failed means that this Machine never becomes a Node.
	Failed
)

// A Verdict on a creation.
type Verdict struct {
	Progress Progress
	// Reason and Message of Drover.
	Reason, Message string
}

// Judge the creation of a Machine.
func Judge(m *drover.Machine) Verdict {
	s := m.Observed()
	op := s.LastOperation
	if op == nil {
		op = &drover.LastOperation{}
	}
	switch code := op.ErrorCode; {
	case m.DeletionTimestamp != nil:
		return Verdict{Failed, "MachineDeleted", fmt.Sprintf("the Machine %s is being deleted", m.Name)}
	case s.ProviderID != "" && s.Phase != drover.PhaseFailed:
		return Verdict{Progress: Created}
	case s.FailureReason == drover.FailureCapacityTimeout:
		return Verdict{Exhausted, s.FailureReason, s.FailureMessage}
	case s.ProviderID == "" && (code == drover.CodeCapacityExhausted || code == drover.CodeQuotaExceeded):
		return Verdict{Exhausted, code, op.Description}
	case s.Phase == drover.PhaseFailed:
		return Verdict{Failed, s.FailureReason, s.FailureMessage}
	}
	for _, t := range []string{drover.ConditionValid, drover.ConditionInfrastructureReady} {
		c := meta.FindStatusCondition(s.Conditions, t)
		if c != nil && c.Status == metav1.ConditionFalse && (t == drover.ConditionValid || needsUser(op.ErrorCode)) {
			return Verdict{Refused, c.Reason, c.Message}
		}
	}
	return Verdict{Progress: Creating, Reason: op.ErrorCode, Message: op.Description}
}

// needsUser reports whether an error of a provider remains until a user corrects its cause. Drover retries after other errors.
func needsUser(code string) bool {
	switch code {
	case "InvalidRequest", "PermissionDenied", "ProviderConfigNotFound":
		return true
	}
	return false
}
