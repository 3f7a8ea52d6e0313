package handover

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	clusterapi "github.com/drover-dev/drover/apis/clusterapi/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

func (mcm) checkFrom(w *World, l *list) {
	w.checkStopped(l)
	if w.MCM.Shoot {
		*l = append(*l, fmt.Sprintf("Namespace %q: label gardener.cloud/role=shoot: a gardenlet writes its MachineDeployments, and starts machine-controller-manager again. Roll instead: docs/migrate/machine-controller-manager.md", w.Namespace))
	}
	group := ":" + w.Namespace + "." + w.From
	for _, x := range w.MCM.Workloads {
		if x.Why == "" || !slices.ContainsFunc(x.Containers, func(c corev1.Container) bool {
			return slices.ContainsFunc(words(c), func(word string) bool { return strings.HasSuffix(word, group) })
		}) {
			continue
		}
		*l = append(*l, fmt.Sprintf("%s: %s, and its argument --nodes names %s: it would scale it. Remove that argument, or scale the autoscaler to 0", x.Name, x.Why, group[1:]))
	}
}

func (mcm) checkTo(w *World, l *list) { w.checkStopped(l) }

// checkStopped checks that the controllers are stopped: they delete a VM that has no Machine, drain Nodes, and write the objects.
func (w *World) checkStopped(l *list) {
	const stop = "stop machine-controller-manager and the machine controller: scale their Deployment to 0"
	seen := map[string]bool{}
	for _, lease := range w.MCM.Leases {
		seen[lease.Name] = true
		if clusterapi.IsHeld(lease.Spec, w.MCM.Now) {
			*l = append(*l, fmt.Sprintf("Lease %s/%s: %s holds it: %s", lease.Namespace, lease.Name, *lease.Spec.HolderIdentity, stop))
		}
	}
	for _, x := range w.MCM.Workloads {
		if x.Why != "" && slices.ContainsFunc(x.Containers, func(c corev1.Container) bool { return isMCM(c) && mayServe(c, x.Namespace, w.Namespace) }) {
			*l = append(*l, fmt.Sprintf("%s: %s, and it runs a controller of machine-controller-manager: %s", x.Name, x.Why, stop))
		}
	}
	for _, name := range leasesMCM {
		if !seen[name] && !w.MCM.Confirmed {
			*l = append(*l, fmt.Sprintf("Lease %s/%s does not exist: the controllers may run without an election of a leader, or in another cluster. If you are sure that they are stopped, confirm it by --controllers-are-stopped", w.Namespace, name))
		}
	}
}

// isMCM reports whether a container has one of the controllers: by its image, as the drivers of clouds are named too, or its program.
func isMCM(c corev1.Container) bool {
	return strings.Contains(path.Base(c.Image), mcmTitle) || slices.ContainsFunc(words(c), func(word string) bool {
		return path.Base(word) == mcmTitle || strings.HasPrefix(path.Base(word), mcmTitle+"-provider-")
	})
}

// mayServe reports whether a controller in a namespace may serve the Machines of another one: its flag names that, or cannot be
// understood. Without the flag it serves the namespace default; in the namespace of the Machines it may have it from elsewhere.
func mayServe(c corev1.Container, in, namespace string) bool {
	all := words(c)
	for i, word := range all {
		v, ok := strings.CutPrefix(word, "--namespace=")
		if word == "--namespace" && i+1 < len(all) {
			v, ok = all[i+1], true
		}
		if !ok {
			continue
		}
		for _, e := range c.Env {
			switch ref := "$(" + e.Name + ")"; {
			case v == ref && e.ValueFrom == nil:
				v = e.Value
			case v == ref && e.ValueFrom.FieldRef != nil && e.ValueFrom.FieldRef.FieldPath == "metadata.namespace":
				v = in
			}
		}
		return v == namespace || strings.Contains(v, "$")
	}
	return in == namespace || namespace == corev1.NamespaceDefault
}

// words are the words of the command of a container.
func words(c corev1.Container) []string {
	var out []string
	for _, s := range slices.Concat(c.Command, c.Args) {
		out = append(out, strings.Fields(s)...)
	}
	return out
}

func (mcm) checkRollout(w *World, l *list) {
	from := w.from()
	if boolAt(from, "spec", "paused") {
		l.add(from, "spec.paused is true: a rollout may be held in the middle. Resume it, and wait until it is complete")
	}
	if rollback, ok, _ := unstructured.NestedMap(from.Object, "spec", "rollbackTo"); ok {
		l.add(from, "spec.rollbackTo is %s: wait until the rollback is complete", short(rollback))
	}
	if v := from.GetAnnotations()[annotationTriggerDeletion]; v != "" {
		l.add(from, "annotation %s is %q: an autoscaler has these Machines deleted. Wait until they are", annotationTriggerDeletion, v)
	}
	for _, o := range w.theirOwners() {
		if v, ok := o.GetLabels()[labelFreezeMCM]; ok {
			l.add(o, "label %s=%s: it has too many Machines. Find out why, and wait until it is unfrozen", labelFreezeMCM, v)
		}
		if v, ok := o.GetLabels()[labelScaleUpDisabled]; ok {
			l.add(o, "label %s=%s: an update in place is in progress. Wait until it is complete", labelScaleUpDisabled, v)
		}
	}
}

