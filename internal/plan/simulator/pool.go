package simulator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	nodepool "github.com/drover-dev/drover/internal/plan/pool"
)

// PoolName is the name of the only NodePool.
const PoolName = "web"

// exhaustedFor is the time for which a MachineDeployment reports a failure domain as exhausted
// after the last Machine stopped waiting for a VM.
const exhaustedFor = 10 * time.Minute

// States of a Machine of a pool.
type poolMachineState string

const (
	poolWaiting     poolMachineState = "Waiting" // for room in its failure domain
	poolStarting    poolMachineState = "Starting"
	poolAvailable   poolMachineState = "Available"
	poolTerminating poolMachineState = "Terminating"
)

// A PoolCluster is a cluster with one NodePool. Its MachineDeployments behave like their planner,
// each at its own time: they scale, delete unavailable Machines first, and report afterwards.
type PoolCluster struct {
	Now   time.Time
	Offer fn.Pool
	// Full failure domains have no room for a VM.
	Full map[string]bool
	// Crash is called before each write of a reconcile, and reports whether to abort the reconcile.
	Crash func() bool
	// Order in which n MachineDeployments are written.
	Order  func(n int) []int
	Events []plan.Event
	// Broken describes the first violated promise.
	Broken string

	pools       *store[*machinev1alpha1.NodePool]
	deployments *store[*machinev1alpha1.MachineDeployment]
	poolView    *cache[*machinev1alpha1.NodePool]
	childView   *cache[*machinev1alpha1.MachineDeployment]
	composer    composer[*machinev1alpha1.NodePool, *machinev1alpha1.MachineDeployment]

	machines map[string][]poolMachineState
	// scaled names the MachineDeployments whose replicas another field manager owns.
	scaled map[string]bool
	// most and least are the bounds of all specs since the pool was last settled.
	most, least int32
	// ahead is the excess that the numbers of the MachineDeployments may add up to: a pool with a
	// size creates Machines before it deletes Machines elsewhere.
	ahead int32
	// excess is the number of Machines that the autoscaler may have added above the bounds since
	// the pool was settled: it does not count terminating Machines.
	excess int32
	// seen is the smallest number of available Machines in the view of a decision to lower a
	// number. Machines that become available later may be deleted.
	seen int32
	// read are the bounds of each group that the autoscaler read, and when.
	read      map[string]poolBounds
	callAgain time.Duration
	uids      int
}

type poolBounds struct {
	lo, hi int32
	at     time.Time
}

// NewPool returns a cluster with a NodePool that was not reconciled yet.
func NewPool(spec machinev1alpha1.NodePoolSpec, offer fn.Pool) *PoolCluster {
	c := &PoolCluster{
		Now:         time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		Offer:       offer,
		Full:        map[string]bool{},
		Crash:       func() bool { return false },
		Order:       ascending,
		pools:       newStore[*machinev1alpha1.NodePool](),
		deployments: newStore[*machinev1alpha1.MachineDeployment](),
		machines:    map[string][]poolMachineState{},
		scaled:      map[string]bool{},
		read:        map[string]poolBounds{},
	}
	c.poolView, c.childView = newCache(c.pools), newCache(c.deployments)
	c.composer = composer[*machinev1alpha1.NodePool, *machinev1alpha1.MachineDeployment]{
		composites: c.pools, children: c.deployments, compositeView: c.poolView, childView: c.childView,
		plan: c.plan, apply: c.apply,
		adopts: func(*machinev1alpha1.NodePool, *machinev1alpha1.MachineDeployment) bool { return true },
		created: func(d *machinev1alpha1.MachineDeployment) {
			d.UID = c.uid()
			setDefaults(d)
		},
		deleted: func(d *machinev1alpha1.MachineDeployment) {
			if n := len(c.machines[d.Name]); n > 0 {
				c.breaks("MachineDeployment %s is deleted with %d Machines", d.Name, n)
			}
		},
	}
	p := &machinev1alpha1.NodePool{Spec: spec}
	p.Name, p.Namespace, p.UID, p.Generation = PoolName, "default", c.uid(), 1
	c.pools.put(p, nil)
	c.forget()
	return c
}

func (c *PoolCluster) uid() types.UID {
	c.uids++
	return types.UID(fmt.Sprintf("uid-%d", c.uids))
}

func (c *PoolCluster) breaks(format string, args ...any) {
	c.Broken = cmp.Or(c.Broken, fmt.Sprintf(format, args...))
}

