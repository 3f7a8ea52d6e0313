package handover

import (
	"fmt"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

var awsMachine = schema.GroupVersionKind{Group: "aws.drover.dev", Version: "v1alpha1", Kind: "VirtualMachine"}

// noon is the time of the tests.
var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// mcmObjects are a MachineDeployment of machine-controller-manager with n Machines that run, as its controllers left them, and one of
// Drover without Machines.
func mcmObjects(n int) []*unstructured.Unstructured {
	from := parse(`
apiVersion: machine.sapcloud.io/v1alpha1
kind: MachineDeployment
metadata: {name: workers, finalizers: [machine.sapcloud.io/machine-controller-manager], annotations: {deployment.kubernetes.io/revision: "1"}}
spec: {replicas: %d, selector: {matchLabels: {name: workers}}}
status: {observedGeneration: 1}`, n)
	set := owned(parse(`
apiVersion: machine.sapcloud.io/v1alpha1
kind: MachineSet
metadata: {name: workers-a1, labels: {name: workers, machine-template-hash: "123"}, finalizers: [machine.sapcloud.io/machine-controller-manager]}
spec: {replicas: %d, selector: {matchLabels: {name: workers, machine-template-hash: "123"}}}`, n), from)
	out := []*unstructured.Unstructured{from, set}
	for i := range n {
		out = append(out, owned(parse(`
apiVersion: machine.sapcloud.io/v1alpha1
kind: Machine
metadata:
  name: workers-a1-%[1]d
  labels: {name: workers, machine-template-hash: "123", node: node-%[1]d, team: red}
  annotations: {machinepriority.machine.sapcloud.io: "3"}
  finalizers: [machine.sapcloud.io/machine-controller-manager]
spec: {class: {kind: MachineClass, name: small}, providerID: "aws:///eu-west-1/i-%04[1]x"}
status: {currentStatus: {phase: Running}}`, i), set))
	}
	to := parse(`{apiVersion: machine.drover.dev/v1alpha1, kind: MachineDeployment, metadata: {name: web}, spec: {replicas: 0}}`)
	ours := owned(parse(`
apiVersion: machine.drover.dev/v1alpha1
kind: MachineSet
metadata: {name: web-x7}
spec:
  replicas: 0
  selector: {matchLabels: {app: web, machine.drover.dev/template-hash: x7}}
  template:
    metadata: {labels: {app: web, machine.drover.dev/template-hash: x7}}
    spec: {version: v1.35.4, classRef: {name: small}, clusterRef: {name: prod}, failureDomain: eu-west-1a}`), to)
	class := parse(`
apiVersion: machine.drover.dev/v1alpha1
kind: MachineClass
metadata: {name: small}
spec:
  provider: aws
  providerConfigRef: {kind: ClusterProviderConfig, name: prod}
  forProvider: {instanceType: m5.large, tags: {kubernetes.io/cluster/prod: owned}}`)
	config := parse(`{apiVersion: aws.drover.dev/v1alpha1, kind: ClusterProviderConfig, metadata: {name: prod}}`)
	config.SetNamespace("")
	return append(out, to, ours, class, config)
}

// mcmNode of VM i, as machine-controller-manager and the cloud-controller-manager leave it.
func mcmNode(i int) *unstructured.Unstructured {
	o := parse(`
apiVersion: v1
kind: Node
metadata:
  name: node-%[1]d
  labels: {node.gardener.cloud/machine-name: workers-a1-%[1]d, topology.kubernetes.io/zone: eu-west-1a, node.kubernetes.io/instance-type: m5.large, team: red}
  annotations: {node.machine.sapcloud.io/last-applied-anno-labels-taints: '{"metadata":{},"spec":{}}'}
  finalizers: [node.machine.sapcloud.io/machine-controller]
spec: {providerID: "aws:///eu-west-1a/i-%04[1]x"}
status: {nodeInfo: {kubeletVersion: v1.35.4}}`, i)
	o.SetNamespace("")
	return o
}

func newMCMWorld(n int) *World {
	w := &World{System: MCM, Namespace: namespace, From: "workers", To: "web", Installation: "here", MCM: surroundings{
		Kind: awsMachine, Now: noon,
		Leases: []coordinationv1.Lease{lease("machine-controller-manager", -time.Hour), lease("machine-controller", -time.Hour)},
		Workloads: []Workload{
			{Name: "Deployment team/machine-controller-manager", Containers: []corev1.Container{{Image: "registry/gardener/machine-controller-manager:v0.62.0"}}},
			{Name: "Deployment team/web", Why: "spec.replicas is 1", Containers: []corev1.Container{{Image: "registry/web:v1"}}},
		},
	}}
	for _, o := range mcmObjects(n) {
		w.Add(o.DeepCopy())
	}
	for i := range n {
		w.Add(mcmNode(i))
	}
	return w
}

// lease of a controller that renewed it a while before or after noon.
func lease(name string, renewed time.Duration) coordinationv1.Lease {
	return coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To("mcm-0"), LeaseDurationSeconds: ptr.To[int32](15), RenewTime: &metav1.MicroTime{Time: noon.Add(renewed)},
	}}
}