// checkClass checks that the VMs of the class are of a cloud where a VM is known by its providerID.
func (s mcm) checkClass(w *World, l *list) {
	class := w.existingClass(l)
	if class == nil {
		return
	}
	provider := stringAt(class, "spec", "provider")
	if w.cloud() == nil {
		l.add(class, "spec.provider is %q, must be one of %s: %s", provider, namesOfClouds(), cmp.Or(unadoptable[provider], "VMs of other clouds are not known by the providerID of their Nodes"))
		return
	}
	kind := s.vmKind(w)
	if kind.Kind == "" {
		l.add(class, "spec.provider is %q, and there is no Composition of Machines with the label %s=%s: install the provider", provider, machinev1alpha1.LabelProvider, provider)
		return
	}
	ref := func(field string) string { return stringAt(class, "spec", "providerConfigRef", field) }
	if w.get(kind.Group, ref("kind"), ref("name")) == nil {
		l.missing(ref("kind")+"."+kind.Group, ref("name"), "spec.providerConfigRef of %s names it", describe(class))
	}
	forProvider, _, _ := unstructured.NestedMap(class.Object, "spec", "forProvider")
	if role, cluster := tagOfMCM(forProvider, "role"), tagOfMCM(forProvider, "cluster"); role != "" && cluster != "" {
		l.add(class, "spec.forProvider has the tags %q and %q: machine-controller-manager deletes each VM that has both and no Machine of its own. Create a class without the first one", role, cluster)
	}
}

// tagOfMCM returns the key or value of a field that machine-controller-manager knows its VMs by, "" if there is none. Clouds whose tags
// have no slashes or dots have hyphens there.
func tagOfMCM(field any, kind string) string {
	isTag := func(s string) bool {
		rest, ok := strings.CutPrefix(strings.NewReplacer("/", "-", ".", "-").Replace(s), "kubernetes-io-"+kind+"-")
		return ok && rest != ""
	}
	switch v := field.(type) {
	case string:
		if isTag(v) {
			return v
		}
	case []any:
		for _, e := range v {
			if tag := tagOfMCM(e, kind); tag != "" {
				return tag
			}
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if isTag(k) {
				return k
			}
			if tag := tagOfMCM(v[k], kind); tag != "" {
				return tag
			}
		}
	}
	return ""
}

func (s mcm) checkMember(w *World, l *list, m member) bool {
	o := m.machine
	if phase := stringAt(o, "status", "currentStatus", "phase"); phase != "Running" {
		l.add(o, "status.currentStatus.phase is %q, must be \"Running\": start the controllers, wait until it is or the Machine is replaced, and stop them", phase)
	}
	w.checkWishes(l, m)
	for _, set := range w.list(mcmGroup, "MachineSet") {
		if selects(set, w.System.detached(w, o)) {
			l.add(set, "spec.selector %s selects %s without the labels of its own MachineSet: it would adopt the Machine", selectorText(set), o.GetName())
		}
	}
	switch {
	case stringAt(o, "spec", "providerID") == "":
		l.add(o, "spec.providerID is empty: its VM is being created. Wait until it is Running")
		return false
	case m.node() == "":
		l.add(o, "label %s is missing: wait until its Node has joined", labelNode)
		return false
	}
	n := &corev1.Node{}
	raw := w.nodeOf(m)
	if raw == nil || runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, n) != nil {
		l.add(o, "its Node %q does not exist in the target cluster: name another cluster by --target-kubeconfig, or replace the Machine", m.node())
		return false
	}
	w.checkNodeOfMCM(l, n)
	w.checkTemplate(l, n)
	c := w.cloud()
	switch {
	case c == nil: // The class is an obstacle already.
		return true
	case n.Spec.ProviderID != m.providerID():
		l.add(o, "spec.providerID of Node %q is %q, and was %q when the import began: it is another Node", n.Name, n.Spec.ProviderID, m.providerID())
		return false
	case c.externalName(n.Spec.ProviderID) == "":
		l.add(o, "spec.providerID of Node %q is %q, and must be %s, as the provider of %s has it: name a class of the cloud of the VM", n.Name, n.Spec.ProviderID, c.shape, describe(w.class()))
		return false
	case !c.isOf(stringAt(o, "spec", "providerID"), m.id()):
		l.add(o, "spec.providerID is %q, and that of its Node %q %q: they are of two VMs", stringAt(o, "spec", "providerID"), n.Name, n.Spec.ProviderID)
		return false
	}
	return true
}

func selectorText(set *unstructured.Unstructured) string {
	labels, _, _ := unstructured.NestedMap(set.Object, "spec", "selector")
	return short(labels)
}

