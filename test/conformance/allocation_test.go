package conformance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// AllocationAccount is an Account of a cloud that accepts VMs which it then cannot place.
type AllocationAccount interface {
	Account
	// FailAllocation makes the cloud accept the VM of a Machine and then fail to place it, until
	// Accept.
	FailAllocation(t *testing.T, machine string)
	// ShowsFailure reports whether the provider shows that a VM could not be placed. If it does
	// not, only an inventory shows it.
	ShowsFailure() bool
}

// failedAllocation tests a VM that the cloud accepts and then cannot place.
func failedAllocation(t *testing.T, c Cloud, _ *life) {
	w := newWorld(t, c)
	account, ok := w.account.(AllocationAccount)
	if !ok {
		t.Fatalf("%s has neither a failed allocation nor a reason to have none", c.Provider())
	}
	const name = "lone"
	account.FailAllocation(t, name)
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}, Spec: w.MachineSpec(kit.NewVersion)}
	m.Spec.ClassRef.Name, m.Spec.CreationTimeout = w.class.Name, metav1.Duration{Duration: patience.Scale(time.Minute).Truncate(time.Second)}
	if !account.ShowsFailure() && hasInventory(c) {
		failedByInventory(t, w, m)
		return
	}
	w.Create(t, m)
	w.await(t, m, func(m *machinev1alpha1.Machine) string {
		op := m.Status.LastOperation
		switch {
		case op != nil && op.ErrorCode == string(fn.ErrorCapacityExhausted):
			return ""
		case !account.ShowsFailure() && m.Status.Phase == machinev1alpha1.MachineFailed:
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

// failedByInventory tests a Machine whose VM stays in a state that only an inventory shows. The creationTimeout of
// the Machine is much longer than the test waits, so it cannot be the cause.
func failedByInventory(t *testing.T, w *world, m *machinev1alpha1.Machine) {
	t.Helper()
	o := w.collect(t, w.account.(InventoryAccount))
	m.Spec.CreationTimeout.Duration = 20 * time.Minute
	began := time.Now()
	w.Create(t, m)
	w.awaitFailure(t, m, machinev1alpha1.FailureVMFailed)
	t.Logf("failed within %s", time.Since(began).Round(time.Second))
	w.await(t, m, func(m *machinev1alpha1.Machine) string {
		if d := m.Status.LastOperation.Description; !strings.Contains(d, "the cloud could not create VM") {
			return fmt.Sprintf("it does not report that the cloud could not create its VM: %q", d)
		}
		return ""
	})
	t.Logf("%s %s: %s", m.Status.Phase, m.Status.FailureReason, m.Status.LastOperation.Description)
	census(t, w, o, 1, 0)
	w.end(t, m, o)
}
