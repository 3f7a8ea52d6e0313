package machine

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/workernode"
)

// applied remembers on the Node what we put there. Only that is ever removed.
type applied struct {
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
	Taints      []string `json:"taints,omitempty"` // key:effect
	Cordoned    bool     `json:"cordoned,omitempty"`
	// Before has the values of others that ours took the place of.
	Before *before `json:"before,omitempty"`
}

type before struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Taints      map[string]string `json:"taints,omitempty"`
}

func readApplied(node *corev1.Node) applied {
	var a applied
	// What cannot be read is not ours to remove.
	_ = json.Unmarshal([]byte(node.GetAnnotations()[v1alpha1.AnnotationApplied]), &a)
	return a
}

// syncPatch returns the merge patch that gives the Node what its parameters say
// on it, and takes off what it no longer wants; nil if there is nothing to do.
func syncPatch(node *corev1.Node, want workernode.Parameters) ([]byte, error) {
	was := readApplied(node)
	old := before{}
	if was.Before != nil {
		old = *was.Before
	}
	have, fresh := taintValues(node.Spec.Taints)

	labels := settle(node.GetLabels(), want.Labels, was.Labels, old.Labels, fresh)
	annotations := settle(node.GetAnnotations(), want.Annotations, was.Annotations, old.Annotations, fresh)
	wantTaints := map[string]string{}
	for _, t := range want.Taints {
		wantTaints[t.Key+":"+t.Effect] = t.Value
	}
	settled := settle(have, wantTaints, was.Taints, old.Taints, fresh)
	taints := withTaints(node.Spec.Taints, settled.patch)
	unschedulable, cordon := cordoned(node.Spec.Unschedulable, want.Drained, was.Cordoned)

	now := applied{Labels: labels.ours, Annotations: annotations.ours, Taints: settled.ours, Cordoned: cordon}
	if b := (before{Labels: labels.before, Annotations: annotations.before, Taints: settled.before}); !equality.Semantic.DeepEqual(b, before{}) {
		now.Before = &b
	}
	if !equality.Semantic.DeepEqual(was, now) {
		remember, err := json.Marshal(now)
		if err != nil {
			return nil, err
		}
		annotations.patch[v1alpha1.AnnotationApplied] = string(remember)
		if equality.Semantic.DeepEqual(now, applied{}) {
			annotations.patch[v1alpha1.AnnotationApplied] = nil
		}
	}

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

// A settlement is what is to be done to keys that have several owners.
type settlement struct {
	patch  map[string]any    // a value to set, nil for a key to remove
	ours   []string          // keys that are taken off again when they are not wanted
	before map[string]string // values of others that are then given back
}

// settle who has which key. What somebody else set to the value that we want is
// theirs, and stays. But what a fresh Node has of that came from its kubelet, which
// we told to: it is ours.
func settle(have, want map[string]string, was []string, before map[string]string, fresh bool) settlement {
	s := settlement{patch: map[string]any{}}
	for _, k := range slices.Sorted(maps.Keys(want)) {
		h, there := have[k]
		ours := slices.Contains(was, k)
		if there && h == want[k] && !ours && !fresh {
			continue
		}
		s.ours = append(s.ours, k)
		b, had := before[k]
		if there && h != want[k] && !ours {
			b, had = h, true
		}
		if had {
			if s.before == nil {
				s.before = map[string]string{}
			}
			s.before[k] = b
		}
		if !there || h != want[k] {
			s.patch[k] = want[k]
		}
	}
	for _, k := range was {
		_, wanted := want[k]
		h, there := have[k]
		if wanted || !there {
			continue
		}
		if b, had := before[k]; !had {
			s.patch[k] = nil
		} else if b != h {
			s.patch[k] = b
		}
	}
	return s
}

// taintValues returns the taints by key and effect. A Node that still has the taint
// that it registered with is fresh.
func taintValues(taints []corev1.Taint) (values map[string]string, fresh bool) {
	values = map[string]string{}
	for _, t := range taints {
		if t.Key == machinev1alpha1.TaintUninitialized {
			fresh = true
			continue
		}
		values[taintID(t)] = t.Value
	}
	return values, fresh
}

func taintID(t corev1.Taint) string { return t.Key + ":" + string(t.Effect) }

// withTaints keeps the taints of others, and their order. The one that says that
// ours are not there yet goes together with their coming.
func withTaints(have []corev1.Taint, patch map[string]any) []corev1.Taint {
	todo := maps.Clone(patch)
	out := []corev1.Taint{}
	for _, t := range have {
		if t.Key == machinev1alpha1.TaintUninitialized {
			continue
		}
		value, change := todo[taintID(t)]
		delete(todo, taintID(t))
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

func splitTaint(id string) (string, corev1.TaintEffect) {
	for i := len(id) - 1; i >= 0; i-- {
		if id[i] == ':' {
			return id[:i], corev1.TaintEffect(id[i+1:])
		}
	}
	return id, ""
}
