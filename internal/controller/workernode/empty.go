package workernode

import (
	"context"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	corev1 "k8s.io/api/core/v1"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

// toDrain says whether the Node shall be empty, and is not known to be so.
func toDrain(wn *v1alpha1.WorkerNode, node *corev1.Node) bool {
	return node != nil && wn.Spec.ForProvider.Drained && !wn.Status.AtProvider.Drained
}

// empty does one pass of the drain of a Node that stays.
func (x *external) empty(ctx context.Context, wn *v1alpha1.WorkerNode, node *corev1.Node) error {
	if !node.Spec.Unschedulable {
		// It was cordoned just now: what the scheduler bound before is seen only by a
		// pass that begins later.
		x.again.After(wn, afterNode)
		return nil
	}
	s := wn.Status.AtProvider.Drain.DeepCopy()
	if s == nil {
		s = &v1alpha1.DrainStatus{StartTime: x.stamp()}
	}
	left := remaining{}
	if x.skip(wn, node) {
		x.stage(s, v1alpha1.DrainDeletingNode)
	} else {
		var err error
		if left, err = x.drain(ctx, wn, node, s); err != nil {
			left.fill(s)
			wn.Status.AtProvider.Drain = s // The timeout counts all the same.
			x.retry(wn)
			return err
		}
	}
	x.tell(wn, []*corev1.Node{node}, s, left)
	if s.Stage == v1alpha1.DrainDeletingNode {
		x.drains.Delete(wn.GetUID())
		wn.Status.AtProvider.Drain, wn.Status.AtProvider.Drained = nil, true
		x.record.Event(wn, event.Normal(reasonDrained, fmt.Sprintf("Node %s is cordoned and empty", node.GetName())))
		return nil
	}
	left.fill(s)
	wn.Status.AtProvider.Drain = s
	x.again.After(wn, left.again())
	return nil
}
