package simulator

import (
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

var zones = []machinev1alpha1.FailureDomain{"a", "b", "c"}

func offerOf(domains ...machinev1alpha1.FailureDomain) fn.Pool {
	return fn.Pool{
		Versions: []string{"v1.35.4", "v1.34.8"},
		Classes:  []fn.OfferedClass{{Name: "small", ClassRef: machinev1alpha1.ClassReference{Name: "small"}, FailureDomains: domains}},
	}
}

func poolSpec(t *rapid.T) machinev1alpha1.NodePoolSpec {
	s := machinev1alpha1.NodePoolSpec{Class: "small"}
	resizePool(t, &s)
	number := func(n int) *intstr.IntOrString { return ptr.To(intstr.FromInt(n)) }
	surge := rapid.IntRange(0, 2).Draw(t, "maxSurge")
	s.Strategy.RollingUpdate.MaxSurge = number(surge)
	s.Strategy.RollingUpdate.MaxUnavailable = number(rapid.IntRange(max(0, 1-surge), 2).Draw(t, "maxUnavailable"))
	return s
}

func resizePool(t *rapid.T, s *machinev1alpha1.NodePoolSpec) {
	s.Size, s.Autoscaling = ptr.To(rapid.Int32Range(0, 9).Draw(t, "size")), nil
}

func boundPool(t *rapid.T, s *machinev1alpha1.NodePoolSpec) {
	most := rapid.Int32Range(1, 12).Draw(t, "max")
	s.Size, s.Autoscaling = nil, &machinev1alpha1.PoolAutoscaling{Min: rapid.Int32Range(0, most).Draw(t, "min"), Max: most}
}

// TestPools drives a pool through changes of its size and its failure domains. Failure domains
// become exhausted and have room again, while views lag and reconciles abort.
func TestPools(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := NewPool(poolSpec(t), offerOf(zones...))
		crashing := rapid.Bool().Draw(t, "reconciles break off")
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			switch rapid.IntRange(0, 2).Draw(t, "change") {
			case 0:
				c.Update(func(p *machinev1alpha1.NodePool) { resizePool(t, &p.Spec) })
			case 1:
				c.Update(func(p *machinev1alpha1.NodePool) {
					p.Spec.FailureDomains = rapid.SliceOfNDistinct(rapid.SampledFrom(zones), 0, 3, rapid.ID[machinev1alpha1.FailureDomain]).Draw(t, "failure domains")
				})
			case 2:
				zone := rapid.SampledFrom(zones).Draw(t, "zone")
				c.Full[string(zone)] = !c.Full[string(zone)]
			}
			livePool(t, c, crashing, rapid.IntRange(0, 150).Draw(t, "steps"))
			if rapid.Bool().Draw(t, "settle") {
				settlePool(t, c)
			}
		}
		settlePool(t, c)
		clear(c.Full)
		// An exhausted failure domain is tried again later.
		for range 3 {
			c.Now = c.Now.Add(exhaustedFor)
			for _, d := range c.Deployments() {
				c.Act(d.Name)
			}
			c.Settle()
		}
		settlePool(t, c)
		checkSpread(t, c)
	})
}

// livePool lets actions happen in any order.
func livePool(t *rapid.T, c *PoolCluster, crashing bool, steps int) {
	if crashing {
		c.Crash = func() bool { return rapid.IntRange(0, 9).Draw(t, "crash") == 9 }
	}
	c.Order = func(n int) []int { return rapid.Permutation(ascending(n)).Draw(t, "order") }
	for range steps {
		var names []string
		for _, d := range c.Deployments() {
			names = append(names, d.Name)
		}
		what := rapid.IntRange(0, 7).Draw(t, "what")
		if len(names) == 0 {
			what %= 3
		}
		one := func() string { return rapid.SampledFrom(names).Draw(t, "deployment") }
		switch what {
		case 0:
			c.See(rapid.IntRange(0, 3).Draw(t, "writes"), rapid.IntRange(0, 5).Draw(t, "writes"))
		case 1:
			c.Reconcile()
		case 2:
			c.Now = c.Now.Add(time.Duration(rapid.IntRange(1, 20).Draw(t, "seconds")) * time.Second)
		case 3, 4:
			c.Act(one())
		case 5:
			c.Progress(one(), rapid.IntRange(0, 9).Draw(t, "machine"))
		case 6:
			c.Read(one())
		case 7:
			c.Scale(one(), rapid.Int32Range(0, 100).Draw(t, "percent"))
		}
		if c.Broken != "" {
			t.Fatal(c.Broken)
		}
	}
}

// settlePool fails if the pool does not get its desired number of available Machines, unless no
// failure domain has room.
func settlePool(t *rapid.T, c *PoolCluster) {
	c.Settle()
	if c.Broken != "" {
		t.Fatal(c.Broken)
	}
	p := c.Pool()
	domains := p.Spec.FailureDomains
	if len(domains) == 0 {
		domains = c.Offer.Classes[0].FailureDomains
	}
	if !slices.ContainsFunc(domains, func(d machinev1alpha1.FailureDomain) bool { return !c.Full[string(d)] }) {
		return
	}
	if !c.IsReady() {
		t.Fatalf("the pool is not ready: %+v", p.Status)
	}
	if n := c.total(poolAvailable); p.Spec.Size != nil && n != *p.Spec.Size {
		t.Fatalf("%d Machines are available, want %d", n, *p.Spec.Size)
	}
	if n := c.total(poolWaiting, poolStarting, poolTerminating); n != 0 {
		t.Fatalf("%d Machines are on their way", n)
	}
}

