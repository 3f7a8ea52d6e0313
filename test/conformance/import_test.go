package conformance

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterapi "github.com/drover-dev/drover/apis/clusterapi/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
)

// imported is the number of Machines that change hands.
const imported = 10

func coreKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: kind}
}

// TestImports hands Machines of other systems over to Drover, and back.
func TestImports(t *testing.T) {
	t.Run("clusterapi", machinesChangeHands)
	t.Run("hcloud", machinesOfMCMChangeHands)
}

// An importing is a MachineDeployment of Cluster API that its own controllers and its in-memory provider keep, both unmodified,
// and all that witnesses what becomes of its VMs and Nodes.
type importing struct {
	*handingOver
	capi *clusterAPI
	// vms are the InfraMachines as they were before the import.
	vms map[string]string
}

func machinesChangeHands(t *testing.T) {
	kit.OnlyInLong(t, "TestTheWayBackLeavesEverythingAsItWas in internal/handover")
	t.Parallel()
	capi, p := installedClusterAPI(t)
	x := &importing{handingOver: newHandingOver(t, p), capi: capi, vms: map[string]string{}}
	a, ok := capi.Account(t, x.Fleet).(*clusterAPIAccount)
	if !ok {
		t.Fatal("the account is of another cloud")
	}
	x.runCore()
	x.createCluster()
	x.createWorkers()
	x.joinNodes()

	class := a.Class(t)
	x.Create(t, class)
	md := x.Deployment("web", 0, 1, 0)
	md.Spec.Template.Spec = x.MachineSpec(kit.NewVersion)
	md.Spec.Template.Spec.ClassRef.Name = class.Name
	x.Create(t, md)
	x.awaitSet()
	x.witness()

	if out := x.drover("import", "capi", "workers", "--to", "md/web", "--dry-run"); !strings.Contains(out, "Nothing was changed") {
		t.Errorf("dry run: %s", out)
	}
	x.drover("import", "capi", "workers", "--to", "md/web")
	x.AwaitDeployment(t, "web")
	x.unchanged()
	machines, err := x.Machines(t.Context())
	must(t, err)
	for i := range machines {
		if m := &machines[i]; m.Status.NodeRef == nil || m.Status.NodeRef.Name != m.Name || m.Status.UserData != nil {
			t.Errorf("Machine %s: Node %v, user data %v", m.Name, m.Status.NodeRef, m.Status.UserData)
		}
	}
	if tokens, err := x.BootstrapTokens(t.Context()); err != nil || len(tokens) > 0 {
		t.Errorf("join tokens %v were minted, %v", tokens, err)
	}

	x.drover("import", "capi", "workers", "--undo")
	x.eventually(x.isClusterAPIs)
	x.unchanged()
	for name, was := range x.nodes {
		if is := x.keysOf(name); is != was {
			t.Errorf("Node %s has %s, had %s", name, is, was)
		}
	}
	for _, k := range []schema.GroupVersionKind{machinev1alpha1.MachineGroupVersionKind, clusterapi.VirtualMachineGroupVersionKind} {
		if n := len(x.list(k)); n > 0 {
			t.Errorf("%d %s are left", n, k.Kind)
		}
	}

	// What Drover makes and deletes beside Cluster API's controllers.
	x.drover("import", "capi", "workers", "--to", "md/web")
	x.AwaitDeployment(t, "web")
	x.unchanged()
	x.Patch(t, md, fmt.Sprintf(`{"spec":{"replicas":%d}}`, imported+1))
	x.AwaitDeployment(t, "web")
	x.unchanged()
	x.end()
}

// runCore runs Cluster API's own controllers, unmodified, in the namespace.
func (x *importing) runCore() {
	x.Helper()
	core, err := coreTools.module("sigs.k8s.io/cluster-api")
	must(x.T, err)
	must(x.T, createCRDs(x.Context(), x.Client, filepath.Join(core, "config/crd/bases/*.yaml"), contracts))
	for _, k := range []string{"MachineDeployment", "MachineSet", "Machine", "Cluster"} {
		must(x.T, awaitServed(x.Context(), x.Client, coreKind(k)))
	}
	ofCore("core", "sigs.k8s.io/cluster-api", "--namespace="+x.Namespace).run(x.T, x.capi.plane)
}

