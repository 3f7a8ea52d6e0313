package simulator

import (
	"testing"

	"pgregory.net/rapid"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// TestAScaleDownInTheMiddleOfARolloutDeletesMarkedMachines holds a rollout at any moment, and
// marks some Machines of whatever template. When replicas is lowered by as many, these go.
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