// checkSpread fails if failure domains with room differ by more than one.
func checkSpread(t *rapid.T, c *PoolCluster) {
	spread := c.Spread()
	domains := c.Pool().Spec.FailureDomains
	if len(domains) == 0 {
		domains = zones
	}
	lo, hi := int32(1<<30), int32(0)
	for _, d := range domains {
		lo, hi = min(lo, spread[string(d)]), max(hi, spread[string(d)])
		delete(spread, string(d))
	}
	if hi-lo > 1 || len(spread) > 0 {
		t.Fatalf("the Machines are at %v of %v", c.Spread(), domains)
	}
}

// TestPoolsWithAutoscaling lets an autoscaler scale the groups of a pool by bounds that it read up
// to 20 seconds ago. It must never be able to scale above the maximum of the pool.
func TestPoolsWithAutoscaling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := poolSpec(t)
		boundPool(t, &s)
		c := NewPool(s, offerOf(zones...))
		crashing := rapid.Bool().Draw(t, "reconciles break off")
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			switch rapid.IntRange(0, 2).Draw(t, "change") {
			case 0:
				c.Update(func(p *machinev1alpha1.NodePool) { boundPool(t, &p.Spec) })
			case 1:
				c.Update(func(p *machinev1alpha1.NodePool) {
					p.Spec.FailureDomains = rapid.SliceOfNDistinct(rapid.SampledFrom(zones), 1, 3, rapid.ID[machinev1alpha1.FailureDomain]).Draw(t, "failure domains")
				})
			case 2:
				zone := rapid.SampledFrom(zones).Draw(t, "zone")
				c.Full[string(zone)] = !c.Full[string(zone)]
			}
			livePool(t, c, crashing, rapid.IntRange(0, 150).Draw(t, "steps"))
		}
		clear(c.Full)
		for range 3 {
			c.Now = c.Now.Add(exhaustedFor)
			for _, d := range c.Deployments() {
				c.Act(d.Name)
				c.Read(d.Name)
				c.Scale(d.Name, 0)
			}
			c.Settle()
		}
		if !c.IsReady() {
			t.Fatalf("the pool is not ready: %+v", c.Pool().Status)
		}
		lo, hi := int32(0), int32(0)
		for _, d := range c.Deployments() {
			c.Read(d.Name)
			lo, hi = lo+c.read[d.Name].lo, hi+c.read[d.Name].hi
		}
		if is := (machinev1alpha1.PoolAutoscaling{Min: lo, Max: hi}); is != *c.Pool().Spec.Autoscaling {
			t.Fatalf("the groups together have %+v, want %+v", is, *c.Pool().Spec.Autoscaling)
		}
	})
}

// TestPoolsThatGetAndLoseAnAutoscaler switches between a size and an autoscaler at any time. The
// bounds are those of all specs since the pool was settled.
func TestPoolsThatGetAndLoseAnAutoscaler(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := NewPool(poolSpec(t), offerOf(zones...))
		crashing := rapid.Bool().Draw(t, "reconciles break off")
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			switch rapid.IntRange(0, 3).Draw(t, "change") {
			case 0:
				c.Update(func(p *machinev1alpha1.NodePool) { resizePool(t, &p.Spec) })
			case 1, 2:
				c.Update(func(p *machinev1alpha1.NodePool) { boundPool(t, &p.Spec) })
			case 3:
				zone := rapid.SampledFrom(zones).Draw(t, "zone")
				c.Full[string(zone)] = !c.Full[string(zone)]
			}
			livePool(t, c, crashing, rapid.IntRange(0, 150).Draw(t, "steps"))
		}
		clear(c.Full)
		c.Update(func(p *machinev1alpha1.NodePool) { resizePool(t, &p.Spec) })
		for range 3 {
			c.Now = c.Now.Add(exhaustedFor)
			for _, d := range c.Deployments() {
				c.Act(d.Name)
			}
			c.Settle()
		}
		settlePool(t, c)
		checkSpread(t, c)
	})
}

// TestAnExhaustedZoneOfAPool spreads four Machines over three zones, one of which has no room.
func TestAnExhaustedZoneOfAPool(t *testing.T) {
	c := NewPool(machinev1alpha1.NodePoolSpec{Class: "small", Size: ptr.To(int32(4))}, offerOf(zones...))
	want := func(what string, spread map[string]int32) {
		t.Helper()
		c.Settle()
		if c.Broken != "" {
			t.Fatal(c.Broken)
		}
		if is := c.Spread(); !maps.Equal(is, spread) || !c.IsReady() {
			t.Errorf("%s: %v, want %v, ready %v", what, is, spread, c.IsReady())
		}
	}
	want("all zones have room", map[string]int32{"a": 2, "b": 1, "c": 1})
	c.Full["a"] = true
	c.Update(func(p *machinev1alpha1.NodePool) { p.Spec.Size = ptr.To(int32(8)) })
	want("what zone a has stays, and the others get the rest", map[string]int32{"a": 2, "b": 3, "c": 3})
	c.Full["a"] = false
	c.Now = c.Now.Add(exhaustedFor)
	for _, d := range c.Deployments() {
		c.Act(d.Name)
	}
	want("zone a has room again", map[string]int32{"a": 2, "b": 3, "c": 3})
	c.Update(func(p *machinev1alpha1.NodePool) { p.Spec.Size = ptr.To(int32(9)) })
	want("it gets its part of a scale-up", map[string]int32{"a": 3, "b": 3, "c": 3})
	c.Update(func(p *machinev1alpha1.NodePool) { p.Spec.FailureDomains = zones[1:] })
	want("zone a is left", map[string]int32{"b": 5, "c": 4})
}
