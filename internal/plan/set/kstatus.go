package set

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/remediation"
)

// kstatus returns the conditions by which clients wait for a standalone set. For the sets of a
// MachineDeployment, the deployment reports them: conditions of the sets would enqueue it at every change.
// A set that had these conditions before keeps them, and keeps them correct.
func (p *plan) kstatus(s machinev1alpha1.MachineSetStatus, ready bool, reported []shared.Condition, allowed *shared.Condition) []shared.Condition {
	stalled := p.stalled(s, reported, allowed)
	if metav1.GetControllerOfNoCopy(p.Set) != nil && !stalled.IsKnown(p.Set.Status.Conditions) {
		return nil
	}
	return []shared.Condition{p.reconciling(s, ready, stalled), stalled}
}

// reconciling is False for a set that waits for a user's action, or for the end of a freeze or of a
// preservation.
func (p *plan) reconciling(s machinev1alpha1.MachineSetStatus, ready bool, stalled shared.Condition) shared.Condition {
	c := shared.Condition{Type: machinev1alpha1.ConditionReconciling, Status: "False", Reason: machinev1alpha1.ReasonSettled}
	goes := len(p.terminating)+len(p.dropping)+len(p.dropped) > 0
	comes := !ready && (p.moves() || p.backingOff())
	switch {
	case stalled.Status == "True":
		c.Reason = stalled.Reason
	case goes || comes && !p.Safety.Frozen:
		c.Status, c.Reason, c.Message = "True", machinev1alpha1.ReasonScaling, p.numbers(s).String()
	case comes:
		c.Reason, c.Message = machinev1alpha1.ReasonFrozen, p.Safety.Message
	}
	return c
}

// stalled derives the condition from the set's other conditions.
func (p *plan) stalled(s machinev1alpha1.MachineSetStatus, reported []shared.Condition, allowed *shared.Condition) shared.Condition {
	i := slices.IndexFunc(reported, func(c shared.Condition) bool {
		switch c.Type {
		case machinev1alpha1.ConditionValid:
			return c.Status == "False"
		case machinev1alpha1.ConditionReplicaFailure:
			return c.Status == "True" && shared.NeedsUser(c.Reason)
		case machinev1alpha1.ConditionUpdated:
			return c.Reason == machinev1alpha1.ReasonUpdateFailed
		}
		return false
	})
	var because *shared.Condition
	switch {
	case i < 0:
		because = p.heldBack(s, allowed)
	case reported[i].Type == machinev1alpha1.ConditionUpdated:
		because = &shared.Condition{Reason: reported[i].Reason, Message: reported[i].Message + "; " + RemedyOfUpdate}
	default:
		return shared.Stalled(&reported[i])
	}
	if because != nil {
		because.Message = fmt.Sprintf("%s; %s", p.numbers(s), because.Message)
	}
	return shared.Stalled(because)
}

// heldBack returns why Machines are not created or replaced until a user acts, or nil if they are.
func (p *plan) heldBack(s machinev1alpha1.MachineSetStatus, allowed *shared.Condition) *shared.Condition {
	// A MachineDeployment has the budget, and reports it itself.
	if metav1.GetControllerOfNoCopy(p.Set) == nil {
		if c := remediation.Stalled(allowed, s.ReplaceableReplicas+s.RebootableReplicas); c != nil {
			return c
		}
	}
	if left, byHand := p.untilFreezeStalls(); byHand && left <= 0 {
		c := shared.FreezeStalled(machinev1alpha1.DefaultFreezeLimit)
		return &c
	}
	return nil
}

// untilFreezeStalls returns the time until a freeze by hand counts as a stall, and false if no such freeze
// holds anything.
func (p *plan) untilFreezeStalls() (time.Duration, bool) {
	if p.missing() == 0 && len(p.waiting()) == 0 && len(p.rebootsDue()) == 0 {
		return 0, false
	}
	return shared.UntilFreezeStalls(p.now, p.Safety, p.Set.Status.Conditions, machinev1alpha1.DefaultFreezeLimit)
}

// numbers of the set's Machines.
func (p *plan) numbers(s machinev1alpha1.MachineSetStatus) shared.Numbers {
	return shared.Numbers{
		Desired: p.Set.Spec.Replicas, Available: s.AvailableReplicas,
		Starting: s.StartingReplicas, Terminating: s.TerminatingReplicas, Waiting: s.ReplaceableReplicas, WaitingForReboot: s.RebootableReplicas,
	}
}
