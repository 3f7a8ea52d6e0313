package workernode

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/target"
)

const (
	// afterNode is when to look for a deleted Node again if the watch says nothing.
	afterNode = 2 * time.Second

	// abandonAfter the drain's timeout, a Node is left alone whose deletion a cluster
	// refuses that can be reached.
	abandonAfter = time.Minute

	// hookEvery so often it is looked whether hooks still hold a drain.
	hookEvery = 3 * time.Second

	// retryAfter an error, but not later than the drain's timeout.
	retryAfter = 15 * time.Second
)

// observeDeleting tells the managed reconciler whether there is a Node to delete.
func (x *external) observeDeleting(wn *v1alpha1.WorkerNode, nodes []*corev1.Node, err error) (managed.ExternalObservation, error) {
	d := departure{
		late:    x.late(wn) || asked(machinev1alpha1.AnnotationForceDrain, wn, nil),
		skip:    x.skip(wn, nil),
		hadNode: wn.Status.AtProvider.NodeName != "",
		nodes:   len(nodes),
		err:     err,
	}
	_, d.gaveUpOn = x.abandoned.LoadAndDelete(wn.GetUID())
	v := d.verdict()
	if v.abandoned != "" {
		x.record.Event(wn, event.Warning(reasonGaveUp, fmt.Errorf("the Node was left in the target cluster, %s", v.abandoned)))
	}
	if v.err != nil {
		x.retry(wn)
		return managed.ExternalObservation{}, v.err
	}
	if !v.exists {
		x.drains.Delete(wn.GetUID())
	}
	return managed.ExternalObservation{ResourceExists: v.exists, ResourceUpToDate: true}, nil
}

// departure is what decides whether a WorkerNode may go.
type departure struct {
	late     bool  // the drain's timeout is over, or the user forces it
	skip     bool  // the user wants no drain
	hadNode  bool  // a Node was seen in its life
	nodes    int   // that are there
	err      error // why that is not known
	gaveUpOn bool  // after the timeout the Node could not be deleted
}

type verdict struct {
	exists    bool
	abandoned string // why a Node that may be there is left alone
	err       error
}

func (d departure) verdict() verdict {
	switch {
	case d.err == nil && d.nodes == 0:
		return verdict{}
	case d.gaveUpOn:
		return verdict{abandoned: "as it could not be deleted within the drain's timeout"}
	case d.err == nil:
		return verdict{exists: true}
	case !d.hadNode && target.Is(d.err, target.ConfigNotFound, target.ConfigInvalid, target.SecretNotFound, target.KeyMissing, target.KubeconfigInvalid):
		// There is no way to the cluster, and nothing known to be there.
		return verdict{}
	case d.skip:
		return verdict{abandoned: fmt.Sprintf("as its drain is skipped: %v", d.err)}
	case d.late:
		return verdict{abandoned: fmt.Sprintf("as the drain's timeout is over, or it is forced: %v", d.err)}
	}
	return verdict{err: d.err}
}

// Delete does one pass of the drain, and deletes the Node when nothing is left on it.
func (x *external) Delete(ctx context.Context, wn *v1alpha1.WorkerNode) (managed.ExternalDelete, error) {
	if x.held {
		x.again.After(wn, hookEvery)
		return managed.ExternalDelete{}, nil
	}
	nodes, err := x.find(ctx, wn)
	if err != nil {
		x.retry(wn)
		return managed.ExternalDelete{}, err
	}
	s := wn.Status.AtProvider.Drain.DeepCopy()
	if s == nil {
		s = &v1alpha1.DrainStatus{StartTime: *wn.GetDeletionTimestamp()}
	}
	left := remaining{}
	for _, n := range nodes {
		more, nerr := x.deleteNode(ctx, wn, n.GetName(), n, s)
		maps.Copy(left, more)
		err = errors.Join(err, nerr)
	}
	err = x.classify(err)
	if err != nil && (x.now().After(x.deadline(wn).Add(abandonAfter)) || (x.late(wn) && target.Is(err))) {
		x.abandoned.Store(wn.GetUID(), true)
	}
	x.tell(wn, nodes, s, left)
	left.fill(s)
	wn.Status.AtProvider.Drain = s
	x.again.After(wn, left.again())
	if err != nil {
		x.retry(wn)
	}
	return managed.ExternalDelete{}, err
}

