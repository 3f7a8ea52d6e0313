package handover

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// A list collects causes.
type list []string

func (l *list) add(o *unstructured.Unstructured, text string, args ...any) {
	*l = append(*l, describe(o)+": "+fmt.Sprintf(text, args...))
}

func (l *list) missing(what, name, text string, args ...any) {
	*l = append(*l, fmt.Sprintf("%s %q does not exist: ", what, name)+fmt.Sprintf(text, args...))
}

// checkTake returns the obstacles of a handover to Drover. A handover that has begun is checked again for the Machines that
// Drover does not have yet.
func checkTake(w *World) (causes, notes []string) {
	var l list
	if w.checkTargets(&l); len(l) > 0 {
		return l, nil
	}
	if recordOf(w.from()) == nil {
		w.checkRollout(&l)
	} else if r := recordOf(w.from()); r.To != w.To {
		l.add(w.from(), "it is being imported into MachineDeployment %q: name that, or take it back by --undo", r.To)
	}
	w.checkSet(&l)
	w.System.checkClass(w, &l)
	for _, m := range w.members() {
		if m.drover == nil || m.vm == nil {
			w.checkMember(&l, m)
		}
		for _, o := range []*unstructured.Unstructured{m.vm, m.drover} {
			if o != nil && o.GetAnnotations()[annotationPaused] == "true" {
				l.add(o, "annotation %s is \"true\": it is being taken back. Complete that by --undo, or remove the annotation", annotationPaused)
			}
		}
	}
	return l, w.System.notes(w)
}

// checkTargets checks what all other checks need.
func (w *World) checkTargets(l *list) {
	from, to := w.from(), w.to()
	switch {
	case from == nil:
		l.missing("MachineDeployment."+w.System.group(), w.From, "name one of namespace %s", w.Namespace)
	case from.GetDeletionTimestamp() != nil:
		l.add(from, "it is being deleted")
	default:
		w.System.checkFrom(w, l)
	}
	switch {
	case to == nil:
		l.missing("MachineDeployment", w.To, "create it in namespace %s with replicas: 0", w.Namespace)
	case to.GetDeletionTimestamp() != nil:
		l.add(to, "it is being deleted")
	case metav1.GetControllerOf(to) != nil:
		l.add(to, "it belongs to %s %s, which sets its replicas: import into a MachineDeployment of your own", metav1.GetControllerOf(to).Kind, metav1.GetControllerOf(to).Name)
	case w.set() == nil:
		l.add(to, "it has no MachineSet, or more than one with replicas: wait until it has exactly one")
	}
}

// checkRollout checks that the other side neither creates, replaces nor deletes a Machine of the MachineDeployment.
func (w *World) checkRollout(l *list) {
	from := w.from()
	if is, want := intAt(from, "status", "observedGeneration"), from.GetGeneration(); is != want {
		l.add(from, "status.observedGeneration is %d, must be %d: wait for its controller", is, want)
	}
	want := intAt(from, "spec", "replicas")
	if is := len(w.members()); int64(is) != want {
		l.add(from, "spec.replicas is %d, and it has %d Machines: wait until they are equal", want, is)
	}
	if len(w.members()) == 0 {
		l.add(from, "it has no Machines: nothing is to be imported")
	}
	w.System.checkRollout(w, l)
	var used []string
	for _, s := range w.sets() {
		if s.GetDeletionTimestamp() != nil {
			l.add(s, "it is being deleted: wait until it is gone")
		}
		if w.machinesOf(s) > 0 || intAt(s, "spec", "replicas") > 0 {
			used = append(used, s.GetName())
		}
	}
	if len(used) > 1 {
		l.add(from, "a rollout is in progress: the MachineSets %s have Machines. Wait until one of them is left", strings.Join(used, " and "))
	}
}

// machinesOf counts the Machines that a set of the other side controls.
func (w *World) machinesOf(set *unstructured.Unstructured) int {
	n := 0
	for _, o := range w.machines() {
		if metav1.IsControlledBy(o, set) {
			n++
		}
	}
	return n
}

// checkSet checks the set of Drover.
func (w *World) checkSet(l *list) {
	set := w.set()
	switch r := recordOf(set); {
	case r != nil && !r.isOf(w):
		l.add(set, "%s is being imported into it: wait until that is done, or take it back by --undo", r.From)
	case r == nil && set.GetAnnotations()[annotationPaused] == "true":
		l.add(set, "annotation %s is \"true\": remove it, this command pauses it itself", annotationPaused)
	case r == nil && rests(set) && !w.isDrovers():
		l.add(set, "its condition Synced reports a pause that has ended: wait until its controller goes on")
	case r == nil && !w.isTaken():
		is, want := int64(len(w.unrelated())), intAt(w.to(), "spec", "replicas")
		if is != want || intAt(set, "spec", "replicas") != want {
			l.add(w.to(), "spec.replicas is %d, and %s has %d Machines: wait until they are equal", want, describe(set), is)
		}
	}
}

