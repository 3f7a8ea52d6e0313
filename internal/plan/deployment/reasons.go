package deployment

import (
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// IsGate reports whether a reason of Progressing means that the rollout waits for a user, a window or a gate, or was rejected.
// Soaking, Analyzing and AwaitingTurn are none of them: the rollout goes on by itself.
func IsGate(reason string) bool {
	switch reason {
	case machinev1alpha1.ReasonAwaitingApproval, machinev1alpha1.ReasonOutsideWindow, machinev1alpha1.ReasonRolloutHeld,
		machinev1alpha1.ReasonGateHolds, machinev1alpha1.ReasonAwaitingWave, machinev1alpha1.ReasonRolloutRejected,
		machinev1alpha1.ReasonAnalysisFailed, machinev1alpha1.ReasonAnalysisInconclusive:
		return true
	}
	return false
}

// needsUser reports whether the reason of a hold means that the rollout is stalled.
func needsUser(reason string) bool {
	return reason == machinev1alpha1.ReasonAnalysisFailed || reason == machinev1alpha1.ReasonAnalysisInconclusive
}

// goesOn reports whether a rollout with the reason of a hold goes on by itself.
func goesOn(reason string) bool {
	switch reason {
	case machinev1alpha1.ReasonSoaking, machinev1alpha1.ReasonAnalyzing, machinev1alpha1.ReasonAwaitingTurn:
		return true
	}
	return false
}
