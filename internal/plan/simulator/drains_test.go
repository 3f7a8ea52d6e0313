package simulator

import (
	"testing"
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// TestDrainsHoldNoCreation deletes Machines of a pool in ways that are no overshoot. They drain
// longer than the test runs, and the pool must still be complete again soon.
func TestDrainsHoldNoCreation(t *testing.T) {
	deleteSome := func(n int) func(*Cluster) {
		return func(c *Cluster) {
			for _, m := range running(c)[:n] {
				c.DeleteByUser(m.Name)
			}
		}
	}
	for name, tc := range map[string]struct {
		// do these one after another, each when the pool is complete again.
		do []func(*Cluster)
		// within this time. A Machine takes one minute to become Ready.
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

// whole reports whether the desired number of Machines runs, regardless of Machines that are being
// deleted.
func whole(c *Cluster) bool { return len(running(c)) == int(c.Deployment().Spec.Replicas) }

// TestARunawayIsSlowedDown deletes each Machine as soon as it runs, and finishes no deletion: at
// most one fleet may be created per five minutes.
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
// template before the set has deleted anything. The Machines of the scale-down may drain while the
// set creates new ones.
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
