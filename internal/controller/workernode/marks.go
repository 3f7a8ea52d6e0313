package workernode

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
)

// marksOfSet reads the marks of the Nodes of a WorkerNode's MachineSet, which its
// MachineGroup has: none where there is no such thing.
func marksOfSet(reader client.Reader) func(context.Context, *v1alpha1.WorkerNode) (machinev1alpha1.NodeMarks, error) {
	return func(ctx context.Context, wn *v1alpha1.WorkerNode) (machinev1alpha1.NodeMarks, error) {
		none := machinev1alpha1.NodeMarks{}
		m := &machinev1alpha1.Machine{}
		if ok, err := readMachine(ctx, reader, wn, m); err != nil || !ok {
			return none, err
		}
		set, ok := controllerOf(m, machinev1alpha1.MachineSetGroupVersionKind)
		if !ok {
			return none, nil
		}
		g := &machinev1alpha1.MachineGroup{}
		if err := reader.Get(ctx, client.ObjectKey{Namespace: m.GetNamespace(), Name: set.Name}, g); err != nil {
			return none, client.IgnoreNotFound(err)
		}
		return g.Spec.NodeMarks, nil
	}
}

// withMarks is what a Node shall be like, marks included.
func withMarks(p v1alpha1.WorkerNodeParameters, m machinev1alpha1.NodeMarks) v1alpha1.WorkerNodeParameters {
	if len(m.Annotations) > 0 {
		p.Annotations = labels.Merge(m.Annotations, p.Annotations)
	}
	for _, t := range m.Taints {
		if !slices.ContainsFunc(p.Taints, func(have v1alpha1.NodeTaint) bool { return have.Key == t.Key && have.Effect == t.Effect }) {
			p.Taints = append(slices.Clip(p.Taints), v1alpha1.NodeTaint(t))
		}
	}
	return p
}

// marksChanged passes only what WorkerNodes read of MachineGroups, which change all
// the time.
func marksChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, ok := e.ObjectOld.(*machinev1alpha1.MachineGroup)
		is, isOK := e.ObjectNew.(*machinev1alpha1.MachineGroup)
		return ok && isOK && !equality.Semantic.DeepEqual(was.Spec.NodeMarks, is.Spec.NodeMarks)
	}}
}

// ofGroup maps a MachineGroup to the WorkerNodes of its Machines.
func ofGroup(reader client.Reader) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		g, ok := obj.(*machinev1alpha1.MachineGroup)
		if !ok {
			return nil
		}
		var out []reconcile.Request
		for _, member := range g.Spec.Machines {
			m := &machinev1alpha1.Machine{}
			if reader.Get(ctx, client.ObjectKey{Namespace: g.GetNamespace(), Name: member.Name}, m) != nil {
				continue // It has no Node yet, or no more.
			}
			out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: m.GetNamespace(), Name: names.OfMachine(m.GetName(), m.GetUID())}})
		}
		return out
	})
}
