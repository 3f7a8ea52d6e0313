package simulator

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/deployment"
	"github.com/drover-dev/drover/internal/plan/freeze"
	"github.com/drover-dev/drover/internal/plan/set"
)

// DeploymentName is the name of the only MachineDeployment.
const DeploymentName = "md"

// equal compares as the API server does. Most objects are identical, and the standard library
// detects that much faster.
func equal(a, b any) bool { return reflect.DeepEqual(a, b) || equality.Semantic.DeepEqual(a, b) }

// A Cluster has one MachineDeployment.
type Cluster struct {
	// Now is the time of its clock.
	Now time.Time
	// Crash is called before each write of a reconcile, and reports whether to abort the reconcile.
	Crash func() bool
	// Order in which n children are written.
	Order func(n int) []int
	// Events of all planners.
	Events []plan.Event
	// Made counts the created Machines.
	Made int
	// Classes that are missing or unusable, by name, with the reason. All other classes exist.
	Classes map[string]Class
	// Target cluster that the Machines join, nil if nothing is known of it.
	Target *freeze.Cluster
	// Gate of a step of the user's own in the pipeline, nil without one.
	Gate *plan.RolloutGate
	// OnEvent is called with each event and its source, if it is set.
	OnEvent func(source string, e plan.Event)

	deployments *store[*machinev1alpha1.MachineDeployment]
	sets        *store[*machinev1alpha1.MachineSet]
	groups      *store[*machinev1alpha1.MachineGroup]
	machines    *store[*machinev1alpha1.Machine]

	// Each reconciler reads through its own caches.
	deploymentView  *cache[*machinev1alpha1.MachineDeployment]
	setsOfRollout   *cache[*machinev1alpha1.MachineSet]
	setsOfReplicas  *cache[*machinev1alpha1.MachineSet]
	groupsOfSets    *cache[*machinev1alpha1.MachineGroup]
	machineView     *cache[*machinev1alpha1.Machine]
	groupView       *cache[*machinev1alpha1.MachineGroup]
	machinesOfGroup *cache[*machinev1alpha1.Machine]

	rollout  composer[*machinev1alpha1.MachineDeployment, *machinev1alpha1.MachineSet]
	replicas composer[*machinev1alpha1.MachineSet, *machinev1alpha1.MachineGroup]

	// BackTo is the revision of a rollback, nil without one.
	BackTo *machinev1alpha1.Revision

	// decided is the decision that the current reconcile recorded.
	decided *decision
	// sawGeneration and sawSets identify the view of the last plan of the deployment.
	sawGeneration int64
	sawSets       int
	// rejects means that the current reconcile recorded the rejection of a template.
	rejects bool
	// orders are the Machines that groups may still create, computed after ordersAsOf writes of
	// groups.
	orders     map[string]bool
	ordersAsOf int
	// callAgain is the delay that the last plan requested.
	callAgain time.Duration

	uids int
	// digests of Machines, by the versions of the Machines: a digest costs more than the rest of a plan.
	digests map[string]string
	// released are Machines that are gone, by their sets.
	released map[string][]machinev1alpha1.ReleasedMachine
	watcher
	analyses
	turns
}

// A Class that no Machine can be created from.
type Class struct {
	// Missing means that the class does not exist. Otherwise it has the Problem.
	Missing bool
	Problem *plan.Problem
}

