package machine

import (
	"slices"

	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/drover-dev/drover/karpenter/internal/drover"
)

// A Fate is the consequence that the state of a Machine has for its NodeClaim, or the other way round.
type Fate string

// Fates.
const (
	// Keep both.
	Keep Fate = "Keep"
	// DeleteMachine because its NodeClaim does not exist.
	DeleteMachine Fate = "DeleteMachine"
	// DeleteClaim because its Machine is being deleted, or never becomes a healthy Node again. Karpenter drains the Node first.
	DeleteClaim Fate = "DeleteClaim"
)

// Decide the fate of a Machine and its NodeClaim, which is nil if it does not exist. The string is the cause.
func Decide(m *drover.Machine, claim *karpenterv1.NodeClaim) (Fate, string) {
	switch {
	case claim == nil && (m.DeletionTimestamp == nil || isHooked(m)):
		return DeleteMachine, "its NodeClaim does not exist"
	case claim == nil || claim.DeletionTimestamp != nil:
		return Keep, ""
	case m.DeletionTimestamp != nil:
		return DeleteClaim, "its Machine is being deleted"
	case m.Observed().Phase == drover.PhaseFailed && isFinal(m):
		return DeleteClaim, "its Machine is Failed: " + m.Observed().FailureReason + ": " + m.Observed().FailureMessage
	}
	return Keep, ""
}

func isHooked(m *drover.Machine) bool {
	_, ok := m.Annotations[drover.HookDrain]
	return ok
}

// isFinal reports whether a failure needs no second opinion. Of an unhealthy Node, Karpenter's node repair decides, which
// limits how many go at a time. A loss that the Node does not confirm may be a wrong answer of the cloud. A lack of room
// is handled by the creation.
func isFinal(m *drover.Machine) bool {
	switch m.Observed().FailureReason {
	case drover.FailureVMLost:
		return m.Observed().LossConfirmed
	case drover.FailureCreateFailed, drover.FailureCreateUnknown, drover.FailureVMFailed, drover.FailureNodeDeleted, drover.FailureJoinTimeout:
		return true
	}
	return false
}

// LetsNodeGo reports whether Drover is done with the Node of a Machine that is being deleted, and waits for Karpenter's
// finalizer. Karpenter on its side removes the finalizer when the VM does not exist: one of the two must go first.
func LetsNodeGo(m *drover.Machine) bool {
	d := m.Observed().Deletion
	if m.DeletionTimestamp == nil || d == nil {
		return false
	}
	switch d.Stage {
	case drover.StageHeld, drover.StagePaused, drover.StagePreDrainHooks, drover.StageDraining, drover.StageDetachingVolumes:
		return false
	case drover.StageDeletingNode:
		return len(d.Finalizers) > 0 && !slices.ContainsFunc(d.Finalizers, func(f string) bool { return f != karpenterv1.TerminationFinalizer })
	}
	return true
}
