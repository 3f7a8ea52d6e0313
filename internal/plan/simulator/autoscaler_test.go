package simulator

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/machine"
	"github.com/drover-dev/drover/internal/workernode"
)

// A pool is a MachineDeployment that a cluster-autoscaler scales. The planner of Machines decides
// the status of each Machine.
type pool struct {
	*Cluster
	Autoscaler
	// node of a Machine, nil while there is none.
	node func(*machinev1alpha1.Machine) *workernode.WorkerNode
	// vm of a Machine.
	vm func(*machinev1alpha1.Machine) plan.VM
	// deleted Machines, by name, as last observed.
	deleted map[string]*machinev1alpha1.Machine
	// requested names the Machines whose VM was requested from the cloud.
	requested map[string]bool
}

func newPool(replicas int32) *pool {
	labels := map[string]machinev1alpha1.LabelValue{"pool": "a"}
	s := machinev1alpha1.MachineDeploymentSpec{
		Replicas: replicas, Selector: machinev1alpha1.Selector{MatchLabels: labels}, ProgressDeadlineSeconds: 600,
		Strategy: machinev1alpha1.Strategy{Type: machinev1alpha1.RollingUpdate},
		Template: machinev1alpha1.MachineTemplate{
			Metadata: machinev1alpha1.TemplateMetadata{Labels: labels},
			Spec:     machinev1alpha1.MachineSpec{ClassRef: machinev1alpha1.ClassReference{Name: "small"}, Version: "v1.0.0"},
		},
	}
	p := &pool{Cluster: New(s), deleted: map[string]*machinev1alpha1.Machine{}, requested: map[string]bool{}}
	p.vm = func(m *machinev1alpha1.Machine) plan.VM {
		return plan.VM{State: plan.VMRunning, Name: m.Name, ProviderID: "local:///zone-a/" + string(m.UID)}
	}
	p.node = nodeThatIs("True")
	return p
}

// nodeThatIs returns the Node of each Machine, whose condition Ready has the status.
func nodeThatIs(ready string) func(*machinev1alpha1.Machine) *workernode.WorkerNode {
	return func(m *machinev1alpha1.Machine) *workernode.WorkerNode {
		wn := &workernode.WorkerNode{Parameters: workernode.Parameters{ProviderID: m.Status.ProviderID}}
		wn.Observation = workernode.Observation{
			Present: true, NodeName: m.Name, NodeUID: m.UID, Synced: true,
			Conditions: []workernode.Condition{{Type: "Ready", Status: ready, Since: &metav1.Time{Time: m.CreationTimestamp.Time}}},
		}
		return wn
	}
}

// noNode returns a Node that has not joined.
func noNode(m *machinev1alpha1.Machine) *workernode.WorkerNode {
	return &workernode.WorkerNode{Parameters: workernode.Parameters{ProviderID: m.Status.ProviderID}}
}

// but uses one function for the named Machine, and another for the remaining ones.
func but(name string, one, others func(*machinev1alpha1.Machine) *workernode.WorkerNode) func(*machinev1alpha1.Machine) *workernode.WorkerNode {
	return func(m *machinev1alpha1.Machine) *workernode.WorkerNode {
		if m.Name == name {
			return one(m)
		}
		return others(m)
	}
}

// pass lets time pass: every ten seconds everything is reconciled, and the autoscaler runs.
func (p *pool) pass(d time.Duration) {
	for end := p.Now.Add(d); p.Now.Before(end); p.Now = p.Now.Add(10 * time.Second) {
		for range 4 {
			p.reconcile()
		}
		p.Loop(p.Cluster)
	}
}

func (p *pool) reconcile() {
	p.CatchUp()
	p.ReconcileDeployment()
	for _, s := range p.Sets() {
		p.CatchUp()
		p.ReconcileSet(s.Name)
		p.CatchUp()
		p.ReconcileGroup(s.Name)
	}
	for _, m := range p.Machines() {
		if m.DeletionTimestamp != nil {
			p.deleted[m.Name] = m
			p.Finish(m.Name)
			continue
		}
		p.observe(m)
	}
}

// observe a Machine, as its controller does.
func (p *pool) observe(m *machinev1alpha1.Machine) {
	vm := p.vm(m)
	if vm.State != plan.VMAbsent {
		p.requested[m.Name] = true
	}
	o := machine.Observed{Machine: m, VM: vm}
	if vm.ProviderID != "" {
		o.WorkerNode = p.node(m)
	}
	d := machine.Plan(p.Now, o)
	p.changeMachine(m.Name, func(m *machinev1alpha1.Machine) {
		m.Status = d.Status
		m.Status.Conditions = setConditions(m.Generation, d.Conditions)
		if m.Status.ProviderID != "" {
			m.Spec.ProviderID = ptr.To(m.Status.ProviderID)
		}
	})
}

