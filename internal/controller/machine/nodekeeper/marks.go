package nodekeeper

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/finalizer"
	"github.com/drover-dev/drover/internal/workernode"
)

// MarksOfSet returns a function that reads the marks of a Machine's MachineSet from its MachineGroup. There are
// none if the Machine has no set or the set has no group.
func MarksOfSet(reader client.Reader) func(context.Context, *machinev1alpha1.Machine) (machinev1alpha1.NodeMarks, error) {
	return func(ctx context.Context, m *machinev1alpha1.Machine) (machinev1alpha1.NodeMarks, error) {
		none := machinev1alpha1.NodeMarks{}
		set, ok := finalizer.ControllerOf(m, machinev1alpha1.MachineSetGroupVersionKind)
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

// withMarks returns the parameters of a Node, marks included.
func withMarks(p workernode.Parameters, m machinev1alpha1.NodeMarks) workernode.Parameters {
	if len(m.Annotations) > 0 {
		p.Annotations = labels.Merge(m.Annotations, p.Annotations)
	}
	for _, t := range m.Taints {
		if !slices.ContainsFunc(p.Taints, func(have workernode.Taint) bool { return have.Key == t.Key && have.Effect == t.Effect }) {
			p.Taints = append(slices.Clip(p.Taints), workernode.Taint(t))
		}
	}
	return p
}

// MarksChanged passes only changes of marks: MachineGroups change all the time.
func MarksChanged() predicate.TypedPredicate[*machinev1alpha1.MachineGroup] {
	return predicate.TypedFuncs[*machinev1alpha1.MachineGroup]{
		CreateFunc: func(event.TypedCreateEvent[*machinev1alpha1.MachineGroup]) bool { return false },
		UpdateFunc: func(e event.TypedUpdateEvent[*machinev1alpha1.MachineGroup]) bool {
			return !equality.Semantic.DeepEqual(e.ObjectOld.Spec.NodeMarks, e.ObjectNew.Spec.NodeMarks)
		},
	}
}

// MachinesOfGroup maps a MachineGroup to its Machines.
func MachinesOfGroup(_ context.Context, g *machinev1alpha1.MachineGroup) []reconcile.Request {
	out := make([]reconcile.Request, 0, len(g.Spec.Machines))
	for _, member := range g.Spec.Machines {
		out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: g.GetNamespace(), Name: member.Name}})
	}
	return out
}
