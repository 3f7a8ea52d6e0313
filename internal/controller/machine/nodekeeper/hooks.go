package nodekeeper

import (
	"context"
	"fmt"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/finalizer"
)

// begin starts the drain of a Machine that is being deleted, unless hooks hold it. Hooks are not read any more
// once the drain has begun.
func (x *Keeper) begin(ctx context.Context, wn *Node) (held bool, err error) {
	deleted := x.deletedAt(wn)
	was := wn.Observation.Drain
	ours := was != nil && (was.Stage == machinev1alpha1.DrainWaitingForHooks || wn.isLeaving())
	if ours && was.Stage != machinev1alpha1.DrainWaitingForHooks {
		return false, nil
	}
	hooks, err := x.Hooks(ctx, wn.Machine)
	if err != nil {
		return false, fmt.Errorf("cannot read the hooks of the Machine: %w", err)
	}
	timeout := wn.Parameters.Drain.HookTimeout.Duration
	if len(hooks) > 0 && x.Now().Before(deleted.Add(timeout)) {
		wn.Observation.Drain = &machinev1alpha1.DrainStatus{
			StartTime: deleted, Stage: machinev1alpha1.DrainWaitingForHooks, StageSince: &deleted, Hooks: hooks,
		}
		return true, nil
	}
	if len(hooks) > 0 {
		x.Record.Event(wn.Machine, event.Warning(machinev1alpha1.EventHookTimeout, fmt.Errorf("the drain begins, although it is held by %s: that took longer than %s", strings.Join(hooks, ", "), timeout)))
	}
	began := deleted
	if ours {
		began = x.stamp()
	}
	wn.Observation.Drain = &machinev1alpha1.DrainStatus{StartTime: began}
	return false, nil
}

// isLeaving reports whether the deletion has begun. A drain that is recorded before that is one of a Node that should
// stay.
func (wn *Node) isLeaving() bool {
	d := wn.Status.Deletion
	return d != nil && d.Stage.HasBegun()
}

// HooksOf reads the pre-drain hooks of a Machine from the API server: a stale cache could lack a hook.
func HooksOf(live client.Reader) func(context.Context, *machinev1alpha1.Machine) ([]string, error) {
	return func(ctx context.Context, m *machinev1alpha1.Machine) ([]string, error) {
		now := finalizer.NewMetadata(machinev1alpha1.MachineGroupVersionKind)
		if err := live.Get(ctx, client.ObjectKeyFromObject(m), now); err != nil {
			return nil, client.IgnoreNotFound(err)
		}
		if now.GetUID() != m.GetUID() {
			return nil, nil // The Machine is gone, and this is another one of its name.
		}
		return machinev1alpha1.HooksIn(now.GetAnnotations(), machinev1alpha1.HookPreDrain), nil
	}
}
