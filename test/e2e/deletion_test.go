package e2e

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// A doomed fleet has one Machine in a set of a MachineDeployment.
type doomed struct {
	kit.Fleet
	deployment *machinev1alpha1.MachineDeployment
	set        *machinev1alpha1.MachineSet
	machine    *machinev1alpha1.Machine
}

// TestNoVMGoesBeforeItsDrainEnded deletes Machines in each possible way, with a pod on each Node
// that takes some time to end.
func TestNoVMGoesBeforeItsDrainEnded(t *testing.T) {
	t.Parallel()
	foreground, background := client.PropagationPolicy(metav1.DeletePropagationForeground), client.PropagationPolicy(metav1.DeletePropagationBackground)
	paths := map[string]func(t *testing.T, d doomed){
		"ScaleDown":                 func(t *testing.T, d doomed) { kubectl(t, d.Fleet, "scale", "md", d.deployment.Name, "--replicas=0") },
		"MachineInTheBackground":    func(t *testing.T, d doomed) { must(t, d.Client.Delete(t.Context(), d.machine, background)) },
		"MachineInTheForeground":    func(t *testing.T, d doomed) { must(t, d.Client.Delete(t.Context(), d.machine, foreground)) },
		"MachineSetInTheBackground": func(t *testing.T, d doomed) { must(t, d.Client.Delete(t.Context(), d.set, background)) },
		"MachineSetInTheForeground": func(t *testing.T, d doomed) { must(t, d.Client.Delete(t.Context(), d.set, foreground)) },
		"MachineDeploymentInTheBackground": func(t *testing.T, d doomed) {
			// Machines must be deletable without the objects that they are created from.
			must(t, d.Client.DeleteAllOf(t.Context(), &machinev1alpha1.MachineClass{}, client.InNamespace(d.Namespace)))
			must(t, d.Client.Delete(t.Context(), d.deployment, background))
		},
		"MachineDeploymentInTheForeground": func(t *testing.T, d doomed) { must(t, d.Client.Delete(t.Context(), d.deployment, foreground)) },
		"Namespace": func(t *testing.T, d doomed) {
			must(t, d.Client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: d.Namespace}}))
		},
	}
	// The credentials of the target cluster are not deleted with the namespace.
	fleets := map[string]func(testing.TB) kit.Fleet{"OneCluster": plane.NewFleet, "TwoClusters": plane.NewSharedTargetFleet}
	for path, del := range paths {
		for clusters, newFleet := range fleets {
			t.Run(path+"/"+clusters, func(t *testing.T) {
				t.Parallel()
				d := doomed{Fleet: newFleet(t)}
				d.deployment = d.Deployment("workers", 1, 1, 0)
				d.Create(t, d.deployment)
				d.AwaitDeployment(t, d.deployment.Name)
				d.machine, d.set = onlyMachine(t, d.Fleet), onlySet(t, d.Fleet)
				lingering(t, d.Fleet, d.machine.Status.NodeRef.Name)
				order := watchOrder(t, d.Fleet)
				del(t, d)
				patience.Eventually(t, func(ctx context.Context) string {
					if err := d.Client.Get(ctx, client.ObjectKeyFromObject(d.machine), &machinev1alpha1.Machine{}); !apierrors.IsNotFound(err) {
						return fmt.Sprintf("the Machine is still there: %v\n%s", err, d.Describe(ctx))
					}
					return ""
				})
				order.done(t, 1)
				if vms, err := d.VMs(t.Context()); err != nil || hasVMOf(vms, d.machine.UID) {
					t.Errorf("the Machine is gone and its VM is not: %+v, %v", vms, err)
				}
				node := &corev1.Node{}
				if err := d.Cluster.Client.Get(t.Context(), client.ObjectKey{Name: d.machine.Status.NodeRef.Name}, node); !apierrors.IsNotFound(err) {
					t.Errorf("the Machine is gone and its Node is not: %v", err)
				}
				if path != "Namespace" {
					if err := d.Client.Delete(t.Context(), d.deployment); client.IgnoreNotFound(err) != nil {
						t.Error(err)
					}
				}
				d.AwaitNothing(t)
			})
		}
	}
}

