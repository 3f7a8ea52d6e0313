package simulator

import (
	"testing"
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// TestDrainsHoldNoCreation has Machines of a pool go in ways that are no overshoot, and drain
// for longer than the test: the pool must be whole again soon all the same.
func TestDrainsHoldNoCreation(t *testing.T) {
	deleteSome := func(n int) func(*Cluster) {
		return func(c *Cluster) {
			for _, m := range running(c)[:n] {
				c.DeleteByUser(m.Name)
			}
		}
	}
	for name, tc := range map[string]struct {
		// do these one after another, each when the pool is whole again.
		do []func(*Cluster)
		// within this time, of which a Machine takes a minute to come up.
		within time.Duration
	}{
		"AUserDeletesFourOfTwenty":               {[]func(*Cluster){deleteSome(4)}, 2 * time.Minute},
		"AScaleUpByOneFollows":                   {[]func(*Cluster){deleteSome(4), func(c *Cluster) { c.Update(grow(21)) }}, 2 * time.Minute},
		"AFailedMachineIsReplacedWhileFourDrain": {[]func(*Cluster){deleteSome(4), func(c *Cluster) { c.Fail(running(c)[0].Name) }}, 2 * time.Minute},
		"RemediationGivesUpFive": {[]func(*Cluster){func(c *Cluster) {
			for _, m := range running(c)[:5] {
				c.Fail(m.Name)
			}
		}}, 6 * time.Minute}, // One after another.
		"AScaleDownAndUpWhileFourDrain": {[]func(*Cluster){deleteSome(4), func(c *Cluster) { c.Update(grow(10)) }, func(c *Cluster) { c.Update(grow(20)) }}, 2 * time.Minute},
		"AUserDeletesAllOfThem":         {[]func(*Cluster){deleteSome(20)}, 7 * time.Minute},
		"AndAllOfThemAgain":             {[]func(*Cluster){deleteSome(20), deleteSome(20), deleteSome(20)}, 7 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(rolling(20, 1, 0))
			until(t, c, "whole", anyVersion, func() bool { return arrived(c) })
			for i, do := range tc.do {
				do(c)
				from := c.Now
				for !whole(c) {
					if c.Now.Sub(from) > tc.within {
						t.Fatalf("change %d: the pool is not whole after %s:\n%s", i, tc.within, c)
					}
					tickDraining(c, anyVersion)
				}
			}
		})
	}
}

// running Machines that are not being deleted.
func running(c *Cluster) []*machinev1alpha1.Machine {
	var out []*machinev1alpha1.Machine
	for _, m := range c.Machines() {
		if m.DeletionTimestamp == nil && m.Status.Phase == machinev1alpha1.MachineRunning {
			out = append(out, m)
		}
	}
	return out
}

// whole means that as many Machines run as are wanted, whatever is being deleted beside them.
func whole(c *Cluster) bool { return len(running(c)) == int(c.Deployment().Spec.Replicas) }

// TestARunawayIsSlowedDown has each Machine deleted as soon as it runs, and none of them gone:
// no more than one fleet is made in five minutes.
func TestARunawayIsSlowedDown(t *testing.T) {
	c := New(rolling(10, 1, 0))
	until(t, c, "whole", anyVersion, func() bool { return arrived(c) })
	before, from := made(c)["v1.0.0"], c.Now
	for c.Now.Sub(from) < time.Hour {
		for _, m := range running(c) {
			c.DeleteByUser(m.Name)
		}
		tickDraining(c, anyVersion)
	}
	// One fleet is made before the first freeze, and then one after each.
	if n, most := made(c)["v1.0.0"]-before, 13*10; n > most || n < 10 {
		t.Errorf("made %d Machines in an hour, want at most %d", n, most)
	}
}

// TestAScaleDownBeforeARolloutTakesNoPartOfItsSurge lowers replicas, raises them and changes the
// template before the set has deleted anything. What the scale-down deletes may drain beside the
// Machines that the set creates.
func TestAScaleDownBeforeARolloutTakesNoPartOfItsSurge(t *testing.T) {
	c := New(rolling(14, 1, 0))
	until(t, c, "whole", anyVersion, func() bool { return arrived(c) })
	set := c.Sets()[0].Name
	decide := func() {
		c.CatchUp()
		c.ReconcileDeployment()
		c.CatchUp()
		c.ReconcileDeployment()
	}
	c.Update(grow(2))
	decide()
	c.CatchUp()
	c.ReconcileSet(set)
	if n := len(c.Sets()[0].Status.Dropping); n != 12 {
		t.Fatalf("the deletion of %d Machines is decided, want 12:\n%s", n, c)
	}
	c.Update(grow(6))
	decide()
	c.Update(roll)
	for range 5 {
		tickDraining(c, anyVersion)
	}
	if len(c.Violations) > 0 {
		t.Errorf("%s\n%s", c.Violations[0], c)
	}
}
