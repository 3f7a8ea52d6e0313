package handover

import (
	"maps"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	clusterapi "github.com/drover-dev/drover/apis/clusterapi/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/identity"
	"github.com/drover-dev/drover/internal/nodekeys"
	"github.com/drover-dev/drover/internal/workernode"
)

// givingBack are the phases of the way back.
var givingBack = []phase{
	{"pause the MachineSet of Drover", pauseSetAgain, unpausedSet},
	{"release the VMs", releaseVMs, unreleased},
	{"scale down", giveRoom, withoutRoomToGive},
	{"remove the VirtualMachines", removeVMs, nil},
	{"clear the Nodes", clearNodes, nil},
	{"remove the Machines of Drover", removeMachines, nil},
	{"attach the Machines of Cluster API", attach, nil},
	{"take the labels from the InfraMachines", unlabelInfraMachines, nil},
	{"stop sharing the Cluster", unshare, nil},
	{"resume the MachineSet of Drover", resumeSet, nil},
	{"resume Cluster API", resumeOwners, nil},
}

// isDrovers reports whether any imported Machine has an object of Drover.
func (w *World) isDrovers() bool {
	return slices.ContainsFunc(w.members(), func(m member) bool { return m.vm != nil || m.drover != nil })
}

func pauseSetAgain(w *World) []Step {
	if set := w.set(); set != nil && w.isDrovers() {
		return w.pause(set)
	}
	return nil
}

// releaseVMs pauses the objects of Drover, and takes the right to delete the VMs.
func releaseVMs(w *World) []Step {
	var out []Step
	for _, m := range w.members() {
		if o := m.drover; o != nil && o.GetAnnotations()[annotationPaused] != "true" {
			out = append(out, patch(o, annotated(o, map[string]*string{annotationPaused: ptr.To("true")}), "pause Machine %s", m.name))
		}
		policies := []string{}
		if m.vm != nil {
			policies, _, _ = unstructured.NestedStringSlice(m.vm.Object, "spec", "managementPolicies")
		}
		if o := m.vm; o != nil && (o.GetAnnotations()[annotationPaused] != "true" || !slices.Equal(policies, []string{"Observe"})) {
			after := annotated(o, map[string]*string{annotationPaused: ptr.To("true")})
			_ = unstructured.SetNestedStringSlice(after.Object, []string{"Observe"}, "spec", "managementPolicies")
			out = append(out, patch(o, after, "pause VirtualMachine %s, without the right to delete its VM", m.name))
		}
	}
	return out
}

func unreleased(w *World) []string {
	var out []string
	for _, m := range w.members() {
		for _, o := range []*unstructured.Unstructured{m.drover, m.vm} {
			if o != nil && o.GetDeletionTimestamp() == nil && !rests(o) {
				out = append(out, describe(o)+": its condition Synced does not report the pause")
			}
		}
	}
	return out
}

func giveRoom(w *World) []Step {
	if set := w.set(); set == nil || !isPausedByUs(set) {
		return nil
	}
	return w.scale(len(w.unrelated()))
}

func withoutRoomToGive(w *World) []string {
	if set := w.set(); set == nil || !isPausedByUs(set) {
		return nil
	}
	return w.unscaled()
}

func removeVMs(w *World) []Step {
	var out []Step
	for _, m := range w.members() {
		if m.vm != nil {
			out = append(out, remove(m.vm, "remove VirtualMachine %s, and keep its VM", m.name))
		}
	}
	return out
}

// clearNodes removes what Drover has on the Nodes, as long as the Machines have the record of it.
func clearNodes(w *World) []Step {
	var out []Step
	for _, m := range w.members() {
		d := &machinev1alpha1.Machine{}
		if m.drover == nil || runtime.DefaultUnstructuredConverter.FromUnstructured(m.drover.Object, d) != nil {
			continue
		}
		for _, n := range w.nodesOf(m.providerID()) {
			if token := n.Labels[clusterv1alpha1.LabelJoinToken]; token != "" && token != string(identity.UID(d)) {
				continue
			}
			before := w.get("", "Node", n.Name)
			if after := cleared(before, &n, d.Status.AppliedToNode); after != nil {
				out = append(out, patch(before, after, "take Drover's labels, annotations and taints from Node %s", n.Name))
			}
		}
	}
	return out
}

