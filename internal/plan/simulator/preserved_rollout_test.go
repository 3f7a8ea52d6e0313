package simulator

import (
	"slices"
	"testing"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// failFor makes a running Machine fail because of its Node: its VM exists, and may be analyzed.
func failFor(c *Cluster, name string) {
	c.Lose(name)
	c.Expire(name)
}

// TestARolloutDeletesAPreservedMachineBeforeAvailableOnes rolls a pool in which the set preserves a
// Failed Machine. Its deletion is the only one that reduces no availability.
func TestARolloutDeletesAPreservedMachineBeforeAvailableOnes(t *testing.T) {
	s := rolling(3, 1, 0)
	s.AutoPreserveFailedMachineMax = 1
	c := New(s)
	until(t, c, "whole", anyVersion, func() bool { return arrived(c) })
	failed := running(c)[0].Name
	failFor(c, failed)
	for range 5 {
		c.Keep()
		tick(c, func(string) bool { return false })
	}
	if m := c.machines.last[failed].object; m.Status.Preservation == nil {
		t.Fatalf("%s is not preserved:\n%s", failed, c)
	}
	c.Update(roll)
	for range 60 {
		tick(c, func(version string) bool { return version == "v1.1.0" })
		if n := availableOf(c, "v1.0.0") + availableOf(c, "v1.1.0"); n < 2 {
			t.Fatalf("%d Machines are available, and 2 were when the rollout began:\n%s", n, c)
		}
		if _, there := c.machines.last[failed]; there && availableOf(c, "v1.0.0") < 2 {
			t.Fatalf("an available Machine is deleted, and %s, which failed, is not:\n%s", failed, c)
		}
		if len(c.Violations) > 0 {
			t.Fatalf("%s\n%s", c.Violations[0], c)
		}
	}
	if !arrived(c) {
		t.Fatalf("the rollout is not complete:\n%s", c)
	}
}

// TestAScaleDownTakesAPreservedMachineLast deletes available Machines first, as the user guide
// describes.
func TestAScaleDownTakesAPreservedMachineLast(t *testing.T) {
	s := rolling(4, 1, 0)
	s.AutoPreserveFailedMachineMax = 1
	c := New(s)
	until(t, c, "whole", anyVersion, func() bool { return arrived(c) })
	failed := running(c)[0].Name
	failFor(c, failed)
	for range 20 {
		c.Keep()
		tick(c, anyVersion)
	}
	c.Update(grow(2))
	for range 20 {
		tick(c, anyVersion)
	}
	if len(c.Violations) > 0 {
		t.Fatalf("%s\n%s", c.Violations[0], c)
	}
	if _, there := c.machines.last[failed]; !there || len(c.Machines()) != 2 {
		t.Fatalf("want %s and an available Machine:\n%s", failed, c)
	}
}

// TestAScaleDownTakesAPreservedMachineLastThoughItStarts deletes available Machines before one that
// a user preserves and that has no Node yet. If the user deletes that one too, before the deletions
// of the available Machines finish, no promise is violated.
func TestAScaleDownTakesAPreservedMachineLastThoughItStarts(t *testing.T) {
	c := New(rolling(2, 1, 0))
	until(t, c, "whole", anyVersion, func() bool { return arrived(c) })
	c.Update(grow(3))
	none := func(string) bool { return false }
	until(t, c, "larger", none, func() bool { return len(c.Machines()) == 3 })
	starting := ""
	for _, m := range c.Machines() {
		if !c.Available(m) {
			starting = m.Name
		}
	}
	c.Preserve(starting, machinev1alpha1.PreserveNow)
	c.Keep()
	c.Update(grow(1))
	until(t, c, "decided", none, func() bool { return len(c.Sets()[0].Status.Dropping) > 0 })
	if dropping := c.Sets()[0].Status.Dropping; len(dropping) != 2 || slices.Contains(dropping, starting) {
		t.Fatalf("%v are to be deleted, want the others than %s", dropping, starting)
	}
	c.DeleteByUser(starting)
	for range 5 {
		tick(c, none)
	}
	if len(c.Violations) > 0 {
		t.Errorf("%s\n%s", c.Violations[0], c)
	}
}