// TestFiftyMachinesDeletedAtOnce prints the time and the writes of the deletion.
func TestFiftyMachinesDeletedAtOnce(t *testing.T) {
	kit.OnlyInLong(t, "TestNoVMGoesBeforeItsDrainEnded")
	const fifty = 50
	f := plane.NewTargetFleet(t)
	md := f.Deployment("many", fifty, 1, 0)
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)
	nodes, err := f.Nodes(t.Context())
	must(t, err)
	for _, n := range nodes {
		lingering(t, f, n.Name)
	}
	order := watchOrder(t, f)
	before, err := f.Writes(t.Context())
	must(t, err)
	began := time.Now()
	kubectl(t, f, "delete", "md", md.Name)
	took := time.Since(began)
	after, err := f.Writes(t.Context())
	must(t, err)
	total := 0.0
	for what, n := range after {
		total += n - before[what]
	}
	order.done(t, fifty)
	f.AwaitNothing(t)
	t.Logf("%d Machines with a pod that takes 3 s to end: %s from kubectl delete to the last VM, %.0f writes to the control cluster, %.1f a Machine", fifty, took.Round(100*time.Millisecond), total, total/fifty)
}

// TestMachinesGoWhileCrossplaneIsDown freezes Crossplane and function-drover: the deletion of a
// Machine needs neither.
func TestMachinesGoWhileCrossplaneIsDown(t *testing.T) {
	f := plane.NewTargetFleet(t)
	m := running(t, f, "lone")
	lingering(t, f, m.node)
	order := watchOrder(t, f)
	status, err := plane.Status(t.Context())
	must(t, err)
	var frozen []int
	thaw := sync.OnceFunc(func() {
		for _, pid := range frozen {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	})
	t.Cleanup(thaw)
	for _, c := range status.Components {
		if c.Name == "crossplane" || c.Name == "function-drover" {
			must(t, syscall.Kill(c.PID, syscall.SIGSTOP))
			frozen = append(frozen, c.PID)
		}
	}
	if len(frozen) != 2 {
		t.Fatalf("%d of two processes are frozen: %+v", len(frozen), status.Components)
	}
	m.delete(t)
	m.awaitGone(t)
	order.done(t, 1)
	thaw()
	must(t, f.Client.DeleteAllOf(t.Context(), &clusterv1alpha1.ProviderConfig{}, client.InNamespace(f.Namespace)))
}

// TestANodeThatComesBackDuringTheDeletionHoldsNothing creates the Node again, as a restarted
// kubelet would, after the deletion stage of the Node. The VM must then be deleted without
// another drain.
func TestANodeThatComesBackDuringTheDeletionHoldsNothing(t *testing.T) {
	kit.OnlyInLong(t, "the tests of internal/controller/machine")
	t.Parallel()
	f := plane.NewFleet(t)
	m := running(t, f, "lone")
	was := &corev1.Node{}
	must(t, f.Cluster.Client.Get(t.Context(), client.ObjectKey{Name: m.node}, was))
	m.annotate(t, machinev1alpha1.HookPreTerminate+"test")
	m.delete(t)
	m.awaitStage(t, machinev1alpha1.DeletionPreTerminateHooks)
	back := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: was.Name, Labels: was.Labels, Annotations: was.Annotations},
		Spec:       corev1.NodeSpec{ProviderID: was.Spec.ProviderID},
	}
	must(t, f.Cluster.Client.Create(t.Context(), back))
	t.Cleanup(func() { _ = f.Cluster.Client.Delete(context.Background(), back) })
	m.unannotate(t, machinev1alpha1.HookPreTerminate+"test")
	patience.Eventually(t, func(ctx context.Context) string {
		if s := m.gone(ctx); s != "" {
			return s
		}
		if vms := m.vms(ctx); len(vms) > 0 {
			return fmt.Sprintf("VMs %+v", vms)
		}
		return ""
	}, f.Describe)
}

