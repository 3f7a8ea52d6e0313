package simulator

import (
	"container/heap"
	"math/rand"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/group"
	"github.com/drover-dev/drover/internal/plan/machine"
	"github.com/drover-dev/drover/internal/workernode"
)

// How long a change takes to be reconciled. It is reconciled once for all changes of that
// time, as the work queues of Crossplane and of the controllers do.
const reaction = 200 * time.Millisecond

// providerRetries is how often a provider tries to create a VM that its cloud refuses.
const providerRetries = 30 * time.Second

// A Cloud takes its time, and has its moods.
type Cloud struct {
	// ID is the time from a VM's request to its providerID, Boot the time from there until
	// its Node is Ready, and Drain the time from the deletion of a Machine until it is gone.
	ID, Boot, Drain time.Duration
	// Jitter is the share by which each of these times is longer or shorter, by chance: 0.5
	// for ±50 %.
	Jitter float64
	// Update is the time that the agent of a Node takes for an update in place.
	Update time.Duration
	// Refuses is the class of the error with which the cloud refuses to create VMs, "" if it
	// creates them.
	Refuses string
	// RefusesIn limits a refusal to one failure domain, "" for all.
	RefusesIn string
	// NoJoin means that no Node joins: VMs are created all the same.
	NoJoin bool
	// Hangs reports whether the nth VM, from 0, never gets a providerID.
	Hangs func(n int) bool
	// Seed of the chances.
	Seed int64
}

// Latencies of the nth VM, from 0, whoever asks for it: they are the same for the planners
// and for the oracle.
func (c Cloud) Latencies(n int) (id, boot, drain time.Duration) {
	r := rand.New(rand.NewSource(c.Seed + int64(n)*7919))
	chance := func(d time.Duration) time.Duration {
		return time.Duration(float64(d) * (1 + c.Jitter*(2*r.Float64()-1)))
	}
	return chance(c.ID), chance(c.Boot), chance(c.Drain)
}

// A vm of a Machine, and its Node.
type vm struct {
	n         int
	requested bool
	refused   string
	id        string
	// node is the state of the Ready condition of the Node, "" until it joined.
	node      string
	nodeSince time.Time
	nodeGone  bool
	lost      bool
	// updated is the update that the agent did last, and drained what the Node is.
	updated string
	busy    bool
	drained bool
	// parameters that the Machine's planner decided on last.
	parameters *workernode.Parameters
	leaving    bool
	// annotations of the Node.
	annotations map[string]string
}

// A World is a cluster with a clock: its reconciles, its cloud and its Machines take their
// time. Its Machines are planned by their own planner.
type World struct {
	*Cluster
	Cloud Cloud
	// OnTick is called when nothing is left to do at a time.
	OnTick func()

	vms   map[string]*vm
	count int
	queue queue
	seq   int
	due   map[string]time.Time
	paced map[string]time.Time
	// idle counts how often in a row a composite asked to be called again at once, and
	// nothing was written.
	idle map[string]int
	// seen are the lengths of the stores' logs that woke somebody.
	seenDeployments, seenSets, seenGroups, seenMachines int
}

// NewWorld returns a world that did not begin yet.
func NewWorld(spec machinev1alpha1.MachineDeploymentSpec, cloud Cloud) *World {
	w := &World{Cluster: New(spec), Cloud: cloud, vms: map[string]*vm{}, due: map[string]time.Time{}, paced: map[string]time.Time{}, idle: map[string]int{}}
	w.wake()
	return w
}

// An appointment of the world.
type appointment struct {
	at  time.Time
	seq int
	do  func()
}

type queue []appointment

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	if !q[i].at.Equal(q[j].at) {
		return q[i].at.Before(q[j].at)
	}
	return q[i].seq < q[j].seq
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(appointment)) }
func (q *queue) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	*q = (*q)[:last]
	return x
}

// In some time, do something.
func (w *World) In(d time.Duration, do func()) {
	w.seq++
	heap.Push(&w.queue, appointment{at: w.Now.Add(d), seq: w.seq, do: do})
}

