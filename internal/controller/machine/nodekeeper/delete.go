package nodekeeper

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/machine/drain"
	"github.com/drover-dev/drover/internal/target"
)

// The order of a deletion is in the package deletion: pre-drain hooks, drain, Node, pre-terminate hooks, VM,
// companions. This file has the part of it in the target cluster.

// Remove does one pass of the drain of a Machine that is being deleted, and deletes the Node when no pod or
// volume is left on it. It reports whether the Node is gone.
func (x *Keeper) Remove(ctx context.Context, wn *Node, unreachable error) (gone bool, err error) {
	held, err := x.begin(ctx, wn)
	if err != nil {
		x.retry(wn)
		return false, err
	}
	if held {
		wn.RequeueWithin(hookEvery)
		return false, nil
	}
	var own *corev1.Node
	var foreign string
	if err = unreachable; err == nil {
		own, foreign, err = x.nodeToDrain(ctx, wn)
	}
	v := nodeFindings{
		isLate:  x.isPastDeadline(wn) || asked(machinev1alpha1.AnnotationForceDrain, wn, nil),
		skip:    x.skip(wn, nil),
		hadNode: wn.Observation.NodeName != "",
		hasNode: own != nil,
		foreign: foreign,
		err:     err,
	}.verdict()
	switch {
	case v.err != nil:
		x.retry(wn)
		return false, v.err
	case v.exists:
		return x.drainAndDelete(ctx, wn, own)
	}
	x.finishWithoutNode(wn, v)
	return true, nil
}

// nodeToDrain finds the Node that is to be drained and deleted.
func (x *Keeper) nodeToDrain(ctx context.Context, wn *Node) (own *corev1.Node, foreign string, err error) {
	f, err := x.find(ctx, wn)
	if err != nil {
		return nil, "", err
	}
	return f.nodeToDrain()
}

// finishWithoutNode is called once there is no Node to wait for.
func (x *Keeper) finishWithoutNode(wn *Node, v verdict) {
	if v.abandoned != "" {
		x.Record.Event(wn.Machine, event.Warning(machinev1alpha1.EventNodeAbandoned, fmt.Errorf("the Node was left in the target cluster, %s", v.abandoned)))
	}
	x.Drains.Delete(wn.GetUID())
	wn.Observation.Conditions = nil
}

// drainAndDelete does one pass over the Node, and deletes it if it is empty.
func (x *Keeper) drainAndDelete(ctx context.Context, wn *Node, node *corev1.Node) (gone bool, err error) {
	s := wn.Observation.Drain.DeepCopy()
	if s == nil {
		s = &machinev1alpha1.DrainStatus{StartTime: x.deletedAt(wn)}
	}
	left, err := x.deleteNode(ctx, wn, node, s)
	err = x.Classify(err)
	x.recordEvents(wn, node, s, left)
	left.Fill(s)
	wn.Observation.Drain = s
	switch {
	case err == nil && len(wn.HeldBy) > 0 && x.Now().After(wn.HeldUntil):
		x.finishWithoutNode(wn, verdict{abandoned: fmt.Sprintf("as the finalizers %s hold it", strings.Join(wn.HeldBy, ", "))})
		return true, nil
	case err == nil && len(wn.HeldBy) > 0:
		x.Record.Event(wn.Machine, event.Warning(machinev1alpha1.EventNodeHeld, fmt.Errorf("the Node %s is deleted, and the finalizers %s hold it; it is left behind at %s", node.GetName(), strings.Join(wn.HeldBy, ", "), wn.HeldUntil.UTC().Format(time.RFC3339))))
		wn.RequeueWithin(min(RetryAfter, wn.HeldUntil.Sub(x.Now())+time.Second))
		return false, nil
	case err == nil:
		wn.RequeueWithin(left.Again())
		return false, nil
	}
	wn.RequeueWithin(left.Again())
	if x.Now().After(x.deadline(wn).Add(AbandonAfter)) || x.isPastDeadline(wn) && target.Is(err) {
		x.finishWithoutNode(wn, verdict{abandoned: fmt.Sprintf("as it could not be deleted within the drain's timeout: %v", err)})
		return true, nil
	}
	x.retry(wn)
	return false, err
}

