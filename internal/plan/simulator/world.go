package simulator

import (
	"cmp"
	"container/heap"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/healthprofile"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/group"
	"github.com/drover-dev/drover/internal/plan/machine"
	planvm "github.com/drover-dev/drover/internal/plan/vm"
	"github.com/drover-dev/drover/internal/workernode"
)

// reaction is the delay from a change to its reconcile. All changes of that time are reconciled at
// once, as with the work queues of Crossplane and of the controllers.
const reaction = 200 * time.Millisecond

// providerRetries is the interval at which a provider retries a VM that its cloud refuses.
const providerRetries = 30 * time.Second

// A Cloud has latencies and failures.
type Cloud struct {
	// ID is the time from a VM's request to its providerID, Boot the time from there until its Node
	// is Ready, and Drain the time from the deletion of a Machine until it is gone.
	ID, Boot, Drain time.Duration
	// Jitter is the share by which each of these times is randomly longer or shorter: 0.5 for ±50
	// %.
	Jitter float64
	// Update is the time that the agent of a Node takes for an update in place.
	Update time.Duration
	// Reboot is the time that a VM takes to reboot, until its Node is Ready. With 0 the cloud cannot reboot VMs.
	Reboot time.Duration
	// GPUs that the class names for each Node. With 0 it names none.
	GPUs int64
	// Refuses is the error code with which the cloud refuses to create VMs, "" if it creates them.
	Refuses string
	// RefusesIn limits a refusal to one failure domain, "" for all.
	RefusesIn string
	// NoJoin means that no Node joins, although VMs are created.
	NoJoin bool
	// Hangs reports whether the nth VM, from 0, never gets a providerID.
	Hangs func(n int) bool
	// Seed of the random numbers.
	Seed int64
}

// Latencies of the nth VM, from 0. They are the same for the planners and for the oracle.
func (c Cloud) Latencies(n int) (id, boot, drain time.Duration) {
	r := rand.New(rand.NewSource(c.Seed + int64(n)*7919)) //nolint:gosec // The sequence must be repeatable.
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
	// updated is the last update that the agent did. busy means that it is at work, and drained
	// that the Node is drained.
	updated string
	busy    bool
	drained bool
	// parameters that the Machine's planner decided last.
	parameters *workernode.Parameters
	leaving    bool
	// annotations of the Node.
	annotations map[string]string
	// asked is the request for a reboot that the VM resource has, and report the results of requests.
	asked  string
	report plan.RebootReport
	// boots counts the reboots of the VM, and bootID is the one that the kubelet reported last.
	boots, bootID int
	// lacksGPU means that the Node offers one GPU less than its class names, and isDead that its kubelet does not run, until
	// as many reboots as curedBy.
	lacksGPU, isDead bool
	curedBy          int
	// resource is nil unless the World has instance types.
	resource *typedResource
}

// A World is a cluster with a clock: its reconciles, its cloud and its Machines take time. The
// planner of Machines plans its Machines.
type World struct {
	*Cluster
	Cloud Cloud
	// OnTick is called when nothing is left to do at a time.
	OnTick func()
	// OnReboot is called when a provider gets a request to reboot the VM of a Machine.
	OnReboot func(machine, request string)
	// Provide, if it is set, is the provider of VMs: it is called after a change of a request, and calls Reported and
	// RebootVM. Otherwise each request is carried out once.
	Provide func(machine string)
	// InstanceTypes of the class, nil if it lists none.
	InstanceTypes *InstanceTypes
	// Kill, if it is set, reports whether the controller of Machines is killed before its next write.
	Kill func() bool

	vms   map[string]*vm
	count int
	queue queue
	seq   int
	due   map[string]time.Time
	paced map[string]time.Time
	// idle counts how often in a row a composite requested to be called again at once, and wrote
	// nothing.
	idle map[string]int
	// seen are the lengths of the stores' logs whose changes were enqueued.
	seenDeployments, seenSets, seenGroups, seenMachines int
	// seenRun is the generation of the RolloutAnalysisRun that was enqueued.
	seenRun int64
}

