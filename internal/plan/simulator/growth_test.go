package simulator

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// rolling is a deployment of version v1.0.0 with these bounds.
func rolling(replicas, surge, unavailable int32) machinev1alpha1.MachineDeploymentSpec {
	labels := map[string]machinev1alpha1.LabelValue{"app": "web"}
	return machinev1alpha1.MachineDeploymentSpec{
		Replicas: replicas,
		Selector: machinev1alpha1.Selector{MatchLabels: labels},
		Template: machinev1alpha1.MachineTemplate{
			Metadata: machinev1alpha1.TemplateMetadata{Labels: labels},
			Spec:     machinev1alpha1.MachineSpec{ClassRef: machinev1alpha1.ClassReference{Name: "small"}, Version: "v1.0.0"},
		},
		Strategy: machinev1alpha1.Strategy{
			Type: machinev1alpha1.RollingUpdate,
			RollingUpdate: machinev1alpha1.RollingUpdateBounds{
				MaxSurge: ptr.To(intstr.FromInt32(surge)), MaxUnavailable: ptr.To(intstr.FromInt32(unavailable)),
			},
		},
		ProgressDeadlineSeconds: 600,
	}
}

// tick lets ten seconds pass in which all views catch up and everything is reconciled. Machines
// whose version boots advance by one phase, and deletions finish.
func tick(c *Cluster, boots func(version string) bool) {
	tickDraining(c, boots)
	for _, m := range c.Machines() {
		c.Finish(m.Name)
	}
}

// tickDraining does the same, but finishes no deletion: the deleted Machines drain.
func tickDraining(c *Cluster, boots func(version string) bool) {
	c.ReconcileAll()
	for _, m := range c.Machines() {
		if boots(m.Spec.Version) {
			c.Boot(m.Name)
		}
	}
	c.CollectGarbage()
	c.Now = c.Now.Add(10 * time.Second)
}

func anyVersion(string) bool { return true }

// until ticks until the condition is true, for three hours at most.
func until(t *testing.T, c *Cluster, what string, boots func(version string) bool, so func() bool) {
	t.Helper()
	for range 1080 {
		if so() {
			return
		}
		tick(c, boots)
		if len(c.Violations) > 0 {
			t.Fatalf("%s\n%s", c.Violations[0], c)
		}
	}
	t.Fatalf("not %s after three hours:\n%s", what, c)
}

// made counts all Machines created so far, by version.
func made(c *Cluster) map[string]int {
	seen, out := map[string]bool{}, map[string]int{}
	for _, e := range c.machines.log {
		if !e.gone && !seen[e.name] {
			seen[e.name] = true
			out[e.object.Spec.Version]++
		}
	}
	return out
}

// availableOf counts the available Machines of a version.
func availableOf(c *Cluster, version string) int {
	n := 0
	for _, m := range c.Machines() {
		if m.Spec.Version == version && c.Available(m) {
			n++
		}
	}
	return n
}

func grow(to int32) func(*machinev1alpha1.MachineDeployment) {
	return func(d *machinev1alpha1.MachineDeployment) { d.Spec.Replicas = to }
}

func roll(d *machinev1alpha1.MachineDeployment) { d.Spec.Template.Spec.Version = "v1.1.0" }

func TestGrowthInTheChangeOfTheTemplateMakesNoOldMachine(t *testing.T) {
	for name, tc := range map[string]struct {
		spec machinev1alpha1.MachineDeploymentSpec
		to   int32
	}{
		"FromTwoToFour":          {rolling(2, 1, 0), 4},
		"WithoutSurge":           {rolling(2, 0, 1), 4},
		"FromNone":               {rolling(0, 1, 0), 3},
		"FromOneToTwenty":        {rolling(1, 1, 0), 20},
		"ByLessThanMayBeMissing": {rolling(6, 1, 3), 7},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(tc.spec)
			until(t, c, "whole", anyVersion, func() bool { return arrived(c) })
			c.Update(func(d *machinev1alpha1.MachineDeployment) { roll(d); grow(tc.to)(d) })
			until(t, c, "whole again", anyVersion, func() bool { return arrived(c) })
			if got := made(c); got["v1.0.0"] != int(tc.spec.Replicas) || got["v1.1.0"] != int(tc.to) {
				t.Errorf("made %d Machines of the old template and %d of the new one, want %d and %d", got["v1.0.0"], got["v1.1.0"], tc.spec.Replicas, tc.to)
			}
		})
	}
}