// checkWishes checks that the Machine is not to be deleted, kept for analysis or updated.
func (w *World) checkWishes(l *list, m member) {
	a := m.machine.GetAnnotations()
	if v, ok := a[annotationMarked]; ok {
		l.add(m.machine, "annotation %s=%s: an autoscaler has it deleted. Wait until it is gone", annotationMarked, v)
	} else if a[annotationPriority] == "1" {
		l.add(m.machine, "annotation %s=1: it is to be deleted first. Set Drover's machine.drover.dev/delete-machine afterwards, and remove it", annotationPriority)
	}
	if v := a[annotationPreserve]; v != "" && v != "false" {
		l.add(m.machine, "annotation %s=%s: Drover does not know it. Remove it, and set Drover's %s afterwards", annotationPreserve, v, machinev1alpha1.AnnotationPreserve)
	}
	if v := stringAt(m.machine, "status", "currentStatus", "preserveExpiryTime"); v != "" {
		l.add(m.machine, "status.currentStatus.preserveExpiryTime is %s: it is preserved. End that, and wait until it is Running", v)
	}
	if v, ok := m.machine.GetLabels()[labelUpdateResult]; ok {
		l.add(m.machine, "label %s=%s: an update in place is in progress. Wait until it is complete", labelUpdateResult, v)
	}
}

// checkNodeOfMCM checks that no operation of machine-controller-manager is unfinished on a Node: its taints and annotations would stay.
func (w *World) checkNodeOfMCM(l *list, n *corev1.Node) {
	add := func(text string, args ...any) {
		*l = append(*l, fmt.Sprintf("Node %s: ", n.Name)+fmt.Sprintf(text, args...))
	}
	for _, t := range n.Spec.Taints {
		if t.Key == taintPreferNoSchedule || t.Key == taintPreserved || t.Key == taintCritical {
			add("taint %s:%s: machine-controller-manager or its companion has not taken it away. Let it, or remove the taint", t.Key, t.Effect)
		}
	}
	if v, ok := n.Annotations[annotationScaleDownByMCM]; ok {
		add("annotation %s=%s: a rollout of machine-controller-manager is not complete. Let it be, or remove the annotation together with %s", annotationScaleDownByMCM, v, machinev1alpha1.AnnotationScaleDownDisabled)
	}
	if v := n.Annotations[annotationPreserve]; v != "" && v != "false" {
		add("annotation %s=%s: Drover does not know it. Remove it, and set Drover's %s on the Machine afterwards", annotationPreserve, v, machinev1alpha1.AnnotationPreserve)
	}
	if v, ok := n.Labels[labelCandidate]; ok {
		add("label %s=%s: an update in place is in progress. Wait until it is complete", labelCandidate, v)
	}
	for _, c := range n.Status.Conditions {
		if c.Type == "Terminating" && c.Status == corev1.ConditionTrue {
			add("condition Terminating is True: %s. Wait until it is gone", c.Message)
		}
	}
}

// checkTemplate checks that a Node is as the template of Drover's set describes it.
func (w *World) checkTemplate(l *list, n *corev1.Node) {
	set := w.set()
	template := func(field string) string { return stringAt(set, "spec", "template", "spec", field) }
	if is, want := n.Status.NodeInfo.KubeletVersion, template("version"); strings.TrimPrefix(is, "v") != strings.TrimPrefix(want, "v") {
		l.add(set, "spec.template.spec.version is %q, and Node %q has %q: they must be equal, or the Machines would not be of their template", want, n.Name, is)
	}
	c := w.cloud()
	if c == nil {
		return // The class is an obstacle already.
	}
	zone := cmp.Or(c.zone, corev1.LabelTopologyZone)
	if is, want := n.Labels[zone], template("failureDomain"); want != "" && is != want {
		l.add(set, "spec.template.spec.failureDomain is %q, and label %s of Node %q is %q: import into a MachineDeployment of that failure domain", want, zone, n.Name, is)
	}
	is, want := n.Labels[corev1.LabelInstanceTypeStable], c.instanceTypes(w.class())
	if !w.Differences && is != "" && len(want) > 0 && !slices.Contains(want, is) {
		l.add(w.class(), "its instance types are %q, and label %s of Node %q is %q. Correct the class, which is immutable: create another one. Or accept it by --accept-differences: the next rollout makes the VMs of the class", want, corev1.LabelInstanceTypeStable, n.Name, is)
	}
}

// checkReturn has nothing to add: the version of a Node is in the user data of a class.
func (mcm) checkReturn(*World, *list, member) {}

func (mcm) notes(w *World) []string {
	out := []string{"keep each Machine." + mcmGroup + " as long as its VM exists and machine-controller-manager may run: it deletes each VM that has its tags and no Machine"}
	if class := w.class(); class != nil {
		if companions, _, _ := unstructured.NestedMap(class.Object, "spec", "companions"); len(companions) > 0 {
			out = append(out, describe(class)+": spec.companions: VMs that are taken over have none of these. Import theirs by hand, or leave them to the cloud")
		}
	}
	return out
}