func (c *PoolCluster) plan(p *machinev1alpha1.NodePool, children []child[*machinev1alpha1.MachineDeployment]) ([]*machinev1alpha1.MachineDeployment, func(*machinev1alpha1.NodePool)) {
	o := nodepool.Observed{Pool: p, Namespace: p.Namespace, Offer: c.Offer}
	for _, ch := range children {
		o.Deployments = append(o.Deployments, nodepool.Deployment{MachineDeployment: ch.object, Observed: ch.observed, Terminating: ch.terminating, ScaledByOthers: c.scaled[ch.object.Name]})
	}
	d := nodepool.Plan(c.Now, o)
	c.callAgain = d.CallAgain
	var desired []*machinev1alpha1.MachineDeployment
	for _, md := range d.Deployments {
		out := md.MachineDeployment.DeepCopy()
		if md.OmitReplicas {
			out.Spec.Replicas = omitted
		}
		desired = append(desired, out)
	}
	return desired, func(p *machinev1alpha1.NodePool) {
		c.Events = append(c.Events, d.Events...)
		for _, is := range d.Status.FailureDomains {
			if slices.ContainsFunc(p.Status.FailureDomains, func(was machinev1alpha1.PoolDomain) bool {
				return was.MachineDeployment == is.MachineDeployment && was.DesiredReplicas > is.DesiredReplicas
			}) {
				c.seen = min(c.seen, d.Status.AvailableReplicas)
			}
		}
		conditions := setConditions(p.Generation, append(d.Conditions, ready(d.Ready)))
		p.Status = d.Status
		p.Status.Conditions = conditions
	}
}

// setDefaults of the schema that the API server writes into a template.
func setDefaults(d *machinev1alpha1.MachineDeployment) {
	t := &d.Spec.Template.Spec
	t.ClassRef.Kind = cmp.Or(t.ClassRef.Kind, machinev1alpha1.MachineClassGroupVersionKind.Kind)
	t.ClusterRef.Kind, t.ClusterRef.Name = cmp.Or(t.ClusterRef.Kind, "ClusterProviderConfig"), cmp.Or(t.ClusterRef.Name, "default")
}

// omitted replicas do not change.
const omitted = -1

func (c *PoolCluster) apply(existing, desired *machinev1alpha1.MachineDeployment) bool {
	applyMeta(existing, desired)
	// An annotation that is no longer applied is removed.
	for _, key := range []string{machinev1alpha1.AnnotationNodeGroupMinSize, machinev1alpha1.AnnotationNodeGroupMaxSize} {
		if _, ok := desired.Annotations[key]; !ok {
			delete(existing.Annotations, key)
		}
	}
	replicas := desired.Spec.Replicas
	if replicas == omitted {
		replicas = existing.Spec.Replicas
	} else {
		delete(c.scaled, existing.Name)
	}
	was := existing.Spec.DeepCopy()
	desired.Spec.DeepCopyInto(&existing.Spec)
	setDefaults(existing)
	existing.Spec.Replicas = replicas
	return !equal(*was, existing.Spec)
}

// Pool returns the current NodePool.
func (c *PoolCluster) Pool() *machinev1alpha1.NodePool {
	e, _ := c.pools.get(PoolName)
	return e.object
}

// Deployments returns the current MachineDeployments.
func (c *PoolCluster) Deployments() []*machinev1alpha1.MachineDeployment { return c.deployments.list() }

// Update the NodePool as a user does.
func (c *PoolCluster) Update(change func(*machinev1alpha1.NodePool)) {
	e, _ := c.pools.get(PoolName)
	before := e.object.DeepCopy()
	change(e.object)
	if equal(before.Spec, e.object.Spec) {
		return
	}
	e.object.Generation++
	c.pools.put(e.object, e.refs)
	c.note()
}

// note the bounds of a spec.
func (c *PoolCluster) note() {
	s := c.Pool().Spec
	lo, hi := ptr.Deref(s.Size, 0), ptr.Deref(s.Size, 0)
	if s.Autoscaling != nil {
		lo, hi = 0, s.Autoscaling.Max
	} else {
		surge, _ := c.moves()
		c.ahead = max(c.ahead, surge)
	}
	c.most, c.least = max(c.most, hi), min(c.least, lo)
}

// Reconcile the pool by its views.
func (c *PoolCluster) Reconcile() {
	_ = c.composer.reconcile(PoolName, c.Crash, c.Order)
}

// See at most n writes of pools and of MachineDeployments.
func (c *PoolCluster) See(pools, deployments int) {
	c.poolView.advance(pools)
	c.childView.advance(deployments)
}

