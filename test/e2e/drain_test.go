package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// TestDrains has one Machine per case, all in the target cluster.
func TestDrains(t *testing.T) {
	t.Parallel()
	f := plane.NewTargetFleet(t)
	cases := map[string]struct {
		drain func(*machinev1alpha1.Drain)
		run   func(t *testing.T, m *member)
	}{
		"ABudgetHoldsAPodUntilItLetsIt": {nil, budgetThatLetsGo},
		"AWrongBudgetIsNamedAndForceEndsIt": {nil, func(t *testing.T, m *member) {
			m.blocked(t, "misconfigured: the PodDisruptionBudget", "maxUnavailable is 0")
			m.annotate(t, machinev1alpha1.AnnotationForceDrain)
			m.awaitGone(t)
			m.reported(t, "DrainForced")
		}},
		"TwoBudgetsAreNamedAndSkipEndsIt": {nil, func(t *testing.T, m *member) {
			m.budget(t, m.name+"-second", "held", policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(1))})
			m.blocked(t, "misconfigured: the PodDisruptionBudgets "+m.name+" and "+m.name+"-second")
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.node}}
			m.f.PatchIn(t, m.f.Cluster, n, `{"metadata":{"annotations":{"drover.dev/skip-drain":"true"}}}`)
			m.awaitGone(t)
		}},
		"ItEndsByItsTimeout": {func(d *machinev1alpha1.Drain) { d.Timeout.Duration = 8 * time.Second }, func(t *testing.T, m *member) {
			began := time.Now()
			m.blocked(t, "misconfigured")
			m.awaitGone(t)
			if took := time.Since(began); took < 8*time.Second {
				t.Errorf("it took %s", took)
			}
			m.reported(t, "DrainTimeout")
		}},
		"OrByTooManyRefusals": {func(d *machinev1alpha1.Drain) { d.MaxEvictRetries = ptr.To[int32](2) }, func(t *testing.T, m *member) {
			m.blocked(t, "misconfigured")
			m.awaitGone(t)
		}},
		"PodsGoInTheirOrder": {func(d *machinev1alpha1.Drain) {
			select1 := func(role string) *machinev1alpha1.LabelSelector {
				return &machinev1alpha1.LabelSelector{MatchLabels: map[string]machinev1alpha1.LabelValue{"role": machinev1alpha1.LabelValue(role)}}
			}
			d.PodRules = []machinev1alpha1.PodRule{
				{Selector: select1("job"), Behavior: machinev1alpha1.PodWaitCompleted},
				{Selector: select1("last"), Order: ptr.To[int32](10)},
				{Selector: select1("stays"), Behavior: machinev1alpha1.PodSkip},
			}
		}, podsInOrder},
		"VolumesMoveOneAfterTheOther": {nil, volumesMove},
		"AVolumeThatIsStuckHoldsItOnlyForAWhile": {func(d *machinev1alpha1.Drain) { d.VolumeDetachTimeout.Duration = 4 * time.Second }, func(t *testing.T, m *member) {
			m.attach(t, m.name+"-pv", m.node)
			m.delete(t)
			m.awaitStage(t, machinev1alpha1.DeletionDetachingVolumes)
			m.awaitGone(t)
			m.reported(t, "VolumeDetachTimeout")
		}},
		"HooksHoldIt":                              {nil, hooksHold},
		"HooksHoldItNoLongerThanTheirTimeout":      {func(d *machinev1alpha1.Drain) { d.HookTimeout.Duration = 4 * time.Second }, hooksTimeOut},
		"AVMThatCannotBeDeletedIsLetGoByForce":     {nil, forceDeletion},
		"ANodeThatIsDeadHoldsNothing":              {nil, deadNode},
		"ANodeThatShallStayIsDrainedAndUncordoned": {nil, drainedInPlace},
	}
	members := map[string]*member{}
	for i, name := range slices.Sorted(maps.Keys(cases)) {
		m := &member{f: f, name: fmt.Sprintf("m%02d", i)}
		m.create(t, cases[name].drain)
		members[name] = m
	}
	for _, m := range members {
		m.awaitRunning(t)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Cleanup(func() {
				if t.Failed() {
					t.Log(f.Describe(context.Background()))
				}
			})
			tc.run(t, members[name])
		})
	}
	t.Cleanup(func() {
		if !t.Failed() {
			_ = f.Client.DeleteAllOf(context.Background(), &clusterv1alpha1.ProviderConfig{}, client.InNamespace(f.Namespace))
		}
	})
}

