package workernode

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

// applied remembers on the Node what we put there. Only that is ever removed.
type applied struct {
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
	Taints      []string `json:"taints,omitempty"` // key:effect
	Cordoned    bool     `json:"cordoned,omitempty"`
}

func readApplied(node *corev1.Node) applied {
	var a applied
	// What cannot be read is not ours to remove.
	_ = json.Unmarshal([]byte(node.GetAnnotations()[v1alpha1.AnnotationApplied]), &a)
	return a
}

// syncPatch returns the merge patch that gives the Node what the WorkerNode wants
// on it, and takes off what it no longer wants; nil if there is nothing to do.
func syncPatch(node *corev1.Node, want v1alpha1.WorkerNodeParameters) ([]byte, error) {
	was := readApplied(node)
	labels := diff(node.GetLabels(), want.Labels, was.Labels)
	annotations := diff(node.GetAnnotations(), want.Annotations, was.Annotations)
	taints := taints(node.Spec.Taints, want.Taints, was.Taints)

	unschedulable, ours := cordoned(node.Spec.Unschedulable, want.Drained, was.Cordoned)

	now := applied{Labels: sorted(want.Labels), Annotations: sorted(want.Annotations), Cordoned: ours}
	for _, t := range want.Taints {
		now.Taints = append(now.Taints, t.Key+":"+t.Effect)
	}
	slices.Sort(now.Taints)
	if !equality.Semantic.DeepEqual(was, now) {
		remember, err := json.Marshal(now)
		if err != nil {
			return nil, err
		}
		annotations[v1alpha1.AnnotationApplied] = string(remember)
		if equality.Semantic.DeepEqual(now, applied{}) {
			annotations[v1alpha1.AnnotationApplied] = nil
		}
	}

	meta, spec := map[string]any{}, map[string]any{}
	if len(labels) > 0 {
		meta["labels"] = labels
	}
	if len(annotations) > 0 {
		meta["annotations"] = annotations
	}
	if !equality.Semantic.DeepEqual(taints, node.Spec.Taints) {
		// A list of many owners is written as a whole: only on top of what was read.
		spec["taints"], meta["resourceVersion"] = taints, node.GetResourceVersion()
	}
	if unschedulable != node.Spec.Unschedulable {
		// Who cordoned it is known only of what was read.
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
		return nil, nil
	}
	return json.Marshal(patch)
}

// cordoned says whether the Node shall be, and whether that is our doing. What
// somebody else cordoned stays so.
func cordoned(is, want, wasOurs bool) (unschedulable, ours bool) {
	switch {
	case want:
		return true, wasOurs || !is
	case wasOurs:
		return false, false
	}
	return is, false
}

// diff returns what a merge patch must say: a value that is missing or other, nil
// for a key that we set before and do not want now.
func diff(have, want map[string]string, was []string) map[string]any {
	out := map[string]any{}
	for k, v := range want {
		if h, ok := have[k]; !ok || h != v {
			out[k] = v
		}
	}
	for _, k := range was {
		_, wanted := want[k]
		if _, there := have[k]; there && !wanted {
			out[k] = nil
		}
	}
	return out
}

// taints keeps the taints of others, and their order.
func taints(have []corev1.Taint, want []v1alpha1.NodeTaint, was []string) []corev1.Taint {
	wanted := map[string]v1alpha1.NodeTaint{}
	for _, t := range want {
		wanted[t.Key+":"+t.Effect] = t
	}
	out := []corev1.Taint{}
	for _, t := range have {
		id := t.Key + ":" + string(t.Effect)
		w, ok := wanted[id]
		if !ok && slices.Contains(was, id) {
			continue
		}
		if ok && t.Value != w.Value {
			t = corev1.Taint{Key: w.Key, Value: w.Value, Effect: corev1.TaintEffect(w.Effect)}
		}
		delete(wanted, id)
		out = append(out, t)
	}
	for _, id := range slices.Sorted(maps.Keys(wanted)) {
		w := wanted[id]
		out = append(out, corev1.Taint{Key: w.Key, Value: w.Value, Effect: corev1.TaintEffect(w.Effect)})
	}
	return out
}

func sorted(m map[string]string) []string {
	return slices.Sorted(maps.Keys(m))
}
