package nodekeys

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/workernode"
)

// A Change brings a Node in sync with its parameters.
type Change struct {
	// Patch is a merge patch of JSON, nil if the Node is in sync.
	Patch []byte
	// Record of the keys that Drover has on the Node after the patch, nil if there are none.
	Record *machinev1alpha1.AppliedToNode
	// Kept are the keys that stay on the Node although the Machine no longer has them.
	Kept []string
}

// Of returns the change that sets the desired keys of a Node, and removes those that are recorded and no longer desired. Without
// desired keys nothing of Drover is left on the Node.
func Of(node *corev1.Node, want workernode.Parameters, recorded *machinev1alpha1.AppliedToNode) (Change, error) {
	have, fresh := taintValues(node.Spec.Taints)
	was := recall(recorded, node, fresh)
	labels := settle(keyset{
		have: node.GetLabels(), want: want.Labels, recorded: was.Labels, replaced: was.Replaced.Labels,
		fresh: fresh, promised: was.promised, isOwn: isOwnLabel, isProtected: isProtected,
	})
	annotations := settle(keyset{
		have: node.GetAnnotations(), want: want.Annotations, recorded: was.Annotations, replaced: was.Replaced.Annotations,
		fresh: fresh, promised: was.promised, isOwn: isOwnAnnotation, isProtected: isProtectedAnnotation,
	})
	taints := settle(keyset{
		have: have, want: wantedTaints(want.Taints), recorded: was.Taints, replaced: was.Replaced.Taints,
		fresh: fresh, promised: was.promised, isOwn: isOwnTaint, isProtected: isProtected,
	})
	unschedulable, isCordonOurs := cordoned(node.Spec.Unschedulable, want.Drained, workernode.HasTaint(node, machinev1alpha1.TaintCordoned))
	newTaints := withCordonTaint(withTaints(node.Spec.Taints, taints.patch), isCordonOurs)

	c := Change{Record: recordOf(node, labels, annotations, taints), Kept: slices.Concat(labels.kept, annotations.kept, taints.kept)}
	meta, spec := map[string]any{}, map[string]any{}
	if len(labels.patch) > 0 {
		meta["labels"] = labels.patch
	}
	if len(annotations.patch) > 0 {
		meta["annotations"] = annotations.patch
	}
	if node.Spec.ProviderID == "" && want.ProviderID != "" {
		spec["providerID"] = want.ProviderID
	}
	if !equality.Semantic.DeepEqual(newTaints, node.Spec.Taints) {
		// The list has several owners and is written as a whole, so it must be based on the version that was read.
		spec["taints"], meta["resourceVersion"] = newTaints, node.GetResourceVersion()
	}
	if unschedulable != node.Spec.Unschedulable {
		// The owner of the cordon is known only for the version that was read.
		spec["unschedulable"], meta["resourceVersion"] = unschedulable, node.GetResourceVersion()
	}
	patch := map[string]any{}
	if len(meta) > 0 {
		patch["metadata"] = meta
	}
	if len(spec) > 0 {
		patch["spec"] = spec
	}
	if len(patch) == 0 {
		return c, nil
	}
	var err error
	c.Patch, err = json.Marshal(patch)
	return c, err
}

// cordoned returns whether the Node shall be cordoned, and whether Drover cordons it: then it has
// TaintCordoned. A Node that was cordoned otherwise stays cordoned.
func cordoned(is, want, wasOurs bool) (unschedulable, ours bool) {
	switch {
	case want:
		return true, wasOurs || !is
	case wasOurs:
		return false, false
	}
	return is, false
}

// taintValues returns the taints by key and effect. A Node is fresh while it has the taint that it registered
// with.
func taintValues(taints []corev1.Taint) (values map[string]string, fresh bool) {
	values = map[string]string{}
	for _, t := range taints {
		switch {
		case workernode.IsUninitializedTaint(t):
			fresh = true
		case t.Key == machinev1alpha1.TaintCordoned:
		default:
			values[TaintID(t)] = t.Value
		}
	}
	return values, fresh
}

// withTaints keeps the taints of other owners, and their order. The patch that adds Drover's taints also
// removes those of uninitialized Nodes.
func withTaints(have []corev1.Taint, patch map[string]any) []corev1.Taint {
	todo := maps.Clone(patch)
	out := []corev1.Taint{}
	for _, t := range have {
		if workernode.IsUninitializedTaint(t) {
			continue
		}
		value, change := todo[TaintID(t)]
		delete(todo, TaintID(t))
		v, keep := value.(string)
		switch {
		case !change:
			out = append(out, t)
		case keep:
			out = append(out, corev1.Taint{Key: t.Key, Value: v, Effect: t.Effect})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(todo)) {
		if v, add := todo[id].(string); add {
			key, effect := splitTaint(id)
			out = append(out, corev1.Taint{Key: key, Value: v, Effect: effect})
		}
	}
	return out
}

// withCordonTaint adds or removes TaintCordoned.
func withCordonTaint(taints []corev1.Taint, isOurs bool) []corev1.Taint {
	is := func(t corev1.Taint) bool { return t.Key == machinev1alpha1.TaintCordoned }
	switch {
	case !isOurs:
		return slices.DeleteFunc(taints, is)
	case slices.ContainsFunc(taints, is):
		return taints
	}
	return append(taints, corev1.Taint{Key: machinev1alpha1.TaintCordoned, Effect: corev1.TaintEffectPreferNoSchedule})
}
