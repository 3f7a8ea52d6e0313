package simulator

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// remediation of a random deployment. The budget is small as a rule, because small budgets are
// exceeded more easily.
func remediation(t *rapid.T) machinev1alpha1.Remediation {
	return machinev1alpha1.Remediation{
		MaxInFlight:  ptr.To(intstr.Parse(rapid.SampledFrom([]string{"1", "1", "2", "3", "20%"}).Draw(t, "maxInFlight"))),
		MaxUnhealthy: ptr.To(intstr.Parse(rapid.SampledFrom([]string{"100%", "100%", "40%", "50%", "2"}).Draw(t, "maxUnhealthy"))),
		Order:        rapid.SampledFrom([]machinev1alpha1.RemediationOrder{machinev1alpha1.DeleteFirst, machinev1alpha1.CreateFirst}).Draw(t, "order"),
	}
}

// TestReplacements lets Nodes and VMs of a deployment fail, one by one and all at once. They
// recover, and users request replacements, while views lag and reconciles abort, in some histories
// during a rollout. At every write, replaced Machines must be broken, within the budget, and not
// too many may be unhealthy. In the end all must be healthy.
func TestReplacements(t *testing.T) { checkSome(t, "replaced", replacesMachines) }

// checkSome checks histories of which each returns how often something was done to a Machine, and fails if it never was.
func checkSome(t *testing.T, done string, history func(*rapid.T) int) {
	n := 0
	rapid.Check(t, func(t *rapid.T) { n += history(t) })
	if n == 0 {
		t.Errorf("nothing was ever %s", done)
	}
	t.Logf("Machines were %s %d times", done, n)
}

// replacesMachines returns the number of replacements that it started.
func replacesMachines(t *rapid.T) int {
	s := spec(t, rapid.SampledFrom([]machinev1alpha1.StrategyType{
		machinev1alpha1.RollingUpdate, machinev1alpha1.RollingUpdate, machinev1alpha1.OnDelete,
	}).Draw(t, "strategy"))
	s.Replicas = rapid.Int32Range(1, 12).Draw(t, "replicas")
	s.Remediation = remediation(t)
	c := New(s)
	settle(t, c)
	if rapid.Bool().Draw(t, "rolls") {
		c.Update(func(d *machinev1alpha1.MachineDeployment) {
			d.Spec.Template.Spec.Version = "v1.1.0"
			d.Spec.Paused = rapid.Bool().Draw(t, "paused later")
		})
	}
	if rapid.Bool().Draw(t, "reconciles break off") {
		c.Crash = func() bool { return rapid.IntRange(0, 19).Draw(t, "crash") == 19 }
	}
	c.Order = func(n int) []int { return rapid.Permutation(ascending(n)).Draw(t, "order") }
	for range rapid.IntRange(0, 250).Draw(t, "steps") {
		if rapid.IntRange(0, 2).Draw(t, "something fails") > 0 {
			disturb(t, c, false)
		} else {
			fall(t, c)
		}
		check(t, c)
	}
	c.Update(func(d *machinev1alpha1.MachineDeployment) {
		// Above the limit, a user must act.
		d.Spec.Remediation.MaxUnhealthy = ptr.To(intstr.FromString("100%"))
	})
	settle(t, c)
	return c.started
}

// fall causes one failure, or reverts one.
func fall(t *rapid.T, c *Cluster) {
	ms := c.Machines()
	if len(ms) == 0 {
		return
	}
	name := ms[rapid.IntRange(0, len(ms)-1).Draw(t, "machine")].Name
	switch rapid.SampledFrom([]int{0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 7}).Draw(t, "fall") {
	case 0:
		c.Lose(name)
	case 1:
		for _, m := range ms {
			c.Expire(m.Name)
		}
	case 2:
		c.Fail(name)
	case 3:
		c.Recover(name)
	case 4:
		c.FailToJoin(name)
	case 5:
		c.Request(name)
	case 6:
		c.Blackout(rapid.IntRange(0, 3).Draw(t, "spared"))
	case 7:
		c.Claim(name)
	}
}

// TestASetRegainsItsSizeAfterItsVMsAreLost loses VMs, in some histories all of them. Such Machines
// can only be replaced, so no limit of unhealthy Machines may delay that.
func TestASetRegainsItsSizeAfterItsVMsAreLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := spec(t, machinev1alpha1.RollingUpdate)
		s.Replicas, s.Remediation = rapid.Int32Range(1, 12).Draw(t, "replicas"), remediation(t)
		s.Remediation.MaxUnhealthy = ptr.To(intstr.Parse(rapid.SampledFrom([]string{"0", "1", "40%"}).Draw(t, "limit")))
		c := New(s)
		settle(t, c)
		lost := c.Machines()[:rapid.IntRange(1, int(s.Replicas)).Draw(t, "lost")]
		for _, m := range lost {
			c.Fail(m.Name)
			if rapid.Bool().Draw(t, "seen before the next") {
				calm(c, 1)
			}
		}
		settle(t, c)
		check(t, c)
		for _, m := range lost {
			if _, there := c.machines.get(m.Name); there {
				t.Fatalf("%s lost its VM and is there:\n%s", m.Name, c)
			}
		}
	})
}