// TestATargetClusterThatIsGoneForGoodHoldsNoMachine deletes Machines whose cluster no longer
// answers. Their Nodes are lost with it.
func TestATargetClusterThatIsGoneForGoodHoldsNoMachine(t *testing.T) {
	kit.OnlyInLong(t, "the tests of internal/controller/machine")
	t.Parallel()
	f := plane.NewTargetFleet(t)
	patient, hasty := &member{f: f, name: "patient"}, &member{f: f, name: "hasty"}
	patient.create(t, func(d *machinev1alpha1.Drain) { d.Timeout.Duration = 15 * time.Second })
	hasty.create(t, nil)
	patient.awaitRunning(t)
	hasty.awaitRunning(t)
	cfg, err := clientcmd.Load(plane.Target.Credentials(t).Kubeconfig)
	must(t, err)
	for _, c := range cfg.Clusters {
		c.Server = "https://127.0.0.1:1"
	}
	dead, err := clientcmd.Write(*cfg)
	must(t, err)
	f.SetKubeconfig(t, dead)
	awaitCondition(t, f, clusterv1alpha1.ConditionReachable, corev1.ConditionFalse)
	step(t, "ItsMachinesAreNotTakenForThoseOfDeletedNodes", func(t *testing.T) {
		f.Throughout(t, func(ctx context.Context) string {
			for _, m := range []*member{patient, hasty} {
				if m.is(ctx, machinev1alpha1.MachineFailed) == "" {
					return "Machine " + m.name + " is Failed"
				}
			}
			return ""
		})
	})
	step(t, "TheyGoByTheTimeoutOfTheDrain", func(t *testing.T) {
		began := time.Now()
		patient.delete(t)
		patience.Eventually(t, patient.gone)
		if took := time.Since(began); took < 14*time.Second {
			t.Errorf("it took %s", took)
		}
		patient.reported(t, "NodeAbandoned")
	})
	step(t, "OrAtOnceWithoutADrain", func(t *testing.T) {
		hasty.delete(t)
		hasty.annotate(t, machinev1alpha1.AnnotationSkipDrain)
		patience.Eventually(t, hasty.gone)
	})
	for _, m := range []*member{patient, hasty} {
		if vms := m.vms(t.Context()); len(vms) > 0 {
			t.Errorf("VMs %+v", vms)
		}
		must(t, client.IgnoreNotFound(f.Cluster.Client.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.node}})))
	}
	must(t, f.Client.DeleteAllOf(t.Context(), &clusterv1alpha1.ProviderConfig{}, client.InNamespace(f.Namespace)))
}

// TestAMachineWhoseNodeIsDeletedByHandIsReplaced deletes the Node of a running Machine.
func TestAMachineWhoseNodeIsDeletedByHandIsReplaced(t *testing.T) {
	kit.OnlyInLong(t, "the tests of internal/controller/machine")
	t.Parallel()
	f := plane.NewTargetFleet(t)
	md := f.Deployment("workers", 1, 1, 0)
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)
	m := onlyMachine(t, f)
	must(t, f.Cluster.Client.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Status.NodeRef.Name}}))
	patience.Eventually(t, func(ctx context.Context) string {
		machines, err := f.Machines(ctx)
		if err != nil || len(machines) != 1 || machines[0].UID == m.UID || machines[0].Status.Phase != machinev1alpha1.MachineRunning {
			return fmt.Sprintf("%d Machines, %v\n%s", len(machines), err, f.Describe(ctx))
		}
		return ""
	})
	(&member{f: f, name: m.Name}).reported(t, "NodeDeleted")
	kubectl(t, f, "delete", "md", md.Name)
	f.AwaitNothing(t)
	must(t, f.Client.DeleteAllOf(t.Context(), &clusterv1alpha1.ProviderConfig{}, client.InNamespace(f.Namespace)))
}