// NewWorld returns a world that did not begin yet.
func NewWorld(spec machinev1alpha1.MachineDeploymentSpec, cloud Cloud) *World {
	w := &World{Cluster: New(spec), Cloud: cloud, vms: map[string]*vm{}, due: map[string]time.Time{}, paced: map[string]time.Time{}, idle: map[string]int{}}
	w.wake()
	return w
}

// An appointment is a scheduled action of the world.
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
func (q *queue) Push(x any)   { *q = append(*q, x.(appointment)) } //nolint:forcetypeassert // Nothing else is pushed.
func (q *queue) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	*q = (*q)[:last]
	return x
}

// In schedules an action after a delay.
func (w *World) In(d time.Duration, do func()) {
	w.seq++
	heap.Push(&w.queue, appointment{at: w.Now.Add(d), seq: w.seq, do: do})
}

// enqueue a reconcile of the object that the key names, after the given delay at the latest.
func (w *World) enqueue(key string, d time.Duration, reconcile func()) {
	at := w.Now.Add(d)
	if is, ok := w.due[key]; ok && !is.After(at) {
		return
	}
	w.due[key] = at
	w.In(d, func() {
		// The reconcile was moved to an earlier time.
		if is, ok := w.due[key]; !ok || !is.Equal(at) {
			return
		}
		delete(w.due, key)
		w.CatchUp()
		reconcile()
		w.wake()
	})
}

// wake enqueues the objects that watch new writes.
func (w *World) wake() {
	if w.run != nil && w.run.Generation != w.seenRun {
		w.seenRun = w.run.Generation
		w.enqueueAnalysis(reaction)
	}
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
				w.enqueueGroupSoon(s.Name)
			}
			continue
		}
		w.enqueueGroupSoon(metav1.GetControllerOf(e.object).Name)
		w.enqueueMachine(e.name, reaction)
	}
}

// enqueueGroupSoon enqueues a group after a change of its Machines. The group notifies its set, at a
// limited rate.
func (w *World) enqueueGroupSoon(name string) {
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
		w.paced[name] = w.Now.Add(group.NotifyEvery)
		if w.reconcileGroup(name) != nil {
			w.enqueueGroup(name, reaction)
		}
	})
}

// enqueueAnalysis enqueues the controller of the run.
func (w *World) enqueueAnalysis(d time.Duration) {
	w.enqueue("analysis", d, func() {
		before := w.runWrites
		if next := w.analyze(w.Now); next > 0 {
			w.enqueueAnalysis(next)
		}
		if w.runWrites > before {
			w.enqueueDeployment(reaction)
		}
	})
}

// AnswerTurn writes the status of the turn, which wakes the MachineDeployment. An answer without a template is for the one
// that the turn asks about.
func (w *World) AnswerTurn(s machinev1alpha1.RolloutTurnStatus) {
	s.Template = cmp.Or(s.Template, w.turn.Spec.Template)
	w.turn.Status = s
	w.turnWrites++
	w.enqueueDeployment(reaction)
}

// again enqueues a reconcile after the delay that the plan requested, or at once after an error. A
// plan that requests to be called at once, and then writes nothing, would be called forever.
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

