package simulator

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

// TestRollouts drives a deployment through changes by its user, while views lag, reconciles abort
// and Machines fail. It must be within its bounds at every write, and complete in the end.
func TestRollouts(t *testing.T) { rapid.Check(t, rollouts) }

func rollouts(t *rapid.T) {
	c := New(spec(t, rapid.SampledFrom(strategies).Draw(t, "strategy")))
	live := life(t, c)

	settle(t, c)
	for range rapid.IntRange(1, 4).Draw(t, "changes") {
		change(t, c)
		live(rapid.IntRange(0, 150).Draw(t, "steps"))
		if rapid.Bool().Draw(t, "settle") {
			settle(t, c)
		}
	}
	settle(t, c)
}

// TestScalingInTheMiddleOfARollout changes replicas once during a rollout. The bounds before and
// after the change hold all the time.
func TestScalingInTheMiddleOfARollout(t *testing.T) { rapid.Check(t, scalesInTheMiddle) }

func scalesInTheMiddle(t *rapid.T) {
	c := New(spec(t, machinev1alpha1.RollingUpdate))
	live := life(t, c)

	settle(t, c)
	c.Update(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Template.Spec.Version = "v1.1.0" })
	live(rapid.IntRange(20, 200).Draw(t, "steps before"))
	c.Update(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Replicas = replicasOf(t) })
	live(rapid.IntRange(0, 200).Draw(t, "steps after"))
	settle(t, c)
}

// TestAChangeThatIsTakenBack reverts to the old template during a rollout: some Machines of that
// template are being deleted while more of them are desired.
func TestAChangeThatIsTakenBack(t *testing.T) { rapid.Check(t, takesBack) }

func takesBack(t *rapid.T) {
	c := New(spec(t, rapid.SampledFrom(strategies).Draw(t, "strategy")))
	live := life(t, c)

	settle(t, c)
	before := c.Deployment().Spec.Template
	c.Update(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Template.Spec.FailureDomain = ptr.To("zone-b") })
	live(rapid.IntRange(20, 200).Draw(t, "steps before"))
	c.Update(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Template = before })
	live(rapid.IntRange(0, 200).Draw(t, "steps after"))
	settle(t, c)
}

// life returns a function that runs a number of random steps.
func life(t *rapid.T, c *Cluster) func(steps int) {
	failing := rapid.Bool().Draw(t, "machines fail")
	crashing := rapid.Bool().Draw(t, "reconciles break off")
	return func(steps int) {
		if crashing {
			c.Crash = func() bool { return rapid.IntRange(0, 19).Draw(t, "crash") == 19 }
		}
		c.Order = func(n int) []int { return rapid.Permutation(ascending(n)).Draw(t, "order") }
		for range steps {
			disturb(t, c, failing)
			check(t, c)
		}
	}
}

var strategies = []machinev1alpha1.StrategyType{
	machinev1alpha1.RollingUpdate, machinev1alpha1.RollingUpdate, machinev1alpha1.Recreate, machinev1alpha1.OnDelete,
	machinev1alpha1.InPlaceUpdate, machinev1alpha1.InPlaceUpdate,
}

// replicasOf a deployment are few as a rule, because edge cases occur at small numbers.
func replicasOf(t *rapid.T) int32 {
	return rapid.OneOf(rapid.Int32Range(0, 8), rapid.Int32Range(0, 8), rapid.Int32Range(1, 50)).Draw(t, "replicas")
}