// createCluster creates the Cluster, whose control plane is that of the plane.
func (x *importing) createCluster() {
	x.Helper()
	account := client.ObjectKey{Namespace: x.Namespace, Name: "capi"}
	x.Create(x.T, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: x.Namespace, Name: "target-kubeconfig", Labels: map[string]string{"cluster.x-k8s.io/cluster-name": "target"}},
		Type:       "cluster.x-k8s.io/secret",
		Data:       map[string][]byte{"value": x.Control.CredentialsOf(x.T, account).Kubeconfig},
	})
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: x.Namespace + "-capi"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}
	must(x.T, x.Client.Create(x.Context(), binding))
	x.Cleanup(func() { _ = x.Client.Delete(context.Background(), binding) })
	x.create(coreKind("Cluster"), "target", map[string]any{
		"infrastructureRef": map[string]any{"apiGroup": devGroup, "kind": "DevCluster", "name": "target"},
	}, nil)
}

// createWorkers creates a MachineDeployment with the VMs of the class.
func (x *importing) createWorkers() {
	x.Helper()
	x.create(devMachine.GroupVersion().WithKind("DevMachineTemplate"), "workers", map[string]any{"template": map[string]any{"spec": map[string]any{
		"backend": map[string]any{"inMemory": map[string]any{"vm": map[string]any{"provisioning": map[string]any{"startupDuration": "2s"}}}},
	}}}, nil)
	labels := map[string]any{"cluster.x-k8s.io/cluster-name": "target", "cluster.x-k8s.io/deployment-name": "workers"}
	x.create(coreKind("MachineDeployment"), "workers", map[string]any{
		"clusterName": "target", "replicas": int64(imported), "selector": map[string]any{"matchLabels": labels},
		"rollout": map[string]any{"strategy": map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxSurge": int64(1), "maxUnavailable": int64(0)}}},
		"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{
			"clusterName": "target", "version": kit.NewVersion, "bootstrap": map[string]any{"dataSecretName": "none"},
			"infrastructureRef": map[string]any{"apiGroup": devGroup, "kind": "DevMachineTemplate", "name": "workers"},
		}},
	}, map[string]string{"cluster.x-k8s.io/cluster-name": "target"})
}

// joinNodes creates the Nodes of the VMs, which the in-memory provider has in a cluster of its own, with a pod on each. Their
// kubelets report for the rest of the test.
func (x *importing) joinNodes() {
	x.Helper()
	x.eventually(func(context.Context) string {
		n := 0
		for _, o := range x.list(devMachine) {
			if provisioned, _, _ := unstructured.NestedBool(o.Object, "status", "initialization", "provisioned"); provisioned {
				n++
			}
		}
		if n != imported {
			return fmt.Sprintf("%d of %d VMs are provisioned", n, imported)
		}
		return ""
	})
	var names []string
	for _, o := range x.list(devMachine) {
		providerID, _, _ := unstructured.NestedString(o.Object, "spec", "providerID")
		x.join(o.GetName(), providerID)
		names = append(names, o.GetName())
	}
	x.beat(names)
	x.eventually(x.isClusterAPIs)
}

