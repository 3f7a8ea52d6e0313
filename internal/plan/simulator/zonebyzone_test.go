package simulator

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// versionsAt returns the number of Machines of each version in a failure domain, and whether its rollout is paused. Machines
// that are being deleted, and those without a VM, are none.
func (p *wholePool) versionsAt(zone string) (versions map[string]int, paused bool) {
	versions = map[string]int{}
	for _, c := range p.clusters {
		d := c.deployment()
		if ptr.Deref(d.Spec.Template.Spec.FailureDomain, "") != zone {
			continue
		}
		paused = d.Spec.Paused
		for _, m := range c.Machines() {
			if m.DeletionTimestamp == nil && m.Status.ProviderID != "" {
				versions[m.Spec.Version]++
			}
		}
	}
	return versions, paused
}

// TestFailureDomainsRollOneByOne changes the version, the size and the failure domains of a pool, while failure domains have no
// capacity, views lag and reconciles abort. At no time two failure domains are in the middle of a rollout that is not paused.
// In the end all have the version of the spec.
func TestFailureDomainsRollOneByOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := poolSpec(t)
		spec.Size = ptr.To(rapid.Int32Range(3, 7).Draw(t, "size"))
		spec.Version = "v1.34.8"
		spec.Strategy.FailureDomains = machinev1alpha1.FailureDomainsOneByOne
		p := newWholePool(spec)
		p.settle(t)
		check := func() {
			var rolling []string
			for _, zone := range zones {
				if versions, paused := p.versionsAt(string(zone)); len(versions) > 1 && !paused {
					rolling = append(rolling, fmt.Sprintf("%s: %v", zone, versions))
				}
			}
			if len(rolling) > 1 {
				t.Fatalf("%d failure domains roll at the same time: %v\n%+v", len(rolling), rolling, p.Pool().Status.FailureDomains)
			}
		}
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			p.change(t)
			if rapid.Bool().Draw(t, "crash") {
				p.Crash = func() bool { return rapid.IntRange(0, 3).Draw(t, "crash") == 3 }
			}
			for range rapid.IntRange(0, 30).Draw(t, "steps") {
				p.See(rapid.IntRange(0, 3).Draw(t, "writes"), rapid.IntRange(0, 5).Draw(t, "writes"))
				p.Reconcile()
				p.live(t)
				check()
			}
			p.Crash = func() bool { return false }
		}
		clear(p.Full)
		for range 1500 {
			if p.live(t); p.settled() {
				break
			}
			check()
		}
		if !p.settled() {
			t.Fatalf("the pool does not settle: %+v", p.Pool().Status)
		}
		for _, zone := range zones {
			if versions, _ := p.versionsAt(string(zone)); len(versions) > 1 || len(versions) == 1 && versions[p.Pool().Spec.Version] == 0 {
				t.Fatalf("zone %s has %v", zone, versions)
			}
		}
	})
}

// TestZoneByZoneWithOneZoneOutOfCapacity rolls two Machines in each of three zones, in the order c, b, a, which is that of the
// spec. Zone b has no room for an hour.
func TestZoneByZoneWithOneZoneOutOfCapacity(t *testing.T) {
	p := newWholePool(machinev1alpha1.NodePoolSpec{
		Class: "small", Size: ptr.To(int32(6)), Version: "v1.34.8", FailureDomains: []machinev1alpha1.FailureDomain{"c", "b", "a"},
		Strategy: machinev1alpha1.PoolStrategy{FailureDomains: machinev1alpha1.FailureDomainsOneByOne},
	})
	var story []string
	last := map[string]string{}
	note := func(of, text string) {
		if last[of] != text {
			last[of] = text
			story = append(story, of+": "+text)
		}
	}
	live := func(n int, done func() bool) {
		t.Helper()
		for range n {
			rapidless(t, p)
			for _, zone := range zones {
				versions, paused := p.versionsAt(string(zone))
				text := slices.Sorted(maps.Keys(versions))
				if paused {
					text = append(text, "(paused)")
				}
				note("zone "+string(zone), strings.Join(text, " "))
			}
			if c := meta.FindStatusCondition(p.Pool().Status.Conditions, machinev1alpha1.ConditionReconciling); c != nil {
				// The numbers of Machines before the first semicolons are not part of the story.
				waits := ""
				if i := strings.Index(c.Message, "failure domain"); i >= 0 {
					waits = ": " + c.Message[i:]
				}
				note("pool", c.Reason+waits)
			}
			if done() {
				return
			}
		}
		t.Fatalf("does not arrive:\n%s\n%+v", strings.Join(story, "\n"), p.Pool().Status)
	}
	live(1500, p.settled)
	story = nil
	p.Full["b"] = true
	p.Update(func(np *machinev1alpha1.NodePool) { np.Spec.Version = "v1.35.4" })
	live(360, func() bool {
		versions, _ := p.versionsAt("a")
		return len(versions) == 1 && versions["v1.35.4"] == 2
	})
	live(60, func() bool {
		return p.Pool().Status.FailureDomains[1].WaitsFor == "" && !p.Pool().Status.FailureDomains[1].Suspended
	})
	clear(p.Full)
	live(1500, p.settled)
	want := `
pool: RollingOut: failure domain "b" waits for "c", failure domain "a" waits for "c"
zone c: v1.34.8 v1.35.4
zone c: v1.35.4
pool: RollingOut: failure domain "a" waits for "b"
pool: RollingOut: failure domain "b", which is exhausted (CapacityExhausted), waits for "a"
zone b: v1.34.8 (paused)
zone a: v1.34.8 v1.35.4
zone a: v1.35.4
pool: RollingOut
zone b: v1.34.8 v1.35.4
zone b: v1.35.4
pool: Scaling
pool: RollingOut
pool: Settled`
	if got := strings.Join(story, "\n"); got != strings.TrimSpace(want) {
		t.Errorf("got\n%s", got)
	}
}

// rapidless lets ten seconds pass outside of a property.
func rapidless(t *testing.T, p *wholePool) {
	t.Helper()
	p.See(1000, 1000)
	p.Reconcile()
	p.See(1000, 1000)
	for _, d := range p.Deployments() {
		p.follow(d.Name)
		p.act(d.Name)
		p.follow(d.Name)
	}
	p.Now = p.Now.Add(10 * time.Second)
	for name, c := range p.clusters {
		if len(c.Violations) > 0 {
			t.Fatalf("%s: %s", name, c.Violations[0])
		}
	}
}
