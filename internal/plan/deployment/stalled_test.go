package deployment

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

func waiting(unhealthy, replaceable int32) setOption {
	return func(s *Set) { s.Status.UnhealthyReplicas, s.Status.ReplaceableReplicas = unhealthy, replaceable }
}

func remediates(maxInFlight, maxUnhealthy int32) deploymentOption {
	return func(d *machinev1alpha1.MachineDeployment) {
		d.Spec.Remediation.MaxInFlight, d.Spec.Remediation.MaxUnhealthy = ptr.To(intstr.FromInt32(maxInFlight)), ptr.To(intstr.FromInt32(maxUnhealthy))
	}
}

func updateFailed(s *Set) {
	s.Spec.InPlaceUpdate = &machinev1alpha1.MachineSetInPlaceUpdate{}
	s.Status.Conditions = append(s.Status.Conditions, metav1.Condition{Type: "Updated", Status: "False", Reason: "UpdateFailed", Message: "The update failed of Machine a (disk full)"})
}

func frozenFor(d time.Duration) deploymentOption {
	return func(md *machinev1alpha1.MachineDeployment) {
		md.Status.Conditions = append(md.Status.Conditions, metav1.Condition{Type: "Frozen", Status: "True", Reason: "ManualFreeze", LastTransitionTime: metav1.NewTime(now.Add(-d))})
	}
}

func TestStalledNamesTheNumbersAndTheRemedy(t *testing.T) {
	byHand := shared.Safety{Frozen: true, Reason: "ManualFreeze", Message: "label machine.drover.dev/freeze"}
	cases := map[string]struct {
		d                    *machinev1alpha1.MachineDeployment
		set                  Set
		safety               shared.Safety
		stalled, reconciling string
		texts                []string
	}{
		"TooManyAreUnhealthy": {
			d: deployment(5, completed(1), recorded("v2", 5), remediates(1, 1)), set: machineSet("v2", 1, 5, available(3), waiting(2, 2)),
			stalled: "True TooManyUnhealthy", reconciling: "False TooManyUnhealthy",
			texts: []string{"3 of 5 Machines are available", "2 waiting to be replaced", "raise spec.remediation.maxUnhealthy"},
		},
		"UnhealthyMachinesThatMayRecoverAreWaitedFor": {
			d: deployment(5, completed(1), recorded("v2", 5), remediates(1, 1)), set: machineSet("v2", 1, 5, available(3), waiting(2, 0)),
			stalled: "False NotStalled", reconciling: "True Scaling",
		},
		"ThereIsNoBudget": {
			d: deployment(5, completed(1), recorded("v2", 5), remediates(0, 5)), set: machineSet("v2", 1, 5, available(4), waiting(1, 1)),
			stalled: "True NoBudget", reconciling: "False NoBudget",
			texts: []string{"4 of 5 Machines are available", "set spec.remediation.maxInFlight to 1 or more"},
		},
		"AnUpdateInPlaceFailed": {
			d: deployment(5, recorded("v2", 5), func(d *machinev1alpha1.MachineDeployment) { d.Spec.Strategy.Type = machinev1alpha1.InPlaceUpdate }), set: machineSet("v2", 1, 5, available(4), updateFailed),
			stalled: "True UpdateFailed", reconciling: "False UpdateFailed",
			texts: []string{"4 of 5 Machines are available", "Machine a (disk full)", "machine.drover.dev/update-retry"},
		},
		"AFreezeByHandThatLastsTooLong": {
			d: deployment(5, completed(1), recorded("v2", 5), deadline(600), frozenFor(10*time.Minute)), set: machineSet("v2", 1, 5, available(4)), safety: byHand,
			stalled: "True ManualFreeze", reconciling: "False ManualFreeze",
			texts: []string{"4 of 5 Machines are available", "label machine.drover.dev/freeze", "10m0s", "remove the label"},
		},
		"AFreezeByHandHasTheDeadlineOfARollout": {
			d: deployment(5, completed(1), recorded("v2", 5), deadline(600), frozenFor(9*time.Minute)), set: machineSet("v2", 1, 5, available(4)), safety: byHand,
			stalled: "False NotStalled", reconciling: "True Scaling",
		},
		"AFreezeByHandOfADeploymentWithoutADeadline": {
			d: deployment(5, completed(1), recorded("v2", 5), frozenFor(29*time.Minute)), set: machineSet("v2", 1, 5, available(4)), safety: byHand,
			stalled: "False NotStalled", reconciling: "True Scaling",
		},
		"AFreezeByHandThatHoldsNothing": {
			d: deployment(5, completed(1), recorded("v2", 5), deadline(600), frozenFor(time.Hour)), set: machineSet("v2", 1, 5), safety: byHand,
			stalled: "False NotStalled", reconciling: "False NewMachineSetAvailable",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Plan(now, Observed{Deployment: tc.d, Sets: []Set{tc.set}, ClassFound: true, Safety: tc.safety})
			if got := condition(d, "Stalled"); got != tc.stalled {
				t.Errorf("Stalled is %q, want %q", got, tc.stalled)
			}
			if got := condition(d, "Reconciling"); got != tc.reconciling {
				t.Errorf("Reconciling is %q, want %q", got, tc.reconciling)
			}
			for _, c := range d.Conditions {
				if strings.Contains(c.Message, "Machines are created, deleted or replaced") {
					t.Errorf("%s says that Machines are replaced: %s", c.Type, c.Message)
				}
				for _, text := range tc.texts {
					if c.Type == "Stalled" && !strings.Contains(c.Message, text) {
						t.Errorf("Stalled lacks %q: %s", text, c.Message)
					}
				}
			}
		})
	}
}