func budgetThatLetsGo(t *testing.T, m *member) {
	pod := m.pod(t, "held", nil)
	pdb := m.budget(t, m.name, "held", policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(1))})
	m.delete(t)
	m.awaitBlocked(t, "PodDisruptionBudget")
	step(t, "NothingGoesWhileTheBudgetHolds", func(t *testing.T) {
		m.f.Throughout(t, func(ctx context.Context) string {
			if err := m.f.Cluster.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil || pod.DeletionTimestamp != nil {
				return fmt.Sprintf("the pod goes: %v %v", err, pod.DeletionTimestamp)
			}
			if s := m.vmState(ctx); s != string(localcloud.StateRunning) {
				return "the VM is " + s
			}
			return ""
		})
		n := &corev1.Node{}
		if err := m.f.Cluster.Client.Get(t.Context(), client.ObjectKey{Name: m.node}, n); err != nil || !n.Spec.Unschedulable {
			t.Errorf("the Node is not cordoned: %v", err)
		}
	})
	m.f.PatchIn(t, m.f.Cluster, pdb, `{"spec":{"minAvailable":0}}`)
	m.awaitGone(t)
}

func podsInOrder(t *testing.T, m *member) {
	role := func(r string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Labels["role"] = r } }
	job, last, plain := m.pod(t, "job", role("job")), m.pod(t, "last", role("last")), m.pod(t, "plain", nil)
	m.pod(t, "stays", role("stays"))
	m.delete(t)
	m.awaitPodGone(t, plain)
	m.awaitPods(t, map[string]string{"job": "ends by itself", "last": "lower order"})
	m.f.PatchStatusIn(t, m.f.Cluster, job, `{"status":{"phase":"Succeeded"}}`)
	m.awaitPodGone(t, last)
	m.awaitGone(t)
}

func volumesMove(t *testing.T, m *member) {
	pods := map[string]*corev1.Pod{}
	for i, name := range []string{"first", "second"} {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: m.f.Namespace, Name: m.name + "-" + name}}
		claim.Spec = corev1.PersistentVolumeClaimSpec{
			VolumeName: m.name + "-pv-" + name, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}
		m.f.CreateIn(t, m.f.Cluster, claim)
		m.attach(t, claim.Spec.VolumeName, m.node)
		pods[name] = m.pod(t, name, func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name}}}}
			p.Labels["first"] = fmt.Sprint(i == 0)
		})
	}
	m.delete(t)
	m.awaitPodGone(t, pods["first"])
	m.awaitVolumes(t, m.name+"-pv-first Detaching")
	m.stays(t, pods["second"])
	m.detach(t, m.name+"-pv-first", m.node)
	m.awaitVolumes(t, m.name+"-pv-first Reattaching")
	m.stays(t, pods["second"])
	m.attach(t, m.name+"-pv-first", "another-node")
	m.awaitPodGone(t, pods["second"])
	m.awaitStage(t, machinev1alpha1.DeletionDetachingVolumes)
	if s := m.vmState(t.Context()); s != string(localcloud.StateRunning) {
		t.Errorf("the VM is %s while a volume is attached", s)
	}
	m.detach(t, m.name+"-pv-second", m.node)
	m.awaitGone(t)
	m.detach(t, m.name+"-pv-first", "another-node")
}