// nodeFindings has the facts that decide whether the deletion continues without the Node.
type nodeFindings struct {
	isLate  bool   // the drain's timeout has passed, or the user forces it
	skip    bool   // the user wants no drain
	hadNode bool   // a Node was observed before
	hasNode bool   // the Node is there
	foreign string // Node that has the providerID of another VM, empty if there is none
	err     error  // why the Node is unknown
}

type verdict struct {
	exists    bool
	abandoned string // why a Node that may exist is left behind
	err       error
}

func (d nodeFindings) verdict() verdict {
	switch {
	case d.err == nil && d.hasNode:
		return verdict{exists: true}
	case d.err == nil && d.foreign != "":
		// A later pass would find the same: a providerID cannot change.
		return verdict{abandoned: fmt.Sprintf("as %s has the providerID of another VM", d.foreign)}
	case d.err == nil:
		return verdict{}
	case !d.hadNode && target.Is(d.err, target.ConfigNotFound, target.ConfigInvalid, target.IdentityNotAllowed, target.SecretNotFound, target.KeyMissing, target.KubeconfigInvalid, target.NotAllowed):
		// The cluster cannot be reached, and no Node is known to be in it.
		return verdict{}
	case d.skip:
		return verdict{abandoned: fmt.Sprintf("as its drain is skipped: %v", d.err)}
	case d.isLate:
		return verdict{abandoned: fmt.Sprintf("as the drain's timeout is over, or it is forced: %v", d.err)}
	}
	return verdict{err: d.err}
}

// deleteNode deletes the Node unless something remains on it, which it returns and records in s.
func (x *Keeper) deleteNode(ctx context.Context, wn *Node, seen *corev1.Node, s *machinev1alpha1.DrainStatus) (drain.Remaining, error) {
	name := seen.GetName()
	node, err := x.Kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if kerrors.IsNotFound(err) || (err == nil && (node.GetUID() != seen.GetUID() || claimOf(wn).isOthers(node))) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !x.skip(wn, node) {
		left, err := x.drain(ctx, wn, node, s)
		if err == nil && s.Stage != machinev1alpha1.DrainDeletingNode || len(left) > 0 || (err != nil && !x.isPastDeadline(wn)) {
			return left, err
		}
		// After the timeout the Node is deleted even if its pods cannot be listed.
	}
	drain.SetStage(s, machinev1alpha1.DrainDeletingNode, x.Now())
	if wn.HeldBy = slices.Clone(node.GetFinalizers()); len(wn.HeldBy) > 0 {
		wn.HeldUntil = x.heldUntil(wn, node)
	}
	if node.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	err = x.Kube.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(node.GetUID()))})
	if kerrors.IsNotFound(err) || kerrors.IsConflict(err) {
		return nil, nil
	}
	if err == nil && len(wn.HeldBy) == 0 {
		x.Record.Event(wn.Machine, event.Normal(machinev1alpha1.EventNodeDeleted, fmt.Sprintf("Node %s is empty and deleted", name)))
	}
	return nil, err
}

// heldUntil returns when a Node is left behind whose deletion was accepted, and that finalizers hold: abandonAfter the
// drain's timeout, and after the deletion of the Node began. A drain that is forced or skipped has no timeout.
func (x *Keeper) heldUntil(wn *Node, node *corev1.Node) time.Time {
	since := x.stamp().Time
	if d := wn.Status.Deletion; d != nil && d.Stage == machinev1alpha1.DeletionDeletingNode && d.Since.Time.Before(since) {
		since = d.Since.Time
	}
	isShort := x.skip(wn, node) || asked(machinev1alpha1.AnnotationForceDrain, wn, node)
	if end := x.deadline(wn); !isShort && end.After(since) {
		since = end
	}
	return since.Add(AbandonAfter)
}
