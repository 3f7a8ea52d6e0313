package simulator

import (
	"testing"
	"time"

	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// A wholePool is a NodePool whose MachineDeployments have their real planners, with MachineSets,
// groups and Machines of their own.
type wholePool struct {
	*PoolCluster
	clusters map[string]*Cluster
	// largest size that the pool had since it was settled.
	largest int32
}

func newWholePool(spec machinev1alpha1.NodePoolSpec) *wholePool {
	return &wholePool{PoolCluster: NewPool(spec, offerOf(zones...)), clusters: map[string]*Cluster{}, largest: ptr.Deref(spec.Size, 0)}
}

// resize the pool.
func (p *wholePool) resize(n int32) {
	p.largest = max(p.largest, n)
	p.Update(func(np *machinev1alpha1.NodePool) { np.Spec.Size = &n })
}

// follow copies the spec of a MachineDeployment to its cluster, and the status back.
func (p *wholePool) follow(name string) {
	e, ok := p.deployments.get(name)
	if !ok {
		return
	}
	c := p.clusters[name]
	if c == nil {
		c = New(*e.object.Spec.DeepCopy())
		p.clusters[name] = c
	}
	c.Now = p.Now
	if e.object.DeletionTimestamp != nil {
		if n := len(c.Machines()); n > 0 {
			p.breaks("MachineDeployment %s is deleted with %d Machines", name, n)
		}
		delete(p.clusters, name)
		p.deployments.remove(name)
		return
	}
	c.Update(func(d *machinev1alpha1.MachineDeployment) { d.Spec = *e.object.Spec.DeepCopy() })
	if s := statusOf(c.Deployment(), e.object.Generation); !equal(e.object.Status, s) {
		e.object.Status = s
		p.deployments.put(e.object, e.refs)
	}
}

// statusOf a MachineDeployment, with the generation of the pool's object in place of its own.
func statusOf(d *machinev1alpha1.MachineDeployment, generation int64) machinev1alpha1.MachineDeploymentStatus {
	s := d.Status
	translate := func(observed *int64) {
		if *observed != 0 {
			*observed += generation - d.Generation
		}
	}
	translate(&s.ObservedGeneration)
	for i := range s.Conditions {
		translate(&s.Conditions[i].ObservedGeneration)
	}
	return s
}

// act lets the planners and the Machines of a MachineDeployment act once.
func (p *wholePool) act(name string) {
	c := p.clusters[name]
	if c == nil {
		return
	}
	full := p.Full[ptr.Deref(c.deployment().Spec.Template.Spec.FailureDomain, "")]
	tickDraining(c, func(string) bool { return !full })
	for _, m := range c.Machines() {
		switch {
		case full && m.Status.Phase.IsOnItsWay() && m.Status.ProviderID != "":
			c.Boot(m.Name)
		case full:
			c.Refuse(m.Name, "CapacityExhausted")
		}
		c.Finish(m.Name)
	}
}

// check the promises of the pool and of its MachineDeployments.
func (p *wholePool) check(t *rapid.T) {
	t.Helper()
	total := 0
	for name, c := range p.clusters {
		total += len(c.Machines())
		if len(c.Violations) > 0 {
			t.Fatalf("%s: %s\n%s", name, c.Violations[0], c)
		}
	}
	if p.Broken != "" {
		t.Fatal(p.Broken)
	}
	// Each MachineDeployment may roll within the bounds of the pool's strategy, and replace one
	// Machine.
	surge, _ := p.moves()
	if most := int(p.largest) + int(surge) + len(p.clusters)*(int(surge)+1); total > most {
		t.Fatalf("there are %d Machines, of at most %d", total, most)
	}
}

// live lets ten seconds pass, in which everything happens once.
func (p *wholePool) live(t *rapid.T) {
	p.See(1000, 1000)
	p.Reconcile()
	p.See(1000, 1000)
	for _, d := range p.Deployments() {
		p.follow(d.Name)
		p.act(d.Name)
		p.follow(d.Name)
	}
	p.Now = p.Now.Add(10 * time.Second)
	p.check(t)
}

func (p *wholePool) settled() bool {
	total, available := 0, 0
	for _, c := range p.clusters {
		total += len(c.Machines())
		available += len(running(c))
	}
	size := int(*p.Pool().Spec.Size)
	return p.IsReady() && total == size && available == size
}

// settle lets everything continue until the pool has its Machines.
func (p *wholePool) settle(t *rapid.T) {
	clear(p.Full)
	for range 1500 {
		p.live(t)
		if p.settled() {
			p.largest = *p.Pool().Spec.Size
			return
		}
	}
	t.Fatalf("the pool does not settle: %+v", p.Pool().Status)
}

// TestPoolsOfRealDeployments drives a pool together with the planners of its MachineDeployments
// through changes of its size, its version and its failure domains. Failure domains become
// exhausted, and Machines fail.
func TestPoolsOfRealDeployments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := poolSpec(t)
		spec.Version = "v1.34.8"
		p := newWholePool(spec)
		p.settle(t)
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			p.change(t)
			for range rapid.IntRange(0, 30).Draw(t, "steps") {
				p.live(t)
			}
		}
		p.settle(t)
		// An exhausted failure domain is tried again later.
		for range 3 {
			p.Now = p.Now.Add(exhaustedFor)
			p.settle(t)
		}
		spread := map[string]int32{}
		for _, c := range p.clusters {
			spread[ptr.Deref(c.deployment().Spec.Template.Spec.FailureDomain, "")] += int32(len(running(c)))
		}
		domains := p.Pool().Spec.FailureDomains
		if len(domains) == 0 {
			domains = zones
		}
		for _, a := range domains {
			for _, b := range domains {
				if spread[string(a)]-spread[string(b)] > 1 {
					t.Fatalf("the Machines are at %v of %v", spread, domains)
				}
			}
		}
	})
}

func (p *wholePool) change(t *rapid.T) {
	switch rapid.IntRange(0, 4).Draw(t, "change") {
	case 0:
		p.resize(rapid.Int32Range(0, 9).Draw(t, "size"))
	case 1:
		p.Update(func(np *machinev1alpha1.NodePool) {
			np.Spec.FailureDomains = rapid.SliceOfNDistinct(rapid.SampledFrom(zones), 0, 3, rapid.ID[machinev1alpha1.FailureDomain]).Draw(t, "failure domains")
		})
	case 2:
		zone := rapid.SampledFrom(zones).Draw(t, "zone")
		p.Full[string(zone)] = !p.Full[string(zone)]
	case 3:
		p.Update(func(np *machinev1alpha1.NodePool) {
			np.Spec.Version = rapid.SampledFrom([]string{"v1.34.8", "v1.35.4"}).Draw(t, "version")
		})
	case 4:
		for _, d := range p.Deployments() {
			if c := p.clusters[d.Name]; c != nil && len(c.Machines()) > 0 {
				c.Fail(c.Machines()[0].Name)
			}
		}
	}
}
