package machine

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

// TestAMachineFailsForLackOfRoom checks that only a Machine with an expired capacityTimeout fails.
func TestAMachineFailsForLackOfRoom(t *testing.T) {
	const code = "CapacityExhausted"
	refused := func(code string) plan.VM {
		return plan.VM{State: plan.VMCreating, Name: "m", ErrorCode: code, Message: "none left"}
	}
	since := func(ago time.Duration) machinev1alpha1.MachineStatus {
		return machinev1alpha1.MachineStatus{Phase: machinev1alpha1.MachineProvisioning, ExhaustedSince: &metav1.Time{Time: soon.Add(-ago)}}
	}
	of := func(timeout time.Duration, s machinev1alpha1.MachineStatus, vm plan.VM) Observed {
		o := Observed{Machine: machine(s), VM: vm}
		if timeout > 0 {
			o.Machine.Spec.CapacityTimeout = &metav1.Duration{Duration: timeout}
		}
		return o
	}
	failedSince := since(time.Minute)
	failedSince.Phase, failedSince.FailureReason, failedSince.FailureMessage = machinev1alpha1.MachineFailed, machinev1alpha1.FailureCapacityTimeout, "none left"
	failedSince.LastOperation = &machinev1alpha1.LastOperation{Type: machinev1alpha1.OperationCreate, State: machinev1alpha1.OperationFailed, ErrorCode: code}
	withheld := of(30*time.Second, machinev1alpha1.MachineStatus{}, plan.VM{State: plan.VMAbsent})
	withheld.Machine.Annotations = map[string]string{machinev1alpha1.AnnotationExhausted: code}
	forged := of(30*time.Second, phaseIs(machinev1alpha1.MachineJoining), plan.VM{State: plan.VMRunning, ProviderID: id})
	forged.Machine.Annotations = withheld.Machine.Annotations
	analysed := of(30*time.Second, since(30*time.Second), refused(code))
	analysed.Machine.Annotations = map[string]string{machinev1alpha1.AnnotationPreserve: machinev1alpha1.PreserveWhenFailed}

	cases := map[string]struct {
		o     Observed
		phase machinev1alpha1.MachinePhase
		code  string
		again time.Duration
	}{
		"NotAtOnce":                         {of(30*time.Second, machinev1alpha1.MachineStatus{}, refused(code)), "Provisioning", code, 30 * time.Second},
		"AfterItsTimeout":                   {of(30*time.Second, since(30*time.Second), refused(code)), "Failed", code, plan.AtRest},
		"ForLackOfQuotaToo":                 {of(30*time.Second, since(30*time.Second), refused("QuotaExceeded")), "Failed", "QuotaExceeded", plan.AtRest},
		"NotBeforeIt":                       {of(30*time.Second, since(20*time.Second), refused(code)), "Provisioning", code, 10 * time.Second},
		"NotWithoutOne":                     {of(0, since(time.Hour), refused(code)), "Provisioning", code, plan.InFlight},
		"NotForAnotherError":                {of(30*time.Second, since(time.Hour), refused("Throttled")), "Provisioning", "Throttled", plan.InFlight},
		"ItStaysFailed":                     {of(30*time.Second, failedSince, refused(code)), "Failed", code, plan.AtRest},
		"UntilItsVMIsCreated":               {of(30*time.Second, failedSince, plan.VM{State: plan.VMRunning, ProviderID: id}), "Joining", "", plan.InFlight},
		"AtOnceIfNoVMIsRequested":           {withheld, "Failed", code, plan.AtRest},
		"ButNotIfThereIsOne":                {forged, "Joining", "", plan.InFlight},
		"AndIsNotKeptAsThereIsNothingToSee": {analysed, "Failed", code, plan.AtRest},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Plan(soon, tc.o)
			failed := tc.phase == machinev1alpha1.MachineFailed
			if d.Status.Phase != tc.phase || d.Status.LastOperation.ErrorCode != tc.code || d.CallAgain != tc.again {
				t.Errorf("phase %s, code %q, called again after %s", d.Status.Phase, d.Status.LastOperation.ErrorCode, d.CallAgain)
			}
			if (d.Status.FailureMessage != "") != failed || failed && d.Status.FailureReason != machinev1alpha1.FailureCapacityTimeout || d.Status.Preservation != nil {
				t.Errorf("status %+v", d.Status)
			}
		})
	}
}

// TestTheCreationTimeoutBeginsWhenThereIsRoom even if the Machine was Failed for a long time
// before.
func TestTheCreationTimeoutBeginsWhenThereIsRoom(t *testing.T) {
	m := machine(machinev1alpha1.MachineStatus{
		Phase: machinev1alpha1.MachineFailed, FailureReason: machinev1alpha1.FailureCapacityTimeout, FailureMessage: "none left",
		LastOperation: &machinev1alpha1.LastOperation{Type: machinev1alpha1.OperationCreate, State: machinev1alpha1.OperationFailed, ErrorCode: "CapacityExhausted"},
	})
	d := Plan(late, Observed{Machine: m, VM: plan.VM{State: plan.VMRunning, ProviderID: id}})
	if d.Status.Phase != machinev1alpha1.MachineJoining || !d.Status.RefusedUntil.Time.Equal(late) {
		t.Errorf("phase %s, refused until %s", d.Status.Phase, d.Status.RefusedUntil)
	}
}
