package simulator

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// splitFor cuts Machines off for a time: each is Unknown at once, and Failed after ten minutes.
func splitFor(c *Cluster, d time.Duration, lost ...*machinev1alpha1.Machine) {
	for _, m := range lost {
		c.Lose(m.Name)
	}
	from := c.Now
	for c.Now.Sub(from) < d {
		if c.Now.Sub(from) >= 10*time.Minute {
			for _, m := range lost {
				c.Expire(m.Name)
			}
		}
		c.ReconcileAll()
		for _, m := range c.Machines() {
			if m.Status.Phase != machinev1alpha1.MachineUnknown {
				c.Boot(m.Name)
			}
			c.Finish(m.Name)
		}
		c.Now = c.Now.Add(10 * time.Second)
	}
}

func TestTheDefaultReplacesNothingInANetworkSplit(t *testing.T) {
	for name, inFlight := range map[string]string{"OneAtATime": "1", "AllAtATime": "100%"} {
		t.Run(name, func(t *testing.T) {
			s := rolling(30, 1, 0)
			s.Remediation.MaxInFlight = ptr.To(intstr.Parse(inFlight))
			c := New(s)
			until(t, c, "whole", anyVersion, func() bool { return arrived(c) })
			splitFor(c, 40*time.Minute, c.Machines()[:28]...)
			if n := made(c)["v1.0.0"]; n != 30 {
				t.Errorf("%d of 28 Machines that were cut off were replaced, want none", n-30)
			}
			for _, m := range c.Machines() {
				c.Recover(m.Name)
			}
			until(t, c, "whole again", anyVersion, func() bool { return arrived(c) })
			if n := made(c)["v1.0.0"]; n != 30 {
				t.Errorf("%d Machines were made in all, want 30", n)
			}
		})
	}
}

func TestTheDefaultReplacesADeadNodeOfASmallPool(t *testing.T) {
	for replicas := int32(1); replicas <= 5; replicas++ {
		t.Run(fmt.Sprintf("Of%d", replicas), func(t *testing.T) {
			c := New(rolling(replicas, 1, 0))
			until(t, c, "whole", anyVersion, func() bool { return arrived(c) })
			dead := c.Machines()[0]
			splitFor(c, 15*time.Minute, dead)
			for _, m := range c.Machines() {
				if m.Name == dead.Name {
					t.Errorf("%s is still there", m.Name)
				}
			}
			until(t, c, "whole again", anyVersion, func() bool { return arrived(c) })
		})
	}
}
