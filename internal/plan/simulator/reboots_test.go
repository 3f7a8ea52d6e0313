package simulator

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// TestReboots lets Machines of a deployment become unhealthy, so that reboots are due, beside Machines that fail and a
// rollout, while views lag and reconciles abort. Reboots and replacements together must be within the budget, no reboot may
// be done twice, and in the end all Machines must be healthy: a reboot that does not help ends with a replacement.
func TestReboots(t *testing.T) { checkSome(t, "rebooted", rebootsMachines) }

// rebootsMachines returns the number of reboots that began.
func rebootsMachines(t *rapid.T) int {
	s := spec(t, machinev1alpha1.RollingUpdate)
	s.Replicas = rapid.Int32Range(1, 12).Draw(t, "replicas")
	s.Remediation = remediation(t)
	c := New(s)
	settle(t, c)
	if rapid.IntRange(0, 3).Draw(t, "rolls") == 0 {
		c.Update(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Template.Spec.Version = "v1.1.0" })
	}
	if rapid.Bool().Draw(t, "reconciles break off") {
		c.Crash = func() bool { return rapid.IntRange(0, 19).Draw(t, "crash") == 19 }
	}
	c.Order = func(n int) []int { return rapid.Permutation(ascending(n)).Draw(t, "order") }
	for range rapid.IntRange(0, 150).Draw(t, "steps") {
		switch rapid.IntRange(0, 7).Draw(t, "what") {
		case 0:
			fall(t, c)
		case 1, 2:
			if ms := c.Machines(); len(ms) > 0 {
				c.Sicken(ms[rapid.IntRange(0, len(ms)-1).Draw(t, "machine")].Name)
			}
		case 3, 4:
			for _, m := range c.Machines() {
				c.Reboot(m.Name)
				c.EndReboot(m.Name, rapid.Bool().Draw(t, "helps"))
			}
		default:
			disturb(t, c, false)
		}
		check(t, c)
	}
	c.Update(func(d *machinev1alpha1.MachineDeployment) {
		d.Spec.Remediation.MaxUnhealthy, d.Spec.Paused = ptr.To(intstr.FromString("100%")), false
	})
	c.Classes = nil
	c.Crash = func() bool { return false }
	for n := 0; slices.ContainsFunc(c.Machines(), waitsForReboot); n++ {
		if n == 300 {
			t.Fatalf("a Machine waits for a reboot for ever:\n%s", c)
		}
		rebootAndReplace(t, c)
		check(t, c)
	}
	settle(t, c)
	n := 0
	for _, of := range c.begun {
		n += of
	}
	return n
}

func waitsForReboot(m *machinev1alpha1.Machine) bool {
	return m.DeletionTimestamp == nil && (m.Status.Phase == machinev1alpha1.MachineRebooting || m.Status.Phase == machinev1alpha1.MachineUnknown)
}

// rebootAndReplace is a round in which nothing becomes unhealthy, and what is unhealthy stays it until a reboot helps.
func rebootAndReplace(t *rapid.T, c *Cluster) {
	c.ReconcileAll()
	for _, m := range c.Machines() {
		if m.Status.Unhealthy == nil {
			c.Boot(m.Name)
		}
		c.Reboot(m.Name)
		c.EndReboot(m.Name, rapid.Bool().Draw(t, "helps"))
		c.Finish(m.Name)
	}
	release(c)
	c.CollectGarbage()
	c.Now = c.Now.Add(10 * time.Second)
}