func spec(t *rapid.T, strategy machinev1alpha1.StrategyType) machinev1alpha1.MachineDeploymentSpec {
	bound := rapid.OneOf(
		rapid.Map(rapid.IntRange(0, 5), func(n int) intstr.IntOrString { return intstr.FromInt32(int32(n)) }),
		rapid.Map(rapid.IntRange(0, 100), func(n int) intstr.IntOrString { return intstr.FromString(fmt.Sprintf("%d%%", n)) }),
	)
	labels := map[string]machinev1alpha1.LabelValue{"app": "web"}
	return machinev1alpha1.MachineDeploymentSpec{
		Replicas: replicasOf(t),
		Selector: machinev1alpha1.Selector{MatchLabels: labels},
		Template: machinev1alpha1.MachineTemplate{
			Metadata: machinev1alpha1.TemplateMetadata{Labels: labels},
			Spec:     machinev1alpha1.MachineSpec{ClassRef: machinev1alpha1.ClassReference{Name: "small"}, Version: "v1.0.0"},
		},
		Strategy: machinev1alpha1.Strategy{
			Type: strategy,
			RollingUpdate: machinev1alpha1.RollingUpdateBounds{
				MaxSurge:       ptr.To(bound.Draw(t, "maxSurge")),
				MaxUnavailable: ptr.To(bound.Draw(t, "maxUnavailable")),
			},
			InPlaceUpdate: machinev1alpha1.InPlaceUpdateBounds{
				MaxSurge:       ptr.To(bound.Draw(t, "maxSurge in place")),
				MaxUnavailable: ptr.To(bound.Draw(t, "maxUnavailable in place")),
				Orchestration:  machinev1alpha1.OrchestrationAuto,
			},
		},
		// Above the limit of unhealthy Machines, a pool waits for a user. Other tests cover that.
		Remediation: machinev1alpha1.Remediation{
			MaxUnhealthy: ptr.To(intstr.FromString("100%")),
			Order:        rapid.SampledFrom([]machinev1alpha1.RemediationOrder{machinev1alpha1.DeleteFirst, machinev1alpha1.CreateFirst}).Draw(t, "order"),
		},
		AutoPreserveFailedMachineMax: rapid.SampledFrom([]int32{0, 0, 0, 1, 3}).Draw(t, "autoPreserveFailedMachineMax"),
		ProgressDeadlineSeconds:      600,
		MinReadySeconds:              rapid.SampledFrom([]int32{0, 0, 30}).Draw(t, "minReadySeconds"),
		RevisionHistoryLimit:         rapid.Int32Range(0, 2).Draw(t, "revisionHistoryLimit"),
	}
}

// change the spec as a user does. There are few versions, so that rollouts go back often.
func change(t *rapid.T, c *Cluster) {
	revisions := c.Deployment().Status.Revisions
	var back machinev1alpha1.Revision
	if len(revisions) > 0 {
		back = revisions[rapid.IntRange(0, len(revisions)-1).Draw(t, "revision")]
	}
	c.Update(func(d *machinev1alpha1.MachineDeployment) {
		switch what := rapid.IntRange(0, 12).Draw(t, "change"); {
		case what > 10:
			d.Spec.Replicas = replicasOf(t)
			d.Spec.Template.Spec.Version = rapid.SampledFrom([]string{"v1.0.0", "v1.1.0", "v1.2.0"}).Draw(t, "version")
		case what < 3:
			d.Spec.Replicas = replicasOf(t)
		case what == 3:
			d.Spec.Paused = !d.Spec.Paused
		case what == 4 && back.Revision > 0:
			d.Spec.RollbackTo = &machinev1alpha1.RollbackTo{Revision: back.Revision}
			c.BackTo = &back
		case what == 5:
			d.Spec.RollbackTo, c.BackTo = nil, nil
		case what == 6:
			d.Spec.Rollout.After = ptr.To(metav1.NewTime(c.Now.Add(rapid.SampledFrom([]time.Duration{0, time.Minute}).Draw(t, "after"))))
		case what == 7:
			// No Machine can be moved in place.
			d.Spec.Template.Spec.FailureDomain = ptr.To(rapid.SampledFrom([]string{"zone-a", "zone-b"}).Draw(t, "failure domain"))
		default:
			d.Spec.Template.Spec.Version = rapid.SampledFrom([]string{"v1.0.0", "v1.1.0", "v1.2.0"}).Draw(t, "version")
			d.Spec.Template.Spec.Metadata.Labels = map[string]string{"in-place": rapid.SampledFrom([]string{"a", "b"}).Draw(t, "in place")}
		}
	})
}

