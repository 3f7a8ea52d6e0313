package simulator

import (
	"testing"

	"pgregory.net/rapid"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// TestAScaleDownInTheMiddleOfARolloutDeletesMarkedMachines holds a rollout at any moment, and marks
// some Machines of any template. If replicas is lowered by as many, these are deleted.
func TestAScaleDownInTheMiddleOfARolloutDeletesMarkedMachines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		surge := rapid.Int32Range(0, 3).Draw(t, "maxSurge")
		c := New(rolling(rapid.Int32Range(3, 10).Draw(t, "replicas"), surge, max(1-surge, 0)))
		ticks := func(n int) {
			for range n {
				tick(c, anyVersion)
				check(t, c)
			}
		}
		settle(t, c)
		c.Update(roll)
		ticks(rapid.IntRange(1, 12).Draw(t, "moment"))
		c.Update(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Paused = true })
		ticks(10)
		ms := rapid.Permutation(running(c)).Draw(t, "machines")
		marked := ms[:rapid.IntRange(1, 2).Draw(t, "marked")]
		for _, m := range marked {
			c.Mark(m.Name)
		}
		ticks(5)
		c.Update(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Replicas -= int32(len(marked)) })
		ticks(10)
		for _, m := range marked {
			if _, there := c.machines.last[m.Name]; there {
				t.Fatalf("%s is marked, and left:\n%s", m.Name, c)
			}
		}
	})
}

// TestAScaleDownDeletesAMarkedMachineWhoseSetLacksAnother loses the class of the old template
// during a rollout, so that the old set cannot grow. A scale-down by one must delete the marked
// Machine, and not only cancel the one that the set cannot create.
func TestAScaleDownDeletesAMarkedMachineWhoseSetLacksAnother(t *testing.T) {
	c := New(rolling(1, 3, 0))
	// The new Machines do not become available, and the trial of their template ends.
	old := func(version string) bool { return version == "v1.0.0" }
	until(t, c, "whole", anyVersion, func() bool { return arrived(c) })
	marked := running(c)[0].Name
	c.Update(func(d *machinev1alpha1.MachineDeployment) {
		roll(d)
		d.Spec.Template.Spec.ClassRef.Name = "large"
	})
	until(t, c, "rolling", anyVersion, func() bool { return made(c)["v1.1.0"] > 0 })
	for range 40 {
		tick(c, old)
	}
	c.Classes = map[string]Class{"small": {Missing: true}}
	c.Update(grow(3))
	until(t, c, "larger", old, func() bool { return desiredOf(c, "v1.0.0") > 1 && desiredOf(c, "v1.1.0") == made(c)["v1.1.0"] })

	c.ScaleDownByAutoscaler(marked)
	for range 20 {
		tick(c, old)
	}
	if len(c.Violations) > 0 {
		t.Fatalf("%s\n%s", c.Violations[0], c)
	}
	if _, there := c.machines.last[marked]; there {
		t.Errorf("%s was marked, and is left:\n%s", marked, c)
	}
}