// deleteNode unless something remains on it, which it returns and notes in s.
func (x *external) deleteNode(ctx context.Context, wn *v1alpha1.WorkerNode, name string, seen *corev1.Node, s *v1alpha1.DrainStatus) (remaining, error) {
	node, err := x.kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if kerrors.IsNotFound(err) || (err == nil && (node.GetUID() != seen.GetUID() || isOthers(node, wn))) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !x.skip(wn, node) {
		left, err := x.drain(ctx, wn, node, s)
		if err == nil && s.Stage != v1alpha1.DrainDeletingNode || len(left) > 0 || (err != nil && !x.late(wn)) {
			return left, err
		}
		// After the timeout the Node goes even if its pods cannot be listed.
	}
	x.stage(s, v1alpha1.DrainDeletingNode)
	err = x.kube.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(node.GetUID()))})
	if kerrors.IsNotFound(err) || kerrors.IsConflict(err) {
		return nil, nil
	}
	if err == nil {
		x.record.Event(wn, event.Normal(reasonNodeDeleted, fmt.Sprintf("Node %s is empty and deleted", name)))
	}
	return nil, err
}

// isOthers says whether a Node that was found by its name got the providerID of another
// machine meanwhile.
func isOthers(node *corev1.Node, wn *v1alpha1.WorkerNode) bool {
	return node.Spec.ProviderID != "" && node.Spec.ProviderID != wn.Spec.ForProvider.ProviderID
}

// tell what a user will ask about, each once.
func (x *external) tell(wn *v1alpha1.WorkerNode, nodes []*corev1.Node, s *v1alpha1.DrainStatus, left remaining) {
	was := wn.Status.AtProvider.Drain
	if was == nil {
		was = &v1alpha1.DrainStatus{}
	}
	if s.Stage == v1alpha1.DrainEvictingPods && was.Stage != s.Stage && len(left) > 0 {
		x.record.Event(wn, event.Normal(reasonDraining, fmt.Sprintf("Draining Node %s: %d pods to go", strings.Join(namesOf(nodes), ", "), len(left))))
	}
	if moving := inState(s.Volumes, v1alpha1.VolumeDetaching); s.Stage == v1alpha1.DrainDetachingVolumes && was.Stage != s.Stage && len(moving) > 0 {
		x.record.Event(wn, event.Normal(reasonDetaching, fmt.Sprintf("Waiting for the volumes %s to be detached", strings.Join(moving, ", "))))
	}
	switch {
	case len(left) == 0:
		return
	case x.late(wn):
		x.record.Event(wn, event.Warning(reasonTimeout, fmt.Errorf("the drain took longer than %s: pods that are left are deleted without regard to their PodDisruptionBudgets", wn.Spec.ForProvider.Drain.Timeout.Duration)))
		return
	case s.Forced:
		x.record.Event(wn, event.Warning(reasonForced, errors.New("the drain is forced: pods that are left are deleted without regard to their PodDisruptionBudgets")))
		return
	}
	for _, name := range left.names() {
		if reason := left[name]; blocks(reason) {
			x.record.Event(wn, event.Warning(reasonBlocked, fmt.Errorf("pod %s: %s", name, reason)))
			return
		}
	}
}

// blocks says whether the reason that a pod is still there is worth a warning.
func blocks(reason string) bool {
	switch reason {
	case reasonTerminating, reasonOrder, reasonTurn, reasonCompletes, reasonLater:
		return false
	}
	return true
}

func (x *external) retry(wn *v1alpha1.WorkerNode) {
	after := retryAfter
	if left := x.deadline(wn).Sub(x.now()); left > -time.Second {
		after = min(after, left+time.Second)
	} else {
		after = afterNode
	}
	x.again.After(wn, after)
}

func (x *external) late(wn *v1alpha1.WorkerNode) bool { return x.now().After(x.deadline(wn)) }

// deadline of the drain, which began with the deletion, when the hooks let go, or with
// the wish for a drained Node.
func (x *external) deadline(wn *v1alpha1.WorkerNode) time.Time {
	began := x.now()
	if t := wn.GetDeletionTimestamp(); t != nil {
		began = t.Time
	}
	if d := wn.Status.AtProvider.Drain; d != nil {
		began = d.StartTime.Time
	}
	return began.Add(wn.Spec.ForProvider.Drain.Timeout.Duration)
}

// skip the drain, as the user wants it. The Node may be nil.
func (x *external) skip(wn *v1alpha1.WorkerNode, node *corev1.Node) bool {
	return wn.Spec.ForProvider.Drain.Skip || asked(machinev1alpha1.AnnotationSkipDrain, wn, node)
}
