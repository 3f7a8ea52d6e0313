package handover

import (
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/identity"
	"github.com/drover-dev/drover/internal/nodekeys"
	"github.com/drover-dev/drover/internal/workernode"
)

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
			out = append(out, patch(o, after, "pause %s, without the right to delete its VM", describe(o)))
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
			out = append(out, remove(m.vm, "remove %s, and keep its VM", describe(m.vm)))
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

// returns reports how many Machines a set of the other side gets back.
func (w *World) returns(set *unstructured.Unstructured) int {
	n := 0
	for _, o := range w.theirs() {
		if r := recordOf(o); r != nil && slices.ContainsFunc(r.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.UID == set.GetUID() }) {
			n++
		}
	}
	return n
}