// settledMCM is a World in which the controllers of Drover have reported everything.
func settledMCM(n int) *World {
	w := newMCMWorld(n)
	controllers(w)
	return w
}

// judgeMCM is judge for what machine-controller-manager would do if it were started again: a set deletes Machines that are more than
// its replicas, and creates missing ones; the collector of orphans deletes each VM without a Machine of its providerID; a Machine
// whose Node it knows may be drained.
func judgeMCM(t *testing.T, w, start *World, done string) {
	t.Helper()
	for _, s := range w.list(mcmGroup, "MachineSet") {
		n := int64(0)
		for _, o := range w.list(mcmGroup, "Machine") {
			if by := metav1.GetControllerOf(o); by != nil && by.UID == s.GetUID() || by == nil && selects(s, o.GetLabels()) {
				n++
			}
		}
		_, held := s.GetLabels()[labelScaleUpDisabled]
		replicas, above := intAt(s, "spec", "replicas"), intAt(w.from(), "spec", "replicas")
		if n > replicas || n > above || n < replicas && !held || n < above && !held {
			t.Fatalf("after %q: %s has %d Machines of %d, its MachineDeployment %d, and it may create Machines: %t", done, describe(s), n, replicas, above, !held)
		}
	}
	for _, was := range start.list(mcmGroup, "Machine") {
		is := w.get(mcmGroup, "Machine", was.GetName())
		if is == nil || is.GetDeletionTimestamp() != nil || !equality.Semantic.DeepEqual(is.Object["spec"], was.Object["spec"]) || !slices.Equal(is.GetFinalizers(), was.GetFinalizers()) {
			t.Fatalf("after %q: the VM of %s has no Machine, and would be deleted as an orphan: %v", done, was.GetName(), is)
		}
	}
	for _, m := range w.members() {
		policies := []string{}
		if m.vm != nil {
			policies, _, _ = unstructured.NestedStringSlice(m.vm.Object, "spec", "managementPolicies")
		}
		attached := metav1.GetControllerOf(m.machine) != nil || m.machine.GetLabels()[labelNode] != ""
		if attached && slices.Contains(policies, "Delete") {
			t.Fatalf("after %q: both systems may delete the VM of %s", done, m.name)
		}
		if m.drover != nil && attached {
			t.Fatalf("after %q: both systems look at the Node of %s", done, m.name)
		}
	}
	for _, was := range start.list("", "Node") {
		is := w.get("", "Node", was.GetName())
		if is == nil || is.GetDeletionTimestamp() != nil || !equality.Semantic.DeepEqual(is.Object["spec"], was.Object["spec"]) {
			t.Fatalf("after %q: Node %s was touched: %v", done, was.GetName(), is)
		}
		for _, k := range []string{"node.gardener.cloud/machine-name", "topology.kubernetes.io/zone"} {
			if is.GetLabels()[k] != was.GetLabels()[k] {
				t.Fatalf("after %q: Node %s has the label %s=%q", done, was.GetName(), k, is.GetLabels()[k])
			}
		}
		if fmt.Sprint(is.GetAnnotations()["node.machine.sapcloud.io/last-applied-anno-labels-taints"]) != `{"metadata":{},"spec":{}}` {
			t.Fatalf("after %q: Node %s has the annotations %v", done, was.GetName(), is.GetAnnotations())
		}
	}
}
