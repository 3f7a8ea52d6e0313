package set

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

const reasonSettled = "Settled"

// kstatus says how a standalone set comes on, by what those who wait for it read. A
// MachineDeployment says so of its sets: their own conditions would wake it at every
// turn. A set that had these conditions keeps them true.
func (p *plan) kstatus(ready bool, told []shared.Condition) []shared.Condition {
	stalled := p.stalled(told)
	if metav1.GetControllerOfNoCopy(p.Set) != nil && !stalled.IsKnown(p.Set.Status.Conditions) {
		return nil
	}
	return []shared.Condition{p.reconciling(ready, stalled), stalled}
}

// reconciling is False for a set that waits: for somebody's help, or for the end of a
// freeze or of a preservation.
func (p *plan) reconciling(ready bool, stalled shared.Condition) shared.Condition {
	c := shared.Condition{Type: shared.ConditionReconciling, Status: "False", Reason: reasonSettled}
	goes := len(p.terminating)+len(p.dropping)+len(p.dropped) > 0
	comes := !ready && (p.moves() || p.backingOff())
	switch {
	case stalled.Status == "True":
		c.Reason = stalled.Reason
	case goes || comes && !p.Safety.Frozen:
		c.Status, c.Reason, c.Message = "True", shared.ReasonScaling, "Machines are created, updated, deleted or replaced"
	case comes:
		c.Reason, c.Message = shared.ReasonFrozen, p.Safety.Message
	}
	return c
}

// stalled by what the set's other conditions tell.
func (p *plan) stalled(told []shared.Condition) shared.Condition {
	i := slices.IndexFunc(told, func(c shared.Condition) bool {
		switch c.Type {
		case conditionValid:
			return c.Status == "False"
		case conditionReplicaFailure:
			return c.Status == "True" && fn.ErrorCode(c.Reason).NeedsSomebody()
		case conditionUpdated:
			return c.Reason == reasonUpdateFailed
		}
		return false
	})
	if i < 0 {
		return shared.Stalled(nil)
	}
	return shared.Stalled(&told[i])
}