// New returns a cluster with a MachineDeployment that was not reconciled yet.
func New(spec machinev1alpha1.MachineDeploymentSpec) *Cluster {
	c := &Cluster{
		Now:         time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		Crash:       func() bool { return false },
		Order:       ascending,
		deployments: newStore[*machinev1alpha1.MachineDeployment](),
		sets:        newStore[*machinev1alpha1.MachineSet](),
		groups:      newStore[*machinev1alpha1.MachineGroup](),
		machines:    newStore[*machinev1alpha1.Machine](),
		digests:     map[string]string{},
		released:    map[string][]machinev1alpha1.ReleasedMachine{},
		watcher:     newWatcher(),
	}
	c.deploymentView = newCache(c.deployments)
	c.setsOfRollout = newCache(c.sets)
	c.setsOfReplicas = newCache(c.sets)
	c.groupsOfSets = newCache(c.groups)
	c.machineView = newCache(c.machines)
	c.groupView = newCache(c.groups)
	c.machinesOfGroup = newCache(c.machines)

	c.rollout = composer[*machinev1alpha1.MachineDeployment, *machinev1alpha1.MachineSet]{
		composites: c.deployments, children: c.sets,
		compositeView: c.deploymentView, childView: c.setsOfRollout,
		plan:   c.planRollout,
		adopts: deployment.Adopts,
		apply:  applySet,
		created: func(s *machinev1alpha1.MachineSet) {
			s.UID = c.uid()
			s.CreationTimestamp = metav1.NewTime(c.Now)
		},
		deleted: func(*machinev1alpha1.MachineSet) {},
	}
	c.replicas = composer[*machinev1alpha1.MachineSet, *machinev1alpha1.MachineGroup]{
		composites: c.sets, children: c.groups,
		compositeView: c.setsOfReplicas, childView: c.groupsOfSets,
		plan:    c.planReplicas,
		apply:   applyGroup,
		created: func(g *machinev1alpha1.MachineGroup) { g.UID = c.uid() },
		deleted: func(*machinev1alpha1.MachineGroup) {},
	}

	d := &machinev1alpha1.MachineDeployment{Spec: spec}
	d.Name, d.Namespace, d.UID, d.Generation = DeploymentName, "default", c.uid(), 1
	c.deployments.put(d, nil)
	c.onUpdate(c, d)
	return c
}