// count the Machines of a MachineDeployment in some states.
func (c *PoolCluster) count(name string, states ...poolMachineState) (n int32) {
	for _, s := range c.machines[name] {
		if slices.Contains(states, s) {
			n++
		}
	}
	return n
}

func (c *PoolCluster) total(states ...poolMachineState) (n int32) {
	for name := range c.machines {
		n += c.count(name, states...)
	}
	return n
}

// Act as a MachineDeployment does: by one Machine at most.
func (c *PoolCluster) Act(name string) {
	e, ok := c.deployments.get(name)
	if !ok {
		return
	}
	d := e.object
	if d.DeletionTimestamp != nil {
		if len(c.machines[name]) == 0 {
			c.deployments.remove(name)
		}
		return
	}
	is := c.count(name, poolWaiting, poolStarting, poolAvailable)
	switch {
	case is < d.Spec.Replicas:
		state := poolStarting
		if c.Full[domain(d)] {
			state = poolWaiting
		}
		c.machines[name] = append(c.machines[name], state)
		c.checkMost()
	case is > d.Spec.Replicas:
		for _, s := range []poolMachineState{poolWaiting, poolStarting, poolAvailable} {
			if i := slices.Index(c.machines[name], s); i >= 0 {
				c.machines[name][i] = poolTerminating
				c.checkLeast(s)
				break
			}
		}
	}
	c.report(e)
}

// report the status of a MachineDeployment, as its planner does.
func (c *PoolCluster) report(e entry[*machinev1alpha1.MachineDeployment]) {
	d := e.object
	s := machinev1alpha1.MachineDeploymentStatus{
		ObservedGeneration: d.Generation, DesiredReplicas: ptr.To(d.Spec.Replicas),
		Replicas:            c.count(d.Name, poolWaiting, poolStarting, poolAvailable),
		AvailableReplicas:   c.count(d.Name, poolAvailable),
		ReadyReplicas:       c.count(d.Name, poolAvailable),
		TerminatingReplicas: c.count(d.Name, poolTerminating),
		UnhealthyReplicas:   c.count(d.Name, poolWaiting),
	}
	s.UpdatedReplicas = s.Replicas
	if s.UnhealthyReplicas > 0 {
		s.Exhausted = []machinev1alpha1.Exhaustion{{FailureDomain: domain(d), Code: string(fn.ErrorCapacityExhausted), Since: metav1.NewTime(c.Now)}}
	} else if was := d.Status.Exhausted; len(was) > 0 {
		x := was[0]
		if x.Until == nil {
			x.Until = ptr.To(metav1.NewTime(c.Now.Add(exhaustedFor)))
		}
		if c.Now.Before(x.Until.Time) {
			s.Exhausted = []machinev1alpha1.Exhaustion{x}
		}
	}
	isReady := s.Replicas == d.Spec.Replicas && s.AvailableReplicas == s.Replicas && s.TerminatingReplicas == 0
	s.Conditions = setConditions(d.Generation, []plan.Condition{ready(isReady)})
	if !equal(d.Status, s) {
		d.Status = s
		c.deployments.put(d, e.refs)
	}
}

// Progress advances one Machine of a MachineDeployment: the nth of those that can advance.
func (c *PoolCluster) Progress(name string, n int) {
	e, ok := c.deployments.get(name)
	if !ok {
		return
	}
	can := []int{}
	for i, s := range c.machines[name] {
		if s == poolStarting || s == poolTerminating || s == poolWaiting && !c.Full[domain(e.object)] {
			can = append(can, i)
		}
	}
	if len(can) == 0 {
		return
	}
	i := can[n%len(can)]
	switch c.machines[name][i] {
	case poolWaiting:
		c.machines[name][i] = poolStarting
	case poolStarting:
		c.machines[name][i] = poolAvailable
	default:
		c.machines[name] = slices.Delete(c.machines[name], i, i+1)
	}
}

// Read the bounds of a group, as the autoscaler does.
func (c *PoolCluster) Read(name string) {
	e, ok := c.deployments.get(name)
	if !ok || e.object.DeletionTimestamp != nil {
		delete(c.read, name)
		return
	}
	number := func(key string) int32 {
		n, _ := strconv.Atoi(e.object.Annotations[key])
		return int32(n) //nolint:gosec // The planner wrote it.
	}
	c.read[name] = poolBounds{number(machinev1alpha1.AnnotationNodeGroupMinSize), number(machinev1alpha1.AnnotationNodeGroupMaxSize), c.Now}
}

