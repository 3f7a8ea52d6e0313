package handover

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	clusterapi "github.com/drover-dev/drover/apis/clusterapi/v1alpha1"
)

func (capi) checkFrom(w *World, l *list) {
	switch c := w.cluster(); {
	case c == nil:
		l.missing("Cluster."+coreGroup, stringAt(w.from(), "spec", "clusterName"), "spec.clusterName of %s names it", describe(w.from()))
	case c.GetDeletionTimestamp() != nil:
		l.add(c, "it is being deleted")
	}
}

func (capi) checkTo(w *World, l *list) {
	if w.cluster() == nil {
		l.missing("Cluster."+coreGroup, stringAt(w.from(), "spec", "clusterName"), "spec.clusterName of %s names it", describe(w.from()))
	}
}

func (capi) notes(w *World) []string {
	if !boolAt(w.cluster(), "spec", "paused") {
		return nil
	}
	return []string{describe(w.cluster()) + ": spec.paused is true: as long as it is, no VM is deleted, because its provider is paused too"}
}

func (capi) checkRollout(w *World, l *list) {
	from := w.from()
	if v, ok := from.GetLabels()[labelTopology]; ok {
		l.add(from, "label %s=%s: spec.topology of %s owns it. Rebase the Cluster to one without a topology first", labelTopology, v, describe(w.cluster()))
	}
	for _, o := range slices.Concat([]*unstructured.Unstructured{from}, w.sets(), w.machines()) {
		_, paused := o.GetAnnotations()[annotationPausedCAPI]
		if !w.Stopped && !paused && !boolAt(w.cluster(), "spec", "paused") && conditionOf(o, "Paused")["status"] == "True" {
			// It would be mistaken for the report of the pause that comes.
			l.add(o, "its condition Paused is True, and nothing pauses it: wait until its controller reports that")
		}
	}
}

func (capi) checkClass(w *World, l *list) { w.checkConfig(l, w.classSpec(l)) }

func (capi) checkMember(w *World, l *list, m member) bool {
	o := m.machine
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
	for _, s := range w.list(coreGroup, "MachineSet") {
		if selects(s, w.System.detached(w, o)) {
			l.add(s, "spec.selector %s selects %s by the label %s alone: it would adopt the Machine again", metav1.FormatLabelSelector(selectorOf(s)), o.GetName(), labelCluster)
		}
	}
	w.checkInfra(l, m, w.classSpec(&list{}))
	switch {
	case m.providerID() == "":
		l.add(o, "spec.providerID is empty: wait until it is known")
		return false
	case m.node() == "":
		l.add(o, "status.nodeRef is empty: wait until its Node has joined")
		return false
	}
	return true
}

func (capi) checkReturn(_ *World, l *list, m member) {
	if m.drover == nil {
		return
	}
	if is, want := stringAt(m.drover, "spec", "version"), stringAt(m.machine, "spec", "version"); strings.TrimPrefix(is, "v") != strings.TrimPrefix(want, "v") {
		l.add(m.drover, "spec.version is %q, and that of %s %q: it was updated in place, and Cluster API does not know it", is, describe(m.machine), want)
	}
}

// classSpec returns the VMs that the class makes, nil if it makes none of Cluster API.
func (w *World) classSpec(l *list) *clusterapi.InfraMachine {
	class := w.existingClass(l)
	if class == nil {
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
