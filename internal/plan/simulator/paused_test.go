package simulator

import (
	"testing"
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// TestAPausedDeploymentReplacesAnOldMachineOfOnDelete by a Machine of its own template: the pause
// holds the rollout, and not the size of the pool.
func TestAPausedDeploymentReplacesAnOldMachineOfOnDelete(t *testing.T) {
	s := rolling(3, 1, 0)
	s.Strategy.Type = machinev1alpha1.OnDelete
	c := New(s)
	until(t, c, "whole", anyVersion, func() bool { return arrived(c) })
	c.Update(roll)
	tick(c, anyVersion)
	c.DeleteByUser(running(c)[0].Name)
	until(t, c, "replaced by a new one", anyVersion, func() bool { return availableOf(c, "v1.1.0") == 1 })

	c.Update(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Paused = true })
	tick(c, anyVersion)
	for _, lose := range []func(name string){c.DeleteByUser, c.Fail} {
		for _, m := range running(c) {
			if c.IsOld(m) {
				lose(m.Name)
				break
			}
		}
		from := c.Now
		until(t, c, "whole", anyVersion, func() bool { return availableOf(c, "v1.0.0") == 2 && availableOf(c, "v1.1.0") == 1 })
		if took := c.Now.Sub(from); took > 3*time.Minute {
			t.Errorf("the pool is whole after %s:\n%s", took, c)
		}
	}

	c.Update(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Paused = false })
	tick(c, anyVersion)
	for _, m := range running(c) {
		if c.IsOld(m) {
			c.DeleteByUser(m.Name)
			break
		}
	}
	until(t, c, "replaced by a new one", anyVersion, func() bool { return availableOf(c, "v1.0.0") == 1 && availableOf(c, "v1.1.0") == 2 })
}