// preserve a Machine, as a user does.
func (p *pool) preserve(name string) {
	p.changeMachine(name, func(m *machinev1alpha1.Machine) {
		m.Annotations[machinev1alpha1.AnnotationPreserve] = machinev1alpha1.PreserveWhenFailed
	})
}

func namesOf(ms []*machinev1alpha1.Machine) []string {
	var out []string
	for _, m := range ms {
		out = append(out, m.Name)
	}
	return out
}

// TestTheAutoscalerAndAPreservedMachineLeaveHealthyMachinesAlone lets one of three Machines fail,
// and preserves it for analysis, while the autoscaler runs for hours.
func TestTheAutoscalerAndAPreservedMachineLeaveHealthyMachinesAlone(t *testing.T) {
	gone := func(m *machinev1alpha1.Machine) *workernode.WorkerNode {
		wn := noNode(m)
		wn.Observation.NodeName = m.Name
		return wn
	}
	cases := map[string]struct {
		node   func(*machinev1alpha1.Machine) *workernode.WorkerNode
		joined bool
		auto   int32
	}{
		"WhoseNodeIsUnhealthy":         {node: nodeThatIs("False"), joined: true},
		"WhoseNodeNeverJoined":         {node: noNode},
		"WhoseNodeIsGone":              {node: gone, joined: true},
		"ThatTheSetPreservesByItself":  {node: nodeThatIs("Unknown"), joined: true, auto: 1},
		"ThatNeverJoinedAndTheSetKept": {node: noNode, auto: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := newPool(2)
			p.Update(func(d *machinev1alpha1.MachineDeployment) {
				d.Spec.AutoPreserveFailedMachineMax = tc.auto
				// This is sooner than the autoscaler deletes a Machine that does not join.
				d.Spec.Template.Spec.CreationTimeout.Duration = 5 * time.Minute
			})
			p.pass(2 * time.Minute)
			healthy := namesOf(p.Machines())
			joins := p.node
			p.node = func(m *machinev1alpha1.Machine) *workernode.WorkerNode {
				if tc.joined || slices.Contains(healthy, m.Name) {
					return joins(m)
				}
				return tc.node(m)
			}
			p.Update(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Replicas = 3 })
			p.pass(2 * time.Minute)
			var broken string
			for _, m := range p.Machines() {
				if !slices.Contains(healthy, m.Name) {
					broken = m.Name
				}
			}
			if tc.auto == 0 {
				p.preserve(broken)
			}
			p.node = but(broken, tc.node, joins)
			p.pass(90 * time.Minute)

			for _, name := range healthy {
				if m := p.deleted[name]; m != nil {
					t.Errorf("%s is deleted, which was %s; the autoscaler marked %s", name, m.Status.Phase, broken)
				}
			}
			if p.deleted[broken] != nil {
				t.Errorf("%s is not kept", broken)
			}
		})
	}
}

// A fullCloud has room for a limited number of VMs.
type fullCloud struct {
	room int
	has  map[string]bool
}

// of returns the VM of a Machine, or the error of a cloud without room. For a Machine that its set
// creates only to report the lack of room, the step infrastructure requests no VM.
func (c *fullCloud) of(m *machinev1alpha1.Machine) plan.VM {
	if m.Annotations[machinev1alpha1.AnnotationExhausted] != "" {
		return plan.VM{State: plan.VMAbsent, Name: m.Name}
	}
	if !c.has[m.Name] && len(c.has) >= c.room {
		return plan.VM{State: plan.VMCreating, Name: m.Name, ErrorCode: "CapacityExhausted", Message: "none left"}
	}
	c.has[m.Name] = true
	return plan.VM{State: plan.VMRunning, Name: m.Name, ProviderID: "local:///zone-a/" + string(m.UID)}
}

func nodeGroup(d *machinev1alpha1.MachineDeployment) {
	d.Annotations = map[string]string{machinev1alpha1.AnnotationNodeGroupMinSize: "0", machinev1alpha1.AnnotationNodeGroupMaxSize: "50"}
}

