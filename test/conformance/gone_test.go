package conformance

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/patience"
)

// drained deletes the deployment while a PodDisruptionBudget blocks the eviction of a pod from its
// Node.
func drained(t *testing.T, _ Cloud, l *life) {
	w, m := l.world, l.machine
	node := w.node(t, m)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "held", Labels: map[string]string{"app": "held"}}}
	pod.Spec = corev1.PodSpec{NodeName: node.Name, Containers: []corev1.Container{{Name: "c", Image: "example.org/c"}}, TerminationGracePeriodSeconds: ptr.To(int64(1))}
	w.CreateIn(t, w.Cluster, pod)
	pdb := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "held"}}
	pdb.Spec = policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: pod.Labels}}
	w.CreateIn(t, w.Cluster, pdb)
	patience.Eventually(t, func(ctx context.Context) string {
		if err := w.Cluster.Client.Get(ctx, client.ObjectKeyFromObject(pdb), pdb); err != nil || pdb.Status.CurrentHealthy != 1 {
			return fmt.Sprintf("the budget sees %d healthy pods, %v", pdb.Status.CurrentHealthy, err)
		}
		return ""
	})

	must(t, w.Client.Delete(t.Context(), l.md))
	w.await(t, m, func(m *machinev1alpha1.Machine) string {
		if d := m.Status.Deletion; d == nil || d.Stage != machinev1alpha1.DeletionDraining {
			return "is not being drained"
		}
		return ""
	})
	vm := w.vm(t, m)
	w.Throughout(t, func(ctx context.Context) string {
		vms, err := w.account.VMs(ctx)
		if err != nil || len(vms) != 1 || vms[0].ID != vm.ID {
			return fmt.Sprintf("VM %s shall stay, there are %+v, %v", vm.ID, vms, err)
		}
		if s := l.wasRebootedOnce(ctx); s != "" {
			return s
		}
		if err := w.Cluster.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil || pod.DeletionTimestamp != nil {
			return fmt.Sprintf("the pod goes: %v", err)
		}
		return ""
	})
	w.PatchIn(t, w.Cluster, pdb, `{"spec":{"minAvailable":0}}`)
	patience.Eventually(t, func(ctx context.Context) string { return w.gone(ctx, m) })
	if s := w.nothing(t.Context()); s != "" {
		t.Errorf("the Machine is gone, and not its VM and what that had: %s", s)
	}
	if err := w.Cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(node), node); !apierrors.IsNotFound(err) {
		t.Errorf("the Machine is gone, and not its Node %s: %v", node.Name, err)
	}
}

func lost(t *testing.T, c Cloud, _ *life) {
	w := newWorld(t, c)
	md := w.deployment("workers", 1)
	w.Create(t, md)
	w.AwaitDeployment(t, md.Name)
	machines, err := w.Machines(t.Context())
	must(t, err)
	before := machines[0]
	vm := w.vm(t, &before)
	began := time.Now()
	w.account.Lose(t, vm.ID)
	patience.Eventually(t, func(ctx context.Context) string { return w.gone(ctx, &before) })
	w.AwaitDeployment(t, md.Name)
	t.Logf("replaced within %s", time.Since(began).Round(time.Second))
	machines, err = w.Machines(t.Context())
	must(t, err)
	if after := w.vm(t, &machines[0]); after.ID == vm.ID || machines[0].UID == before.UID {
		t.Errorf("VM %s of Machine %s was not replaced", vm.ID, before.Name)
	}
	w.end(t, md)
}