// cleared returns a Node without the keys of Drover, nil if it has none.
func cleared(raw *unstructured.Unstructured, n *corev1.Node, recorded *machinev1alpha1.AppliedToNode) *unstructured.Unstructured {
	change, err := nodekeys.Of(n, workernode.Parameters{}, recorded)
	if err != nil || change.Patch == nil {
		return nil
	}
	return patched(raw, change.Patch)
}

// patched returns a copy of an object with a merge patch.
func patched(o *unstructured.Unstructured, mergePatch []byte) *unstructured.Unstructured {
	before, err := o.MarshalJSON()
	if err != nil {
		panic(err) // Of objects that were decoded.
	}
	after, err := jsonpatch.MergePatch(before, mergePatch)
	out := &unstructured.Unstructured{}
	if err == nil {
		err = out.UnmarshalJSON(after)
	}
	if err != nil {
		panic(err)
	}
	return out
}

func removeMachines(w *World) []Step {
	var out []Step
	for _, m := range w.members() {
		if m.drover != nil {
			out = append(out, remove(m.drover, "remove Machine %s, and keep its Node", m.name))
		}
	}
	return out
}

// attach gives the Machines of Cluster API the owners and labels that they had.
func attach(w *World) []Step {
	var out []Step
	for _, m := range w.members() {
		r := recordOf(m.machine)
		if _, ok := m.machine.GetLabels()[clusterapi.LabelVirtualMachine]; r == nil || !ok {
			continue
		}
		after := annotated(m.machine, map[string]*string{clusterapi.AnnotationStandsFor: nil})
		l := maps.Clone(m.machine.GetLabels())
		delete(l, clusterapi.LabelVirtualMachine)
		maps.Copy(l, r.Labels)
		after.SetLabels(l)
		after.SetOwnerReferences(r.OwnerReferences)
		controllerutil.RemoveFinalizer(after, clusterapi.FinalizerMachine)
		out = append(out, patch(m.machine, after, "attach %s to its MachineSet", describe(m.machine)))
	}
	return out
}

func unlabelInfraMachines(w *World) []Step {
	var out []Step
	for _, m := range w.members() {
		if m.infra == nil || recordOf(m.machine) == nil {
			continue
		}
		if _, ok := m.infra.GetLabels()[clusterapi.LabelVirtualMachine]; ok {
			out = append(out, patch(m.infra, labeled(m.infra, clusterapi.LabelVirtualMachine, nil), "take the label from %s", describe(m.infra)))
		}
	}
	return out
}

// unshare takes the label from a Cluster that the import shared, once no Machine in it is Drover's.
func unshare(w *World) []Step {
	c := w.cluster()
	if c == nil || recordOf(c) == nil || slices.ContainsFunc(w.list(coreGroup, "Machine"), func(o *unstructured.Unstructured) bool {
		l := o.GetLabels()
		return l[labelCluster] == c.GetName() && l[clusterapi.LabelVirtualMachine]+l[clusterapi.LabelBootstrap] != ""
	}) {
		return nil
	}
	return []Step{patch(c, labeled(annotated(c, map[string]*string{clusterapi.AnnotationImported: nil}), clusterapi.LabelShared, nil), "stop sharing %s with Drover", describe(c))}
}

// resumeOwners gives the objects of Cluster API the pause that they had: the Machines first, so that their set has them when it
// goes on, and the MachineDeployment last, which keeps its record until the rest is done.
func resumeOwners(w *World) []Step {
	var out []Step
	objects := w.machines()
	objects = append(objects, w.sets()...)
	for _, o := range append(objects, w.from()) {
		if r := recordOf(o); r != nil {
			out = append(out, patch(o, annotated(o, map[string]*string{annotationPausedCAPI: r.Paused, clusterapi.AnnotationImported: nil}), "give %s the pause that it had", describe(o)))
		}
	}
	return out
}

// returns reports how many Machines a set of Cluster API gets back.
func (w *World) returns(set *unstructured.Unstructured) int {
	n := 0
	for _, o := range w.machines() {
		if r := recordOf(o); r != nil && slices.ContainsFunc(r.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.UID == set.GetUID() }) {
			n++
		}
	}
	return n
}
