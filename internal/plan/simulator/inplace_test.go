package simulator

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// TestAMarkedMachineIsDeletedAmidAnUpdateInPlace lets the cluster-autoscaler mark an updated
// Machine and lower replicas while another Machine is updated. Until the marked Machine is deleted,
// no further update may begin: the bounds have room for only one of the two.
func TestAMarkedMachineIsDeletedAmidAnUpdateInPlace(t *testing.T) {
	const replicas = 18
	s := rolling(replicas, 1, 0)
	s.Strategy.Type = machinev1alpha1.InPlaceUpdate
	s.Strategy.InPlaceUpdate = machinev1alpha1.InPlaceUpdateBounds{
		MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(0)), Orchestration: machinev1alpha1.OrchestrationAuto,
	}
	c := New(s)
	reconcile := c.ReconcileAll
	until := func(done func() bool) {
		t.Helper()
		for range 60 {
			if reconcile(); done() {
				return
			}
			for _, m := range c.Machines() {
				c.Boot(m.Name)
			}
		}
		t.Fatalf("does not come to that:\n%s", c)
	}
	count := func(is func(*machinev1alpha1.Machine) bool) (n int) {
		for _, m := range c.Machines() {
			if is(m) {
				n++
			}
		}
		return n
	}
	isUpdating := func(m *machinev1alpha1.Machine) bool { return m.Status.Phase == machinev1alpha1.MachineUpdating }
	until(func() bool { return count(c.Available) == replicas })
	c.Settled(c)
	c.Update(roll)
	until(func() bool {
		for _, m := range c.Machines() {
			c.Agent(m.Name, false)
		}
		return count(isUpdating) == 1 && count(c.Available) == replicas
	})

	for _, m := range c.Machines() {
		if c.Available(m) && !c.IsOld(m) {
			(&Autoscaler{}).delete(c, m.Name)
			break
		}
	}
	for range 10 {
		reconcile()
		for _, m := range c.Machines() {
			if !isUpdating(m) {
				c.Agent(m.Name, false)
			}
		}
		if len(c.Violations) > 0 {
			t.Fatalf("%s\n%s", c.Violations[0], c)
		}
	}
	if n := count(func(m *machinev1alpha1.Machine) bool { return m.DeletionTimestamp != nil }); n != 1 {
		t.Errorf("%d Machines are being deleted, want the marked one:\n%s", n, c)
	}
}

// TestMarkedMachinesAreDeletedBesideThoseThatAreUpdated lowers replicas after two of four Machines
// were selected for the update in place. The remaining two are marked and deleted, regardless of
// how many are available. The update does not wait for them, because it was decided while they
// existed.
func TestMarkedMachinesAreDeletedBesideThoseThatAreUpdated(t *testing.T) {
	s := rolling(4, 0, 0)
	s.Strategy.Type = machinev1alpha1.InPlaceUpdate
	s.Strategy.InPlaceUpdate = machinev1alpha1.InPlaceUpdateBounds{
		MaxSurge: ptr.To(intstr.FromInt32(0)), MaxUnavailable: ptr.To(intstr.FromString("73%")), Orchestration: machinev1alpha1.OrchestrationAuto,
	}
	c := New(s)
	until(t, c, "whole", anyVersion, func() bool { return arrived(c) })
	c.Update(roll)
	selected := map[string]bool{}
	for range 60 {
		if len(selected) == 2 {
			break
		}
		c.CatchUp()
		c.ReconcileDeployment()
		for _, set := range c.Sets() {
			c.CatchUp()
			c.ReconcileSet(set.Name)
			c.CatchUp()
			c.ReconcileGroup(set.Name)
			for _, name := range set.Status.Updating {
				selected[name] = true
			}
		}
	}
	if len(selected) != 2 {
		t.Fatalf("%d Machines are selected, want 2:\n%s", len(selected), c)
	}
	for _, m := range running(c) {
		if !selected[m.Name] {
			c.ScaleDownByAutoscaler(m.Name)
		}
	}
	until(t, c, "without the marked Machines", anyVersion, func() bool { return len(running(c)) == 2 })
	for range 5 {
		tick(c, anyVersion)
		for name := range selected {
			c.Agent(name, false)
		}
		if len(c.Violations) > 0 {
			t.Fatalf("%s\n%s", c.Violations[0], c)
		}
	}
	if n := len(running(c)); n != 2 {
		t.Errorf("%d Machines are left, want the two that are updated:\n%s", n, c)
	}
}