func hooksHold(t *testing.T, m *member) {
	pod := m.pod(t, "app", nil)
	m.annotate(t, machinev1alpha1.HookPreDrain+"backup")
	m.annotate(t, machinev1alpha1.HookPreTerminate+"audit")
	m.delete(t)
	m.awaitStage(t, machinev1alpha1.DeletionPreDrainHooks)
	if d := m.machine(t).Status.Deletion; !slices.Equal(d.Hooks, []string{"backup"}) {
		t.Errorf("deletion %+v", d)
	}
	m.stays(t, pod)
	m.unannotate(t, machinev1alpha1.HookPreDrain+"backup")
	m.awaitPodGone(t, pod)
	m.awaitStage(t, machinev1alpha1.DeletionPreTerminateHooks)
	m.f.Throughout(t, func(ctx context.Context) string {
		if s := m.vmState(ctx); s != string(localcloud.StateRunning) {
			return "the VM is " + s
		}
		return ""
	})
	m.unannotate(t, machinev1alpha1.HookPreTerminate+"audit")
	m.awaitGone(t)
}

func hooksTimeOut(t *testing.T, m *member) {
	m.annotate(t, machinev1alpha1.HookPreDrain+"backup")
	m.annotate(t, machinev1alpha1.HookPreTerminate+"audit")
	m.delete(t)
	m.awaitStage(t, machinev1alpha1.DeletionPreDrainHooks)
	m.awaitStage(t, machinev1alpha1.DeletionPreTerminateHooks)
	m.awaitGone(t)
	m.reported(t, "HookTimeout", "the drain begins", "backup")
	m.reported(t, "HookTimeout", "the deletion goes on", "audit")
}

// forceDeletion simulates a provider that cannot delete, by a finalizer that is never removed.
func forceDeletion(t *testing.T, m *member) {
	vm := m.vmResource(t)
	kubectl(t, m.f, "patch", "virtualmachines.local.drover.dev", vm, "--type=json", "-p", `[{"op":"add","path":"/metadata/finalizers/-","value":"example.org/stuck"}]`)
	m.delete(t)
	m.awaitStage(t, machinev1alpha1.DeletionDeletingVM)
	m.f.Throughout(t, func(ctx context.Context) string {
		return m.is(ctx, machinev1alpha1.MachineTerminating)
	})
	m.annotate(t, machinev1alpha1.AnnotationForceDelete)
	patience.Eventually(t, m.gone)
	m.reported(t, "ForceDeleted")
	// A forced deletion leaves the VM without an owner.
	vms := m.vms(t.Context())
	if len(vms) != 1 {
		t.Fatalf("%d VMs", len(vms))
	}
	if err := m.f.Cloud.DeleteVM(t.Context(), vms[0].ID); err != nil {
		t.Error(err)
	}
}

func deadNode(t *testing.T, m *member) {
	m.pod(t, "app", nil)
	if _, err := m.f.Cloud.CreateFault(t.Context(), localcloud.Fault{Kind: localcloud.FaultKubeletStops, Match: localcloud.FaultMatch{Tags: map[string]string{
		machinev1alpha1.TagNamespace: m.f.Namespace, machinev1alpha1.TagMachine: m.name,
	}}}); err != nil {
		t.Fatal(err)
	}
	patience.Eventually(t, func(ctx context.Context) string { return m.is(ctx, machinev1alpha1.MachineUnknown) })
	m.delete(t)
	m.awaitGone(t)
}

func drainedInPlace(t *testing.T, m *member) {
	pod := m.pod(t, "app", nil)
	await := func(drained bool, patch string) {
		t.Helper()
		m.f.Patch(t, m.machine(t), patch)
		patience.Eventually(t, func(ctx context.Context) string {
			n := &corev1.Node{}
			if err := m.f.Cluster.Client.Get(ctx, client.ObjectKey{Name: m.node}, n); err != nil {
				return err.Error()
			}
			o := &machinev1alpha1.Machine{}
			if err := m.f.Client.Get(ctx, m.key(), o); err != nil {
				return err.Error()
			}
			if o.Status.Drained != drained || n.Spec.Unschedulable != drained {
				return fmt.Sprintf("unschedulable %v, Machine %+v", n.Spec.Unschedulable, o.Status)
			}
			return ""
		})
	}
	// An update in place whose agent does not answer.
	await(true, fmt.Sprintf(`{"spec":{"inPlaceUpdate":{"id":"a","selected":true,"version":%q,"classRef":{"name":"small"}}}}`, kit.NewVersion))
	m.awaitPodGone(t, pod)
	await(false, `{"spec":{"inPlaceUpdate":null}}`)
	m.delete(t)
	m.awaitGone(t)
}

