package machine

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/machine/nodekeeper"
	"github.com/drover-dev/drover/internal/target"
	"github.com/drover-dev/drover/internal/workernode"
)

// recallNode puts the Node as it was known last into the facts, and reads it again.
func (r *Reconciler) recallNode(ctx context.Context, f *facts) error {
	m := f.machine
	before, ok := r.parameters.get(m.GetUID())
	if !ok || before.Node == nil {
		return nil // The pipeline decides on parameters once the providerID is known.
	}
	f.node = &nodekeeper.Node{Machine: m, WorkerNode: *before.Node, Evidence: before.Evidence}
	f.node.OwnUserData = f.join.OwnUserData != nil
	_, err := r.observeNode(ctx, f)
	// Also if the pipeline fails: otherwise each retry would report that the Node joined.
	r.parameters.set(m.GetUID(), f.node.Memory())
	return err
}

// observeNode reads the Node. An error of the target cluster is a fact about the Node.
func (r *Reconciler) observeNode(ctx context.Context, f *facts) (*seenNode, error) {
	x, err := r.nodes.KeeperFor(ctx, f.machine)
	if err != nil {
		f.node.Observation.Error = err.Error()
		return nil, nil //nolint:nilerr // It is a fact about the Node.
	}
	node, err := x.Observe(ctx, f.node)
	if err != nil {
		if target.Is(err, target.Busy) {
			f.node.RequeueWithin(afterBusy)
		}
		f.node.Observation.Error = err.Error()
		return nil, nil
	}
	f.node.Observation.Error = ""
	return &seenNode{keeper: x, node: node}, nil
}

type seenNode struct {
	keeper *nodekeeper.Keeper
	node   *corev1.Node
}

// syncNode keeps the Node as the pipeline decided. It reports whether the pipeline has new facts to decide by.
func (r *Reconciler) syncNode(ctx context.Context, f *facts, d decision) (changed bool, err error) {
	if d.node == nil {
		r.parameters.set(f.machine.GetUID(), nodekeeper.Memory{Identity: f.machine.Status.Identity})
		return false, nil
	}
	isNew := f.node == nil
	if isNew {
		f.node = &nodekeeper.Node{Machine: f.machine, WorkerNode: workernode.WorkerNode{Observation: nodekeeper.LastSeen(f.machine)}}
	}
	before := f.node.Observation
	f.node.Parameters, f.node.Confirmed, f.node.OwnUserData = *d.node, d.vm.Confirmed, f.join.OwnUserData != nil
	seen, err := r.observeNode(ctx, f)
	if err != nil {
		return false, err
	}
	if seen != nil {
		// A decision that was made without the Node is not written.
		knows := !isNew && before.NodeUID == f.node.Observation.NodeUID
		changed, err = seen.keeper.Keep(ctx, f.node, seen.node, r.recorder(f, d, knows))
		var unrecorded *nodekeeper.RecordError
		switch {
		case errors.As(err, &unrecorded) && errors.Is(unrecorded.Cause, errUndecided):
			changed = true
		case errors.As(err, &unrecorded):
			return false, unrecorded.Cause
		case err != nil:
			if target.Is(err, target.Busy) {
				f.node.RequeueWithin(afterBusy)
			}
			f.node.Observation.Error = err.Error()
		}
	}
	r.parameters.set(f.machine.GetUID(), f.node.Memory())
	return isNew || changed || before.Error != f.node.Observation.Error || before.NodeUID != f.node.Observation.NodeUID, nil
}

// errUndecided is for a decision that was made before the Node was observed.
var errUndecided = errors.New("the pipeline has not seen the Node")

// recorder writes the status that was decided on together with the keys that the Node is about to get, so that
// one write has a change and its effect on the Node. A decision that does not know the Node is not written: the
// pipeline runs again first.
func (r *Reconciler) recorder(f *facts, d decision, knows bool) nodekeeper.RecordFunc {
	return func(ctx context.Context, applied *machinev1alpha1.AppliedToNode) error {
		if !knows {
			return errUndecided
		}
		if err := r.recordVM(ctx, f, d); err != nil {
			return err
		}
		f.applying = applied
		defer func() { f.applying = nil }()
		_, err := r.report(ctx, f, d)
		return err
	}
}
