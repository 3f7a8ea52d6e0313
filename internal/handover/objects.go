package handover

import (
	"cmp"
	"context"
	"maps"
	"slices"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

const annotationPaused = xpmeta.AnnotationKeyReconciliationPaused

// A System is the other side of a handover: ClusterAPI or MCM. Both sides have MachineDeployments, MachineSets and Machines.
type System interface {
	// group is the API group of its kinds.
	group() string
	// annotation has the record of an object.
	annotation() string
	// title is its name in texts.
	title() string
	// vmKind is the kind of the VM resources.
	vmKind(w *World) schema.GroupVersionKind
	// member returns the member of a Machine, without the objects of Drover. It is false for a Machine whose VM is gone.
	member(w *World, machine *unstructured.Unstructured) (member, bool)
	// record adds the former state of an object to its record.
	record(w *World, o *unstructured.Unstructured, r *record)
	// detached returns the labels of a Machine without those by which the controllers of the system find it.
	detached(w *World, machine *unstructured.Unstructured) map[string]string
	// reported is the providerID that the provider of a VM reports, "" if it has not found the VM.
	reported(w *World, m member) string

	taking() []phase
	givingBack() []phase

	// checkFrom checks what all other checks of a handover to Drover need.
	checkFrom(w *World, l *list)
	// checkRollout checks the fields of a MachineDeployment and its sets that only the system has.
	checkRollout(w *World, l *list)
	// checkClass checks the class of Drover's template.
	checkClass(w *World, l *list)
	// checkMember checks the fields of a Machine that only the system has. It is false if the Node cannot be checked.
	checkMember(w *World, l *list, m member) bool
	// checkTo checks what all other checks of the way back need.
	checkTo(w *World, l *list)
	// checkReturn checks the fields of a Machine that is to be given back, and that only the system has.
	checkReturn(w *World, l *list, m member)
	// notes are facts that a user should know, and that are no obstacle.
	notes(w *World) []string

	// read adds the objects that only the system needs. All other objects were read before.
	read(ctx context.Context, x *reader, r *Run)
}

// A key identifies an object. All objects of a World are in one namespace, or have none. Only Nodes are of the target cluster.
type key struct{ group, kind, name string }

func keyOf(o *unstructured.Unstructured) key {
	return key{o.GroupVersionKind().Group, o.GetKind(), o.GetName()}
}

// A World has all objects that a handover depends on, as they were read.
type World struct {
	// System is the other side.
	System    System
	Namespace string
	// From is the MachineDeployment of the other side, and To that of Drover.
	From, To string
	// Installation is the ID of this installation of Drover.
	Installation string
	// Stopped means that the controllers of the other side were stopped: none of them reports a pause.
	Stopped bool
	// Differences of the class and the VMs are accepted.
	Differences bool
	// Versions of kinds that the API server serves, for references without a version.
	Versions map[schema.GroupKind]string
	// MCM has what only machine-controller-manager needs.
	MCM surroundings

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

// from is the MachineDeployment of the other side, nil if it does not exist.
func (w *World) from() *unstructured.Unstructured {
	return w.get(w.System.group(), "MachineDeployment", w.From)
}

// sets of the MachineDeployment of the other side.
func (w *World) sets() []*unstructured.Unstructured {
	if w.from() == nil {
		return nil
	}
	return slices.DeleteFunc(w.list(w.System.group(), "MachineSet"), func(o *unstructured.Unstructured) bool { return !metav1.IsControlledBy(o, w.from()) })
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
	// machine of the other side, and its InfraMachine, which only Cluster API has. infra is nil if it does not exist.
	machine, infra *unstructured.Unstructured
	// vm and drover are the VM resource and the Machine of Drover, nil if they do not exist.
	vm, drover *unstructured.Unstructured

	external, provider, nodeName string
	// hasVM means that the VM is known to be there.
	hasVM bool
}

// id is the external name of the VM.
func (m member) id() string { return m.external }

func (m member) providerID() string { return m.provider }

func (m member) node() string { return m.nodeName }

// origin is the object that stands for the VM at the other side.
func (m member) origin() *unstructured.Unstructured {
	if m.infra != nil {
		return m.infra
	}
	return m.machine
}

// members returns the Machines of the MachineDeployment of the other side: those that its sets control, and those that were
// imported from it.
func (w *World) members() []member {
	var out []member
	kind := w.System.vmKind(w)
	for _, o := range w.theirs() {
		m, ok := w.System.member(w, o)
		if !ok {
			continue
		}
		if vm := w.get(kind.Group, kind.Kind, m.name); vm != nil && vm.GetAnnotations()[xpmeta.AnnotationKeyExternalName] == m.id() && m.id() != "" {
			m.vm = vm
		}
		if d := w.get(machinev1alpha1.Group, "Machine", m.name); d != nil && stringAt(d, "spec", "providerID") == m.providerID() && m.providerID() != "" {
			m.drover = d
		}
		out = append(out, m)
	}
	return out
}

// theirs are the Machines of the MachineDeployment of the other side, with those whose VM is gone.
func (w *World) theirs() []*unstructured.Unstructured {
	sets := w.sets()
	return slices.DeleteFunc(w.list(w.System.group(), "Machine"), func(o *unstructured.Unstructured) bool {
		if r := recordOf(o); r != nil {
			return r.From != w.From
		}
		return !slices.ContainsFunc(sets, func(s *unstructured.Unstructured) bool { return metav1.IsControlledBy(o, s) })
	})
}

// machines of the other side that change hands.
func (w *World) machines() []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, m := range w.members() {
		out = append(out, m.machine)
	}
	return out
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
	if g := o.GroupVersionKind().Group; g == coreGroup || g == mcmGroup {
		return o.GetKind() + "." + g + " " + o.GetName()
	}
	return o.GetKind() + " " + o.GetName()
}

// unselected returns the labels of a Machine without those by which its sets select it, but for one that stays.
func (w *World) unselected(machine *unstructured.Unstructured, stays string) map[string]string {
	out := maps.Clone(machine.GetLabels())
	for _, o := range append(w.sets(), w.from()) {
		selector := selectorOf(o)
		for k := range selector.MatchLabels {
			out = without(out, k, stays)
		}
		for _, e := range selector.MatchExpressions {
			out = without(out, e.Key, stays)
		}
	}
	return out
}

func without(l map[string]string, label, stays string) map[string]string {
	if label != stays {
		delete(l, label)
	}
	return l
}