// enqueue a reconcile of what the key names, at the latest then.
func (w *World) enqueue(key string, d time.Duration, reconcile func()) {
	at := w.Now.Add(d)
	if is, ok := w.due[key]; ok && !is.After(at) {
		return
	}
	w.due[key] = at
	w.In(d, func() {
		// A later one was brought forward.
		if is, ok := w.due[key]; !ok || !is.Equal(at) {
			return
		}
		delete(w.due, key)
		w.CatchUp()
		reconcile()
		w.wake()
	})
}

// wake whoever watches what was written.
func (w *World) wake() {
	for ; w.seenDeployments < len(w.deployments.log); w.seenDeployments++ {
		w.enqueueDeployment(reaction)
	}
	for ; w.seenSets < len(w.sets.log); w.seenSets++ {
		w.enqueueDeployment(reaction)
		w.enqueueSet(w.sets.log[w.seenSets].name, reaction)
	}
	for ; w.seenGroups < len(w.groups.log); w.seenGroups++ {
		name := w.groups.log[w.seenGroups].name
		w.enqueueSet(name, reaction)
		w.enqueueGroup(name, reaction)
	}
	for ; w.seenMachines < len(w.machines.log); w.seenMachines++ {
		e := w.machines.log[w.seenMachines]
		if e.gone {
			for _, s := range w.Sets() {
				w.tellGroup(s.Name)
			}
			continue
		}
		w.tellGroup(metav1.GetControllerOf(e.object).Name)
		w.enqueueMachine(e.name, reaction)
	}
}

// tellGroup of its Machines. It tells its set, but not more often than it may.
func (w *World) tellGroup(name string) {
	w.enqueueGroup(name, max(reaction, w.paced[name].Sub(w.Now)))
}

func (w *World) enqueueDeployment(d time.Duration) {
	w.enqueue("deployment", d, func() {
		before := w.Writes()
		w.callAgain = 0
		err := w.reconcileDeployment()
		w.again("MachineDeployment "+DeploymentName, w.enqueueDeployment, err, w.Writes() > before)
		w.CollectGarbage()
	})
}

func (w *World) enqueueSet(name string, d time.Duration) {
	w.enqueue("set/"+name, d, func() {
		before := w.Writes()
		w.callAgain = 0
		err := w.reconcileSet(name)
		w.again("MachineSet "+name, func(d time.Duration) { w.enqueueSet(name, d) }, err, w.Writes() > before)
		w.CollectGarbage()
	})
}

func (w *World) enqueueGroup(name string, d time.Duration) {
	w.enqueue("group/"+name, d, func() {
		w.paced[name] = w.Now.Add(group.TellEvery)
		if w.reconcileGroup(name) != nil {
			w.enqueueGroup(name, reaction)
		}
	})
}

// again as the plan asked, or at once after an error. Who asks to be called again at once,
// and writes nothing then, is called for nothing for ever.
func (w *World) again(who string, enqueue func(time.Duration), err error, wrote bool) {
	if w.idle[who]++; err != nil || wrote || w.callAgain > 2*time.Second {
		w.idle[who] = 0
	}
	if w.idle[who] == 10 {
		w.violated("%s is called again after %s for the tenth time in a row, and does nothing", who, w.callAgain)
	}
	switch {
	case err != nil:
		enqueue(reaction)
	case w.callAgain > 0:
		enqueue(w.callAgain)
	}
}

// Run the world for some time.
func (w *World) Run(d time.Duration) { w.RunUntil(d, func() bool { return false }) }

// RunUntil something is so, and report whether it came to be so within the time.
func (w *World) RunUntil(d time.Duration, done func() bool) bool {
	end := w.Now.Add(d)
	w.wake()
	for len(w.queue) > 0 && !w.queue[0].at.After(end) {
		a := heap.Pop(&w.queue).(appointment)
		if a.at.After(w.Now) {
			if w.tick(); done() {
				heap.Push(&w.queue, a)
				return true
			}
			w.Now = a.at
		}
		a.do()
	}
	w.tick()
	if done() {
		return true
	}
	w.Now = end
	return false
}

func (w *World) tick() {
	if w.OnTick != nil {
		w.OnTick()
	}
}

