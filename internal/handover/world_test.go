package handover

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	clusterapi "github.com/drover-dev/drover/apis/clusterapi/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/nodekeys"
	"github.com/drover-dev/drover/internal/workernode"
)

const namespace = "team"

// parse returns an object of the namespace, with a UID that follows from its kind and name.
func parse(text string, args ...any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	b, err := yaml.YAMLToJSON(fmt.Appendf(nil, text, args...))
	if err == nil {
		err = json.Unmarshal(b, &o.Object) // Numbers as a client reads them.
	}
	if err != nil {
		panic(err)
	}
	o.SetNamespace(namespace)
	group := o.GroupVersionKind().Group
	o.SetUID(types.UID(o.GetKind() + "-" + group[:min(7, len(group))] + "-" + o.GetName()))
	o.SetGeneration(1)
	return o
}

func owned(o, by *unstructured.Unstructured) *unstructured.Unstructured {
	o.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(by, by.GroupVersionKind())})
	return o
}

// objects of a MachineDeployment of Cluster API with n Machines that run, as its controllers leave them, and of one of Drover
// without Machines.
func objects(version string, n int) []*unstructured.Unstructured {
	core := "cluster.x-k8s.io/" + version
	cluster := parse(`{apiVersion: %s, kind: Cluster, metadata: {name: prod}, spec: {}}`, core)
	from := parse(`
apiVersion: %s
kind: MachineDeployment
metadata: {name: workers, labels: {cluster.x-k8s.io/cluster-name: prod}, finalizers: [cluster.x-k8s.io/machinedeployment]}
spec:
  clusterName: prod
  replicas: %d
  selector: {matchLabels: {cluster.x-k8s.io/cluster-name: prod, cluster.x-k8s.io/deployment-name: workers}}
status: {observedGeneration: 1, conditions: [{type: Paused, status: "False"}]}`, core, n)
	set := owned(parse(`
apiVersion: %s
kind: MachineSet
metadata: {name: workers-a1, labels: {cluster.x-k8s.io/cluster-name: prod, cluster.x-k8s.io/deployment-name: workers}, finalizers: [cluster.x-k8s.io/machineset]}
spec:
  clusterName: prod
  replicas: %d
  selector: {matchLabels: {cluster.x-k8s.io/cluster-name: prod, cluster.x-k8s.io/deployment-name: workers, machine-template-hash: a1}}
status: {conditions: [{type: Paused, status: "False"}]}`, core, n), from)
	out := []*unstructured.Unstructured{cluster, from, set}
	ref := "apiGroup: infrastructure.cluster.x-k8s.io"
	if version == "v1beta1" {
		ref = "apiVersion: infrastructure.cluster.x-k8s.io/v1, namespace: " + namespace
	}
	for i := range n {
		m := owned(parse(`
apiVersion: %[1]s
kind: Machine
metadata:
  name: workers-a1-%[2]d
  labels: {cluster.x-k8s.io/cluster-name: prod, cluster.x-k8s.io/deployment-name: workers, cluster.x-k8s.io/set-name: workers-a1, machine-template-hash: a1}
  finalizers: [machine.cluster.x-k8s.io]
spec: {clusterName: prod, version: v1.35.4, providerID: "lab://%[2]d", infrastructureRef: {%[3]s, kind: LabMachine, name: infra-%[2]d}}
status: {nodeRef: {name: node-%[2]d}, conditions: [{type: Paused, status: "False"}]}`, core, i, ref), set)
		infra := owned(parse(`
apiVersion: infrastructure.cluster.x-k8s.io/v1
kind: LabMachine
metadata: {name: infra-%[1]d, labels: {cluster.x-k8s.io/cluster-name: prod}, finalizers: [lab]}
spec: {providerID: "lab://%[1]d", size: small, count: 2}
status: {ready: true, initialization: {provisioned: true}}`, i), m)
		out = append(out, m, infra)
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
    metadata: {labels: {app: web, machine.drover.dev/template-hash: x7}, annotations: {note: kept}}
    spec: {version: v1.35.4, classRef: {name: small}, clusterRef: {name: prod}}`), to)
	class := parse(`
apiVersion: machine.drover.dev/v1alpha1
kind: MachineClass
metadata: {name: small}
spec:
  provider: clusterapi
  providerConfigRef: {kind: ClusterProviderConfig, name: prod}
  forProvider: {infraMachine: {kind: LabMachine, spec: {size: small, count: 2}}}`)
	config := parse(`
apiVersion: clusterapi.drover.dev/v1alpha1
kind: ClusterProviderConfig
metadata: {name: prod}
spec: {clusterName: prod, infraMachineKinds: [{kind: LabMachine}]}`)
	config.SetNamespace("")
	return append(out, to, ours, class, config)
}

// node of VM i, with a label of Cluster API's and one that the template of Drover replaces.
func node(name string, i int) *unstructured.Unstructured {
	o := parse(`
apiVersion: v1
kind: Node
metadata: {name: %s, labels: {node.cluster.x-k8s.io/pool: workers, team: red}}
spec: {providerID: "lab://%d"}`, name, i)
	o.SetNamespace("")
	return o
}

func newWorld(version string, n int) *World {
	w := &World{System: ClusterAPI, Namespace: namespace, From: "workers", To: "web", Installation: "here", Versions: map[schema.GroupKind]string{
		{Group: "infrastructure.cluster.x-k8s.io", Kind: "LabMachine"}: "v1",
	}}
	for _, o := range objects(version, n) {
		w.Add(o.DeepCopy())
	}
	for i := range n {
		w.Add(node(fmt.Sprintf("node-%d", i), i))
	}
	return w
}

func setCondition(o *unstructured.Unstructured, path []string, c map[string]any) *unstructured.Unstructured {
	out := o.DeepCopy()
	_ = unstructured.SetNestedSlice(out.Object, []any{c}, path...)
	return out
}

// controllers reconciles all objects once, as the controllers of both systems do. It is called after each step.
func controllers(w *World) {
	for _, o := range slices.Collect(maps.Values(w.objects)) {
		switch k := keyOf(o); {
		case k.group == coreGroup && k.kind != "Cluster":
			status := "False"
			if _, paused := o.GetAnnotations()[annotationPausedCAPI]; paused {
				status = "True"
			}
			w.Add(setCondition(o, []string{"status", "conditions"}, map[string]any{"type": "Paused", "status": status}))
		case (k.group == machinev1alpha1.Group || k.group == w.System.vmKind(w).Group) && (k.kind == "MachineSet" || k.kind == "Machine" || k.kind == "VirtualMachine"):
			reason := "ReconcileSuccess"
			if o.GetAnnotations()[annotationPaused] == "true" {
				reason = string(xpv2.ReasonReconcilePaused)
			}
			w.Add(setCondition(o, []string{"status", "conditions"}, map[string]any{"type": "Synced", "reason": reason}))
		}
	}
	set := w.set().DeepCopy()
	_ = unstructured.SetNestedField(set.Object, intAt(w.to(), "spec", "replicas"), "spec", "replicas")
	w.Add(set)
	for _, m := range w.members() {
		if m.vm != nil && found(w, m) != "" && !rests(m.vm) {
			vm := m.vm.DeepCopy()
			_ = unstructured.SetNestedField(vm.Object, found(w, m), "status", "atProvider", "providerID")
			w.Add(vm)
		}
		if m.vm == nil || m.drover == nil || rests(m.drover) {
			continue
		}
		d := m.drover.DeepCopy()
		_ = unstructured.SetNestedField(d.Object, "Running", "status", "phase")
		_ = unstructured.SetNestedField(d.Object, m.vm.GetAnnotations()[machinev1alpha1.AnnotationNodeName], "status", "nodeRef", "name")
		keep(w, d)
		w.Add(d)
		if set.GetAnnotations()[annotationPaused] != "true" && metav1.GetControllerOf(d) == nil && selects(set, d.GetLabels()) {
			w.Add(owned(d.DeepCopy(), set))
		}
	}
}

// found returns the providerID of the VM that a provider finds by its external name, "" if there is none.
func found(w *World, m member) string {
	name := m.vm.GetAnnotations()[xpmeta.AnnotationKeyExternalName]
	if w.System == MCM {
		for _, n := range w.list("", "Node") {
			if id := stringAt(n, "spec", "providerID"); strings.HasSuffix(id, "/"+name) {
				return id
			}
		}
		return ""
	}
	if m.infra == nil || m.infra.GetLabels()[clusterapi.LabelVirtualMachine] != name {
		return ""
	}
	return stringAt(m.infra, "spec", "providerID")
}

// keep the Node of a Machine, as Drover does: by a label of its own, and by one of the template.
func keep(w *World, machine *unstructured.Unstructured) {
	if machine.GetUID() == "" {
		machine.SetUID(types.UID("of-" + machine.GetName()))
	}
	m := &machinev1alpha1.Machine{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(machine.Object, m); err != nil {
		panic(err)
	}
	for _, n := range w.nodesOf(ptr.Deref(m.Spec.ProviderID, "")) {
		change, err := nodekeys.Of(&n, workernode.Parameters{Labels: map[string]string{clusterv1alpha1.LabelJoinToken: string(m.UID), "team": "blue"}}, m.Status.AppliedToNode)
		if err != nil {
			panic(err)
		}
		if change.Patch != nil {
			w.Add(patched(w.get("", "Node", n.Name), change.Patch))
		}
		if change.Record != nil {
			record, err := runtime.DefaultUnstructuredConverter.ToUnstructured(change.Record)
			if err != nil {
				panic(err)
			}
			_ = unstructured.SetNestedMap(machine.Object, record, "status", "appliedToNode")
		}
	}
}

// judge fails if any controller would create, delete or replace a VM or a Machine by the present state.
func judge(t *testing.T, w, start *World, done string) {
	t.Helper()
	if w.System == MCM {
		judgeMCM(t, w, start, done)
	} else {
		judgeClusterAPI(t, w, start, done)
	}
	set, n := w.set(), 0
	for _, o := range w.list(machinev1alpha1.Group, "Machine") {
		if selects(set, o.GetLabels()) {
			n++
		}
		vm := w.get(w.System.vmKind(w).Group, "VirtualMachine", o.GetName())
		if vm == nil && o.GetAnnotations()[annotationPaused] != "true" || vm != nil && stringAt(vm, "status", "atProvider", "providerID") == "" {
			t.Fatalf("after %q: Machine %s has no VM that was found, and would be failed", done, o.GetName())
		}
	}
	if set.GetAnnotations()[annotationPaused] != "true" && (int64(n) != intAt(set, "spec", "replicas") || int64(n) != intAt(w.to(), "spec", "replicas")) {
		t.Fatalf("after %q: %s is not paused, and has %d Machines of %d", done, describe(set), n, intAt(set, "spec", "replicas"))
	}
}

// judgeClusterAPI is judge for what Cluster API would do.
func judgeClusterAPI(t *testing.T, w, start *World, done string) {
	t.Helper()
	for _, s := range w.list(coreGroup, "MachineSet") {
		n := 0
		for _, o := range w.list(coreGroup, "Machine") {
			by := metav1.GetControllerOf(o)
			if by != nil && by.UID == s.GetUID() || by == nil && selects(s, o.GetLabels()) {
				n++
			}
		}
		if _, paused := s.GetAnnotations()[annotationPausedCAPI]; !paused && int64(n) != intAt(s, "spec", "replicas") {
			t.Fatalf("after %q: %s is not paused, and has %d Machines of %d", done, describe(s), n, intAt(s, "spec", "replicas"))
		}
	}
	for _, m := range w.members() {
		_, paused := m.machine.GetAnnotations()[annotationPausedCAPI]
		policies := []string{}
		if m.vm != nil {
			policies, _, _ = unstructured.NestedStringSlice(m.vm.Object, "spec", "managementPolicies")
		}
		if !paused && slices.Contains(policies, "Delete") {
			t.Fatalf("after %q: both systems may delete the VM of %s", done, m.name)
		}
	}
	for _, was := range start.list("infrastructure.cluster.x-k8s.io", "LabMachine") {
		is := w.get("infrastructure.cluster.x-k8s.io", "LabMachine", was.GetName())
		if is == nil || !equality.Semantic.DeepEqual(labeled(is, clusterapi.LabelVirtualMachine, nil).Object, was.Object) {
			t.Fatalf("after %q: the VM %s was touched: %v", done, was.GetName(), is)
		}
	}
}