// A member is a Machine of a fleet, with helpers for a test.
type member struct {
	f    kit.Fleet
	name string
	node string
}

func (m *member) create(t *testing.T, drain func(*machinev1alpha1.Drain)) {
	t.Helper()
	o := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: m.f.Namespace, Name: m.name}}
	o.Spec = m.f.MachineSpec(kit.NewVersion)
	if drain != nil {
		drain(&o.Spec.Drain)
	}
	m.f.Create(t, o)
}

// running returns a member whose Machine runs.
func running(t *testing.T, f kit.Fleet, name string) *member {
	t.Helper()
	m := &member{f: f, name: name}
	m.create(t, nil)
	m.awaitRunning(t)
	return m
}

func (m *member) key() client.ObjectKey {
	return client.ObjectKey{Namespace: m.f.Namespace, Name: m.name}
}

func (m *member) machine(t *testing.T) *machinev1alpha1.Machine {
	t.Helper()
	o := &machinev1alpha1.Machine{}
	if err := m.f.Client.Get(t.Context(), m.key(), o); err != nil {
		t.Fatal(err)
	}
	return o
}

func (m *member) is(ctx context.Context, phase machinev1alpha1.MachinePhase) string {
	o := &machinev1alpha1.Machine{}
	if err := m.f.Client.Get(ctx, m.key(), o); err != nil {
		return err.Error()
	}
	if o.Status.Phase != phase {
		return fmt.Sprintf("Machine %s is %s: %+v", m.name, o.Status.Phase, o.Status)
	}
	return ""
}

func (m *member) awaitRunning(t *testing.T) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string { return m.is(ctx, machinev1alpha1.MachineRunning) })
	m.node = m.machine(t).Status.NodeRef.Name
}

func (m *member) delete(t *testing.T) {
	t.Helper()
	if err := m.f.Client.Delete(t.Context(), m.machine(t)); err != nil {
		t.Fatal(err)
	}
}

func (m *member) gone(ctx context.Context) string {
	if err := m.f.Client.Get(ctx, m.key(), &machinev1alpha1.Machine{}); !apierrors.IsNotFound(err) {
		return fmt.Sprintf("Machine %s is still there: %v", m.name, err)
	}
	return ""
}

// awaitGone waits until Machine, Node and VM are deleted.
func (m *member) awaitGone(t *testing.T) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		if s := m.gone(ctx); s != "" {
			return s
		}
		if err := m.f.Cluster.Client.Get(ctx, client.ObjectKey{Name: m.node}, &corev1.Node{}); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("Node %s is still there: %v", m.node, err)
		}
		if vms := m.vms(ctx); len(vms) > 0 {
			return fmt.Sprintf("VMs %+v", vms)
		}
		return ""
	})
}

func (m *member) annotate(t *testing.T, key string) {
	t.Helper()
	m.f.Patch(t, m.machine(t), fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, key))
}

func (m *member) unannotate(t *testing.T, key string) {
	t.Helper()
	m.f.Patch(t, m.machine(t), fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, key))
}

