package nodekeys

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/workernode"
)

// A settlement has the changes to keys that have several owners.
type settlement struct {
	patch    map[string]any    // a value to set, nil for a key to remove
	ours     []string          // keys to remove once they are no longer desired
	replaced map[string]string // values to restore then
	kept     []string          // keys that are no longer desired, and stay
}

// settle decides which keys are Drover's. If a key already has the desired value, it belongs to the client that
// set it, and stays. But if the Node is fresh, its kubelet set the key because Drover's user data requested it:
// then the key is Drover's.
func settle(k keyset) settlement {
	s := settlement{patch: map[string]any{}, replaced: map[string]string{}}
	for _, key := range slices.Sorted(maps.Keys(k.want)) {
		h, there := k.have[key]
		if !there || h != k.want[key] {
			s.patch[key] = k.want[key]
		}
		isOurs := k.isOurs(key)
		if k.isOwn(key) || there && h == k.want[key] && !isOurs && !k.fresh {
			continue
		}
		s.ours = append(s.ours, key)
		switch b, had := k.replaced[key]; {
		case there && h != k.want[key] && !isOurs:
			s.replaced[key] = h
		case had:
			s.replaced[key] = b
		}
	}
	for _, key := range slices.Sorted(slices.Values(k.recorded)) {
		_, wanted := k.want[key]
		h, there := k.have[key]
		if wanted || !there || k.isOwn(key) {
			continue
		}
		switch b, had := k.replaced[key]; {
		case k.isProtected(key, h):
			s.kept = append(s.kept, key)
		case !had:
			s.patch[key] = nil
		case b != h:
			s.patch[key] = b
		}
	}
	for key := range k.have {
		if _, wanted := k.want[key]; !wanted && k.isOwn(key) {
			s.patch[key] = nil
		}
	}
	return s
}

// A keyset has the labels, the annotations or the taints of a Node.
type keyset struct {
	have, want map[string]string
	// recorded are the keys that Drover set, replaced their previous values.
	recorded []string
	replaced map[string]string
	// fresh means that the Node still has the taint that its kubelet registered with.
	fresh bool
	// promised means that the keys were recorded before the Node joined. Only the value shows whether Drover, the
	// kubelet or another client set a key.
	promised bool
	// isOwn reports whether only Drover sets a key. It needs no record.
	isOwn func(key string) bool
	// isProtected reports whether Drover must not change a key, whatever is recorded.
	isProtected func(key, value string) bool
}

// isOurs reports whether Drover set a desired key.
func (k keyset) isOurs(key string) bool {
	h, there := k.have[key]
	return slices.Contains(k.recorded, key) && !(k.promised && there && h != k.want[key])
}

// wantedTaints returns the taints by their key and effect. TaintCordoned is never one of the parameters: with
// it a Machine would uncordon its Node.
func wantedTaints(taints []workernode.Taint) map[string]string {
	out := map[string]string{}
	for _, t := range taints {
		if t.Key != machinev1alpha1.TaintCordoned {
			out[t.Key+":"+t.Effect] = t.Value
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

// TaintID is the key of a taint in a record.
func TaintID(t corev1.Taint) string { return t.Key + ":" + string(t.Effect) }
