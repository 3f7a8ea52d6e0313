package plan

// The conditions of kstatus, which kubectl, Argo CD and Flux read:
// https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md
const (
	// ConditionReconciling is True while something is on its way to what the spec says.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True when nothing comes further without somebody's help.
	ConditionStalled = "Stalled"
)

// Reasons of Reconciling.
const (
	// ReasonScaling means that Machines come or go.
	ReasonScaling = "Scaling"
	// ReasonFrozen means that they would, were it not for a freeze.
	ReasonFrozen = "Frozen"
)

// Stalled because of another condition, or not if that is nil.
func Stalled(because *Condition) Condition {
	if because == nil {
		return Condition{Type: ConditionStalled, Status: "False", Reason: "NotStalled"}
	}
	return Condition{Type: ConditionStalled, Status: "True", Reason: because.Reason, Message: because.Message}
}