// pod that runs on the Machine's Node.
func (m *member) pod(t *testing.T, name string, change func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: m.f.Namespace, Name: m.name + "-" + name, Labels: map[string]string{"app": m.name + "-" + name}}}
	p.Spec = corev1.PodSpec{
		NodeName:                      m.node,
		Containers:                    []corev1.Container{{Name: "c", Image: "example.org/c"}},
		TerminationGracePeriodSeconds: ptr.To(int64(2)),
	}
	if change != nil {
		change(p)
	}
	m.f.CreateIn(t, m.f.Cluster, p)
	patience.Eventually(t, func(ctx context.Context) string {
		if err := m.f.Cluster.Client.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error()
		}
		if p.Status.Phase != corev1.PodRunning {
			return fmt.Sprintf("pod %s is %s", p.Name, p.Status.Phase)
		}
		return ""
	})
	return p
}

// budget creates a PodDisruptionBudget of a pod.
func (m *member) budget(t *testing.T, name, pod string, spec policyv1.PodDisruptionBudgetSpec) *policyv1.PodDisruptionBudget {
	t.Helper()
	pdb := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: m.f.Namespace, Name: name}, Spec: spec}
	pdb.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": m.name + "-" + pod}}
	m.f.CreateIn(t, m.f.Cluster, pdb)
	patience.Eventually(t, func(ctx context.Context) string {
		if err := m.f.Cluster.Client.Get(ctx, client.ObjectKeyFromObject(pdb), pdb); err != nil {
			return err.Error()
		}
		if pdb.Status.ObservedGeneration == 0 {
			return "the budget is not counted"
		}
		return ""
	})
	return pdb
}

// blocked deletes the Machine while a budget without allowed disruptions holds a pod, and waits
// until the status reports it.
func (m *member) blocked(t *testing.T, want ...string) {
	t.Helper()
	m.pod(t, "held", nil)
	pdb := m.budget(t, m.name, "held", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(0))})
	patience.Eventually(t, func(ctx context.Context) string {
		if err := m.f.Cluster.Client.Get(ctx, client.ObjectKeyFromObject(pdb), pdb); err != nil || pdb.Status.CurrentHealthy != 1 {
			return fmt.Sprintf("the budget sees %d healthy pods, %v", pdb.Status.CurrentHealthy, err)
		}
		return ""
	})
	m.delete(t)
	m.awaitBlocked(t, want...)
}

// awaitBlocked waits until the Machine reports the pod "held" with a reason, in its drain and in
// its deletion status.
func (m *member) awaitBlocked(t *testing.T, want ...string) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		o := &machinev1alpha1.Machine{}
		if err := m.f.Client.Get(ctx, m.key(), o); err != nil {
			return err.Error()
		}
		if o.Status.Drain == nil || o.Status.Deletion == nil {
			return "no drain is reported"
		}
		for field, pods := range map[string][]machinev1alpha1.DrainedPod{"drain": o.Status.Drain.Pods, "deletion": o.Status.Deletion.Pods} {
			texts := ""
			for _, p := range pods {
				texts += fmt.Sprintf("%s: %s\n", p.Name, p.Reason)
			}
			for _, w := range want {
				if !strings.Contains(texts, m.name+"-held: ") || !strings.Contains(texts, w) {
					return fmt.Sprintf("status.%s: %q is not among\n%s", field, w, texts)
				}
			}
		}
		return ""
	})
}

// awaitPods waits until the drain reports exactly these pods with these reasons.
func (m *member) awaitPods(t *testing.T, want map[string]string) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		d, err := m.drain(ctx)
		if err != nil {
			return err.Error()
		}
		got := map[string]string{}
		for _, p := range d.Pods {
			got[strings.TrimPrefix(p.Name, m.name+"-")] = p.Reason
		}
		for name, reason := range want {
			if !strings.Contains(got[name], reason) || len(got) != len(want) {
				return fmt.Sprintf("pods %v, want %v", got, want)
			}
		}
		return ""
	})
}

func (m *member) awaitPodGone(t *testing.T, p *corev1.Pod) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		if err := m.f.Cluster.Client.Get(ctx, client.ObjectKeyFromObject(p), &corev1.Pod{}); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("pod %s is still there: %v", p.Name, err)
		}
		return ""
	})
}