// annotate the MachineDeployment, as a user does.
func (p *pool) annotate(change func(*machinev1alpha1.MachineDeployment)) {
	e, _ := p.deployments.get(DeploymentName)
	change(e.object)
	p.deployments.put(e.object, e.refs)
}

// TestTheAutoscalerLeavesACloudWithoutRoom scales a node group up at a cloud that has no room.
// Within a minute the autoscaler must find all missing Machines failed, so that it uses another
// group for each of them, and the cloud must get few requests.
func TestTheAutoscalerLeavesACloudWithoutRoom(t *testing.T) {
	const minute = time.Minute
	cases := map[string]struct {
		has, room, wants int32
		// requests that the cloud gets at most.
		requests int
	}{
		"FromZero":                {0, 0, 1, 1},
		"SeveralFromZero":         {0, 0, 5, 1},
		"BesideMachinesThatRun":   {2, 2, 3, 3},
		"OfWhichSomeStillHadRoom": {2, 4, 7, 7},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := newPool(tc.has)
			cloud := &fullCloud{room: int(tc.room), has: map[string]bool{}}
			p.vm = cloud.of
			p.annotate(nodeGroup)
			p.pass(2 * minute)
			p.Update(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Replicas = tc.wants })
			p.pass(minute)

			if n := p.Deployment().Spec.Replicas; n != tc.room {
				t.Errorf("after a minute the autoscaler waits for %d Machines, at a cloud with room for %d", n, tc.room)
			}
			if p.BackoffUntil.IsZero() {
				t.Error("the autoscaler would take the same group again")
			}
			p.pass(10 * minute)
			if len(p.requested) > tc.requests {
				t.Errorf("%d VMs were requested, at most %d may be", len(p.requested), tc.requests)
			}
			if n := len(p.Machines()); n != int(tc.room) {
				t.Errorf("%d Machines are there, at a cloud with room for %d", n, tc.room)
			}
		})
	}
}

// TestACloudWithoutRoomGetsOneRequestInEachBackoff has no autoscaler that would lower replicas: the
// set keeps trying, with one Machine at a time, and is complete soon after there is room.
func TestACloudWithoutRoomGetsOneRequestInEachBackoff(t *testing.T) {
	p := newPool(0)
	p.MinSize = 6
	cloud := &fullCloud{has: map[string]bool{}}
	p.vm = cloud.of
	p.annotate(nodeGroup)
	p.Update(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Replicas = 6 })
	p.pass(time.Hour)
	// One at first, and then after 1, 2, 4, 8 minutes, and every ten minutes.
	if n := len(p.requested); n < 5 || n > 10 {
		t.Errorf("%d VMs were requested in an hour", n)
	}
	if n := len(p.deleted); n > 10 {
		t.Errorf("%d Machines were deleted in an hour, though %d VMs were requested", n, len(p.requested))
	}
	if n := len(p.Machines()); n > 6 {
		t.Errorf("there are %d Machines", n)
	}
	cloud.room = 10
	p.pass(15 * time.Minute)
	running := 0
	for _, m := range p.Machines() {
		if m.Status.Phase == machinev1alpha1.MachineRunning {
			running++
		}
	}
	if running != 6 || len(p.Machines()) != 6 {
		t.Errorf("of %d Machines %d run after there is room", len(p.Machines()), running)
	}
}

// TestAPoolOfNoAutoscalerWaitsForRoom if its template has no capacityTimeout: the waiting Machine
// gets the VM.
func TestAPoolOfNoAutoscalerWaitsForRoom(t *testing.T) {
	for name, tc := range map[string]struct {
		timeout *metav1.Duration
		fails   bool
	}{
		"ByDefault":            {nil, false},
		"UnlessAFieldAsksSo":   {&metav1.Duration{Duration: 20 * time.Second}, true},
		"AsLongAsTheFieldAsks": {&metav1.Duration{Duration: time.Hour}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPool(0)
			p.MinSize = 1
			p.vm = (&fullCloud{has: map[string]bool{}}).of
			p.Update(func(d *machinev1alpha1.MachineDeployment) {
				d.Spec.Replicas, d.Spec.Template.Spec.CapacityTimeout = 1, tc.timeout
			})
			p.pass(time.Minute)
			ms := p.Machines()
			if len(ms) != 1 || (ms[0].Status.FailureReason == machinev1alpha1.FailureCapacityTimeout) != tc.fails {
				t.Errorf("Machines %v, status %+v", namesOf(ms), ms[0].Status)
			}
		})
	}
}
