package handover

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	clusterapi "github.com/drover-dev/drover/apis/clusterapi/v1alpha1"
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
	spec := w.classSpec(&l)
	w.checkConfig(&l, spec)
	for _, m := range w.members() {
		if m.drover == nil || m.vm == nil {
			w.checkMember(&l, m, spec)
		}
		for _, o := range []*unstructured.Unstructured{m.vm, m.drover} {
			if o != nil && o.GetAnnotations()[annotationPaused] == "true" {
				l.add(o, "annotation %s is \"true\": it is being taken back. Complete that by --undo, or remove the annotation", annotationPaused)
			}
		}
	}
	if boolAt(w.cluster(), "spec", "paused") {
		notes = append(notes, describe(w.cluster())+": spec.paused is true: as long as it is, no VM is deleted, because its provider is paused too")
	}
	return l, notes
}

// checkTargets checks what all other checks need.
func (w *World) checkTargets(l *list) {
	from, to := w.from(), w.to()
	switch {
	case from == nil:
		l.missing("MachineDeployment."+coreGroup, w.From, "name one of namespace %s", w.Namespace)
	case from.GetDeletionTimestamp() != nil:
		l.add(from, "it is being deleted")
	case w.cluster() == nil:
		l.missing("Cluster."+coreGroup, stringAt(from, "spec", "clusterName"), "spec.clusterName of %s names it", describe(from))
	case w.cluster().GetDeletionTimestamp() != nil:
		l.add(w.cluster(), "it is being deleted")
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

// checkRollout checks that Cluster API neither creates, replaces nor deletes a Machine of the MachineDeployment.
func (w *World) checkRollout(l *list) {
	from := w.from()
	if v, ok := from.GetLabels()[labelTopology]; ok {
		l.add(from, "label %s=%s: spec.topology of %s owns it. Rebase the Cluster to one without a topology first", labelTopology, v, describe(w.cluster()))
	}
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
	for _, o := range slices.Concat([]*unstructured.Unstructured{from}, w.sets(), w.machines()) {
		_, paused := o.GetAnnotations()[annotationPausedCAPI]
		if !w.Stopped && !paused && !boolAt(w.cluster(), "spec", "paused") && conditionOf(o, "Paused")["status"] == "True" {
			// It would be mistaken for the report of the pause that comes.
			l.add(o, "its condition Paused is True, and nothing pauses it: wait until its controller reports that")
		}
	}
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

// machinesOf counts the Machines that a set of Cluster API controls.
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
	case r != nil && (r.From != w.From || r.To != w.To):
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

// class is the class of the template of Drover's set.
func (w *World) class() *unstructured.Unstructured {
	kind, name := w.classRef()
	return w.get(machinev1alpha1.Group, kind, name)
}

func (w *World) classRef() (kind, name string) {
	of := func(field string) string { return stringAt(w.set(), "spec", "template", "spec", "classRef", field) }
	return cmp.Or(of("kind"), machinev1alpha1.MachineClassGroupVersionKind.Kind), of("name")
}

// classSpec returns the VMs that the class makes, nil if it makes none of Cluster API.
func (w *World) classSpec(l *list) *clusterapi.InfraMachine {
	class := w.class()
	if class == nil {
		kind, name := w.classRef()
		l.missing(kind, name, "spec.template.spec.classRef of %s names it", describe(w.set()))
		return nil
	}
	if p := stringAt(class, "spec", "provider"); p != "clusterapi" {
		l.add(class, "spec.provider is %q, must be \"clusterapi\"", p)
		return nil
	}
	raw, _, _ := unstructured.NestedMap(class.Object, "spec", "forProvider", "infraMachine")
	out := &clusterapi.InfraMachine{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, out); raw == nil || err != nil {
		l.add(class, "spec.forProvider.infraMachine must have the kind and the spec of the InfraMachine")
		return nil
	}
	if out.APIGroup == "" {
		out.APIGroup = "infrastructure." + coreGroup
	}
	return out
}

// config is the configuration that the class names.
func (w *World) config() *unstructured.Unstructured {
	return w.get(clusterapi.Group, "ClusterProviderConfig", stringAt(w.class(), "spec", "providerConfigRef", "name"))
}

func (w *World) checkConfig(l *list, spec *clusterapi.InfraMachine) {
	if spec == nil {
		return
	}
	config := w.config()
	if config == nil {
		l.missing("ClusterProviderConfig."+clusterapi.Group, stringAt(w.class(), "spec", "providerConfigRef", "name"), "spec.providerConfigRef of %s names it", describe(w.class()))
		return
	}
	if is := stringAt(config, "spec", "clusterName"); is != w.cluster().GetName() {
		l.add(config, "spec.clusterName is %q, must be %q, the Cluster of %s", is, w.cluster().GetName(), describe(w.from()))
	}
	kinds, _, _ := unstructured.NestedSlice(config.Object, "spec", "infraMachineKinds")
	if !slices.ContainsFunc(kinds, func(k any) bool {
		m, _ := k.(map[string]any)
		group, _ := m["apiGroup"].(string)
		return m["kind"] == spec.Kind && (group == spec.APIGroup || group == "" && spec.APIGroup == "infrastructure."+coreGroup)
	}) {
		l.add(config, "spec.infraMachineKinds must have the kind %s of %s", spec.Kind, spec.APIGroup)
	}
}

// checkMember checks a Machine of Cluster API with all that belongs to it.
func (w *World) checkMember(l *list, m member, spec *clusterapi.InfraMachine) {
	o := m.machine
	if o.GetDeletionTimestamp() != nil {
		l.add(o, "it is being deleted: wait until it is gone")
		return
	}
	for k, v := range o.GetAnnotations() {
		name, _, _ := strings.Cut(k, "/")
		switch {
		case name == prefixPreDrain, name == prefixPreTerminate:
			l.add(o, "annotation %s=%s: Drover does not know this hook. Remove it, and set Drover's on the Machine afterwards: docs/migrate/cluster-api.md", k, v)
		case k == annotationRemediate:
			l.add(o, "annotation %s: it is to be replaced. Wait until it is, or remove it", k)
		}
	}
	if _, ok := o.GetLabels()[labelControlPlane]; ok {
		l.add(o, "label %s: Drover has no control planes", labelControlPlane)
	}
	if c := conditionOf(o, "OwnerRemediated"); c["status"] == "False" {
		l.add(o, "its condition OwnerRemediated is False: it is being replaced. Wait until it is")
	}
	template := func(field string) string { return stringAt(w.set(), "spec", "template", "spec", field) }
	if is, want := stringAt(o, "spec", "version"), template("version"); strings.TrimPrefix(is, "v") != strings.TrimPrefix(want, "v") {
		l.add(o, "spec.version is %q, and spec.template.spec.version of %s %q: they must be equal, or the Machines would not be of their template", is, describe(w.set()), want)
	}
	if is, want := stringAt(o, "spec", "failureDomain"), template("failureDomain"); want != "" && is != want {
		l.add(o, "spec.failureDomain is %q, and spec.template.spec.failureDomain of %s %q: import into a MachineDeployment of that failure domain", is, describe(w.set()), want)
	}
	w.checkName(l, m)
	for _, s := range w.list(coreGroup, "MachineSet") {
		if selects(s, w.detached(o)) {
			l.add(s, "spec.selector %s selects %s by the label %s alone: it would adopt the Machine again", metav1.FormatLabelSelector(selectorOf(s)), o.GetName(), labelCluster)
		}
	}
	w.checkInfra(l, m, spec)
	w.checkNode(l, m)
}

// checkName checks that Drover's objects can have the name of a Machine, and that no other Machine has its VM.
func (w *World) checkName(l *list, m member) {
	if e := validation.IsDNS1123Label(m.name); len(e) > 0 {
		l.add(m.machine, "metadata.name: %s: Machines of Drover need such a name", strings.Join(e, ", "))
	}
	if vm := w.get(clusterapi.Group, "VirtualMachine", m.name); vm != nil && m.vm == nil {
		l.add(vm, "it exists, and annotation %s is %q, not %q: delete it, or rename it", xpmeta.AnnotationKeyExternalName, vm.GetAnnotations()[xpmeta.AnnotationKeyExternalName], m.id())
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

// checkInfra checks the InfraMachine.
func (w *World) checkInfra(l *list, m member, spec *clusterapi.InfraMachine) {
	gvk, name := w.infraOf(m.machine)
	o := m.infra
	if o == nil {
		l.missing(gvk.Kind+"."+gvk.Group, name, "spec.infrastructureRef of %s names it", describe(m.machine))
		return
	}
	if o.GetDeletionTimestamp() != nil {
		l.add(o, "it is being deleted: wait until it is gone")
	}
	if by := metav1.GetControllerOf(o); by == nil || by.UID != m.machine.GetUID() {
		l.add(o, "metadata.ownerReferences: %s must be its controller", describe(m.machine))
	}
	if _, ok := o.GetAnnotations()[annotationPausedCAPI]; ok {
		l.add(o, "annotation %s: its provider would delete no VM. Remove it: this command does not need it", annotationPausedCAPI)
	}
	if is, want := stringAt(o, "spec", "providerID"), m.providerID(); is == "" || is != want {
		l.add(o, "spec.providerID is %q, and that of %s %q: they must be equal", is, describe(m.machine), want)
	}
	if !boolAt(o, "status", "initialization", "provisioned") && !boolAt(o, "status", "ready") {
		l.add(o, "neither status.initialization.provisioned nor status.ready is true: wait until its provider reports the VM")
	}
	if v := o.GetLabels()[clusterapi.LabelVirtualMachine]; v != "" && recordOf(m.machine) == nil {
		l.add(o, "label %s=%s: it is the VM of a VirtualMachine already", clusterapi.LabelVirtualMachine, v)
	}
	if spec == nil {
		return
	}
	if gvk.Kind != spec.Kind || gvk.Group != spec.APIGroup {
		l.add(o, "its kind is %s of %s, and that of %s %s of %s: they must be equal", gvk.Kind, gvk.Group, describe(w.class()), spec.Kind, spec.APIGroup)
		return
	}
	if d := differences(spec, o); len(d) > 0 && !w.Differences {
		l.add(o, "%s has other values: %s. Correct the class, which is immutable: create another one. Or accept it by --accept-differences: the next rollout makes the VMs of the class", describe(w.class()), strings.Join(d, ", "))
	}
}

// differences returns the fields of a class that an InfraMachine has otherwise. Fields that only the InfraMachine has are of its
// provider as a rule.
func differences(spec *clusterapi.InfraMachine, infra *unstructured.Unstructured) []string {
	want := map[string]any{}
	if spec.Spec == nil || json.Unmarshal(spec.Spec.Raw, &want) != nil {
		return nil
	}
	raw, err := json.Marshal(infra.Object["spec"])
	is := map[string]any{}
	if err != nil || json.Unmarshal(raw, &is) != nil {
		return nil
	}
	var out []string
	compare("spec", want, is, &out)
	slices.Sort(out)
	return out
}

func compare(path string, want, is any, out *[]string) {
	wantMap, ok := want.(map[string]any)
	isMap, alsoMap := is.(map[string]any)
	if ok && alsoMap {
		for k, v := range wantMap {
			compare(path+"."+k, v, isMap[k], out)
		}
		return
	}
	if !equality.Semantic.DeepEqual(want, is) {
		*out = append(*out, fmt.Sprintf("%s is %s there and %s here", path, short(want), short(is)))
	}
}

func short(v any) string {
	b, err := json.Marshal(v)
	if err != nil || len(b) > 80 {
		return "another value"
	}
	return string(b)
}

// checkNode checks that the Node of a Machine is known by its providerID, and that Drover changes nothing that evicts its pods.
func (w *World) checkNode(l *list, m member) {
	switch {
	case m.providerID() == "":
		l.add(m.machine, "spec.providerID is empty: wait until it is known")
		return
	case m.node() == "":
		l.add(m.machine, "status.nodeRef is empty: wait until its Node has joined")
		return
	}
	found := w.nodesOf(m.providerID())
	if len(found) != 1 {
		l.add(m.machine, "spec.providerID %q: %d Nodes of the target cluster have it, must be one", m.providerID(), len(found))
		return
	}
	n := found[0]
	if n.Name != m.node() {
		l.add(m.machine, "status.nodeRef.name is %q, and the Node with its providerID is %q: they must be equal", m.node(), n.Name)
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

// checkGiveBack returns the obstacles of the way back.
func checkGiveBack(w *World) (causes, notes []string) {
	var l list
	from := w.from()
	switch {
	case from == nil:
		l.missing("MachineDeployment."+coreGroup, w.From, "its Machines cannot be given back without it")
	case from.GetDeletionTimestamp() != nil:
		l.add(from, "it is being deleted: its Machines would be deleted with it")
	case recordOf(from) == nil:
		return nil, []string{fmt.Sprintf("%s: it has no annotation %s: nothing of it is imported", describe(from), clusterapi.AnnotationImported)}
	case w.cluster() == nil:
		l.missing("Cluster."+coreGroup, stringAt(from, "spec", "clusterName"), "spec.clusterName of %s names it", describe(from))
	case w.isDrovers() && w.set() == nil:
		l.missing("MachineDeployment", w.To, "or a rollout of it is in progress: it must have exactly one MachineSet with replicas")
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
	for _, s := range w.sets() {
		if n, want := w.returns(s), intAt(s, "spec", "replicas"); int64(n) != want && recordOf(s) != nil {
			notes = append(notes, fmt.Sprintf("%s: spec.replicas is %d, and %d Machines come back: Cluster API creates or deletes the difference", describe(s), want, n))
		}
	}
	return l, notes
}

// checkReturn checks a Machine that is to be given back.
func (w *World) checkReturn(l *list, m member) {
	r := recordOf(m.machine)
	if r == nil {
		return
	}
	if m.machine.GetDeletionTimestamp() != nil || m.infra != nil && m.infra.GetDeletionTimestamp() != nil {
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
		if is, want := stringAt(d, "spec", "version"), stringAt(m.machine, "spec", "version"); strings.TrimPrefix(is, "v") != strings.TrimPrefix(want, "v") {
			l.add(d, "spec.version is %q, and that of %s %q: it was updated in place, and Cluster API does not know it", is, describe(m.machine), want)
		}
	}
	for _, ref := range r.OwnerReferences {
		if ref.Kind == "MachineSet" && !slices.ContainsFunc(w.sets(), func(s *unstructured.Unstructured) bool { return s.GetUID() == ref.UID }) {
			l.add(m.machine, "MachineSet.%s %s with the UID %s, its former owner, does not exist: it cannot be given back", coreGroup, ref.Name, ref.UID)
		}
	}
}
