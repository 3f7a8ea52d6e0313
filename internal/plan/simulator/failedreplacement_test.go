package simulator

import (
	"testing"
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// TestAReplacementThatFailsAndIsPreservedIsNotWaitedFor with the order CreateFirst: another Machine
// becomes the replacement, and the preserved one stays beside it.
func TestAReplacementThatFailsAndIsPreservedIsNotWaitedFor(t *testing.T) {
	s := rolling(4, 1, 0)
	s.Remediation.Order = machinev1alpha1.CreateFirst
	s.Template.Spec.Metadata.Annotations = map[string]string{machinev1alpha1.AnnotationPreserve: machinev1alpha1.PreserveFalse}
	c := New(s)
	until(t, c, "whole", anyVersion, func() bool { return arrived(c) })
	first, second := running(c)[0].Name, running(c)[1].Name
	c.Request(first)
	by := ""
	until(t, c, "paired", anyVersion, func() bool {
		for _, s := range c.Sets() {
			for _, r := range s.Status.Replacing {
				if r.Machine == first && c.machines.last[r.By].object != nil {
					by = r.By
				}
			}
		}
		return by != ""
	})
	until(t, c, "with a VM", anyVersion, func() bool { return c.machines.last[by].object.Spec.ProviderID != nil })
	c.FailToJoin(by)
	c.Preserve(by, machinev1alpha1.PreserveNow)
	c.Keep()
	c.Request(second)
	from := c.Now
	gone := func(name string) bool { _, there := c.machines.last[name]; return !there }
	until(t, c, "replaced", anyVersion, func() bool { return gone(first) && gone(second) })
	if took := c.Now.Sub(from); took > 30*time.Minute {
		t.Errorf("both Machines are replaced after %s:\n%s", took, c)
	}
	if gone(by) {
		t.Errorf("%s is preserved, and deleted:\n%s", by, c)
	}
}