func ascending(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func (c *Cluster) uid() types.UID {
	c.uids++
	return types.UID(fmt.Sprintf("uid-%d", c.uids))
}

func (c *Cluster) planRollout(d *machinev1alpha1.MachineDeployment, children []child[*machinev1alpha1.MachineSet]) ([]*machinev1alpha1.MachineSet, func(*machinev1alpha1.MachineDeployment)) {
	generation, seen, rejected := d.Generation, c.setsOfRollout.seen, deployment.Rejected(d) != nil
	observed := freeze.OfDeployment(d)
	observed.Cluster = c.Target
	s := freeze.Plan(c.Now, observed)
	of := deployment.Template(d).Spec.ClassRef
	class := c.Classes[of.Name]
	o := deployment.Observed{Deployment: d, ClassFound: !class.Missing, Safety: s.Safety, Gate: c.Gate, Analysis: c.run.DeepCopy(), HasPolicies: c.HasPolicies, Turn: c.turn.DeepCopy()}
	proven := false
	for _, ch := range children {
		o.Sets = append(o.Sets, deployment.Set{MachineSet: ch.object, Observed: ch.observed, Terminating: ch.terminating})
		proven = proven || ch.object.Spec.Template.Spec.ClassRef.Equal(of) && ch.object.Spec.InPlaceUpdate == nil && ch.object.Status.ReadyReplicas > 0
	}
	if !proven {
		// As in the step, a class with existing Nodes is not checked.
		o.ClassProblem = class.Problem
	}
	p := deployment.Plan(c.Now, o)
	c.callAgain = min(p.CallAgain, s.CallAgain)

	// Composed resources are applied before the status is written.
	c.apply(p.Analysis, c.uid)
	c.applyTurn(p.Turn, c.uid)
	var desired []*machinev1alpha1.MachineSet
	for _, s := range p.Sets {
		desired = append(desired, s.MachineSet)
	}
	return desired, func(d *machinev1alpha1.MachineDeployment) {
		c.emit("deployment", s.Events, p.Events)
		c.rejects = !rejected && p.Status.Rollout != nil && p.Status.Rollout.Rejected != nil
		c.sawGeneration, c.sawSets = generation, seen
		c.onScaled(o.Deployment, children, p.Status.MachineSets)
		c.onReduced(c, p.Status.MachineSets)
		conditions := setConditions(d.Generation, append(p.Conditions, ready(p.Ready), s.Condition))
		d.Status = p.Status
		d.Status.Safety = s.Status
		d.Status.Conditions = conditions
		// As the schema does.
		for i := range d.Status.Revisions {
			r := &d.Status.Revisions[i].ClassRef
			r.Kind = cmp.Or(r.Kind, machinev1alpha1.MachineClassGroupVersionKind.Kind)
		}
	}
}

func (c *Cluster) planReplicas(s *machinev1alpha1.MachineSet, groups []child[*machinev1alpha1.MachineGroup]) ([]*machinev1alpha1.MachineGroup, func(*machinev1alpha1.MachineSet)) {
	observed := freeze.OfSet(s)
	observed.Cluster = c.Target
	safe := freeze.Plan(c.Now, observed)
	o := set.Observed{Set: s, Safety: safe.Safety}
	if next := (&machinev1alpha1.Machine{ObjectMeta: s.ObjectMeta, Spec: s.Spec.Template.Spec}); c.Classes[next.Spec.ClassRef.Name].Missing {
		o.Problem = plan.NoClass(next, "spec.template.spec.classRef.name")
	}
	var seen []child[*machinev1alpha1.Machine]
	for _, m := range c.machineView.list() {
		if metav1.IsControlledBy(m, s) {
			seen = append(seen, child[*machinev1alpha1.Machine]{object: m, terminating: m.DeletionTimestamp != nil})
			o.Machines = append(o.Machines, set.Machine{Machine: m, Terminating: m.DeletionTimestamp != nil})
		} else if metav1.GetControllerOf(m) == nil && m.DeletionTimestamp == nil && s.Spec.Selector.Matches(m.Labels) {
			o.Orphans = append(o.Orphans, set.Machine{Machine: m})
		}
	}
	for _, g := range groups {
		// As Expect does, without the conditions of groups, which are not simulated.
		o.Gone, o.Released, o.Members, o.Templates = g.object.Status.Gone, g.object.Status.Released, g.object.Spec.Machines, g.object.Spec.Templates
		all := make([]*machinev1alpha1.Machine, 0, len(o.Machines)+len(o.Orphans))
		for _, m := range slices.Concat(o.Machines, o.Orphans) {
			all = append(all, m.Machine)
		}
		o.IsBehind = c.digest(s.UID, all) != g.object.Status.Digest
	}
	p := set.Plan(c.Now, o)
	c.callAgain = min(p.CallAgain, safe.CallAgain)

	g, err := set.Group(s, p)
	if err != nil {
		panic(err)
	}
	return []*machinev1alpha1.MachineGroup{g}, func(s *machinev1alpha1.MachineSet) {
		c.emit(s.Name, safe.Events, p.Events)
		c.decided = &decision{set: s.Name, spec: s.Spec, before: *s.Status.DeepCopy(), after: *p.Status.DeepCopy(), seen: seen, writes: c.machineView.seen, gone: o.Gone, preserves: c.preserves(p, o.Machines), isBehind: o.IsBehind, released: o.Released}
		conditions := setConditions(s.Generation, append(p.Conditions, ready(p.Ready), safe.Condition))
		s.Status = p.Status
		s.Status.Safety = safe.Status
		s.Status.Conditions = conditions
	}
}

// preserves names the Machines that the set preserves by itself, without those whose preservation
// has expired.
func (c *Cluster) preserves(d set.Decision, seen []set.Machine) []string {
	auto := map[string]bool{}
	for _, m := range d.Machines {
		auto[m.Name] = m.Annotations[machinev1alpha1.AnnotationPreserve] == machinev1alpha1.PreserveAuto
	}
	var out []string
	for _, m := range seen {
		if p := m.Status.Preservation; auto[m.Name] && (p == nil || c.Now.Before(p.Until.Time)) {
			out = append(out, m.Name)
		}
	}
	return out
}

// emit events of the source. They are emitted with the status: a refused status emits none.
func (c *Cluster) emit(source string, events ...[]plan.Event) {
	for _, e := range slices.Concat(events...) {
		c.Events = append(c.Events, e)
		if c.OnEvent != nil {
			c.OnEvent(source, e)
		}
	}
}

func ready(r bool) plan.Condition {
	if r {
		return plan.Condition{Type: machinev1alpha1.ConditionReady, Status: "True", Reason: string(xpv2.ReasonAvailable)}
	}
	return plan.Condition{Type: machinev1alpha1.ConditionReady, Status: "False", Reason: string(xpv2.ReasonCreating)}
}

// setConditions as Crossplane does: only its own Ready has the generation.
func setConditions(generation int64, set []plan.Condition) []metav1.Condition {
	out := make([]metav1.Condition, 0, len(set))
	for _, c := range set {
		n := metav1.Condition{Type: c.Type, Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message}
		if c.Type == machinev1alpha1.ConditionReady {
			n.ObservedGeneration = generation
		}
		out = append(out, n)
	}
	return out
}

func applyMeta(existing, desired metav1.Object) {
	existing.SetLabels(maps.Clone(desired.GetLabels()))
	annotations := maps.Clone(existing.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, desired.GetAnnotations())
	existing.SetAnnotations(annotations)
}

func applySet(existing, desired *machinev1alpha1.MachineSet) bool {
	applyMeta(existing, desired)
	changed := !equal(existing.Spec, desired.Spec)
	desired.Spec.DeepCopyInto(&existing.Spec)
	return changed
}

// Deployment returns the current MachineDeployment.
func (c *Cluster) Deployment() *machinev1alpha1.MachineDeployment {
	e, _ := c.deployments.get(DeploymentName)
	return e.object
}

// Update the MachineDeployment as a user does.
func (c *Cluster) Update(change func(*machinev1alpha1.MachineDeployment)) {
	e, _ := c.deployments.get(DeploymentName)
	before := e.object.DeepCopy()
	change(e.object)
	changed := !equal(before.Spec, e.object.Spec)
	if changed {
		e.object.Generation++
	}
	c.deployments.put(e.object, e.refs)
	if changed || (deployment.Rejected(before) == nil) != (deployment.Rejected(e.object) == nil) {
		c.onUpdate(c, e.object)
	}
}

// A kind of Machines is the part of a template that distinguishes the simulator's rollouts.
type kind struct{ class, version, failureDomain string }

func kindOf(s machinev1alpha1.MachineSpec) kind {
	return kind{s.ClassRef.Name, s.Version, ptr.Deref(s.FailureDomain, "")}
}

// wanted kind: that of the template, or of the revision that is rolled back to.
func (c *Cluster) wanted() kind {
	if r := c.BackTo; r != nil {
		return kind{r.ClassRef.Name, r.Version, ptr.Deref(r.FailureDomain, "")}
	}
	d := c.deployment()
	if r := deployment.Rejected(d); r != nil {
		// The rejection is a wish: that of the user who aborted, or whose policy is to roll back.
		wanted, at := kindOf(d.Spec.Template.Spec), int64(0)
		for _, good := range d.Status.Revisions {
			is, n := kind{good.ClassRef.Name, good.Version, ptr.Deref(good.FailureDomain, "")}, good.LastCompleteRevision
			if good.Outcome == machinev1alpha1.RevisionComplete {
				n = good.Revision
			}
			switch {
			case good.Revision > r.Revision:
				return is
			case good.Revision < r.Revision && n > at:
				wanted, at = is, n
			}
		}
		return wanted
	}
	return kindOf(d.Spec.Template.Spec)
}

// Sets returns the current MachineSets.
func (c *Cluster) Sets() []*machinev1alpha1.MachineSet { return c.sets.list() }

// Machines returns the current Machines.
func (c *Cluster) Machines() []*machinev1alpha1.Machine { return c.machines.list() }

// Writes is the number of writes so far.
func (c *Cluster) Writes() int {
	return len(c.deployments.log) + len(c.sets.log) + len(c.groups.log) + len(c.machines.log) + c.runWrites + c.turnWrites
}

// ReconcileDeployment with the present state of its views.
func (c *Cluster) ReconcileDeployment() { _ = c.reconcileDeployment() }

func (c *Cluster) reconcileDeployment() error {
	c.sawGeneration, c.rejects = 0, false
	err := c.rollout.reconcile(DeploymentName, c.Crash, c.Order)
	if c.rejects {
		c.onUpdate(c, c.deployment())
	}
	if c.sawGeneration > 0 {
		for _, n := range c.all() {
			n.deploymentDecided(c, c.sawGeneration, c.sawSets)
		}
	}
	return err
}

// ReconcileSet with the present state of its views.
func (c *Cluster) ReconcileSet(name string) { _ = c.reconcileSet(name) }

func (c *Cluster) reconcileSet(name string) error {
	err := c.replicas.reconcile(name, c.Crash, c.Order)
	if c.decided != nil {
		c.onDecision(c, *c.decided)
		c.departures.onDecided(c, *c.decided)
		c.decided = nil
	}
	return err
}

// Views is the number of caches that may be stale.
const Views = 7

// Advance one of the views by at most n writes.
func (c *Cluster) Advance(view, n int) {
	switch view {
	case 0:
		c.deploymentView.advance(n)
	case 1:
		c.setsOfRollout.advance(n)
	case 2:
		c.setsOfReplicas.advance(n)
	case 3:
		c.machineView.advance(n)
	case 4:
		c.groupsOfSets.advance(n)
	case 5:
		c.groupView.advance(n)
	case 6:
		c.machinesOfGroup.advance(n)
	}
}

// CatchUp brings all views up to date.
func (c *Cluster) CatchUp() {
	for v := range Views {
		c.Advance(v, c.Writes())
	}
}

// ReconcileAll reconciles each object once, with views that are up to date.
func (c *Cluster) ReconcileAll() {
	c.CatchUp()
	c.ReconcileDeployment()
	for _, s := range c.Sets() {
		c.CatchUp()
		c.ReconcileSet(s.Name)
		c.CatchUp()
		c.ReconcileGroup(s.Name)
	}
}

// changeMachine in the cluster.
func (c *Cluster) changeMachine(name string, change func(*machinev1alpha1.Machine)) {
	before, ok := c.machines.last[name]
	if !ok {
		return
	}
	m := before.object.DeepCopy()
	if change(m); !equal(before.object, m) {
		c.machines.put(m, nil)
	}
}

// Boot advances a Machine by one phase. No function runs for a Machine that is being deleted.
func (c *Cluster) Boot(name string) {
	c.changeMachine(name, func(m *machinev1alpha1.Machine) {
		if m.DeletionTimestamp != nil {
			return
		}
		m.Status.LastOperation = nil
		switch m.Status.Phase {
		case "", machinev1alpha1.MachinePending:
			m.Status.Phase = machinev1alpha1.MachineProvisioning
		case machinev1alpha1.MachineProvisioning:
			m.Status.Phase = machinev1alpha1.MachineJoining
			m.Status.ProviderID = "local:///zone-a/" + string(m.UID)
			m.Spec.ProviderID = ptr.To(m.Status.ProviderID) // As the Machine's controller does.
			m.Generation++
		case machinev1alpha1.MachineJoining, machinev1alpha1.MachineUnknown:
			m.Status.Phase = machinev1alpha1.MachineRunning
			m.Status.ReadySince = ptr.To(metav1.NewTime(c.Now))
			m.Status.NodeRef = &machinev1alpha1.NodeReference{Kind: "Node", Name: m.Name}
			m.Status.Unhealthy = nil
		}
	})
}

// Refuse to create the VM of a Machine, with an error code, until it boots.
func (c *Cluster) Refuse(name, code string) {
	c.changeMachine(name, func(m *machinev1alpha1.Machine) {
		if m.DeletionTimestamp == nil && m.Status.Phase.IsOnItsWay() && m.Status.ProviderID == "" {
			m.Status.Phase = machinev1alpha1.MachineProvisioning
			m.Status.LastOperation = &machinev1alpha1.LastOperation{
				Type: machinev1alpha1.OperationCreate, State: machinev1alpha1.OperationProcessing, ErrorCode: code, Description: "refused",
			}
		}
	})
}

// Agent advances the update in place of a Machine by one state, as the step lifecycle and the agent
// of its Node do together. A failed update can succeed later.
func (c *Cluster) Agent(name string, fails bool) {
	c.changeMachine(name, func(m *machinev1alpha1.Machine) {
		want, is := m.Spec.InPlaceUpdate, m.Status.Update
		if m.DeletionTimestamp != nil || m.Status.Phase == machinev1alpha1.MachineFailed {
			return
		}
		if want == nil {
			if m.Status.Phase == machinev1alpha1.MachineUpdating {
				m.Status.Phase = machinev1alpha1.MachineRunning
			}
			m.Status.Update = nil
			return
		}
		if is == nil || is.ID != want.ID || !want.Selected {
			is = &machinev1alpha1.UpdateStatus{ID: want.ID, State: machinev1alpha1.UpdateCandidate}
		}
		next := is.State
		switch {
		case !want.Selected:
		case is.State == machinev1alpha1.UpdateCandidate:
			next = machinev1alpha1.UpdateDraining
			if m.Status.Phase == machinev1alpha1.MachineRunning {
				c.onDrain(c, m)
				m.Status.Phase = machinev1alpha1.MachineUpdating
			}
		case is.State == machinev1alpha1.UpdateDraining:
			next = machinev1alpha1.UpdateUpdating
		case fails && is.State == machinev1alpha1.UpdateUpdating:
			next = machinev1alpha1.UpdateFailed
		default:
			next = machinev1alpha1.UpdateSucceeded
		}
		m.Status.Update = &machinev1alpha1.UpdateStatus{ID: want.ID, State: next}
	})
}

// DeleteByUser deletes a Machine without a decision of a planner.
func (c *Cluster) DeleteByUser(name string) {
	c.changeMachine(name, func(m *machinev1alpha1.Machine) {
		if m.DeletionTimestamp == nil {
			c.departures.onUser(c, m)
			c.onLoss(c, m, true)
			m.DeletionTimestamp = ptr.To(metav1.NewTime(c.Now))
		}
	})
}

// IsOld reports whether a rollout must replace or update a Machine.
func (c *Cluster) IsOld(m *machinev1alpha1.Machine) bool {
	return kindOf(m.Spec) != c.wanted() || m.Spec.InPlaceUpdate != nil ||
		!c.inPlace() && m.CreationTimestamp.Before(c.deployment().Spec.Rollout.After)
}

func (c *Cluster) inPlace() bool {
	return c.deployment().Spec.Strategy.Type == machinev1alpha1.InPlaceUpdate
}

// Fail a Machine permanently: its VM is gone, and its Node is not Ready.
func (c *Cluster) Fail(name string) { c.loseVM(name, true) }

// Claim that the VM of a Machine is gone, although its Node is Ready.
func (c *Cluster) Claim(name string) { c.loseVM(name, false) }

func (c *Cluster) loseVM(name string, confirmed bool) {
	c.changeMachine(name, func(m *machinev1alpha1.Machine) {
		c.onLoss(c, m, false)
		m.Status.Phase = machinev1alpha1.MachineFailed
		m.Status.FailureReason = machinev1alpha1.FailureVMLost
		m.Status.LossConfirmed = confirmed
		m.Status.ReadySince = nil
	})
}

// Lose sight of a Machine's Node until it boots.
func (c *Cluster) Lose(name string) {
	c.changeMachine(name, func(m *machinev1alpha1.Machine) {
		if m.Status.Phase == machinev1alpha1.MachineRunning {
			c.onLoss(c, m, false)
			m.Status.Phase = machinev1alpha1.MachineUnknown
			m.Status.ReadySince = nil
		}
	})
}

// Finish the deletion of a Machine.
func (c *Cluster) Finish(name string) {
	if e, ok := c.machines.get(name); ok && e.object.DeletionTimestamp != nil {
		c.departures.onGone(c, e.object)
		c.machines.remove(name)
	}
}

// CollectGarbage deletes the objects that terminating MachineSets composed, and then these sets.
func (c *Cluster) CollectGarbage() {
	for _, s := range c.Sets() {
		if s.DeletionTimestamp == nil {
			continue
		}
		left := false
		for _, m := range c.Machines() {
			if metav1.IsControlledBy(m, s) {
				left = true
				c.changeMachine(m.Name, func(m *machinev1alpha1.Machine) {
					if m.DeletionTimestamp == nil {
						c.onDelete(c, m)
						m.DeletionTimestamp = ptr.To(metav1.NewTime(c.Now))
					}
				})
			}
		}
		if !left {
			c.sets.remove(s.Name)
			c.groups.remove(s.Name)
		}
	}
}

// Available reports whether a Machine is available.
func (c *Cluster) Available(m *machinev1alpha1.Machine) bool {
	minReady := time.Duration(c.deployment().Spec.MinReadySeconds) * time.Second
	return m.DeletionTimestamp == nil && m.Status.Phase == machinev1alpha1.MachineRunning &&
		m.Status.ReadySince != nil && !c.Now.Before(m.Status.ReadySince.Add(minReady))
}
