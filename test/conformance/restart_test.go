package conformance

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/patience"
)

// RestartAccount is an Account whose provider can be killed.
type RestartAccount interface {
	Account
	// DieAtCreation makes the provider die when the cloud has created the next VM of the account
	// and the provider has not recorded it yet. The provider then restarts.
	DieAtCreation(t *testing.T)
	// Died returns how often the provider died.
	Died() int
	// Leaks returns how many VMs are left that the provider then does not know.
	Leaks() int
}

// restart tests a provider that dies between the creation of a VM and the record of it.
func restart(t *testing.T, c Cloud, _ *life) {
	w := newWorld(t, c)
	account, ok := w.account.(RestartAccount)
	if !ok {
		t.Fatalf("nothing ends the provider of %s", c.Provider())
	}
	account.DieAtCreation(t)
	md := w.deployment("workers", 1)
	// Long enough for a Node to join, also on a busy computer, and no longer: the Machine whose VM is lost fails after it.
	md.Spec.Template.Spec.CreationTimeout = metav1.Duration{Duration: patience.Scale(time.Minute).Truncate(time.Second)}
	w.Create(t, md)
	patience.Eventually(t, func(context.Context) string {
		if n := account.Died(); n != 1 {
			return fmt.Sprintf("the provider died %d times", n)
		}
		return ""
	})
	var m machinev1alpha1.Machine
	patience.Eventually(t, func(ctx context.Context) string { return w.settled(ctx, md.Name, account.Leaks(), &m) }, w.describe)
	used := w.vm(t, &m)
	w.onlyNodeOf(t, &m)

	left := w.besides(t, used.ID)
	t.Logf("Machine %s runs with VM %s; %d are left at the cloud", m.Name, used.ID, len(left))
	for _, vm := range left {
		w.unused(t, vm)
	}
	if hasInventory(c) && len(left) > 0 {
		w.reported(t, w.account.(OrphanAccount), left)
	} else if len(left) > 0 {
		t.Logf("as expected of this cloud, the death of its provider leaves %d VM that no collector reports: %s", len(left), cannot(c)[CaseOrphan])
	}
	for _, vm := range left {
		w.account.Lose(t, vm.ID)
	}
	w.end(t, md)
}

// settled returns why the deployment does not have exactly one running Machine, or the cloud not as
// many VMs besides that of the Machine as leaks. If both hold, it returns "" and sets m.
func (w *world) settled(ctx context.Context, deployment string, leaks int, m *machinev1alpha1.Machine) string {
	if s := w.Unsettled(ctx, deployment); s != "" {
		return s
	}
	machines, err := w.Machines(ctx)
	if err != nil || len(machines) != 1 || machines[0].Status.Phase != machinev1alpha1.MachineRunning {
		return fmt.Sprintf("%d Machines, %v", len(machines), err)
	}
	vms, err := w.account.VMs(ctx)
	if err != nil || len(vms) != 1+leaks {
		return fmt.Sprintf("want the VM of Machine %s and %d that are left, there are %+v, %v", machines[0].Name, leaks, vms, err)
	}
	*m = machines[0]
	return ""
}

// besides returns the VMs except the one with the ID.
func (w *world) besides(t *testing.T, id string) []VM {
	t.Helper()
	vms, err := w.account.VMs(t.Context())
	must(t, err)
	return slices.DeleteFunc(vms, func(vm VM) bool { return vm.ID == id })
}

// unused checks that no pod is scheduled to a VM without a Machine: if the VM joined, its Node
// still has the taint that it registered with.
func (w *world) unused(t *testing.T, vm VM) {
	t.Helper()
	nodes := &corev1.NodeList{}
	must(t, w.Cluster.Client.List(t.Context(), nodes, client.HasLabels{clusterv1alpha1.LabelJoinToken}))
	for _, n := range nodes.Items {
		if n.Name != vm.Name && n.Labels[clusterv1alpha1.LabelJoinToken] != vm.Tags[machinev1alpha1.TagMachineUID] {
			continue
		}
		uninitialized := func(taint corev1.Taint) bool { return taint.Key == machinev1alpha1.TaintUninitialized }
		if !slices.ContainsFunc(n.Spec.Taints, uninitialized) {
			t.Errorf("VM %s is of no Machine, and its Node %s takes pods", vm.ID, n.Name)
		}
		t.Logf("VM %s joined as Node %s (%s), which takes no pods", vm.ID, n.Name, n.Spec.ProviderID)
	}
}

// onlyNodeOf checks that exactly one Node joined with the token of the Machine, and that it has the
// providerID of the Machine.
func (w *world) onlyNodeOf(t *testing.T, m *machinev1alpha1.Machine) {
	t.Helper()
	nodes := &corev1.NodeList{}
	must(t, w.Cluster.Client.List(t.Context(), nodes, client.MatchingLabels{clusterv1alpha1.LabelJoinToken: string(m.UID)}))
	if len(nodes.Items) != 1 || nodes.Items[0].Spec.ProviderID != m.Status.ProviderID {
		t.Errorf("Machine %s with providerID %s has the Nodes %+v", m.Name, m.Status.ProviderID, nodes.Items)
	}
}

// reported checks that the collector reports these VMs only.
func (w *world) reported(t *testing.T, a OrphanAccount, left []VM) {
	t.Helper()
	var ids []string
	for _, vm := range left {
		ids = append(ids, vm.ID)
	}
	slices.Sort(ids)
	o := &machinev1alpha1.OrphanCollector{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}
	o.Spec.Namespace, o.Spec.ProviderConfigRef = w.Namespace, a.ProviderConfig()
	o.Spec.GracePeriod.Duration, o.Spec.Interval.Duration = 10*time.Minute, time.Second
	placed(t, o, a)
	w.Create(t, o)
	go w.Age(t.Context(), labelOf(w.cloud)+".drover.dev", w.Namespace, o.Spec.GracePeriod.Duration)
	patience.Eventually(t, func(ctx context.Context) string {
		if err := w.Client.Get(ctx, key(o), o); err != nil {
			return err.Error()
		}
		var found []string
		for _, vm := range o.Status.VirtualMachines {
			found = append(found, vm.ExternalName)
		}
		if !slices.Equal(ids, slices.Sorted(slices.Values(found))) {
			return fmt.Sprintf("the collector reports %v, want %v: %+v", found, ids, o.Status)
		}
		return ""
	})
	must(t, w.Client.Delete(t.Context(), o))
}
