package conformance

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/patience"
)

// RebootAccount is an Account whose provider reboots VMs.
type RebootAccount interface {
	Account
	// Reboots returns the reboots of a VM that its cloud carried out, in their order.
	Reboots(ctx context.Context, id string) ([]machinev1alpha1.RebootMode, error)
}

// lacksSoftReboot reports whether a cloud can only reset VMs.
func lacksSoftReboot(c Cloud) bool {
	s, ok := c.(interface{ LacksSoftReboot() bool })
	return ok && s.LacksSoftReboot()
}

// modesOf returns the modes of reboots that a fake records as Soft or Hard.
func modesOf(recorded []string) []machinev1alpha1.RebootMode {
	var out []machinev1alpha1.RebootMode
	for _, mode := range recorded {
		out = append(out, machinev1alpha1.RebootMode(mode))
	}
	return out
}

// rebootID is the ID of the request of the case Reboot.
const rebootID = "conformance-1"

// reboot requests a reboot of a Machine while a finalizer holds a pod on its Node. The VM is rebooted when the pod is
// gone.
func reboot(t *testing.T, c Cloud, l *life) {
	w, m := l.world, l.machine
	a, ok := w.account.(RebootAccount)
	if !ok {
		t.Fatalf("the Composition of %s has virtualMachine.reboot, and its Account is no RebootAccount", c.Provider())
	}
	w.await(t, m, isRunning)
	l.rebooted = a
	before, vm := w.node(t, m), w.vm(t, m)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "leaves", Finalizers: []string{"drover.example.org/held"}}}
	pod.Spec = corev1.PodSpec{NodeName: before.Name, Containers: []corev1.Container{{Name: "c", Image: "example.org/c"}}, TerminationGracePeriodSeconds: ptr.To(int64(1))}
	w.CreateIn(t, w.Cluster, pod)

	w.Patch(t, m, fmt.Sprintf(`{"metadata": {"annotations": {%q: %q}}}`, machinev1alpha1.AnnotationReboot, rebootID))
	patience.Eventually(t, func(ctx context.Context) string {
		if err := w.Cluster.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil || pod.DeletionTimestamp == nil {
			return fmt.Sprintf("the pod is not evicted: %v", err)
		}
		return ""
	})
	if n := w.node(t, m); !n.Spec.Unschedulable || n.Status.NodeInfo.BootID != before.Status.NodeInfo.BootID {
		t.Errorf("Node %s is drained, and unschedulable is %t, its boot ID %s and before %s", n.Name, n.Spec.Unschedulable, n.Status.NodeInfo.BootID, before.Status.NodeInfo.BootID)
	}
	if modes, err := a.Reboots(t.Context(), vm.ID); len(modes) > 0 || err != nil {
		t.Errorf("VM %s was rebooted while a pod was on its Node: %s, %v", vm.ID, modes, err)
	}
	w.PatchIn(t, w.Cluster, pod, `{"metadata": {"finalizers": null}}`)

	replaced := ""
	w.await(t, m, func(m *machinev1alpha1.Machine) string {
		if s := w.isOnly(t.Context(), m, vm.ID); s != "" {
			replaced = s
		}
		if r := m.Status.Reboot; r == nil || r.ID != rebootID || r.State != machinev1alpha1.RebootSucceeded {
			return fmt.Sprintf("is not rebooted: %+v", r)
		}
		return isRunning(m)
	})
	w.AwaitDeployment(t, l.md.Name)
	if replaced != "" {
		t.Errorf("while the VM was rebooted: %s", replaced)
	}
	if s := l.wasRebootedOnce(t.Context()); s != "" {
		t.Error(s)
	}
	want := machinev1alpha1.RebootSoft
	if lacksSoftReboot(c) {
		want = machinev1alpha1.RebootHard
	}
	if got := m.Status.Reboot.Mode; got != want {
		t.Errorf("the last request was %s, want %s: %s", got, want, m.Status.Reboot.Message)
	}
	if request := w.vmResource(t, m).GetAnnotations()[machinev1alpha1.AnnotationRebooted]; request != machinev1alpha1.RebootRequest(want, rebootID) {
		t.Errorf("the VM resource has the request %q", request)
	}
	after := w.node(t, m)
	if after.UID != before.UID || after.Spec.ProviderID != before.Spec.ProviderID || after.Spec.Unschedulable || after.Status.NodeInfo.BootID == before.Status.NodeInfo.BootID {
		t.Errorf("Node %s of VM %s, boot %s, became %s of VM %s, boot %s, unschedulable %t", before.UID, before.Spec.ProviderID, before.Status.NodeInfo.BootID,
			after.UID, after.Spec.ProviderID, after.Status.NodeInfo.BootID, after.Spec.Unschedulable)
	}
}

// isOnly returns "" if a Machine and its VM are the only ones of the world.
func (w *world) isOnly(ctx context.Context, m *machinev1alpha1.Machine, id string) string {
	machines, err := w.Machines(ctx)
	if err != nil || len(machines) != 1 || machines[0].UID != m.UID || machines[0].Status.Phase == machinev1alpha1.MachineFailed {
		return fmt.Sprintf("Machine %s is Failed or not the only one: %+v, %v", m.Name, machines, err)
	}
	vms, err := w.account.VMs(ctx)
	if err != nil || len(vms) != 1 || vms[0].ID != id {
		return fmt.Sprintf("VM %s is not the only one: %+v, %v", id, vms, err)
	}
	return ""
}

// wasRebootedOnce returns "" if the VM was rebooted once for the request of the case Reboot, or if the life lacks this case.
func (l *life) wasRebootedOnce(ctx context.Context) string {
	if l.rebooted == nil || l.machine.Status.Reboot == nil {
		return ""
	}
	vms, err := l.rebooted.VMs(ctx)
	if err != nil || len(vms) != 1 {
		return fmt.Sprintf("there are %d VMs, %v", len(vms), err)
	}
	modes, err := l.rebooted.Reboots(ctx, vms[0].ID)
	if err != nil || !slices.Equal(modes, []machinev1alpha1.RebootMode{l.machine.Status.Reboot.Mode}) {
		return fmt.Sprintf("the reboots of VM %s are %s, and the request was %s: %v", vms[0].ID, modes, l.machine.Status.Reboot.Mode, err)
	}
	return ""
}