// Whole reports whether there are the Machines that the user wants, all available, and no
// others.
func (w *World) Whole() bool {
	// It is asked at every tick: nothing is copied.
	if len(w.machines.last) != int(w.deployments.last[DeploymentName].object.Spec.Replicas) {
		return false
	}
	for _, e := range w.machines.last {
		if e.object.Status.Phase != machinev1alpha1.MachineRunning || !w.Available(e.object) || w.IsOld(e.object) {
			return false
		}
	}
	return true
}

// Settled reports whether, beyond that, the MachineDeployment reports so.
func (w *World) Settled() bool {
	d := w.Deployment()
	s := d.Status
	return w.Whole() && s.ObservedGeneration == d.Generation && s.UpdatedReplicas == d.Spec.Replicas && s.AvailableReplicas == d.Spec.Replicas &&
		s.Replicas == d.Spec.Replicas && s.TerminatingReplicas == 0 && isTrue(s.Conditions, "Ready")
}

func isTrue(conditions []metav1.Condition, typ string) bool {
	for _, c := range conditions {
		if c.Type == typ {
			return c.Status == metav1.ConditionTrue
		}
	}
	return false
}

func (w *World) enqueueMachine(name string, d time.Duration) {
	w.enqueue("machine/"+name, d, func() { w.reconcileMachine(name) })
}

// vmOf a Machine. Its cloud is asked for it when the Machine is reconciled first.
func (w *World) vmOf(m *machinev1alpha1.Machine) *vm {
	v := w.vms[m.Name]
	if v == nil {
		v = &vm{n: w.count, annotations: map[string]string{}}
		w.vms[m.Name] = v
		w.count++
	}
	return v
}

// reconcileMachine as its controller does, with its planner.
func (w *World) reconcileMachine(name string) {
	e, ok := w.machines.get(name)
	if !ok {
		return
	}
	m := e.object
	v := w.vmOf(m)
	if m.DeletionTimestamp != nil {
		w.leave(m, v)
		return
	}
	if class := w.Classes[m.Spec.ClassRef.Name]; !v.requested && !class.Missing && class.Problem == nil {
		v.requested = true
		w.request(m, v)
	}
	d := machine.Plan(w.Now, w.observe(m, v))
	w.changeMachine(name, func(m *machinev1alpha1.Machine) {
		conditions := setConditions(m.Generation, append(d.Conditions, ready(d.Ready)))
		m.Status = d.Status
		m.Status.Conditions = conditions
		if m.Status.ProviderID != "" && m.Spec.ProviderID == nil {
			m.Spec.ProviderID = ptr.To(m.Status.ProviderID)
			m.Generation++
		}
	})
	if w.OnEvent != nil {
		for _, e := range d.Events {
			w.OnEvent(name, e)
		}
	}
	w.act(m.Name, v, d.WorkerNode)
	w.enqueueMachine(name, d.CallAgain)
}

func (w *World) observe(m *machinev1alpha1.Machine, v *vm) machine.Observed {
	o := machine.Observed{Machine: m, VM: plan.VM{State: plan.VMCreating, Name: m.Name}}
	class := w.Classes[m.Spec.ClassRef.Name]
	switch {
	case v.lost:
		o.VM = plan.VM{State: plan.VMLost, Name: m.Name, Message: "the VM is gone"}
	case v.id != "":
		o.VM = plan.VM{State: plan.VMRunning, Name: m.Name, ProviderID: v.id, Confirmed: true}
	case v.refused != "":
		o.VM.ErrorCode, o.VM.Message = v.refused, "the cloud refuses the VM"
	case v.requested:
	case class.Missing:
		o.VM.State, o.VM.Problem = plan.VMAbsent, plan.NoClass(m, "spec.classRef.name")
	default:
		o.VM.State, o.VM.Problem = plan.VMAbsent, class.Problem
	}
	if w.Target != nil && w.Target.Unreachable {
		o.TargetUnreachable = true
	}
	if v.parameters == nil {
		return o
	}
	seen := workernode.Observation{Synced: true, Annotations: v.annotations, Drained: v.drained}
	if v.node != "" {
		seen.NodeName, seen.NodeUID, seen.Present = m.Name, m.UID, !v.nodeGone
		seen.Conditions = []workernode.Condition{{Type: "Ready", Status: v.node, Reason: "Kubelet", LastTransitionTime: ptr.To(metav1.NewTime(v.nodeSince))}}
	}
	if v.updated != "" {
		seen.Labels = map[string]string{machinev1alpha1.LabelUpdatedTo: v.updated}
	}
	o.WorkerNode = &workernode.WorkerNode{Parameters: *v.parameters, Observation: seen}
	return o
}

