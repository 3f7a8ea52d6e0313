package machine

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/target"
	"github.com/drover-dev/drover/internal/workernode"
)

// recallNode puts the Node as it was known last into the facts, and reads it again.
func (r *Reconciler) recallNode(ctx context.Context, f *facts) error {
	m := f.machine
	before, ok := r.parameters.get(m.GetUID())
	if !ok || before.node == nil {
		return nil // The pipeline decides on parameters once the providerID is known.
	}
	f.node = &machineNode{Machine: m, WorkerNode: *before.node, confirmed: before.confirmed, ownUserData: f.join.OwnUserData != nil, proven: before.proven, provenUID: before.provenUID}
	_, err := r.observeNode(ctx, f)
	// Also if the pipeline fails: otherwise each retry would report that the Node joined.
	r.parameters.set(m.GetUID(), f.node.memory())
	return err
}

// observeNode reads the Node. An error of the target cluster is a fact about the Node.
func (r *Reconciler) observeNode(ctx context.Context, f *facts) (*seenNode, error) {
	x, err := r.nodes.keeperFor(ctx, f.machine)
	if err != nil {
		f.node.Observation.Error = err.Error()
		return nil, nil //nolint:nilerr // It is a fact about the Node.
	}
	node, err := x.observe(ctx, f.node)
	if err != nil {
		if target.Is(err, target.Busy) {
			f.node.requeueWithin(afterBusy)
		}
		f.node.Observation.Error = err.Error()
		return nil, nil
	}
	f.node.Observation.Error = ""
	return &seenNode{keeper: x, node: node}, nil
}

type seenNode struct {
	keeper *nodeKeeper
	node   *corev1.Node
}

// syncNode keeps the Node as the pipeline decided. It reports whether the pipeline has new facts to decide by.
func (r *Reconciler) syncNode(ctx context.Context, f *facts, d decision) (changed bool, err error) {
	if d.node == nil {
		r.parameters.set(f.machine.GetUID(), nodeMemory{identity: f.machine.Status.Identity})
		return false, nil
	}
	isNew := f.node == nil
	if isNew {
		f.node = &machineNode{Machine: f.machine, WorkerNode: workernode.WorkerNode{Observation: lastSeen(f.machine)}}
	}
	before := f.node.Observation
	f.node.Parameters, f.node.confirmed, f.node.ownUserData = *d.node, d.vm.Confirmed, f.join.OwnUserData != nil
	seen, err := r.observeNode(ctx, f)
	if err != nil {
		return false, err
	}
	if seen != nil {
		// A decision that was made without the Node is not written.
		knows := !isNew && before.NodeUID == f.node.Observation.NodeUID
		changed, err = seen.keeper.keep(ctx, f.node, seen.node, r.recorder(f, d, knows))
		var unrecorded *recordError
		switch {
		case errors.As(err, &unrecorded) && errors.Is(unrecorded.cause, errUndecided):
			changed = true
		case errors.As(err, &unrecorded):
			return false, unrecorded.cause
		case err != nil:
			if target.Is(err, target.Busy) {
				f.node.requeueWithin(afterBusy)
			}
			f.node.Observation.Error = err.Error()
		}
	}
	r.parameters.set(f.machine.GetUID(), f.node.memory())
	return isNew || changed || before.Error != f.node.Observation.Error || before.NodeUID != f.node.Observation.NodeUID, nil
}

// errUndecided is for a decision that was made before the Node was observed.
var errUndecided = errors.New("the pipeline has not seen the Node")

// recorder writes the status that was decided on together with the keys that the Node is about to get, so that
// one write has a change and its effect on the Node. A decision that does not know the Node is not written: the
// pipeline runs again first.
func (r *Reconciler) recorder(f *facts, d decision, knows bool) recordFunc {
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

// lastSeen is the observation of the Node that the status has, for a process that has not read the Node yet. It
// stands in for a Node that cannot be read now, and proves nothing.
func lastSeen(m *machinev1alpha1.Machine) workernode.Observation {
	s := m.Status
	o := workernode.Observation{Drain: s.Drain.DeepCopy(), Drained: s.Drained}
	if s.NodeRef == nil {
		return o
	}
	o.NodeName, o.NodeUID, o.Present = s.NodeRef.Name, types.UID(s.NodeRef.UID), s.NodeGoneSince == nil
	if s.NodeInfo != nil {
		info := workernode.Info(*s.NodeInfo)
		o.NodeInfo = &info
	}
	if s.Preserve != "" && m.GetAnnotations()[machinev1alpha1.AnnotationPreserve] != s.Preserve {
		o.Annotations = map[string]string{machinev1alpha1.AnnotationPreserve: s.Preserve}
	}
	if s.ReplaceRequested && !isTrue(m, machinev1alpha1.AnnotationReplace) {
		o.Annotations = labels.Merge(o.Annotations, labels.Set{machinev1alpha1.AnnotationReplace: "true"})
	}
	ready := workernode.Condition{Type: string(corev1.NodeReady), Status: string(corev1.ConditionUnknown)}
	ready.Since = s.NotReadySince
	if s.ReadySince != nil {
		ready.Status, ready.Since = string(corev1.ConditionTrue), s.ReadySince
	}
	if s.Unhealthy != nil && s.Unhealthy.Until == nil {
		if s.NotReadySince == nil {
			ready.Status = string(corev1.ConditionTrue)
		}
		for _, c := range s.Unhealthy.Conditions {
			if c.Type == ready.Type {
				ready.Status, ready.Reason = c.Status, c.Reason
				continue
			}
			o.Conditions = append(o.Conditions, workernode.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason})
		}
	}
	if o.Present {
		o.Conditions = append(o.Conditions, ready)
	}
	return o
}