// disturb takes one random action.
func disturb(t *rapid.T, c *Cluster, failing bool) {
	machine := func() string {
		ms := c.Machines()
		if len(ms) == 0 {
			return ""
		}
		return ms[rapid.IntRange(0, len(ms)-1).Draw(t, "machine")].Name
	}
	actions := []func(){
		c.ReconcileDeployment,
		func() {
			if sets := c.Sets(); len(sets) > 0 {
				c.ReconcileSet(sets[rapid.IntRange(0, len(sets)-1).Draw(t, "set")].Name)
			}
		},
		func() {
			if groups := c.groups.list(); len(groups) > 0 {
				c.ReconcileGroup(groups[rapid.IntRange(0, len(groups)-1).Draw(t, "group")].Name)
			}
		},
		func() { c.Advance(rapid.IntRange(0, Views-1).Draw(t, "view"), rapid.IntRange(1, 10).Draw(t, "writes")) },
		func() { c.Boot(machine()) },
		func() { c.Finish(machine()) },
		func() { c.Now = c.Now.Add(10 * time.Second) },
		func() { c.Agent(machine(), failing && rapid.IntRange(0, 3).Draw(t, "agent fails") == 0) },
		func() {
			if c.deployment().Spec.Strategy.Type == machinev1alpha1.OnDelete {
				c.DeleteByUser(machine())
			}
		},
		func() {
			// A round without disturbance.
			c.ReconcileAll()
			c.CatchUp()
		},
		c.CollectGarbage,
		func() {
			if failing {
				c.Fail(machine())
			}
		},
		func() {
			if failing {
				c.Lose(machine())
			}
		},
		func() {
			if failing {
				codes := []string{"CapacityExhausted", "Throttled", "InvalidRequest", "Transient"}
				c.Refuse(machine(), rapid.SampledFrom(codes).Draw(t, "refused"))
			}
		},
		func() {
			if failing {
				c.FailToJoin(machine())
			}
		},
		func() {
			classes := []Class{{}, {}, {Missing: true}, {Problem: &plan.Problem{Reason: "Unusable", Message: "no VM can be made from it"}}}
			c.Classes = map[string]Class{"small": rapid.SampledFrom(classes).Draw(t, "class")}
		},
		func() { c.ScaleDownByAutoscaler(machine()) },
		func() {
			values := []string{machinev1alpha1.PreserveNow, machinev1alpha1.PreserveWhenFailed, machinev1alpha1.PreserveFalse}
			c.Preserve(machine(), rapid.SampledFrom(values).Draw(t, "preserve"))
		},
		func() {
			c.Pass(rapid.SampledFrom([]time.Duration{time.Minute, 10 * time.Minute, time.Hour, 30 * time.Hour}).Draw(t, "passes"), failing)
		},
		c.Keep,
		func() { c.Mark(machine()) },
	}
	often := []int{13, 14, 15, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 5, 5, 6, 7, 8, 9, 10, 10, 10, 11, 12, 12, 16, 17, 18, 19, 19, 20}
	actions[rapid.SampledFrom(often).Draw(t, "action")]()
}

// settle lets everything continue without disturbance, until nothing is left to do.
func settle(t *rapid.T, c *Cluster) {
	c.Crash = func() bool { return false }
	c.Classes = nil
	if c.deployment().Spec.Paused {
		c.Update(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Paused = false })
	}
	stays := false
	for range 2000 {
		c.CatchUp()
		c.ReconcileDeployment()
		check(t, c)
		for _, s := range c.Sets() {
			c.CatchUp()
			c.ReconcileSet(s.Name)
			c.CatchUp()
			c.ReconcileGroup(s.Name)
			check(t, c)
		}
		for _, m := range c.Machines() {
			if isAtRest(m) {
				continue
			}
			c.Boot(m.Name)
			c.Agent(m.Name, false)
			c.Finish(m.Name)
		}
		helpAlong(c)
		release(c)
		c.CollectGarbage()
		c.Now = c.Now.Add(10 * time.Second)
		// A complete pool may change once more if a requested time comes only now.
		if stays = arrived(c) && !stays; !stays && arrived(c) {
			rest(t, c)
			c.Settled(c)
			check(t, c)
			return
		}
	}
	t.Fatalf("does not arrive:\n%s", c)
}

