package workernode

import (
	"context"
	"fmt"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// begin the drain of a WorkerNode that is being deleted, unless hooks hold it. Once it
// has begun, no hook is asked for.
func (x *external) begin(ctx context.Context, wn *v1alpha1.WorkerNode) (held bool, err error) {
	deleted := *wn.GetDeletionTimestamp()
	was := wn.Status.AtProvider.Drain
	// A drain that began before was of a Node that should stay.
	ours := was != nil && !was.StartTime.Before(&deleted)
	if ours && was.Stage != v1alpha1.DrainWaitingForHooks {
		return false, nil
	}
	hooks, err := x.hooks(ctx, wn)
	if err != nil {
		return false, fmt.Errorf("cannot read the hooks of the Machine: %w", err)
	}
	timeout := wn.Spec.ForProvider.Drain.HookTimeout.Duration
	if len(hooks) > 0 && x.now().Before(deleted.Add(timeout)) {
		wn.Status.AtProvider.Drain = &v1alpha1.DrainStatus{
			StartTime: deleted, Stage: v1alpha1.DrainWaitingForHooks, StageSince: &deleted, Hooks: hooks,
		}
		return true, nil
	}
	if len(hooks) > 0 {
		x.record.Event(wn, event.Warning(reasonHookTimeout, fmt.Errorf("the drain begins, although it is held by %s: that took longer than %s", strings.Join(hooks, ", "), timeout)))
	}
	began := deleted
	if ours {
		began = x.stamp()
	}
	wn.Status.AtProvider.Drain = &v1alpha1.DrainStatus{StartTime: began}
	return false, nil
}

// hooksOfOwner reads the pre-drain hooks of the Machine that a WorkerNode belongs to.
// It is not read from a cache: one that lags would let a hook be missed.
func hooksOfOwner(live client.Reader) func(context.Context, *v1alpha1.WorkerNode) ([]string, error) {
	return func(ctx context.Context, wn *v1alpha1.WorkerNode) ([]string, error) {
		m := &metav1.PartialObjectMetadata{}
		m.SetGroupVersionKind(machinev1alpha1.MachineGroupVersionKind)
		if ok, err := readMachine(ctx, live, wn, m); err != nil || !ok {
			return nil, err
		}
		return machinev1alpha1.HooksIn(m.GetAnnotations(), machinev1alpha1.HookPreDrain), nil
	}
}
