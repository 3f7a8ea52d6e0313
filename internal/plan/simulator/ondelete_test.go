package simulator

import (
	"testing"

	"pgregory.net/rapid"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// TestOnDeleteScalesDownOldMachinesFirst scales a pool down one by one after users have deleted
// some of the old Machines, while the sets have not acted on their last numbers.
func TestOnDeleteScalesDownOldMachinesFirst(t *testing.T) {
	const before, after = "v1.0.0", "v1.1.0"
	rapid.Check(t, func(t *rapid.T) {
		s := rolling(rapid.Int32Range(4, 10).Draw(t, "replicas"), 1, 0)
		s.Strategy.Type = machinev1alpha1.OnDelete
		c := New(s)
		settle(t, c)
		c.Update(roll)
		for range 3 {
			tick(c, anyVersion)
		}
		replaced := rapid.IntRange(1, int(s.Replicas)/2).Draw(t, "replaced")
		for _, m := range c.Machines()[:replaced] {
			c.DeleteByUser(m.Name)
		}
		for range 15 {
			tick(c, anyVersion)
		}
		kept := availableOf(c, after)
		if kept != replaced {
			t.Fatalf("%d Machines of the new template are available, want %d:\n%s", kept, replaced, c)
		}

		down := rapid.Int32Range(2, s.Replicas-int32(replaced)).Draw(t, "down")
		for range down {
			c.Update(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Replicas-- })
			for range rapid.IntRange(1, 8).Draw(t, "steps") {
				switch rapid.IntRange(0, 3).Draw(t, "step") {
				case 0, 1:
					c.ReconcileDeployment()
				case 2:
					for _, s := range c.Sets() {
						c.ReconcileSet(s.Name)
						c.ReconcileGroup(s.Name)
					}
				case 3:
					c.CatchUp()
				}
				check(t, c)
			}
		}
		for range 15 {
			tick(c, anyVersion)
			check(t, c)
		}
		if n := availableOf(c, after); n != kept {
			t.Fatalf("%d of %d Machines of the new template are left, though %d old ones are:\n%s", n, kept, availableOf(c, before), c)
		}
		if n := len(c.Machines()); n != int(s.Replicas-down) {
			t.Fatalf("there are %d Machines, want %d:\n%s", n, s.Replicas-down, c)
		}
	})
}
