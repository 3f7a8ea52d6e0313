package set

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/plan/group"
)

// Group returns the MachineGroup that has the decision carried out. It has the set's
// name, by which its controller finds it.
func Group(set *machinev1alpha1.MachineSet, d Decision) (*machinev1alpha1.MachineGroup, error) {
	g := &machinev1alpha1.MachineGroup{
		TypeMeta:   metav1.TypeMeta{APIVersion: machinev1alpha1.SchemeGroupVersion.String(), Kind: machinev1alpha1.MachineGroupGroupVersionKind.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: set.Name},
		Spec:       machinev1alpha1.MachineGroupSpec{Delete: d.Delete, NodeMarks: set.Spec.NodeMarks, MatchLabels: MatchLabels(set)},
	}
	known := map[string]bool{}
	for _, m := range d.Machines {
		t, err := template(m)
		if err != nil {
			return nil, fmt.Errorf("cannot encode Machine %q: %w", m.Name, err)
		}
		if !known[t.Name] {
			known[t.Name] = true
			g.Spec.Templates = append(g.Spec.Templates, t)
		}
		g.Spec.Machines = append(g.Spec.Machines, machinev1alpha1.GroupMember{Name: m.Name, Template: t.Name, Create: m.Create})
	}
	slices.SortFunc(g.Spec.Templates, func(a, b machinev1alpha1.GroupTemplate) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(g.Spec.Machines, func(a, b machinev1alpha1.GroupMember) int { return strings.Compare(a.Name, b.Name) })
	if d.IsTraced {
		g.Spec.ResourceRefs = references(d)
	}
	return g, nil
}

// references to all Machines of a set, for readers that follow references. A Machine that is
// being deleted is among them until it is gone.
func references(d Decision) []machinev1alpha1.ResourceReference {
	names := slices.Concat(d.Delete, d.Terminating)
	for _, m := range d.Machines {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	apiVersion, kind := machinev1alpha1.MachineGroupVersionKind.ToAPIVersionAndKind()
	out := make([]machinev1alpha1.ResourceReference, 0, len(names))
	for _, name := range slices.Compact(names) {
		out = append(out, machinev1alpha1.ResourceReference{APIVersion: apiVersion, Kind: kind, Name: name})
	}
	return out
}

// isTraced reports whether a Machine was read with a CRD of this release: that has a default kind
// of class, which came with the field for references.
func isTraced(m Machine) bool { return m.Spec.ClassRef.Kind != "" }

// template of a Machine: all of it but its name. Most Machines of a set have the same.
func template(m Desired) (machinev1alpha1.GroupTemplate, error) {
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&m.Spec)
	if err != nil {
		return machinev1alpha1.GroupTemplate{}, err
	}
	raw, err := json.Marshal(spec)
	if err != nil {
		return machinev1alpha1.GroupTemplate{}, err
	}
	t := machinev1alpha1.GroupTemplate{
		Metadata: machinev1alpha1.GroupMetadata{Labels: m.GetLabels(), Annotations: m.GetAnnotations(), Finalizers: m.GetFinalizers()},
		Spec:     runtime.RawExtension{Raw: raw},
	}
	all, err := json.Marshal(t)
	if err != nil {
		return machinev1alpha1.GroupTemplate{}, err
	}
	t.Name = names.Hash(string(all))
	return t, nil
}

// MatchLabels of the set's selector. All of its Machines have them, because the template
// has, and those do that it may adopt.
func MatchLabels(set *machinev1alpha1.MachineSet) map[string]string {
	return machinev1alpha1.LabelsOf(set.Spec.Selector.MatchLabels)
}

// Expect adds what the set's MachineGroup says of its Machines. The result is isBehind.
func (o *Observed) Expect(g *machinev1alpha1.MachineGroup) (bool, error) {
	o.Gone, o.NotApplied = g.Status.Gone, notApplied(g)
	return isBehind(g, *o)
}

// notApplied is what the group's controller cannot do.
func notApplied(g *machinev1alpha1.MachineGroup) string {
	if c := meta.FindStatusCondition(g.Status.Conditions, machinev1alpha1.ConditionApplied); c != nil && c.Status == metav1.ConditionFalse {
		return c.Message
	}
	return ""
}

// isBehind says whether the Machines are seen otherwise than by the group's controller.
// Either is a little late: what wakes the set is the group, and what it decides by are
// the Machines, and each comes by a cache of its own.
func isBehind(g *machinev1alpha1.MachineGroup, o Observed) (bool, error) {
	all := slices.Clone(o.Foreign)
	for _, m := range slices.Concat(o.Machines, o.Orphans) {
		all = append(all, m.Machine)
	}
	digest, err := group.Digest(o.Set.UID, all)
	return digest != g.Status.Digest, err
}
