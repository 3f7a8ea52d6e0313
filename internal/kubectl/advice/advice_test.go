package advice_test

import (
	"testing"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/advice"
)

// TestEachReasonOfAFailureHasACure has the codes of clouds' errors and the failures of Machines, which
// are reasons too and are not among the generated ones.
func TestEachReasonOfAFailureHasACure(t *testing.T) {
	reasons := []string{}
	for _, c := range fn.ErrorCodes() {
		if c != fn.ErrorThrottled { // It ends by itself.
			reasons = append(reasons, string(c))
		}
	}
	for _, f := range []machinev1alpha1.FailureReason{
		machinev1alpha1.FailureCreateFailed, machinev1alpha1.FailureCreateUnknown, machinev1alpha1.FailureCapacityTimeout, machinev1alpha1.FailureVMLost,
		machinev1alpha1.FailureVMFailed, machinev1alpha1.FailureNodeDeleted, machinev1alpha1.FailureJoinTimeout, machinev1alpha1.FailureNodeUnhealthy,
	} {
		reasons = append(reasons, string(f))
	}
	for _, r := range reasons {
		if a := advice.ForFailure(r); a.Meaning == "" || a.Do == "" {
			t.Errorf("%s: %+v", r, a)
		}
	}
}

func TestAdviceIsThatOfTheKindOrElseOfAMachine(t *testing.T) {
	if a := advice.For("MachineDeployment", machinev1alpha1.ReasonTooManyUnhealthy); a.Do == "" {
		t.Errorf("%+v", a)
	}
	if a := advice.For("VirtualMachine", machinev1alpha1.ReasonVMNotRunning); a.Do == "" {
		t.Errorf("%+v", a)
	}
	if a := advice.For("Machine", "OfAStepOfTheUsersOwn"); a != (advice.Advice{}) {
		t.Errorf("%+v", a)
	}
}
