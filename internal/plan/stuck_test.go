package plan

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

func TestAMachineThatWaitsForAUserIsStuck(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	failing := func(typ, reason string, since time.Duration) *machinev1alpha1.Machine {
		m := &machinev1alpha1.Machine{}
		m.Status.Phase = machinev1alpha1.MachinePending
		m.Status.Conditions = []metav1.Condition{{Type: typ, Status: metav1.ConditionFalse, Reason: reason, LastTransitionTime: ago(since)}}
		return m
	}
	with := func(m *machinev1alpha1.Machine, change func(*machinev1alpha1.Machine)) *machinev1alpha1.Machine {
		change(m)
		return m
	}
	const none = time.Duration(-1 << 62)
	for name, tc := range map[string]struct {
		m    *machinev1alpha1.Machine
		left time.Duration
	}{
		"NoConditionIsFalse":                {&machinev1alpha1.Machine{}, none},
		"AnErrorThatARetryMayEnd":           {failing("Synced", "ReconcileError", 10*time.Second), 50 * time.Second},
		"AnErrorThatLasts":                  {failing("Synced", "ReconcileError", time.Minute), 0},
		"APauseIsTheUsers":                  {failing("Synced", "ReconcilePaused", time.Hour), none},
		"UserDataThatTheVMRefuses":          {failing("NodeReady", "UserDataRefused", time.Second), 0},
		"ANodeThatHasNotJoinedYet":          {failing("NodeReady", "NodeNotJoined", time.Hour), none},
		"AProviderIDThatNoExpressionYields": {failing("InfrastructureReady", "ProviderIDEmpty", time.Minute), 0},
		"ItWaitedForTheVMBefore": {with(failing("InfrastructureReady", "ProviderIDEmpty", time.Hour), func(m *machinev1alpha1.Machine) {
			m.Status.LastOperation = &machinev1alpha1.LastOperation{LastUpdateTime: ptr.To(ago(20 * time.Second))}
		}), 40 * time.Second},
		"AMachineThatRan":              {with(failing("Synced", "ReconcileError", time.Hour), func(m *machinev1alpha1.Machine) { m.Status.Phase = machinev1alpha1.MachineRunning }), none},
		"AMachineThatIsBeingDeleted":   {with(failing("Synced", "ReconcileError", time.Hour), func(m *machinev1alpha1.Machine) { m.DeletionTimestamp = ptr.To(ago(0)) }), none},
		"AnErrorThatHasEnded":          {with(failing("Synced", "ReconcileError", time.Hour), func(m *machinev1alpha1.Machine) { m.Status.Conditions[0].Status = metav1.ConditionTrue }), none},
		"AnotherConditionIsItsProblem": {failing("Valid", "ClassNotFound", time.Hour), none},
	} {
		t.Run(name, func(t *testing.T) {
			got := none
			if s := StuckBy(tc.m); s != nil {
				got = s.Left(now)
			}
			if got != tc.left {
				t.Errorf("its set reports it after %s, want %s", got, tc.left)
			}
		})
	}
}