// stays checks that a pod is not evicted for longer than a drain pass takes.
func (m *member) stays(t *testing.T, p *corev1.Pod) {
	t.Helper()
	m.f.Throughout(t, func(ctx context.Context) string {
		got := &corev1.Pod{}
		if err := m.f.Cluster.Client.Get(ctx, client.ObjectKeyFromObject(p), got); err != nil || got.DeletionTimestamp != nil {
			return fmt.Sprintf("pod %s goes: %v", p.Name, err)
		}
		return ""
	})
}

func (m *member) awaitStage(t *testing.T, stage machinev1alpha1.DeletionStage) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		o := &machinev1alpha1.Machine{}
		if err := m.f.Client.Get(ctx, m.key(), o); err != nil {
			return err.Error()
		}
		if d := o.Status.Deletion; d == nil || d.Stage != stage || d.Since.IsZero() {
			return fmt.Sprintf("deletion %+v, want %s", d, stage)
		}
		return ""
	})
}

func (m *member) awaitVolumes(t *testing.T, want string) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		d, err := m.drain(ctx)
		if err != nil {
			return err.Error()
		}
		for _, v := range d.Volumes {
			if v.Name+" "+string(v.State) == want {
				return ""
			}
		}
		return fmt.Sprintf("volumes %+v, want %s", d.Volumes, want)
	})
}

// attach acts as the attacher of a CSI driver.
func (m *member) attach(t *testing.T, volume, node string) {
	t.Helper()
	va := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: volume + "-" + node}}
	va.Spec = storagev1.VolumeAttachmentSpec{Attacher: "csi.example.org", NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}}
	m.f.CreateIn(t, m.f.Cluster, va)
	m.f.PatchStatusIn(t, m.f.Cluster, va, `{"status":{"attached":true}}`)
	t.Cleanup(func() { _ = m.f.Cluster.Client.Delete(context.Background(), va) })
}

func (m *member) detach(t *testing.T, volume, node string) {
	t.Helper()
	if err := m.f.Cluster.Client.Delete(t.Context(), &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: volume + "-" + node}}); err != nil {
		t.Fatal(err)
	}
}

// drain returns the drain status of the Machine.
func (m *member) drain(ctx context.Context) (*machinev1alpha1.DrainStatus, error) {
	o := &machinev1alpha1.Machine{}
	if err := m.f.Client.Get(ctx, m.key(), o); err != nil {
		return nil, err
	}
	if o.Status.Drain == nil {
		return nil, errors.New("no drain is reported")
	}
	return o.Status.Drain, nil
}

func (m *member) vmResource(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(kubectl(t, m.f, "get", "virtualmachines.local.drover.dev", "-l", machinev1alpha1.LabelMachine+"="+m.name, "-o", "jsonpath={.items[0].metadata.name}"))
}

func (m *member) vms(ctx context.Context) []localcloud.VM {
	vms, err := m.f.VMs(ctx)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(vms, func(vm localcloud.VM) bool { return vm.Tags[machinev1alpha1.TagMachine] != m.name })
}

func (m *member) vmState(ctx context.Context) string {
	vms := m.vms(ctx)
	if len(vms) != 1 {
		return fmt.Sprintf("one of %d", len(vms))
	}
	return string(vms[0].State)
}

// Check that the Machine has an event with a reason, and with texts in its message.
func (m *member) reported(t *testing.T, reason string, texts ...string) {
	t.Helper()
	// An event is sent after what it reports, and a busy computer sends it later.
	patience.Eventually(t, func(ctx context.Context) string {
		l := &corev1.EventList{}
		if err := m.f.Client.List(ctx, l, client.InNamespace(m.f.Namespace)); err != nil {
			return err.Error()
		}
		for _, e := range l.Items {
			if e.InvolvedObject.Kind == "Machine" && e.InvolvedObject.Name == m.name && e.Reason == reason &&
				!slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(e.Message, text) }) {
				return ""
			}
		}
		return fmt.Sprintf("no event %s of the Machine %s with %q", reason, m.name, texts)
	}, m.f.Describe)
}