// RunUntil a condition is true, and report whether that happened within the time.
func (w *World) RunUntil(d time.Duration, done func() bool) bool {
	end := w.Now.Add(d)
	w.wake()
	for len(w.queue) > 0 && !w.queue[0].at.After(end) {
		a := heap.Pop(&w.queue).(appointment) //nolint:forcetypeassert // Nothing else is pushed.
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

// Whole reports whether exactly the desired Machines exist, and all are available.
func (w *World) Whole() bool {
	// This is called at every tick, so it copies nothing.
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

// Settled reports whether the world is whole, and the MachineDeployment reports that too.
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

// vmOf a Machine. The VM is added when the Machine is first reconciled.
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
	if class := w.Classes[m.Spec.ClassRef.Name]; w.InstanceTypes == nil && !v.requested && !class.Missing && class.Problem == nil {
		v.requested = true
		w.request(m, v)
	}
	o := w.observe(m, v)
	var launched planvm.Desired
	var seen *unstructured.Unstructured
	if w.InstanceTypes != nil {
		launched, seen = w.planVM(m, v)
		o.VM = launched.Word
	}
	d := machine.Plan(w.Now, o)
	if w.isKilled() {
		w.enqueueMachine(name, restartOfController)
		return
	}
	if w.Available(m) && d.Status.Phase != machinev1alpha1.MachineRunning {
		w.onLoss(w.Cluster, m, false)
	}
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
	if w.isKilled() {
		w.enqueueMachine(name, restartOfController)
		return
	}
	w.act(m.Name, v, d.WorkerNode)
	if w.isKilled() {
		w.enqueueMachine(name, restartOfController)
		return
	}
	w.ask(m.Name, v, d.Requests.Reboot)
	if w.InstanceTypes != nil {
		w.launch(name, v, launched, seen)
	}
	w.enqueueMachine(name, d.CallAgain)
}

// restartOfController is the time until the controller of Machines runs again after it was killed.
const restartOfController = 2 * time.Second

func (w *World) isKilled() bool { return w.Kill != nil && w.Kill() }

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
	if w.Cloud.Reboot > 0 {
		o.VM.Reboot = ptr.To(v.report)
	}
	for _, profile := range m.Spec.Health.Profiles {
		o.HealthProfiles.Found = append(o.HealthProfiles.Found, healthprofile.BuiltIn(profile))
	}
	if w.Cloud.GPUs > 0 {
		o.Devices = machinev1alpha1.Devices{gpu: w.Cloud.GPUs}
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
	}
	if seen.Present {
		seen.Conditions = []workernode.Condition{{Type: "Ready", Status: v.node, Reason: "Kubelet", Since: ptr.To(metav1.NewTime(v.nodeSince))}}
	}
	if seen.BootID = fmt.Sprintf("boot-%d", v.bootID); w.Cloud.GPUs > 0 {
		seen.Devices = machinev1alpha1.Devices{gpu: w.Cloud.GPUs}
		if v.lacksGPU {
			seen.Devices[gpu]--
		}
	}
	if v.updated != "" {
		seen.Labels = map[string]string{machinev1alpha1.LabelUpdatedTo: v.updated}
	}
	o.WorkerNode = &workernode.WorkerNode{Parameters: *v.parameters, Observation: seen}
	return o
}

// request the VM, repeatedly while the cloud refuses it.
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

// gpu is the device of Nodes.
const gpu = "nvidia.com/gpu"

// ask the provider of a VM for a reboot.
func (w *World) ask(name string, v *vm, request string) {
	if v.asked = request; v.leaving || request == "" || request == v.report.Begun {
		return
	}
	if w.Provide != nil {
		w.In(reaction, func() { w.Provide(name) })
		return
	}
	if v.report.Begun = request; w.OnReboot != nil {
		w.OnReboot(name, request)
	}
	w.RebootVM(name)
}

// Asked returns the request for a reboot that the VM resource of a Machine has. It is false if there is no such VM.
func (w *World) Asked(name string) (string, bool) {
	v := w.vms[name]
	if v == nil || v.leaving {
		return "", false
	}
	return v.asked, true
}

// Reported records the report of the provider of a Machine's VM about its requests.
func (w *World) Reported(name string, report plan.RebootReport) {
	w.change(name, func(v *vm) { v.report = report })
}

// RebootVM of a Machine in the cloud.
func (w *World) RebootVM(name string) {
	v := w.vms[name]
	if v == nil || v.leaving || v.lost {
		return
	}
	v.node, v.nodeSince = "Unknown", w.Now
	w.In(w.Cloud.Reboot, func() {
		v.boots++
		v.lacksGPU, v.isDead = v.lacksGPU && v.boots < v.curedBy, v.isDead && v.boots < v.curedBy
		if !v.isDead {
			v.node, v.nodeSince, v.bootID = "True", w.Now, v.boots
		}
		w.enqueueMachine(name, reaction)
	})
}

// LoseGPU takes a GPU from a Machine's Node, until it was rebooted as often as given.
func (w *World) LoseGPU(name string, reboots int) {
	w.change(name, func(v *vm) { v.lacksGPU, v.curedBy = true, v.boots+reboots })
}

// BreakKubelet stops the kubelet of a Machine's Node, until it was rebooted as often as given.
func (w *World) BreakKubelet(name string, reboots int) {
	w.change(name, func(v *vm) {
		v.isDead, v.curedBy = true, v.boots+reboots
		v.node, v.nodeSince = "Unknown", w.Now
	})
}

// leave as a deleted Machine does: its Node is drained, and then its VM is deleted.
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

// change a VM or its Node, and enqueue its Machine.
func (w *World) change(name string, do func(v *vm)) {
	if v := w.vms[name]; v != nil {
		do(v)
		w.enqueueMachine(name, reaction)
	}
}

// KillNode stops the kubelet of a Machine's Node.
func (w *World) KillNode(name string) {
	w.change(name, func(v *vm) { v.node, v.nodeSince = "Unknown", w.Now })
}

// ReviveNode starts the kubelet of a Machine's Node again.
func (w *World) ReviveNode(name string) {
	w.change(name, func(v *vm) { v.node, v.nodeSince, v.isDead, v.bootID = "True", w.Now, false, v.boots })
}

// DeleteNode deletes a Machine's Node from the target cluster. Its kubelet does not register it again.
func (w *World) DeleteNode(name string) { w.change(name, func(v *vm) { v.nodeGone = true }) }

// LoseVM deletes the VM of a Machine in the cloud.
func (w *World) LoseVM(name string) { w.change(name, func(v *vm) { v.lost = true }) }

// Change a Machine as a user, or the cluster-autoscaler, does.
func (w *World) Change(name string, change func(*machinev1alpha1.Machine)) {
	w.changeMachine(name, change)
	w.wake()
}

// view returns a version of the resource that a cache may have, and never one that is older than the last one. The watch wakes
// the process when the cache has the present one.
func (w *World) view(r *typedResource, lowest *int, wake func(time.Duration)) *unstructured.Unstructured {
	if len(r.versions) == 0 {
		return nil
	}
	at := len(r.versions) - 1
	if lag := w.InstanceTypes.Lag; lag != nil {
		at = max(*lowest, at-lag())
	}
	*lowest = at
	if at < len(r.versions)-1 {
		wake(time.Second)
	}
	return r.versions[at]
}

// resourceOf a Machine's VM.
func (v *vm) resourceOf() *typedResource {
	if v.resource == nil {
		v.resource = &typedResource{}
	}
	return v.resource
}

// planVM plans the VM resource of a Machine.
func (w *World) planVM(m *machinev1alpha1.Machine, v *vm) (planvm.Desired, *unstructured.Unstructured) {
	class := &machinev1alpha1.MachineClass{}
	class.Name, class.Spec.Provider = m.Spec.ClassRef.Name, "local"
	for _, name := range w.InstanceTypes.Names {
		class.Spec.InstanceTypes = append(class.Spec.InstanceTypes, machinev1alpha1.InstanceType{Name: name})
	}
	o := planvm.Observed{
		Now: w.Now, Machine: m, RawMachine: map[string]any{"metadata": map[string]any{}, "spec": map[string]any{}}, Class: class, Installation: "installation",
		Bootstrap: plan.Bootstrap{SecretName: m.Name + "-user-data", Key: "userData"}, UserData: "#cloud-config\n",
	}
	r := v.resourceOf()
	seen := w.view(r, &r.seenByController, func(d time.Duration) { w.enqueueMachine(m.Name, d) })
	if seen != nil {
		o.VM = &plan.Object{Unstructured: seen}
	}
	return planvm.Plan(bindingOfTypes(), nil, o), seen
}

// launch does with the VM resource of a Machine what its controller does after the status is written.
func (w *World) launch(name string, v *vm, d planvm.Desired, seen *unstructured.Unstructured) {
	r := v.resourceOf()
	is := r.present()
	switch {
	case seen == nil && d.VM != nil:
		if is != nil {
			return // The API server refuses it, or merges what is the same.
		}
		made := d.VM.DeepCopy()
		r.uids++
		made.SetUID(types.UID(fmt.Sprintf("%s-%d", name, r.uids)))
		made.SetFinalizers([]string{plan.FinalizerManaged})
		r.applied = d.VM.GetAnnotations()
		r.seenByController = r.write(made)
		w.enqueueProvider(name, reaction)
	case seen != nil && is != nil && is.GetUID() == seen.GetUID() && is.GetDeletionTimestamp() == nil && r.apply(d.VM):
		w.enqueueProvider(name, reaction)
		w.enqueueMachine(name, reaction)
	case seen == nil || d.Word.Discard != seen.GetUID() || is == nil || is.GetUID() != seen.GetUID():
	case is.GetDeletionTimestamp() == nil && is.GetResourceVersion() != seen.GetResourceVersion():
		w.enqueueMachine(name, reaction) // A conflict.
	case is.GetDeletionTimestamp() == nil:
		next := is.DeepCopy()
		now := metav1.NewTime(w.Now)
		next.SetDeletionTimestamp(&now)
		r.seenByController = r.write(next)
		w.enqueueProvider(name, reaction)
	}
}

func (w *World) enqueueProvider(name string, d time.Duration) {
	w.enqueue("provider/"+name, d, func() { w.provideVM(name) })
}

// isProviderKilled enqueues the reconcile of the provider's next start.
func (w *World) isProviderKilled(name string) bool {
	if kill := w.InstanceTypes.KillProvider; kill == nil || !kill() {
		return false
	}
	w.enqueueProvider(name, restartOfController)
	return true
}

// provideVM is a reconcile of crossplane-runtime.
func (w *World) provideVM(name string) {
	v := w.vms[name]
	if v == nil || v.leaving || v.resource == nil || v.resource.calling {
		return
	}
	r := v.resource
	seen := w.view(r, &r.seenByProvider, func(d time.Duration) { w.enqueueProvider(name, d) })
	if seen == nil {
		return
	}
	// update writes the resource, unless it changed since it was read.
	update := func(change func(*unstructured.Unstructured)) bool {
		is := r.present()
		if is == nil || is.GetResourceVersion() != seen.GetResourceVersion() {
			w.enqueueProvider(name, time.Second)
			return false
		}
		next := is.DeepCopy()
		change(next)
		r.seenByProvider = r.write(next)
		seen = r.present()
		w.enqueueMachine(name, reaction)
		return true
	}
	if meta.ExternalCreateIncomplete(seen) {
		if seen.GetDeletionTimestamp() == nil && conditionMessage(seen) == "" || !strings.Contains(conditionMessage(seen), "cannot determine") {
			update(func(u *unstructured.Unstructured) { setSynced(u, "cannot determine creation result") })
		}
		return
	}
	found := r.find(meta.GetExternalName(seen))
	switch {
	case seen.GetDeletionTimestamp() != nil && found != nil:
		w.deleteVM(name, r, found)
	case seen.GetDeletionTimestamp() != nil:
		if is := r.present(); is != nil && is.GetUID() == seen.GetUID() {
			r.seenByProvider = r.write(nil)
			w.enqueueMachine(name, reaction)
		}
	case found == nil && meta.GetExternalName(seen) == "":
		w.createVM(name, v, update, func() *unstructured.Unstructured { return seen })
	case found != nil:
		update(func(u *unstructured.Unstructured) {
			setSynced(u, "")
			status, _ := u.Object["status"].(map[string]any)
			status["id"] = "local:///zone/" + found.id
			if found.failed {
				status["failed"] = found.fails
				if f := w.InstanceTypes.OnRefusal; f != nil {
					f(name, found.instanceType)
				}
			}
			if found.running {
				setReady(u)
			}
		})
	}
}

// createVM records the begin of a creation, calls the cloud, and records the result.
func (w *World) createVM(name string, v *vm, update func(func(*unstructured.Unstructured)) bool, seen func() *unstructured.Unstructured) {
	r := v.resource
	if failed := meta.GetExternalCreateFailed(seen()); !failed.IsZero() && w.Now.Before(failed.Add(time.Second)) {
		w.enqueueProvider(name, time.Second) // The times in the annotations have whole seconds.
		return
	}
	if w.isProviderKilled(name) || !update(func(u *unstructured.Unstructured) { meta.SetExternalCreatePending(u, w.Now) }) {
		return
	}
	instanceType, _, _ := unstructured.NestedString(seen().Object, "spec", "forProvider", "size")
	if w.isProviderKilled(name) {
		return
	}
	if f := w.InstanceTypes.OnRequest; f != nil {
		f(name, instanceType)
	}
	r.calling = true
	code := w.InstanceTypes.Refused[instanceType]
	var made *cloudVM
	if code == "" || w.InstanceTypes.Accepts != nil && w.InstanceTypes.Accepts() {
		r.ids++
		made = &cloudVM{id: fmt.Sprintf("%s-%d", name, r.ids), instanceType: instanceType, fails: code}
		r.cloud = append(r.cloud, made)
		w.boot(name, v, made)
	}
	w.In(reaction, func() {
		r.calling = false
		if w.vms[name] != v || v.leaving || w.isProviderKilled(name) {
			return
		}
		// The annotations are written also if the resource changed, and then its status, unless it did.
		is := r.present()
		next := is.DeepCopy()
		if made != nil {
			meta.SetExternalName(next, made.id)
			meta.SetExternalCreateSucceeded(next, w.Now)
		} else {
			meta.SetExternalCreateFailed(next, w.Now)
		}
		r.seenByProvider = r.write(next)
		w.enqueueMachine(name, reaction)
		w.enqueueProvider(name, time.Second)
		if made != nil || w.isProviderKilled(name) {
			return
		}
		next = r.present().DeepCopy()
		setSynced(next, errorOfCreation+code)
		r.seenByProvider = r.write(next)
		if f := w.InstanceTypes.OnRefusal; f != nil {
			f(name, instanceType)
		}
		w.enqueueProvider(name, providerRetries)
	})
	w.wake()
}

// boot a VM in the cloud, or let it fail.
func (w *World) boot(name string, v *vm, c *cloudVM) {
	id, boot, _ := w.Cloud.Latencies(v.n)
	w.In(id, func() {
		if c.deleting || v.leaving {
			return
		}
		if c.failed = c.fails != ""; !c.failed {
			c.running = true
			w.In(boot, func() {
				if !c.deleting && !v.leaving && !w.Cloud.NoJoin {
					v.node, v.nodeSince = "True", w.Now
					w.enqueueMachine(name, reaction)
				}
			})
		}
		w.enqueueProvider(name, reaction)
	})
}

func (w *World) deleteVM(name string, r *typedResource, c *cloudVM) {
	if c.deleting {
		return
	}
	c.deleting = true
	w.In(deletionOfVM, func() {
		r.cloud = slices.DeleteFunc(r.cloud, func(o *cloudVM) bool { return o == c })
		w.enqueueProvider(name, reaction)
	})
}

// VMs returns the instance types of the VMs that the cloud has for a Machine, those that are being deleted included.
func (w *World) VMs(name string) []string {
	v := w.vms[name]
	if v == nil || v.resource == nil {
		return nil
	}
	var out []string
	for _, c := range v.resource.cloud {
		out = append(out, c.instanceType)
	}
	return out
}