// class is the class of the template of Drover's set, nil if either does not exist.
func (w *World) class() *unstructured.Unstructured {
	if w.set() == nil {
		return nil
	}
	kind, name := w.classRef()
	return w.get(machinev1alpha1.Group, kind, name)
}

func (w *World) classRef() (kind, name string) {
	of := func(field string) string { return stringAt(w.set(), "spec", "template", "spec", "classRef", field) }
	return cmp.Or(of("kind"), machinev1alpha1.MachineClassGroupVersionKind.Kind), of("name")
}

// existingClass is the class, nil with a cause if it does not exist.
func (w *World) existingClass(l *list) *unstructured.Unstructured {
	class := w.class()
	if class == nil {
		kind, name := w.classRef()
		l.missing(kind, name, "spec.template.spec.classRef of %s names it", describe(w.set()))
	}
	return class
}

// checkMember checks a Machine of the other side with all that belongs to it.
func (w *World) checkMember(l *list, m member) {
	if m.machine.GetDeletionTimestamp() != nil {
		l.add(m.machine, "it is being deleted: wait until it is gone")
		return
	}
	w.checkName(l, m)
	if w.System.checkMember(w, l, m) {
		w.checkNode(l, m)
	}
}

// checkName checks that Drover's objects can have the name of a Machine, and that no other Machine has its VM.
func (w *World) checkName(l *list, m member) {
	if e := validation.IsDNS1123Label(m.name); len(e) > 0 {
		l.add(m.machine, "metadata.name: %s: Machines of Drover need such a name", strings.Join(e, ", "))
	}
	kind := w.System.vmKind(w)
	if vm := w.get(kind.Group, kind.Kind, m.name); vm != nil && m.vm == nil {
		l.add(vm, "it exists, and annotation %s is %q, not %q: delete it, or rename it", xpmeta.AnnotationKeyExternalName, vm.GetAnnotations()[xpmeta.AnnotationKeyExternalName], m.id())
	}
	for _, vm := range w.list(kind.Group, kind.Kind) {
		if vm.GetName() != m.name && m.id() != "" && vm.GetAnnotations()[xpmeta.AnnotationKeyExternalName] == m.id() {
			l.add(vm, "annotation %s is %q: it has the VM of %s already", xpmeta.AnnotationKeyExternalName, m.id(), describe(m.machine))
		}
	}
	for _, d := range w.list(machinev1alpha1.Group, "Machine") {
		switch same := stringAt(d, "spec", "providerID") == m.providerID() && m.providerID() != ""; {
		case d.GetName() == m.name && !same:
			l.add(d, "it exists, and is another one than %s: delete it, if it is of no use", describe(m.machine))
		case d.GetName() != m.name && same, d.GetName() == m.name && same && m.vm == nil:
			l.add(d, "spec.providerID is %q: it has the VM of %s already", m.providerID(), describe(m.machine))
		}
	}
}

// checkNode checks that the Node of a Machine is known by its providerID, and that Drover changes nothing that evicts its pods.
func (w *World) checkNode(l *list, m member) {
	found := w.nodesOf(m.providerID())
	if len(found) != 1 {
		l.add(m.machine, "spec.providerID %q: %d Nodes of the target cluster have it, must be one", m.providerID(), len(found))
		return
	}
	n := found[0]
	if n.Name != m.node() {
		l.add(m.machine, "its Node is %q, and the Node with its providerID is %q: they must be equal", m.node(), n.Name)
	}
	if n.DeletionTimestamp != nil {
		l.add(m.machine, "Node %q is being deleted", n.Name)
	}
	if v, ok := n.Labels[clusterv1alpha1.LabelJoinToken]; ok {
		l.add(m.machine, "Node %q has the label %s=%s: Drover made it for another Machine. Remove the label if that does not exist", n.Name, clusterv1alpha1.LabelJoinToken, v)
	}
	taints, _, _ := unstructured.NestedSlice(w.set().Object, "spec", "template", "spec", "taints")
	for _, t := range taints {
		raw, _ := t.(map[string]any)
		has := slices.ContainsFunc(n.Spec.Taints, func(is corev1.Taint) bool {
			value, _ := raw["value"].(string)
			return is.Key == raw["key"] && is.Value == value && string(is.Effect) == raw["effect"]
		})
		if !has {
			l.add(w.set(), "spec.template.spec.taints: Node %q has no taint %v=%v:%v, and would get it: taint the Nodes first, or leave it out of the template", n.Name, raw["key"], raw["value"], raw["effect"])
		}
	}
}