// TestAMachineRunsOnlyWithoutStartupTaints also checks that Drover keeps taints and annotations
// of the Node that another client set.
func TestAMachineRunsOnlyWithoutStartupTaints(t *testing.T) {
	kit.OnlyInLong(t, "the tests of internal/controller/machine")
	t.Parallel()
	f := plane.NewTargetFleet(t)
	m := &member{f: f, name: "starting"}
	o := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: m.name}, Spec: f.MachineSpec(kit.NewVersion)}
	o.Spec.StartupTaints = []machinev1alpha1.Taint{{Key: "example.org/network-missing", Effect: "NoSchedule"}}
	o.Spec.Taints = []machinev1alpha1.Taint{{Key: "example.org/dedicated", Value: "a", Effect: "NoSchedule"}}
	o.Spec.Metadata.Labels = map[string]string{"node-role.kubernetes.io/worker": "", "example.org/pool": "a"}
	f.Create(t, o)
	n := &corev1.Node{}
	step(t, "ItWaits", func(t *testing.T) {
		patience.Eventually(t, func(ctx context.Context) string {
			if err := f.Client.Get(ctx, m.key(), o); err != nil {
				return err.Error()
			}
			for _, c := range o.Status.Conditions {
				if c.Type == "NodeReady" && c.Reason == "NodeStarting" && o.Status.Phase == machinev1alpha1.MachineJoining {
					return ""
				}
			}
			return f.Describe(ctx)
		})
		m.node = o.Status.NodeRef.Name
		must(t, f.Cluster.Client.Get(t.Context(), client.ObjectKey{Name: m.node}, n))
		keys := map[string]bool{}
		for _, taint := range n.Spec.Taints {
			keys[taint.Key] = true
		}
		if keys[machinev1alpha1.TaintUninitialized] || !keys["example.org/network-missing"] || !keys["example.org/dedicated"] {
			t.Errorf("taints %v", n.Spec.Taints)
		}
		if _, ok := n.Labels["node-role.kubernetes.io/worker"]; !ok || n.Labels["example.org/pool"] != "a" {
			t.Errorf("labels %v", n.Labels)
		}
	})
	step(t, "ThenItRuns", func(t *testing.T) {
		f.PatchIn(t, f.Cluster, n, `{"spec":{"taints":[{"key":"example.org/dedicated","value":"a","effect":"NoSchedule"},{"key":"theirs","effect":"NoSchedule"}]},"metadata":{"annotations":{"cluster-autoscaler.kubernetes.io/scale-down-disabled":"true"}}}`)
		m.awaitRunning(t)
	})
	step(t, "WhatOthersHadSetIsTheirs", func(t *testing.T) {
		f.Patch(t, o, `{"spec":{"metadata":{"annotations":{"cluster-autoscaler.kubernetes.io/scale-down-disabled":"true"},"labels":{"example.org/pool":"b"}},"taints":[{"key":"theirs","effect":"NoSchedule"}]}}`)
		m.awaitNode(t, func(n *corev1.Node) bool { return n.Labels["example.org/pool"] == "b" && len(n.Spec.Taints) == 1 })
		f.Patch(t, o, `{"spec":{"metadata":{"annotations":null,"labels":null},"taints":null}}`)
		m.awaitNode(t, func(n *corev1.Node) bool { return n.Labels["example.org/pool"] == "" })
		f.Throughout(t, func(ctx context.Context) string {
			if err := f.Cluster.Client.Get(ctx, client.ObjectKey{Name: m.node}, n); err != nil {
				return err.Error()
			}
			if len(n.Spec.Taints) != 1 || n.Annotations["cluster-autoscaler.kubernetes.io/scale-down-disabled"] != "true" {
				return fmt.Sprintf("taints %v, annotations %v", n.Spec.Taints, n.Annotations)
			}
			return ""
		})
	})
	m.delete(t)
	m.awaitGone(t)
	must(t, f.Client.DeleteAllOf(t.Context(), &clusterv1alpha1.ProviderConfig{}, client.InNamespace(f.Namespace)))
}

func (m *member) awaitNode(t *testing.T, ok func(*corev1.Node) bool) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		n := &corev1.Node{}
		if err := m.f.Cluster.Client.Get(ctx, client.ObjectKey{Name: m.node}, n); err != nil {
			return err.Error()
		}
		if !ok(n) {
			return fmt.Sprintf("Node with labels %v, taints %v", n.Labels, n.Spec.Taints)
		}
		return ""
	})
}