// isClusterAPIs returns "" if Cluster API has all Machines, each with its Node, and none is paused.
func (x *importing) isClusterAPIs(context.Context) string {
	machines := x.list(coreKind("Machine"))
	if len(machines) != imported {
		return fmt.Sprintf("%d Machines of Cluster API", len(machines))
	}
	for i := range machines {
		o := &machines[i]
		by := metav1.GetControllerOf(o)
		node, _, _ := unstructured.NestedString(o.Object, "status", "nodeRef", "name")
		_, paused := o.GetAnnotations()["cluster.x-k8s.io/paused"]
		paused = paused || isPaused(o)
		switch {
		case by == nil || by.Kind != "MachineSet":
			return o.GetName() + " belongs to no MachineSet"
		case node != o.GetName() || paused:
			return fmt.Sprintf("%s has the Node %q, paused %t", o.GetName(), node, paused)
		case fmt.Sprint(o.GetFinalizers()) != "[machine.cluster.x-k8s.io]" || o.GetLabels()[clusterapi.LabelVirtualMachine] != "" || o.GetAnnotations()[clusterapi.AnnotationImported] != "":
			return fmt.Sprintf("%s has finalizers %v, labels %v, annotations %v", o.GetName(), o.GetFinalizers(), o.GetLabels(), o.GetAnnotations())
		}
	}
	for _, ms := range x.list(coreKind("MachineSet")) {
		if isPaused(&ms) {
			return ms.GetName() + " reports a pause"
		}
	}
	for _, md := range x.list(coreKind("MachineDeployment")) {
		replicas, _, _ := unstructured.NestedInt64(md.Object, "status", "replicas")
		updated, _, _ := unstructured.NestedInt64(md.Object, "status", "upToDateReplicas")
		observed, _, _ := unstructured.NestedInt64(md.Object, "status", "observedGeneration")
		if replicas != imported || updated != imported || observed != md.GetGeneration() || isPaused(&md) {
			return fmt.Sprintf("MachineDeployment of Cluster API: %d replicas, %d up to date", replicas, updated)
		}
	}
	return ""
}

// isPaused reports whether a controller of Cluster API has reported a pause, and not its end.
func isPaused(o *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == "Paused" {
			return m["status"] != "False"
		}
	}
	return false
}

// witness notes the VMs, and watches the Nodes and the pods on them until the end of the test.
func (x *importing) witness() {
	x.Helper()
	for _, o := range x.list(devMachine) {
		x.vms[o.GetName()] = fmt.Sprintf("%s, generation %d, %v", o.GetUID(), o.GetGeneration(), o.Object["spec"])
		x.nodes[o.GetName()] = x.keysOf(o.GetName())
	}
	x.watch()
}

// unchanged fails if a VM, a Node or a pod was touched.
func (x *importing) unchanged() {
	x.Helper()
	x.untouched()
	seen := 0
	for _, o := range x.list(devMachine) {
		was, ok := x.vms[o.GetName()]
		if is := fmt.Sprintf("%s, generation %d, %v", o.GetUID(), o.GetGeneration(), o.Object["spec"]); ok && is != was {
			x.Errorf("the VM %s is %s, was %s", o.GetName(), is, was)
		}
		if ok {
			seen++
		}
	}
	if seen != imported {
		x.Errorf("%d of %d VMs are left", seen, imported)
	}
}

// end deletes the MachineDeployment of Cluster API, which must not create a Machine, and one Machine that Drover imported: its VM
// and the Machine of Cluster API follow.
func (x *importing) end() {
	x.Helper()
	before := len(x.list(devMachine))
	for _, k := range []string{"MachineDeployment", "MachineSet"} {
		for _, o := range x.list(coreKind(k)) {
			must(x.T, x.Client.Delete(x.Context(), &o))
		}
	}
	for _, k := range []string{"MachineDeployment", "MachineSet"} {
		for _, o := range x.list(coreKind(k)) {
			x.Patch(x.T, &o, `{"metadata":{"annotations":{"cluster.x-k8s.io/paused":null}}}`)
		}
	}
	x.eventually(func(context.Context) string {
		if n := len(x.list(coreKind("MachineDeployment"))) + len(x.list(coreKind("MachineSet"))); n > 0 {
			return fmt.Sprintf("%d of the MachineDeployment and its MachineSets are left", n)
		}
		return ""
	})
	if n := len(x.list(devMachine)); n != before {
		x.Errorf("%d VMs, %d before the MachineDeployment of Cluster API was deleted", n, before)
	}
	x.unchanged()
	name := ""
	for name = range x.vms {
		break
	}
	must(x.T, x.Client.Delete(x.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: x.Namespace, Name: name}}, client.GracePeriodSeconds(0)))
	must(x.T, x.Client.Delete(x.Context(), &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: x.Namespace, Name: name}}))
	x.eventually(func(context.Context) string {
		for _, k := range []schema.GroupVersionKind{devMachine, coreKind("Machine"), clusterapi.VirtualMachineGroupVersionKind} {
			for _, o := range x.list(k) {
				if o.GetName() == name {
					return fmt.Sprintf("%s %s is left", k.Kind, name)
				}
			}
		}
		return ""
	})
}
