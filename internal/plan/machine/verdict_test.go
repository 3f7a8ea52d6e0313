package machine

import (
	"testing"
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

func TestTheVerdictOfAnInventoryHoldsUnlessTheNodeContradicts(t *testing.T) {
	lost := plan.VM{State: plan.VMRunning, ProviderID: id, Verdict: &plan.Verdict{State: plan.VMLost, Message: "not listed"}}
	stopped := plan.VM{State: plan.VMRunning, ProviderID: id, Verdict: &plan.Verdict{State: plan.VMFailed, Message: "stopped"}}
	skips := machine(phaseIs("Unknown"))
	skips.Annotations = map[string]string{machinev1alpha1.AnnotationSkipRemediation: "true"}
	cases := map[string]struct {
		o    Observed
		want machinev1alpha1.MachinePhase
		why  machinev1alpha1.FailureReason
	}{
		"ALostVMWhoseNodeStoppedReporting": {Observed{Machine: machine(phaseIs("Unknown")), VM: lost, WorkerNode: workerNodeThat("m", "Unknown")}, "Failed", "VMLost"},
		"ALostVMWhoseNodeIsGone":           {Observed{Machine: machine(nodeGone("Unknown", soon)), VM: lost, WorkerNode: workerNodeThat("m", "")}, "Failed", "VMLost"},
		"ALostVMThatNeverJoined":           {Observed{Machine: machine(phaseIs("Joining")), VM: lost, WorkerNode: workerNodeThat("", "")}, "Failed", "VMLost"},
		"AStoppedVM":                       {Observed{Machine: machine(phaseIs("Unknown")), VM: stopped, WorkerNode: workerNodeThat("m", "Unknown")}, "Failed", "VMFailed"},
		"AReadyNodeContradictsALoss":       {Observed{Machine: machine(phaseIs("Running")), VM: lost, WorkerNode: readyNode()}, "Running", ""},
		"AReadyNodeContradictsAStop":       {Observed{Machine: machine(phaseIs("Running")), VM: stopped, WorkerNode: readyNode()}, "Running", ""},
		"AStartingNodeContradicts":         {Observed{Machine: machine(phaseIs("Joining")), VM: lost, WorkerNode: starting()}, "Joining", ""},
		"ANodeThatCannotBeObserved":        {Observed{Machine: machine(phaseIs("Running")), VM: lost, WorkerNode: unreachable(workerNodeThat("m", "Unknown"))}, "Unknown", ""},
		"ANodeThatWasNotLookedFor":         {Observed{Machine: machine(phaseIs("Joining")), VM: lost}, "Joining", ""},
		"AClusterThatIsUnreachable":        {Observed{Machine: machine(phaseIs("Unknown")), VM: lost, WorkerNode: workerNodeThat("m", "Unknown"), TargetUnreachable: true}, "Unknown", ""},
		"AClusterThatHasJustReturned":      {Observed{Machine: machine(phaseIs("Unknown")), VM: lost, WorkerNode: workerNodeThat("m", "Unknown"), JudgeAfter: soon.Add(time.Minute)}, "Unknown", ""},
		"AMachineThatIsNotToBeJudged":      {Observed{Machine: skips, VM: lost, WorkerNode: workerNodeThat("m", "Unknown")}, "Unknown", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Plan(soon, tc.o)
			if d.Status.Phase != tc.want || d.Status.FailureReason != tc.why {
				t.Errorf("%s (%s), want %s (%s)", d.Status.Phase, d.Status.FailureReason, tc.want, tc.why)
			}
		})
	}
}