// isAtRest reports whether a Machine no longer changes by itself.
func isAtRest(m *machinev1alpha1.Machine) bool {
	return m.DeletionTimestamp == nil && m.Status.Phase == machinev1alpha1.MachineRunning && m.Status.LastOperation == nil &&
		m.Spec.InPlaceUpdate == nil && m.Status.Update == nil
}

// release the preserved Machines, as a user does after the analysis.
func release(c *Cluster) {
	for _, m := range c.Machines() {
		if isPreserved(m, c.Now) {
			c.Preserve(m.Name, machinev1alpha1.PreserveFalse)
		}
	}
	c.Keep()
}

// helpAlong deletes an old Machine where the strategy leaves that to the user.
func helpAlong(c *Cluster) {
	if c.deployment().Spec.Strategy.Type != machinev1alpha1.OnDelete {
		return
	}
	sets := c.deployment().Status.MachineSets
	for _, m := range c.Machines() {
		if m.DeletionTimestamp == nil && metav1.GetControllerOf(m).Name != sets[len(sets)-1].Name {
			c.DeleteByUser(m.Name)
			return
		}
	}
}

// arrived reports whether the cluster fully matches the spec, and nothing else is left.
func arrived(c *Cluster) bool {
	d := c.deployment()
	s := d.Status
	if s.ObservedGeneration != d.Generation || s.Replicas != d.Spec.Replicas || s.AvailableReplicas != d.Spec.Replicas ||
		s.UpdatedReplicas != d.Spec.Replicas || s.TerminatingReplicas != 0 || len(c.Machines()) != int(d.Spec.Replicas) {
		return false
	}
	after := d.Spec.Rollout.After
	if after != nil && c.Now.Before(after.Time) {
		return false
	}
	for _, m := range c.Machines() {
		if m.Status.ReplaceRequested {
			return false
		}
		if c.IsOld(m) || m.Status.Phase != machinev1alpha1.MachineRunning || m.Spec.ProviderID == nil ||
			m.Spec.Metadata.Labels["in-place"] != d.Spec.Template.Spec.Metadata.Labels["in-place"] {
			return false
		}
	}
	ready := false
	for _, c := range d.Status.Conditions {
		ready = ready || c.Type == "Ready" && c.Status == "True"
	}
	return ready
}

// rest asserts that nothing is written once there is nothing to do, and that no object is left
// over.
func rest(t *rapid.T, c *Cluster) {
	// The budget of replacements may still move to the remaining set.
	for range 5 {
		c.ReconcileAll()
		c.CollectGarbage()
		c.CatchUp()
		check(t, c)
	}
	before := c.Writes()
	c.CatchUp()
	c.ReconcileDeployment()
	for _, s := range c.Sets() {
		c.ReconcileSet(s.Name)
		c.ReconcileGroup(s.Name)
	}
	if n := c.Writes() - before; n > 0 {
		t.Fatalf("%d writes at rest:\n%s", n, c)
	}
	if len(c.Sets()) > 1 {
		t.Fatalf("%d MachineSets are left:\n%s", len(c.Sets()), c)
	}
}

func check(t *rapid.T, c *Cluster) {
	c.age(c)
	c.close(c)
	if len(c.Violations) > 0 {
		for _, e := range c.Events[max(0, len(c.Events)-30):] {
			t.Logf("event %s: %s", e.Reason, e.Message)
		}
		t.Fatalf("%s\n%s", c.Violations[0], c)
	}
}

func (c *Cluster) String() string {
	d := c.Deployment()
	out := fmt.Sprintf("MachineDeployment %s: %d replicas, version %s, status %+v\n", d.Name, d.Spec.Replicas, d.Spec.Template.Spec.Version, d.Status)
	for _, s := range c.Sets() {
		out += fmt.Sprintf("  MachineSet %s: version %s, replicas %d, generation %d, terminating %t, status %+v\n",
			s.Name, s.Spec.Template.Spec.Version, s.Spec.Replicas, s.Generation, s.DeletionTimestamp != nil, s.Status)
	}
	for _, m := range c.Machines() {
		out += fmt.Sprintf("  Machine %s: version %s, phase %s, terminating %t\n", m.Name, m.Spec.Version, m.Status.Phase, m.DeletionTimestamp != nil)
	}
	return out
}
