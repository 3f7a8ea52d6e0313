package nodekeeper

import (
	"context"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	corev1 "k8s.io/api/core/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/machine/drain"
	"github.com/drover-dev/drover/internal/plan"
)

// toDrain reports whether the Node shall be empty, and is not known to be.
func toDrain(wn *Node, node *corev1.Node) bool {
	return node != nil && wn.Parameters.Drained && !wn.Observation.Drained
}

// empty does one pass of the drain of a Node that stays.
func (x *Keeper) empty(ctx context.Context, wn *Node, node *corev1.Node) error {
	if !node.Spec.Unschedulable {
		// It was cordoned just now. Only a pass that begins later sees the pods that the scheduler bound before.
		wn.RequeueWithin(afterNode)
		return nil
	}
	s := wn.Observation.Drain.DeepCopy()
	plan.SettleDrain(x.Now(), s)
	if s == nil {
		s = &machinev1alpha1.DrainStatus{StartTime: x.stamp()}
	}
	left := drain.Remaining{}
	if x.skip(wn, node) {
		drain.SetStage(s, machinev1alpha1.DrainDeletingNode, x.Now())
	} else {
		var err error
		if left, err = x.drain(ctx, wn, node, s); err != nil {
			left.Fill(s)
			wn.Observation.Drain = s // Otherwise the timeout would never start.
			x.retry(wn)
			return err
		}
	}
	x.recordEvents(wn, node, s, left)
	if s.Stage == machinev1alpha1.DrainDeletingNode {
		x.Drains.Delete(wn.GetUID())
		wn.Observation.Drain, wn.Observation.Drained = nil, true
		x.Record.Event(wn.Machine, event.Normal(machinev1alpha1.EventDrained, fmt.Sprintf("Node %s is cordoned and empty", node.GetName())))
		return nil
	}
	left.Fill(s)
	wn.Observation.Drain = s
	wn.RequeueWithin(left.Again())
	return nil
}
