package conformance

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
)

// AllocationAccount is an Account of a cloud that accepts VMs which it then cannot place.
type AllocationAccount interface {
	Account
	// FailAllocation of the VM of a Machine, until Accept.
	FailAllocation(t *testing.T, machine string)
	// ShowsFailure reports whether the provider shows that a VM could not be placed. Otherwise only
	// an inventory tells.
	ShowsFailure() bool
}

// failedAllocation of a VM that the cloud has accepted.
func failedAllocation(t *testing.T, c Cloud, _ *life) {
	w := newWorld(t, c)
	account, ok := w.account.(AllocationAccount)
	if !ok {
		t.Fatalf("%s has neither a failed allocation nor a reason to have none", c.Provider())
	}
	const name = "lone"
	account.FailAllocation(t, name)
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}, Spec: w.MachineSpec(kit.NewVersion)}
	m.Spec.ClassRef.Name, m.Spec.CreationTimeout = w.class.Name, metav1.Duration{Duration: time.Minute}
	w.Create(t, m)
	_, hasInventory := w.account.(OrphanAccount)
	w.await(t, m, func(m *machinev1alpha1.Machine) string {
		op := m.Status.LastOperation
		switch {
		case op != nil && op.ErrorCode == string(fn.ErrorCapacityExhausted):
			return ""
		case !account.ShowsFailure() && !hasInventory && m.Status.Phase == machinev1alpha1.MachineFailed:
			return ""
		}
		return "neither lastOperation has the class CapacityExhausted nor the Machine is Failed"
	})
	t.Logf("%s %s %s: %s", m.Status.Phase, m.Status.FailureReason, m.Status.LastOperation.ErrorCode, m.Status.LastOperation.Description)
	account.Accept(t, name)
	if m.Status.Phase != machinev1alpha1.MachineFailed {
		w.await(t, m, func(m *machinev1alpha1.Machine) string {
			if m.Status.Phase == machinev1alpha1.MachineFailed {
				return ""
			}
			return isRunning(m)
		})
		w.vm(t, m)
	}
	w.end(t, m)
}
