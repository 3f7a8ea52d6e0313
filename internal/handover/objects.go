package handover

import (
	"cmp"
	"maps"
	"slices"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterapi "github.com/drover-dev/drover/apis/clusterapi/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

const (
	// coreGroup is the API group of Cluster API's own kinds, and the prefix of its labels.
	coreGroup = "cluster.x-k8s.io"

	labelCluster      = "cluster.x-k8s.io/cluster-name"
	labelControlPlane = "cluster.x-k8s.io/control-plane"
	labelTopology     = "topology.cluster.x-k8s.io/owned"
	// annotationPausedCAPI has any value.
	annotationPausedCAPI = machinev1alpha1.AnnotationPaused
	annotationRemediate  = "cluster.x-k8s.io/remediate-machine"
	prefixPreDrain       = "pre-drain.delete.hook.machine.cluster.x-k8s.io"
	prefixPreTerminate   = "pre-terminate.delete.hook.machine.cluster.x-k8s.io"

	annotationPaused = xpmeta.AnnotationKeyReconciliationPaused
)

// A key identifies an object. All objects of a World are in one namespace, or have none. Only Nodes are of the target cluster.
type key struct{ group, kind, name string }

func keyOf(o *unstructured.Unstructured) key {
	return key{o.GroupVersionKind().Group, o.GetKind(), o.GetName()}
}

// A World has all objects that a handover depends on, as they were read.
type World struct {
	Namespace string
	// From is the MachineDeployment of Cluster API, and To that of Drover.
	From, To string
	// Installation is the ID of this installation of Drover.
	Installation string
	// Stopped means that Cluster API's own controllers were stopped: none of them reports a pause.
	Stopped bool
	// Differences of the class and the InfraMachines are accepted.
	Differences bool
	// Versions of kinds that the API server serves, for references without a version.
	Versions map[schema.GroupKind]string

	objects map[key]*unstructured.Unstructured
}

// Add adds objects. It replaces those of the same name.
func (w *World) Add(objects ...*unstructured.Unstructured) {
	if w.objects == nil {
		w.objects = map[key]*unstructured.Unstructured{}
	}
	for _, o := range objects {
		w.objects[keyOf(o)] = o
	}
}

func (w *World) get(group, kind, name string) *unstructured.Unstructured {
	return w.objects[key{group, kind, name}]
}

// list returns the objects of a kind by their names.
func (w *World) list(group, kind string) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for k, o := range w.objects {
		if k.group == group && k.kind == kind {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return out
}

// nodesOf returns the Nodes of the target cluster with a providerID, by their names.
func (w *World) nodesOf(providerID string) []corev1.Node {
	var out []corev1.Node
	for _, o := range w.list("", "Node") {
		if n := (corev1.Node{}); stringAt(o, "spec", "providerID") == providerID && runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &n) == nil {
			out = append(out, n)
		}
	}
	return out
}

// from is the MachineDeployment of Cluster API, nil if it does not exist.
func (w *World) from() *unstructured.Unstructured {
	return w.get(coreGroup, "MachineDeployment", w.From)
}

// cluster is the Cluster of the MachineDeployment of Cluster API.
func (w *World) cluster() *unstructured.Unstructured {
	if w.from() == nil {
		return nil
	}
	return w.get(coreGroup, "Cluster", stringAt(w.from(), "spec", "clusterName"))
}

// sets of the MachineDeployment of Cluster API.
func (w *World) sets() []*unstructured.Unstructured {
	if w.from() == nil {
		return nil
	}
	return slices.DeleteFunc(w.list(coreGroup, "MachineSet"), func(o *unstructured.Unstructured) bool { return !metav1.IsControlledBy(o, w.from()) })
}

// to is the MachineDeployment of Drover, nil if it does not exist.
func (w *World) to() *unstructured.Unstructured {
	return w.get(machinev1alpha1.Group, "MachineDeployment", w.To)
}

// set is the MachineSet of Drover that has the Machines: the only one, or the only one that has replicas. It is nil if there is
// none, or more than one.
func (w *World) set() *unstructured.Unstructured {
	if w.to() == nil {
		return nil
	}
	all := slices.DeleteFunc(w.list(machinev1alpha1.Group, "MachineSet"), func(o *unstructured.Unstructured) bool { return !metav1.IsControlledBy(o, w.to()) })
	used := slices.DeleteFunc(slices.Clone(all), func(o *unstructured.Unstructured) bool { return intAt(o, "spec", "replicas") == 0 })
	switch {
	case len(used) == 1:
		return used[0]
	case len(used) == 0 && len(all) == 1:
		return all[0]
	}
	return nil
}

// unrelated are the Machines of the set of Drover that were not imported.
func (w *World) unrelated() []*unstructured.Unstructured {
	ours := map[string]bool{}
	for _, m := range w.members() {
		ours[m.name] = true
	}
	set := w.set()
	return slices.DeleteFunc(w.list(machinev1alpha1.Group, "Machine"), func(o *unstructured.Unstructured) bool {
		return set == nil || ours[o.GetName()] || !selects(set, o.GetLabels()) || o.GetDeletionTimestamp() != nil
	})
}

// A member is a Machine that changes hands. All of its objects have one name, but for the InfraMachine.
type member struct {
	name string
	// machine of cluster.x-k8s.io, and its InfraMachine. infra is nil if it does not exist.
	machine, infra *unstructured.Unstructured
	// vm and drover are the VirtualMachine and the Machine of Drover, nil if they do not exist.
	vm, drover *unstructured.Unstructured
}

// id is the external name of the VM: the UID that its InfraMachine had when it was imported.
func (m member) id() string {
	if m.infra == nil {
		return m.machine.GetLabels()[clusterapi.LabelVirtualMachine]
	}
	return cmp.Or(m.infra.GetLabels()[clusterapi.LabelVirtualMachine], string(m.infra.GetUID()))
}

func (m member) providerID() string { return stringAt(m.machine, "spec", "providerID") }

func (m member) node() string { return stringAt(m.machine, "status", "nodeRef", "name") }

// members returns the Machines of the MachineDeployment of Cluster API: those that its sets control, and those that were
// imported from it.
func (w *World) members() []member {
	var out []member
	sets := w.sets()
	for _, o := range w.list(coreGroup, "Machine") {
		r := recordOf(o)
		if r == nil && !slices.ContainsFunc(sets, func(s *unstructured.Unstructured) bool { return metav1.IsControlledBy(o, s) }) {
			continue
		}
		if r != nil && r.From != w.From {
			continue
		}
		m := member{name: o.GetName(), machine: o}
		if k, name := w.infraOf(o); name != "" {
			m.infra = w.get(k.Group, k.Kind, name)
		}
		if vm := w.get(clusterapi.Group, "VirtualMachine", m.name); vm != nil && vm.GetAnnotations()[xpmeta.AnnotationKeyExternalName] == m.id() && m.id() != "" {
			m.vm = vm
		}
		if d := w.get(machinev1alpha1.Group, "Machine", m.name); d != nil && stringAt(d, "spec", "providerID") == m.providerID() && m.providerID() != "" {
			m.drover = d
		}
		out = append(out, m)
	}
	return out
}

// infraOf returns the kind and the name of the InfraMachine of a Machine, by the reference of either contract.
func (w *World) infraOf(machine *unstructured.Unstructured) (schema.GroupVersionKind, string) {
	ref, _, _ := unstructured.NestedStringMap(machine.Object, "spec", "infrastructureRef")
	if ref == nil {
		// A reference of v1beta1 may have fields of other types.
		return schema.GroupVersionKind{}, ""
	}
	gvk := schema.FromAPIVersionAndKind(ref["apiVersion"], ref["kind"])
	if ref["apiVersion"] == "" {
		gk := schema.GroupKind{Group: ref["apiGroup"], Kind: ref["kind"]}
		gvk = gk.WithVersion(w.Versions[gk])
	}
	return gvk, ref["name"]
}

// apply carries a step out in memory.
func (w *World) apply(s Step) {
	if s.Verb == Remove {
		delete(w.objects, keyOf(s.Object))
		return
	}
	w.Add(s.Object)
}

// clone returns a World whose objects may be replaced.
func (w *World) clone() *World {
	out := *w
	out.objects = maps.Clone(w.objects)
	return &out
}

// selects reports whether the selector of a set of either system matches labels. One that selects everything counts as none.
func selects(set *unstructured.Unstructured, of map[string]string) bool {
	s, err := metav1.LabelSelectorAsSelector(selectorOf(set))
	return err == nil && !s.Empty() && s.Matches(labels.Set(of))
}

func selectorOf(o *unstructured.Unstructured) *metav1.LabelSelector {
	raw, _, _ := unstructured.NestedMap(o.Object, "spec", "selector")
	out := &metav1.LabelSelector{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(raw, out) != nil {
		return &metav1.LabelSelector{}
	}
	return out
}

func stringAt(o *unstructured.Unstructured, path ...string) string {
	s, _, _ := unstructured.NestedString(o.Object, path...)
	return s
}

func boolAt(o *unstructured.Unstructured, path ...string) bool {
	b, _, _ := unstructured.NestedBool(o.Object, path...)
	return b
}

func intAt(o *unstructured.Unstructured, path ...string) int64 {
	i, _, _ := unstructured.NestedInt64(o.Object, path...)
	return i
}

// conditionOf returns a condition of an object, of the contract v1beta2 also where an object of v1beta1 has it.
func conditionOf(o *unstructured.Unstructured, typ string) map[string]any {
	for _, path := range [][]string{{"status", "conditions"}, {"status", "v1beta2", "conditions"}} {
		list, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
		items, _ := list.([]any)
		for _, i := range items {
			if c, ok := i.(map[string]any); ok && c["type"] == typ {
				return c
			}
		}
	}
	return nil
}

// describe returns the kind and the name of an object, with the group where both systems have the kind.
func describe(o *unstructured.Unstructured) string {
	if o.GroupVersionKind().Group == coreGroup {
		return o.GetKind() + "." + coreGroup + " " + o.GetName()
	}
	return o.GetKind() + " " + o.GetName()
}