// request the VM, again and again while the cloud refuses it.
func (w *World) request(m *machinev1alpha1.Machine, v *vm) {
	name := m.Name
	again := func() { w.enqueueMachine(name, reaction) }
	if domain := w.Cloud.RefusesIn; w.Cloud.Refuses != "" && (domain == "" || domain == ptr.Deref(m.Spec.FailureDomain, "")) {
		v.refused = w.Cloud.Refuses
		w.In(providerRetries, func() {
			if v.leaving {
				return
			}
			w.request(m, v)
			again()
		})
		return
	}
	v.refused = ""
	if w.Cloud.Hangs != nil && w.Cloud.Hangs(v.n) {
		return
	}
	id, boot, _ := w.Cloud.Latencies(v.n)
	w.In(id, func() {
		if v.leaving {
			return
		}
		v.id = "local:///zone/" + name
		again()
		w.In(boot, func() {
			if v.leaving || w.Cloud.NoJoin {
				return
			}
			v.node, v.nodeSince = "True", w.Now
			again()
		})
	})
}

// act as the Node of a Machine: it is drained, and its agent updates it.
func (w *World) act(name string, v *vm, p *workernode.Parameters) {
	if v.parameters == nil && p != nil {
		defer w.enqueueMachine(name, reaction)
	}
	v.parameters = p
	if p == nil || v.busy {
		return
	}
	to := ""
	if p.Labels[machinev1alpha1.LabelUpdate] == machinev1alpha1.UpdateLabelReady {
		to = p.Labels[machinev1alpha1.LabelUpdateTo]
	}
	_, _, drain := w.Cloud.Latencies(v.n)
	switch {
	case p.Drained != v.drained && !p.Drained:
		v.drained = false
		w.enqueueMachine(name, reaction)
	case p.Drained != v.drained:
		v.busy = true
		w.In(drain, func() {
			v.busy, v.drained = false, true
			w.enqueueMachine(name, reaction)
		})
	case to != "" && to != v.updated && v.drained:
		v.busy = true
		w.In(w.Cloud.Update, func() {
			v.busy, v.updated = false, to
			w.enqueueMachine(name, reaction)
		})
	}
}

// leave as a Machine that is deleted does: its Node is drained, and then its VM deleted.
func (w *World) leave(m *machinev1alpha1.Machine, v *vm) {
	if v.leaving {
		return
	}
	v.leaving = true
	_, _, drain := w.Cloud.Latencies(v.n)
	if v.node == "" {
		drain = 0 // There is nothing to drain, nor to wait for.
	}
	name := m.Name
	w.In(drain, func() {
		w.Finish(name)
		delete(w.vms, name)
		w.wake()
		w.CollectGarbage()
		w.wake()
	})
}

// change a VM or its Node, and let its Machine see it.
func (w *World) change(name string, do func(v *vm)) {
	if v := w.vms[name]; v != nil {
		do(v)
		w.enqueueMachine(name, reaction)
	}
}

// KillNode stops the kubelet of a Machine's Node, ReviveNode starts it again.
func (w *World) KillNode(name string) {
	w.change(name, func(v *vm) { v.node, v.nodeSince = "Unknown", w.Now })
}

// ReviveNode starts the kubelet of a Machine's Node again.
func (w *World) ReviveNode(name string) {
	w.change(name, func(v *vm) { v.node, v.nodeSince = "True", w.Now })
}

// LoseVM deletes the VM of a Machine in the cloud.
func (w *World) LoseVM(name string) { w.change(name, func(v *vm) { v.lost = true }) }

// Change a Machine as a user, or the cluster-autoscaler, does.
func (w *World) Change(name string, change func(*machinev1alpha1.Machine)) {
	w.changeMachine(name, change)
	w.wake()
}