// TestTheDeadlineNamesTheCauseAndTheRemedy of a rollout that makes no progress.
func TestTheDeadlineNamesTheCauseAndTheRemedy(t *testing.T) {
	late := func(options ...deploymentOption) *machinev1alpha1.MachineDeployment {
		return deployment(3, append([]deploymentOption{deadline(600), progressed(700*time.Second, 2, 1, 4, 3)}, options...)...)
	}
	joinTimeout := func(s *Set) {
		s.Status.Conditions = []metav1.Condition{{Type: "ReplicaFailure", Status: "True", Reason: "JoinTimeout", Message: "no Node joined within 20m0s"}}
	}
	for name, tc := range map[string]struct {
		d       *machinev1alpha1.MachineDeployment
		sets    []Set
		safety  shared.Safety
		stalled string
		texts   []string
	}{
		"MachinesThatFail": {
			late(), []Set{machineSet("v1", 1, 3), machineSet("v2", 2, 1, available(0), joinTimeout)}, shared.Safety{}, "True ProgressDeadlineExceeded",
			[]string{"made no progress for 600 seconds", "3 of 3 Machines are available", "its Machines fail with JoinTimeout: no Node joined within 20m0s", "correct that"},
		},
		"AnErrorThatOnlyAUserCanFixStays": {
			late(), []Set{machineSet("v1", 1, 3), machineSet("v2", 2, 1, available(0), refusing("InvalidRequest"))}, shared.Safety{}, "True InvalidRequest", []string{"no"},
		},
		"MachinesThatStart": {
			late(), []Set{machineSet("v1", 1, 3), machineSet("v2", 2, 1, available(0), starting(1))}, shared.Safety{}, "True ProgressDeadlineExceeded",
			[]string{"1 starting, none failed so far", "read the conditions"},
		},
		"MachinesThatAUserShallDelete": {
			late(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Strategy.Type = machinev1alpha1.OnDelete }),
			[]Set{machineSet("v1", 1, 3), machineSet("v2", 2, 0)}, shared.Safety{}, "True ProgressDeadlineExceeded",
			[]string{"stay until a user deletes them: 3", "delete them"},
		},
		"MachinesThatDrain": {
			late(stillDrains(1)), []Set{machineSet("v1", 1, 3, terminating(1)), machineSet("v2", 2, 1, available(0), starting(0))}, shared.Safety{}, "True ProgressDeadlineExceeded",
			[]string{"Machines that are being deleted: 1"},
		},
		"AFreezeAfterTheDeadline": {
			late(was("Progressing", "ProgressDeadlineExceeded"), frozenSince(time.Minute)),
			[]Set{machineSet("v1", 1, 3), machineSet("v2", 2, 1, available(0))}, shared.Safety{Frozen: true, Reason: "Overshoot", Message: "there are 9 Machines"}, "True ProgressDeadlineExceeded",
			[]string{"there are 9 Machines"},
		},
		"AFreezeBeforeTheDeadline": {
			late(was("Progressing", "Frozen"), frozenSince(101*time.Second)),
			[]Set{machineSet("v1", 1, 3), machineSet("v2", 2, 1, available(0))}, shared.Safety{Frozen: true, Reason: "Overshoot", Message: "there are 9 Machines"}, "False NotStalled", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := Plan(now, Observed{Deployment: tc.d, Sets: tc.sets, ClassFound: true, Safety: tc.safety})
			if got := condition(d, "Stalled"); got != tc.stalled {
				t.Errorf("Stalled is %q, want %q", got, tc.stalled)
			}
			for _, c := range d.Conditions {
				for _, text := range tc.texts {
					if c.Type == "Stalled" && !strings.Contains(c.Message, text) {
						t.Errorf("Stalled lacks %q: %s", text, c.Message)
					}
				}
			}
		})
	}
}

func TestALongFreezeWakesAtItsDeadline(t *testing.T) {
	d := Plan(now, Observed{
		Deployment: deployment(5, completed(1), recorded("v2", 5), deadline(600), frozenFor(595*time.Second)), Sets: []Set{machineSet("v2", 1, 5, available(4))},
		ClassFound: true, Safety: shared.Safety{Frozen: true, Reason: "ManualFreeze"},
	})
	if d.CallAgain != 5*time.Second {
		t.Errorf("called again after %s", d.CallAgain)
	}
}
