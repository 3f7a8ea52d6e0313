package recovery

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// disown the VM of a Machine, as if Drover had not created it: the Machine and the VM resource
// are deleted, and its Node has no identity.
func disown(t *testing.T, f kit.Fleet, m *machinev1alpha1.Machine) {
	t.Helper()
	operate(t, here, "stop", "provider-drover", "provider-local")
	defer operate(t, here, "start", "provider-local", "provider-drover")
	objs := map[schema.GroupVersionKind]string{virtualMachine: m.Status.ResourceRefs[0].Name, machinev1alpha1.MachineGroupVersionKind: m.Name}
	for kind, name := range objs {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(kind)
		o.SetNamespace(f.Namespace)
		o.SetName(name)
		f.Patch(t, o, `{"metadata":{"finalizers":null}}`)
		if err := f.Client.Delete(t.Context(), o); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Status.NodeRef.Name}}
	f.PatchIn(t, f.Cluster, n, fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, clusterv1alpha1.LabelJoinToken))
}

// TestAVMThatDroverDidNotMakeIsImported follows docs/recovery.md.
func TestAVMThatDroverDidNotMakeIsImported(t *testing.T) {
	f := here.NewTargetFleet(t)
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "maker"}}
	m.Spec = f.MachineSpec(kit.NewVersion)
	f.Create(t, m.DeepCopy())
	running := func(ctx context.Context) string {
		if err := f.Client.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil || m.Status.Phase != machinev1alpha1.MachineRunning {
			return fmt.Sprintf("phase %s, conditions %+v, error %v", m.Status.Phase, m.Status.Conditions, err)
		}
		return ""
	}
	patience.Eventually(t, running, f.Describe)
	v := keepVigil(t, f, 1)
	vms, err := f.VMs(t.Context())
	if err != nil || len(vms) != 1 {
		t.Fatalf("%d VMs, error %v", len(vms), err)
	}
	node := m.Status.NodeRef.Name
	disown(t, f, m)

	vm := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"managementPolicies": []any{"Observe", "Delete"},
		"providerConfigRef":  map[string]any{"kind": "ClusterProviderConfig", "name": "default"},
		"forProvider":        map[string]any{"image": "ubuntu-24.04", "size": "small"},
	}}}
	vm.SetGroupVersionKind(virtualMachine)
	vm.SetNamespace(f.Namespace)
	vm.SetName("legacy-1")
	vm.SetLabels(map[string]string{machinev1alpha1.LabelMachine: "legacy-1"})
	vm.SetAnnotations(map[string]string{
		"crossplane.io/external-name": vms[0].ID, "crossplane.io/composition-resource-name": "vm",
		machinev1alpha1.AnnotationNodeName: node, machinev1alpha1.AnnotationInstallation: installationOf(t, here.Client),
	})
	f.Create(t, vm)
	m = &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "legacy-1"}, Spec: f.MachineSpec(kit.NewVersion)}
	f.Create(t, m.DeepCopy())
	patience.Eventually(t, running, f.Describe)
	if m.Status.NodeRef.Name != node {
		t.Errorf("its Node is %s, want %s", m.Status.NodeRef.Name, node)
	}
	if got, err := f.VMs(t.Context()); err != nil || len(got) != 1 || got[0].ID != vms[0].ID {
		t.Errorf("VMs %+v, error %v", got, err)
	}
	v.done(t)
	if err := f.Client.Delete(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	patience.Eventually(t, func(ctx context.Context) string {
		n := &corev1.Node{}
		got, err := f.VMs(ctx)
		if err != nil || len(got) > 0 {
			return fmt.Sprintf("%d VMs, error %v", len(got), err)
		}
		if err := f.Cluster.Client.Get(ctx, client.ObjectKey{Name: node}, n); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Sprintf("the Node is there: %v", err)
		}
		return ""
	}, f.Describe)
}