// TestAWrongAccountReplacesNothing lets a provider report more VMs as gone than may be unhealthy,
// while their Nodes are Ready.
func TestAWrongAccountReplacesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := spec(t, machinev1alpha1.RollingUpdate)
		s.Replicas, s.Remediation = rapid.Int32Range(4, 12).Draw(t, "replicas"), remediation(t)
		s.Remediation.MaxUnhealthy = ptr.To(intstr.FromString("40%"))
		s.AutoPreserveFailedMachineMax = 0 // A preserved Machine is not unhealthy.
		c := New(s)
		settle(t, c)
		before := c.Machines()
		for _, m := range before[:rapid.IntRange(int(s.Replicas)*2/5+2, int(s.Replicas)).Draw(t, "claimed")] {
			c.Claim(m.Name)
		}
		calm(c, 20)
		check(t, c)
		for _, m := range before {
			if _, there := c.machines.get(m.Name); !there {
				t.Fatalf("%s was replaced, and its Node is Ready:\n%s", m.Name, c)
			}
		}
	})
}

// calm brings all views up to date and reconciles everything for some rounds.
func calm(c *Cluster, rounds int) {
	for range rounds {
		c.CatchUp()
		c.ReconcileDeployment()
		for _, s := range c.Sets() {
			c.CatchUp()
			c.ReconcileSet(s.Name)
		}
		for _, m := range c.Machines() {
			if m.Status.Phase != machinev1alpha1.MachineUnknown {
				c.Boot(m.Name)
			}
			c.Finish(m.Name)
		}
		c.Now = c.Now.Add(10 * time.Second)
	}
}

// TestAnOutageReplacesNothing loses all Nodes but a few for a long time: a pool above the limit
// replaces no Machine, and has all of its Machines after the outage.
func TestAnOutageReplacesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := spec(t, machinev1alpha1.RollingUpdate)
		s.Replicas, s.Remediation = rapid.Int32Range(4, 30).Draw(t, "replicas"), remediation(t)
		s.Remediation.MaxUnhealthy = ptr.To(intstr.FromString("50%"))
		s.AutoPreserveFailedMachineMax = 0 // A preserved Machine is not unhealthy.
		c := New(s)
		settle(t, c)
		before := c.Machines()
		spared := rapid.IntRange(0, int(s.Replicas)/2-1).Draw(t, "spared")
		c.Blackout(spared)
		calm(c, 3)
		for _, m := range c.Machines() {
			c.Expire(m.Name)
			if rapid.Bool().Draw(t, "seen before the next") {
				calm(c, 1)
			}
		}
		calm(c, 20)
		for _, m := range c.Machines() {
			c.Recover(m.Name)
		}
		settle(t, c)
		after := map[string]bool{}
		for _, m := range c.Machines() {
			after[m.Name] = true
		}
		for _, m := range before {
			if !after[m.Name] {
				t.Fatalf("%s was replaced in an outage of %d of %d:\n%s", m.Name, int(s.Replicas)-spared, s.Replicas, c)
			}
		}
	})
}

// TestAReplacementThatItsSetPreservesIsNotInFlight lets the replacement of a Machine fail to join
// while another Machine fails. The set preserves the first for analysis and replaces the second, in
// one decision: a preserved Machine takes no part of the budget.
func TestAReplacementThatItsSetPreservesIsNotInFlight(t *testing.T) {
	s := rolling(3, 1, 0)
	s.AutoPreserveFailedMachineMax = 1
	c := New(s)
	until(t, c, "running", anyVersion, func() bool { return len(running(c)) == 3 })
	ms := running(c)
	c.Fail(ms[0].Name)
	replacement := func() *machinev1alpha1.Machine {
		for _, m := range c.Machines() {
			if m.Status.Phase == machinev1alpha1.MachineJoining {
				return m
			}
		}
		return nil
	}
	until(t, c, "joining", anyVersion, func() bool { return replacement() != nil })
	c.FailToJoin(replacement().Name)
	c.Fail(ms[1].Name)
	until(t, c, "replaced", anyVersion, func() bool {
		_, there := c.machines.last[ms[1].Name]
		return !there && len(running(c)) == 2
	})
}
