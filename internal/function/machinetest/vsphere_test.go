package machinetest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// atVSphere returns a plane with the class of the example.
func atVSphere(t *testing.T) *Plane {
	t.Helper()
	p := New(t, run, root+"apis/machine/compositions/machine-vsphere.yaml")
	p.AddSchema(root + "package/provider-vsphere/crds/vsphere.drover.dev_virtualmachines.yaml")
	c := &unstructured.Unstructured{Object: readYAML(t, root+"examples/vsphere/machineclass.yaml")}
	c.SetNamespace(p.Machine.GetNamespace())
	p.Others = append(p.Others, c, Object(t, Installation))
	Set(p.Machine, "vsphere", "spec", "crossplane", "compositionSelector", "matchLabels", "provider")
	Set(p.Machine, c.GetName(), "spec", "classRef", "name")
	return p
}

func TestAMachineAtVSphereHasAVM(t *testing.T) {
	p := atVSphere(t)
	Set(p.Machine, "cluster-b", "spec", "failureDomain")
	p.Reconcile()
	vm := p.Composed[machinev1alpha1.ResourceVM]
	if vm == nil {
		t.Fatalf("no VM is composed: %v", condition(p, "InfrastructureReady"))
	}
	got, _, _ := unstructured.NestedMap(vm.Object, "spec", "forProvider")
	for field, want := range map[string]any{
		"name": vm.GetName(), "template": "ubuntu-24.04", "cluster": "cluster-b", "datastoreCluster": "ssd",
		"guestInfo": map[string]any{"userDataSecretRef": map[string]any{"name": vm.GetName() + "-user-data", "key": "userData"}},
	} {
		if d := cmp.Diff(want, got[field]); d != "" {
			t.Errorf("%s (-want +got):\n%s", field, d)
		}
	}
	attributes, _ := got["customAttributes"].(map[string]any)
	if attributes[machinev1alpha1.TagMachineUID] != string(p.Machine.GetUID()) {
		t.Errorf("custom attributes %v", attributes)
	}
}

func TestAMachineAtVSphereReadsItsVM(t *testing.T) {
	p := atVSphere(t)
	p.Reconcile()
	vm := p.Composed[machinev1alpha1.ResourceVM]
	if vm == nil {
		t.Fatalf("no VM is composed: %v", condition(p, "InfrastructureReady"))
	}
	vm.SetAnnotations(map[string]string{"crossplane.io/external-name": "0b0e7d2c-6a52-4a0b-9b53-1f6f6c8c9d11"})
	Condition(vm, "Synced", "False", "ReconcileError", `observe failed: ClusterProviderConfig "default": CapacityExhausted: cannot clone the template t: x`)
	p.Reconcile()
	if got, _, _ := unstructured.NestedString(p.Machine.Object, "status", "lastOperation", "errorCode"); got != "CapacityExhausted" {
		t.Errorf("error code %q", got)
	}
	if got, _, _ := unstructured.NestedString(p.Machine.Object, "status", "lastOperation", "description"); !strings.Contains(got, `ClusterProviderConfig "default"`) {
		t.Errorf("description %q", got)
	}
	const id = "vsphere://421d5d9e-0000-4000-8000-000000000000"
	Set(vm, map[string]any{"providerID": id, "addresses": []any{map[string]any{"type": "InternalIP", "address": "10.0.0.7"}}}, "status", "atProvider")
	Condition(vm, "Synced", "True", "ReconcileSuccess", "")
	Condition(vm, "Ready", "True", "Available", "")
	p.Reconcile()
	if got := field(p, "providerID"); got != id {
		t.Errorf("providerID %q", got)
	}
	policies, _, _ := unstructured.NestedStringSlice(p.Composed[machinev1alpha1.ResourceVM].Object, "spec", "managementPolicies")
	if d := cmp.Diff([]string{"Observe", "Delete"}, policies); d != "" {
		t.Errorf("management policies (-want +got):\n%s", d)
	}
	Condition(vm, "Ready", "False", "Missing", "vm-42 is no longer there")
	p.Reconcile()
	if got := phase(p); got != "Failed" {
		t.Errorf("phase %q of a Machine whose VM is lost", got)
	}
}

func TestAFieldThatVSphereHasNotIsNamedBeforeAVMIsMade(t *testing.T) {
	p := atVSphere(t)
	for _, o := range p.Others {
		if o.GetKind() == "MachineClass" {
			Set(o, int64(4), "spec", "forProvider", "cpu")
		}
	}
	p.Reconcile()
	if p.Composed[machinev1alpha1.ResourceVM] != nil {
		t.Fatal("a VM is composed")
	}
	if c := condition(p, "Valid"); !strings.Contains(c["message"].(string), "forProvider.cpu") {
		t.Errorf("condition %v", c)
	}
}
