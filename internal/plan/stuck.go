package plan

import (
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// StuckAfter is how long an error of a Machine that a retry may end has to last before its set reports it: a client
// that waits for the set gives up when the set is Stalled.
const StuckAfter = time.Minute

// A Stuck condition keeps a Machine from running until a user acts.
type Stuck struct {
	metav1.Condition
	// Since is when it began, zero for a condition that no retry ends.
	Since metav1.Time
}

// Left returns the time until a set reports the condition, not above 0 if it does.
func (s Stuck) Left(now time.Time) time.Duration {
	if s.Since.IsZero() {
		return 0
	}
	return s.Since.Add(StuckAfter).Sub(now)
}

// StuckBy returns the condition that keeps a Machine that has not run yet from running until a user acts, beside
// Valid=False. It returns nil if there is none.
func StuckBy(m *machinev1alpha1.Machine) *Stuck {
	if !m.Status.Phase.IsOnItsWay() || !m.DeletionTimestamp.IsZero() {
		return nil
	}
	for _, c := range m.Status.Conditions {
		if c.Status != metav1.ConditionFalse {
			continue
		}
		switch {
		case c.Type == string(xpv2.TypeSynced) && c.Reason == machinev1alpha1.ReasonReconcileError:
			return &Stuck{Condition: c, Since: c.LastTransitionTime}
		case c.Type == machinev1alpha1.ConditionInfrastructureReady && c.Reason == machinev1alpha1.ReasonProviderIDEmpty:
			return &Stuck{Condition: c, Since: lastUpdateOf(m, c)}
		case c.Type == machinev1alpha1.ConditionNodeReady && c.Reason == machinev1alpha1.ReasonUserDataRefused:
			return &Stuck{Condition: c}
		}
	}
	return nil
}

// lastUpdateOf returns when a Machine began to wait for what a condition reports: the condition may have been False
// before, for another reason.
func lastUpdateOf(m *machinev1alpha1.Machine, c metav1.Condition) metav1.Time {
	if op := m.Status.LastOperation; op != nil && op.LastUpdateTime != nil {
		return *op.LastUpdateTime
	}
	return c.LastTransitionTime
}