// autoscalerActs is the time for which the autoscaler may act on the bounds that it read.
const autoscalerActs = 20 * time.Second

// Scale a group to a part of the bounds that the autoscaler read, in percent.
func (c *PoolCluster) Scale(name string, percent int32) {
	b, ok := c.read[name]
	e, exists := c.deployments.get(name)
	if !ok || !exists || b.hi == 0 || e.object.DeletionTimestamp != nil || c.Now.Sub(b.at) > autoscalerActs {
		return
	}
	was := e.object.Spec.Replicas
	e.object.Spec.Replicas = b.lo + (b.hi-b.lo)*percent/100
	e.object.Generation++
	c.scaled[name] = true
	c.deployments.put(e.object, e.refs)
	sum := int32(0)
	for _, d := range c.Deployments() {
		sum += d.Spec.Replicas
	}
	if sum > c.most+c.ahead {
		c.breaks("the autoscaler could scale to %d of %d", sum, c.most+c.ahead)
	}
	c.excuse(was, e.object.Spec.Replicas)
}

// excuse the excess Machines of a change by the autoscaler. Machines that it deletes terminate
// while the pool still has its own larger number, because it has not observed the change. Machines
// that it adds are in addition to the terminating ones.
func (c *PoolCluster) excuse(was, is int32) {
	c.excess += max(0, was-is)
	if is <= was {
		return
	}
	surge, _ := c.moves()
	may := -c.most - surge
	for _, d := range c.Deployments() {
		n := max(d.Spec.Replicas, c.count(d.Name, poolWaiting, poolStarting, poolAvailable))
		for _, s := range c.Pool().Status.FailureDomains {
			if s.MachineDeployment == d.Name {
				n = max(n, s.DesiredReplicas)
			}
		}
		may += n + c.count(d.Name, poolTerminating)
	}
	c.excess = max(c.excess, may)
}

func domain(d *machinev1alpha1.MachineDeployment) string {
	return ptr.Deref(d.Spec.Template.Spec.FailureDomain, "")
}

// moves returns the bounds within which the pool moves Machines.
func (c *PoolCluster) moves() (surge, unavailable int32) {
	number := func(v *intstr.IntOrString, or int) int32 {
		return int32(ptr.Deref(v, intstr.FromInt(or)).IntVal)
	}
	b := c.Pool().Spec.Strategy.RollingUpdate
	return number(b.MaxSurge, 1), number(b.MaxUnavailable, 0)
}

func (c *PoolCluster) checkMost() {
	surge, _ := c.moves()
	if n := c.total(poolWaiting, poolStarting, poolAvailable, poolTerminating); n > c.most+surge+c.excess {
		c.breaks("there are %d Machines of %d and maxSurge %d", n, c.most, surge)
	}
}

func (c *PoolCluster) checkLeast(was poolMachineState) {
	s := c.Pool().Spec
	if s.Autoscaling != nil || was != poolAvailable {
		return
	}
	_, unavailable := c.moves()
	least := min(c.least-unavailable, c.seen)
	if n := c.total(poolAvailable); n < least {
		c.breaks("an available Machine is deleted, and %d are left of %d", n, least)
	}
}

// IsReady reports whether the pool is Ready for its generation.
func (c *PoolCluster) IsReady() bool {
	p := c.Pool()
	return plan.IsReadyFor(p.Generation, p.Status.Conditions) && p.Status.ObservedGeneration == p.Generation
}

// Settle lets everything happen until nothing changes any more.
func (c *PoolCluster) Settle() {
	c.Crash, c.Order = func() bool { return false }, ascending
	for range 2000 {
		c.See(1000, 1000)
		c.Reconcile()
		for _, d := range c.Deployments() {
			c.Act(d.Name)
			c.Progress(d.Name, 0)
			c.Act(d.Name)
		}
		c.Now = c.Now.Add(time.Second)
		if c.IsReady() && c.poolView.lag() == 0 && c.childView.lag() == 0 {
			break
		}
	}
	c.forget()
}

// forget the bounds of earlier specs.
func (c *PoolCluster) forget() {
	c.most, c.least, c.seen, c.ahead, c.excess = 0, 1<<30, 1<<30, 0, 0
	c.note()
}

// Spread returns the number of available Machines of each failure domain.
func (c *PoolCluster) Spread() map[string]int32 {
	out := map[string]int32{}
	for _, d := range c.Deployments() {
		out[domain(d)] += c.count(d.Name, poolAvailable)
	}
	maps.DeleteFunc(out, func(_ string, n int32) bool { return n == 0 })
	return out
}