func orphan(t *testing.T, c Cloud, _ *life) {
	w := newWorld(t, c)
	account, ok := w.account.(OrphanAccount)
	if !ok {
		t.Fatalf("%s has neither an inventory nor a reason to have none", c.Provider())
	}
	o := &machinev1alpha1.OrphanCollector{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}
	o.Spec.Namespace = w.Namespace
	o.Spec.ProviderConfigRef = account.ProviderConfig()
	o.Spec.GracePeriod.Duration, o.Spec.Interval.Duration = 10*time.Minute, time.Second
	placed(t, o, account)
	w.Create(t, o)
	// Three seconds stand for the grace period of ten minutes.
	go w.Age(t.Context(), labelOf(c)+".drover.dev", w.Namespace, o.Spec.GracePeriod.Duration-3*time.Second)
	await := func(what string, ok func(machinev1alpha1.OrphanCollectorStatus) bool) {
		t.Helper()
		patience.Eventually(t, func(ctx context.Context) string {
			if err := w.Client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil || !ok(o.Status) {
				return fmt.Sprintf("want %s: %+v, %v", what, o.Status, err)
			}
			return ""
		})
	}
	await("a look at the cloud", func(s machinev1alpha1.OrphanCollectorStatus) bool {
		c := meta.FindStatusCondition(s.Conditions, "OrphansFound")
		return s.Installation != "" && c != nil && c.Status != metav1.ConditionUnknown
	})
	bystander := w.lone(t, "bystander")
	w.await(t, bystander, isRunning)
	id := account.CreateVM(t, "orphan", map[string]string{
		machinev1alpha1.TagInstallation: o.Status.Installation, machinev1alpha1.TagCluster: "default",
		machinev1alpha1.TagNamespace: w.Namespace, machinev1alpha1.TagMachine: "orphan", machinev1alpha1.TagMachineUID: "0a0a0a0a-0000-4000-8000-000000000000",
	})
	await("the orphan", func(s machinev1alpha1.OrphanCollectorStatus) bool {
		return len(s.VirtualMachines) == 1 && s.VirtualMachines[0].ExternalName == id
	})
	if got, like := o.Status.VirtualMachines[0].ProviderID, bystander.Status.ProviderID; !isAlike(got, id, like, w.vm(t, bystander).ID) {
		t.Errorf("the orphan has the providerID %q, want one like %q: by it the Node of an orphan is found", got, like)
	}
	census(t, w, o, 1, 1)
	if account, ok := account.(LeftAccount); ok {
		// The resources that the VM of the bystander uses have the same tags.
		left := account.Leave(t, "left-datadisk", map[string]string{
			machinev1alpha1.TagInstallation: o.Status.Installation, machinev1alpha1.TagNamespace: w.Namespace, machinev1alpha1.TagMachine: "left",
		})
		await("the resource that nothing uses", func(s machinev1alpha1.OrphanCollectorStatus) bool {
			return left == "" || len(s.Resources) == 1 && s.Resources[0].ID == left && s.Resources[0].Machine == "left"
		})
	}
	w.Patch(t, o, `{"spec":{"policy":"Delete"}}`)
	await("no orphan", func(s machinev1alpha1.OrphanCollectorStatus) bool {
		return s.Orphans == 0 && len(s.VirtualMachines) == 0
	})
	if left := w.besides(t, w.vm(t, bystander).ID); len(left) > 0 {
		t.Errorf("the VM of the bystander shall be left alone, there are %+v", left)
	}
	w.await(t, bystander, isRunning)
	census(t, w, o, 1, 0)
	w.end(t, bystander, o)
}

// isAlike reports whether the providerIDs of two VMs have the same form. Besides the external names
// at their ends, at most one part differs: the place. If they do not end with the external names, this
// part is the ID of the VM, such as the UUID at vSphere.
func isAlike(a, nameOfA, b, nameOfB string) bool {
	a, endsA := strings.CutSuffix(a, nameOfA)
	b, endsB := strings.CutSuffix(b, nameOfB)
	partsOfA, partsOfB := strings.Split(a, "/"), strings.Split(b, "/")
	if endsA != endsB || len(partsOfA) != len(partsOfB) || partsOfA[0] != partsOfB[0] {
		return false
	}
	differ := 0
	for i := range partsOfA {
		if partsOfA[i] != partsOfB[i] {
			differ++
		}
	}
	return differ <= 1
}
