package workernode

import (
	"context"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
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
	began := metav1.NewTime(x.now().Truncate(time.Second))
	if d := wn.Status.AtProvider.Drain; d != nil {
		began = d.StartTime
	}
	left := remaining{}
	if !skipDrain(wn) && node.GetAnnotations()[machinev1alpha1.AnnotationSkipDrain] != "true" {
		var err error
		if left, err = x.drain(ctx, wn, node); err != nil {
			if wn.Status.AtProvider.Drain == nil { // The timeout counts from now on all the same.
				wn.Status.AtProvider.Drain = &v1alpha1.DrainStatus{StartTime: began}
			}
			x.retry(wn)
			return err
		}
	}
	x.tell(wn, []*corev1.Node{node}, left)
	if len(left) == 0 {
		wn.Status.AtProvider.Drain, wn.Status.AtProvider.Drained = nil, true
		x.record.Event(wn, event.Normal(reasonDrained, fmt.Sprintf("Node %s is cordoned and empty", node.GetName())))
		return nil
	}
	wn.Status.AtProvider.Drain = left.status(began.Time)
	x.again.After(wn, left.again())
	return nil
}
