package workernode

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

// A pod whose grace period ended is killed after killDelay, and not waited for any
// more when it is still there after as long again: then finalizers hold it, and the
// VM need not.
const killDelay = 30 * time.Second

// maxBlocked is how many pods a status names.
const maxBlocked = 10

// An action is what a pass does to a pod.
type action string

const (
	evict  action = "evict"  // through the Eviction API, so that its budget is kept
	remove action = "remove" // delete with its own grace period
	kill   action = "kill"   // delete without one
	wait   action = "wait"   // it is going
	ignore action = "ignore" // it may stay
)

// A pod of a Node that is drained. DaemonSets' and mirror pods are not among them.
type pod struct {
	name types.NamespacedName
	uid  types.UID
	// gone is when the pod's grace period ends, zero if it is not terminating.
	gone time.Time
}

// drainPass is what a decision over a pod depends on, beside the pod.
type drainPass struct {
	now time.Time
	// late means that the drain's timeout is over.
	late bool
	// nodeReady means that a kubelet is there to end pods.
	nodeReady bool
}

func (p drainPass) decide(pod pod) action {
	terminating := !pod.gone.IsZero()
	switch {
	case terminating && !p.nodeReady:
		return ignore
	case terminating && p.late && p.now.After(pod.gone.Add(2*killDelay)):
		return ignore
	case terminating && p.late && p.now.After(pod.gone.Add(killDelay)):
		return kill
	case terminating:
		return wait
	case p.late:
		return remove
	}
	return evict
}

// remaining pods, with the reason that each is still there.
type remaining map[types.NamespacedName]string

// status of the drain; nil once no pod remains, because then there is none to write.
func (r remaining) status(since time.Time) *v1alpha1.DrainStatus {
	if len(r) == 0 {
		return nil
	}
	out := &v1alpha1.DrainStatus{Remaining: int32(len(r))} //nolint:gosec // A Node holds some hundred pods.
	out.StartTime.Time = since
	for _, name := range r.names()[:min(len(r), maxBlocked)] {
		out.Pods = append(out.Pods, v1alpha1.BlockedPod{Namespace: name.Namespace, Name: name.Name, Reason: r[name]})
	}
	return out
}

func (r remaining) names() []types.NamespacedName {
	return slices.SortedFunc(maps.Keys(r), func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}