// TestGrowthInTheMiddleOfARolloutMakesNoOldMachine scales a pool up at each moment of a rollout,
// from the moment at which a Machine of the new template is available.
func TestGrowthInTheMiddleOfARolloutMakesNoOldMachine(t *testing.T) {
	slow := func(s machinev1alpha1.MachineDeploymentSpec) machinev1alpha1.MachineDeploymentSpec {
		s.MinReadySeconds = 20
		return s
	}
	for name, tc := range map[string]struct {
		spec machinev1alpha1.MachineDeploymentSpec
		to   int32
	}{
		"FromSixToTwelve":              {rolling(6, 3, 1), 12},
		"ByOne":                        {rolling(3, 1, 0), 4},
		"ToFiveTimesAsMany":            {rolling(2, 1, 0), 10},
		"ByLessThanMayBeMissing":       {rolling(6, 1, 3), 7},
		"WhereMachinesHaveToStayReady": {slow(rolling(3, 1, 0)), 6},
	} {
		t.Run(name, func(t *testing.T) {
			moments := 0
			for ticks := 0; ; ticks++ {
				c := New(tc.spec)
				until(t, c, "whole", anyVersion, func() bool { return arrived(c) })
				c.Update(roll)
				for range ticks {
					tick(c, anyVersion)
				}
				if arrived(c) {
					break
				}
				if availableReported(c, "v1.1.0") == 0 {
					continue
				}
				moments++
				c.Update(grow(tc.to))
				until(t, c, "whole again", anyVersion, func() bool { return arrived(c) })
				if got := made(c); got["v1.0.0"] != int(tc.spec.Replicas) || got["v1.1.0"] != int(tc.to) {
					t.Errorf("after %d ticks: made %d Machines of the old template and %d of the new one, want %d and %d",
						ticks, got["v1.0.0"], got["v1.1.0"], tc.spec.Replicas, tc.to)
				}
			}
			if moments < 3 {
				t.Errorf("the pool grew at %d moments of the rollout, want 3 at least", moments)
			}
		})
	}
}

// availableReported is the number of Machines of a version that the set reports as available.
func availableReported(c *Cluster, version string) int32 {
	n := int32(0)
	for _, s := range c.Sets() {
		if s.Spec.Template.Spec.Version == version {
			n += s.Status.AvailableReplicas
		}
	}
	return n
}

// desiredOf is the desired number of Machines of a version.
func desiredOf(c *Cluster, version string) int {
	n := int32(0)
	for _, s := range c.Sets() {
		for _, r := range c.Deployment().Status.MachineSets {
			if r.Name == s.Name && s.Spec.Template.Spec.Version == version {
				n += r.Replicas
			}
		}
	}
	return int(n)
}

// TestGrowthDoesNotWaitForATemplateThatIsNotProven rolls out a template whose Machines never become
// Ready: a pool that scales up then gets most of its new Machines from the old set.
func TestGrowthDoesNotWaitForATemplateThatIsNotProven(t *testing.T) {
	c := New(rolling(6, 2, 0))
	until(t, c, "whole", anyVersion, func() bool { return arrived(c) })
	c.Update(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Template.Spec.Version = "v1.1.0" })
	broken := func(version string) bool { return version == "v1.0.0" }
	for range 30 {
		tick(c, broken)
	}
	c.Update(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Replicas = 12 })
	until(t, c, "grown", broken, func() bool { return availableOf(c, "v1.0.0") >= 10 })
	if n := desiredOf(c, "v1.1.0"); n > 4 {
		t.Errorf("%d Machines of a template that is not proven are wanted, want its share of 3 or 4", n)
	}
}

// TestATemplateThatIsTakenBackAtOnceHoldsNoRoom changes the template and reverts it before the
// deployment has observed it. Replicas is lowered at the same time, so that three Machines drain.
// There is no rollout, so they do not delay the Machines that a scale-up creates in the meantime.
func TestATemplateThatIsTakenBackAtOnceHoldsNoRoom(t *testing.T) {
	c := New(rolling(4, 0, 1))
	until(t, c, "whole", anyVersion, func() bool { return arrived(c) })
	c.Update(roll)
	c.Update(func(d *machinev1alpha1.MachineDeployment) {
		d.Spec.Template.Spec.Version = "v1.0.0"
		d.Spec.Replicas = 1
	})
	drains := func() int { return len(c.Machines()) - len(running(c)) }
	for range 10 {
		if drains() == 3 {
			break
		}
		tickDraining(c, anyVersion)
	}
	if drains() != 3 {
		t.Fatalf("%d Machines are drained, want 3:\n%s", drains(), c)
	}
	c.Update(grow(7))
	for range 10 {
		tickDraining(c, anyVersion)
	}
	if len(c.Violations) > 0 {
		t.Fatalf("%s\n%s", c.Violations[0], c)
	}
	if n := len(running(c)); n != 7 {
		t.Errorf("%d Machines run beside those that are drained, want 7:\n%s", n, c)
	}
}
