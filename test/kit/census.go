package kit

import (
	"context"
	"slices"
	"testing"
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/patience"
)

// A Census counts the VMs that a fleet has from a moment on, including deleted VMs.
type Census struct {
	fleet Fleet
	since time.Time
}

// Census starts to count VMs: existing and new ones.
func (f Fleet) Census(t testing.TB) *Census {
	t.Helper()
	return &Census{fleet: f, since: time.Now()}
}

// History of the fleet's VMs in the local cloud, including deleted VMs.
func (f Fleet) History(ctx context.Context) ([]localcloud.Change, error) {
	all, err := f.Cloud.History(ctx)
	return slices.DeleteFunc(all, func(c localcloud.Change) bool {
		return c.Tags[machinev1alpha1.TagNamespace] != f.Namespace
	}), err
}

// Done fails the test if a Machine had two VMs, or if the number of Machines that had a VM is not
// as expected.
func (c *Census) Done(t testing.TB, machines int) {
	t.Helper()
	var changes []localcloud.Change
	// The local cloud may be restarting.
	patience.Eventually(t, func(ctx context.Context) string {
		var err error
		if changes, err = c.fleet.History(ctx); err != nil {
			return err.Error()
		}
		return ""
	})
	vms := map[string]map[string]bool{}
	for _, v := range changes {
		machine := v.Tags[machinev1alpha1.TagMachineUID]
		switch {
		case v.Kind == localcloud.ChangeCreated && vms[machine] == nil:
			vms[machine] = map[string]bool{v.VM: true}
		case v.Kind == localcloud.ChangeCreated:
			vms[machine][v.VM] = true
		case v.Kind == localcloud.ChangeGone && v.At.Before(c.since):
			delete(vms[machine], v.VM)
			if len(vms[machine]) == 0 {
				delete(vms, machine)
			}
		}
	}
	for machine, ids := range vms {
		if len(ids) != 1 {
			t.Errorf("the Machine with UID %s had %d VMs: %v", machine, len(ids), ids)
		}
	}
	if len(vms) != machines {
		t.Errorf("%d Machines ever had a VM, want %d", len(vms), machines)
	}
}
