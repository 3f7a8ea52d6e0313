package nodekeeper

import (
	"context"
	"fmt"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/identity"
	"github.com/drover-dev/drover/internal/nodekeys"
)

// Observe reads the Node. It writes nothing.
func (x *Keeper) Observe(ctx context.Context, wn *Node) (*corev1.Node, error) {
	wn.Settled, wn.IsObserved = nil, false
	found, err := x.find(ctx, wn)
	if err != nil {
		return nil, err
	}
	node, err := found.own()
	if wn.Contest, wn.IsObserved = found.contest(), true; err != nil {
		return nil, err
	}
	if node != nil && wn.Observation.NodeUID != node.GetUID() {
		x.Record.Event(wn.Machine, event.Normal(machinev1alpha1.EventNodeJoined, fmt.Sprintf("Node %s joined", node.GetName())))
	}
	observeNode(wn, node, x.Now())
	wn.Observation.Join = x.joinOf(wn, found)
	wn.Proven, wn.ProvenUID = "", ""
	if node == nil {
		x.Drains.Delete(wn.GetUID())
		return nil, nil
	}
	wn.Proven, wn.ProvenUID = node.GetName(), node.GetUID()
	if wn.Observation.Drain == nil {
		x.Drains.Delete(wn.GetUID())
	}
	change, err := x.changeOf(ctx, node, wn)
	if err == nil && change.Patch == nil {
		wn.Observation.Synced, wn.Settled = true, &change
	}
	return node, err
}

// Keep brings the Node in sync with its parameters: it patches a Node that differs, and does a pass of the
// drain of a Node that shall be drained. It reports whether the observation changed.
func (x *Keeper) Keep(ctx context.Context, wn *Node, node *corev1.Node, record RecordFunc) (changed bool, err error) {
	if node == nil {
		return false, nil
	}
	synced, patched, err := x.sync(ctx, wn, node, record)
	if err != nil {
		return false, x.Classify(err)
	}
	join := wn.Observation.Join
	observeNode(wn, synced, x.Now())
	wn.Observation.Synced, wn.Observation.Join = true, join
	if !toDrain(wn, synced) || wn.passed {
		return patched, nil
	}
	wn.passed = true
	// The Node as it was before the patch: a Node that only this patch cordoned is drained by a later pass.
	return true, x.Classify(x.empty(ctx, wn, node))
}

// sync starts from the cached Node, and reads it only after a conflict. It returns the latest Node, and whether
// it was patched. Changes are recorded in the status of the Machine before the patch.
func (x *Keeper) sync(ctx context.Context, wn *Node, node *corev1.Node, record RecordFunc) (*corev1.Node, bool, error) {
	isPatched := false
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		change, err := x.changeOf(ctx, node, wn)
		if err != nil {
			return err
		}
		if change.Patch == nil {
			x.recordKept(wn, node, change)
			wn.Settled = &change
			return nil
		}
		if !nodekeys.IsCovered(wn.Status.AppliedToNode, change.Record) {
			if err := record(ctx, nodekeys.Union(wn.Status.AppliedToNode, change.Record)); err != nil {
				return &RecordError{err}
			}
		}
		patched, err := x.Kube.CoreV1().Nodes().Patch(ctx, node.GetName(), types.MergePatchType, change.Patch, metav1.PatchOptions{FieldManager: "provider-drover"})
		if kerrors.IsConflict(err) {
			live, gerr := x.Kube.CoreV1().Nodes().Get(ctx, node.GetName(), metav1.GetOptions{})
			if gerr != nil {
				return gerr
			}
			if live.GetUID() != node.GetUID() {
				return fmt.Errorf("the Node %s was replaced by another one of its name", node.GetName())
			}
			node = live
		}
		if err == nil {
			x.recordRestored(wn, node)
			x.recordKept(wn, node, change)
			node, isPatched, wn.Settled = patched, true, &change
		}
		return err
	})
	return node, isPatched, err
}

// recordRestored records an event if a patch restored the label that makes the Node the Machine's. The event does
// not quote the label: otherwise each value would be another event.
func (x *Keeper) recordRestored(wn *Node, before *corev1.Node) {
	if before.GetLabels()[clusterv1alpha1.LabelJoinToken] == string(identity.UID(wn.Machine)) {
		return
	}
	x.Record.Event(wn.Machine, event.Warning(machinev1alpha1.EventNodeIdentityRestored, fmt.Errorf("the Node %s had lost its label %s, which is restored: find out whether its kubelet or a user changed it", before.GetName(), clusterv1alpha1.LabelJoinToken)))
}

// recordKept records an event with the keys that only a user may remove.
func (x *Keeper) recordKept(wn *Node, node *corev1.Node, change nodekeys.Change) {
	if len(change.Kept) == 0 {
		return
	}
	x.Record.Event(wn.Machine, event.Normal(machinev1alpha1.EventNodeKeysKept, fmt.Sprintf("The Node %s keeps %s, which this Machine no longer has: Drover removes no key of kubernetes.io or k8s.io; remove it by hand", node.GetName(), strings.Join(change.Kept, ", "))))
}

func (x *Keeper) changeOf(ctx context.Context, node *corev1.Node, wn *Node) (nodekeys.Change, error) {
	marks, err := x.Marks(ctx, wn.Machine)
	if err != nil {
		return nodekeys.Change{}, err
	}
	return nodekeys.Of(node, x.permitted(wn, withMarks(identified(wn), marks)), wn.Status.AppliedToNode)
}