// isGivenBack reports whether the MachineDeployment has no record, which it loses last. Without its former replicas the Machines
// cannot be given back.
func isGivenBack(w *World) bool { return recordOf(w.from()) == nil }

// checkGiveBack returns the obstacles of the way back.
func checkGiveBack(w *World) (causes, notes []string) {
	var l list
	from := w.from()
	switch {
	case from == nil:
		l.missing("MachineDeployment."+w.System.group(), w.From, "its Machines cannot be given back without it")
	case from.GetDeletionTimestamp() != nil:
		l.add(from, "it is being deleted: its Machines would be deleted with it")
	case isGivenBack(w):
		return nil, []string{fmt.Sprintf("%s: it has no annotation %s: nothing of it is imported", describe(from), w.System.annotation())}
	case w.isDrovers() && w.set() == nil:
		l.missing("MachineDeployment", w.To, "or a rollout of it is in progress: it must have exactly one MachineSet with replicas")
	default:
		w.System.checkTo(w, &l)
	}
	if len(l) > 0 {
		return l, nil
	}
	if w.set() != nil && recordOf(w.set()) == nil && w.set().GetAnnotations()[annotationPaused] == "true" && w.isDrovers() {
		l.add(w.set(), "annotation %s is \"true\": remove it, this command pauses it itself", annotationPaused)
	}
	if w.to() != nil && metav1.GetControllerOf(w.to()) != nil && w.isDrovers() {
		l.add(w.to(), "it belongs to %s %s, which sets its replicas", metav1.GetControllerOf(w.to()).Kind, metav1.GetControllerOf(w.to()).Name)
	}
	for _, m := range w.members() {
		w.checkReturn(&l, m)
	}
	for _, o := range w.theirs() {
		w.checkOwners(&l, o)
	}
	for _, s := range w.sets() {
		if n, want := w.returns(s), w.desired(s); int64(n) != want && recordOf(s) != nil {
			notes = append(notes, fmt.Sprintf("%s: spec.replicas is %d, and %d Machines come back: %s creates or deletes the difference", describe(s), want, n, w.System.title()))
		}
	}
	return l, notes
}

// desired are the replicas of a set of the other side when it goes on.
func (w *World) desired(set *unstructured.Unstructured) int64 {
	if r := recordOf(set); r != nil && r.Replicas != nil {
		return *r.Replicas
	}
	return intAt(set, "spec", "replicas")
}

// checkReturn checks a Machine that is to be given back.
func (w *World) checkReturn(l *list, m member) {
	r := recordOf(m.machine)
	if r == nil {
		return
	}
	if m.machine.GetDeletionTimestamp() != nil || m.origin().GetDeletionTimestamp() != nil {
		l.add(m.machine, "it is being deleted: wait until it is gone")
	}
	if m.vm != nil && m.vm.GetDeletionTimestamp() != nil && !rests(m.vm) {
		l.add(m.vm, "it is being deleted: wait until it is gone")
	}
	if d := m.drover; d != nil {
		if d.GetDeletionTimestamp() != nil && !rests(d) {
			l.add(d, "it is being deleted: wait until it is gone")
		}
		if by := metav1.GetControllerOf(d); by != nil && w.set() != nil && by.UID != w.set().GetUID() {
			l.add(d, "it belongs to %s, and the replicas are those of %s: a rollout is in progress", by.Name, describe(w.set()))
		}
	}
	w.System.checkReturn(w, l, m)
}

// checkOwners checks that the former owner of a Machine exists.
func (w *World) checkOwners(l *list, machine *unstructured.Unstructured) {
	r := recordOf(machine)
	if r == nil {
		return
	}
	for _, ref := range r.OwnerReferences {
		if ref.Kind == "MachineSet" && !slices.ContainsFunc(w.sets(), func(s *unstructured.Unstructured) bool { return s.GetUID() == ref.UID }) {
			l.add(machine, "MachineSet.%s %s with the UID %s, its former owner, does not exist: it cannot be given back", w.System.group(), ref.Name, ref.UID)
		}
	}
}