// lingering creates a pod on a Node that takes a while to end.
func lingering(t *testing.T, f kit.Fleet, node string) {
	t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "lingers-on-" + node, Annotations: map[string]string{"localcloud.drover.dev/stop-seconds": "3"}}}
	if f.Cluster == f.Control {
		p.Namespace = metav1.NamespaceDefault // The pod is not deleted with the namespace of the Machines.
	}
	p.Spec = corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "example.org/c"}}, TerminationGracePeriodSeconds: ptr.To(int64(10))}
	f.CreateIn(t, f.Cluster, p)
	t.Cleanup(func() { _ = f.Cluster.Client.Delete(context.Background(), p) })
}

// An order checks that no VM of a fleet starts to terminate while the Node of its Machine exists.
type order struct {
	stop   context.CancelFunc
	ended  chan struct{}
	mu     sync.Mutex
	broken []string
	going  map[string]bool
}

func watchOrder(t *testing.T, f kit.Fleet) *order {
	ctx, cancel := context.WithCancel(t.Context())
	o := &order{stop: cancel, ended: make(chan struct{}), going: map[string]bool{}}
	go func() {
		defer close(o.ended)
		running := map[string]localcloud.VM{}
		for tick := time.NewTicker(50 * time.Millisecond); ; {
			// List VMs before Nodes: then each listed Node existed when the VMs were listed.
			vms, err := f.VMs(ctx)
			l := &corev1.NodeList{}
			if err == nil {
				err = f.Cluster.Client.List(ctx, l)
			}
			if err == nil {
				o.look(vms, l.Items, running)
			}
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
			}
		}
	}()
	return o
}

func (o *order) look(vms []localcloud.VM, nodes []corev1.Node, running map[string]localcloud.VM) {
	o.mu.Lock()
	defer o.mu.Unlock()
	there, has := map[string]bool{}, map[string]bool{}
	for _, n := range nodes {
		has[n.Spec.ProviderID] = true
	}
	for _, vm := range vms {
		there[vm.ID] = vm.State == localcloud.StateRunning
		if there[vm.ID] {
			running[vm.ID] = vm
		}
	}
	for id, vm := range running {
		if there[id] || o.going[id] {
			continue
		}
		o.going[id] = true
		if has[vm.ProviderID] {
			o.broken = append(o.broken, fmt.Sprintf("VM %s of Machine %s goes before its Node is gone", id, vm.Tags[machinev1alpha1.TagMachine]))
		}
	}
}

// done checks that no violation was seen, once the expected number of VMs was.
func (o *order) done(t *testing.T, vms int) {
	t.Helper()
	patience.Eventually(t, func(context.Context) string {
		o.mu.Lock()
		defer o.mu.Unlock()
		if len(o.going) < vms {
			return fmt.Sprintf("%d VMs were seen to go, want %d", len(o.going), vms)
		}
		return ""
	})
	o.stop()
	<-o.ended
	for _, s := range o.broken {
		t.Error(s)
	}
}

func onlyMachine(t *testing.T, f kit.Fleet) *machinev1alpha1.Machine {
	t.Helper()
	machines, err := f.Machines(t.Context())
	if err != nil || len(machines) != 1 {
		t.Fatalf("%d Machines, %v", len(machines), err)
	}
	return &machines[0]
}

func onlySet(t *testing.T, f kit.Fleet) *machinev1alpha1.MachineSet {
	t.Helper()
	l := &machinev1alpha1.MachineSetList{}
	if err := f.Client.List(t.Context(), l, client.InNamespace(f.Namespace)); err != nil || len(l.Items) != 1 {
		t.Fatalf("%d MachineSets, %v", len(l.Items), err)
	}
	return &l.Items[0]
}

func hasVMOf(vms []localcloud.VM, uid types.UID) bool {
	for _, vm := range vms {
		if vm.Tags[machinev1alpha1.TagMachineUID] == string(uid) {
			return true
		}
	}
	return false
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
