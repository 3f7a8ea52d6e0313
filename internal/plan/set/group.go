package set

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/plan/group"
)

// Group returns the MachineGroup that carries the decision out. It has the set's name, by which its
// controller finds it.
func Group(set *machinev1alpha1.MachineSet, d Decision) (*machinev1alpha1.MachineGroup, error) {
	g := &machinev1alpha1.MachineGroup{
		TypeMeta:   metav1.TypeMeta{APIVersion: machinev1alpha1.SchemeGroupVersion.String(), Kind: machinev1alpha1.MachineGroupGroupVersionKind.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: set.Name},
		Spec:       machinev1alpha1.MachineGroupSpec{Delete: d.Delete, NodeMarks: set.Spec.NodeMarks, MatchLabels: MatchLabels(set)},
	}
	known := map[string]bool{}
	var last encoded
	for _, m := range d.Machines {
		if !last.isOf(m) {
			t, err := template(m)
			if err != nil {
				return nil, fmt.Errorf("cannot encode Machine %q: %w", m.Name, err)
			}
			last = encoded{m, t}
		}
		t := last.template
		if !known[t.Name] {
			known[t.Name] = true
			g.Spec.Templates = append(g.Spec.Templates, t)
		}
		g.Spec.Machines = append(g.Spec.Machines, machinev1alpha1.GroupMember{Name: m.Name, Template: t.Name, Create: m.Create})
	}
	g.Spec.Machines = append(g.Spec.Machines, d.Vanished...)
	for _, t := range d.Templates {
		if !known[t.Name] && slices.ContainsFunc(d.Vanished, func(m machinev1alpha1.GroupMember) bool { return m.Template == t.Name }) {
			g.Spec.Templates = append(g.Spec.Templates, t)
		}
	}
	slices.SortFunc(g.Spec.Templates, func(a, b machinev1alpha1.GroupTemplate) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(g.Spec.Machines, func(a, b machinev1alpha1.GroupMember) int { return strings.Compare(a.Name, b.Name) })
	if d.IsTraced {
		g.Spec.ResourceRefs = references(d)
	}
	return g, nil
}

// encoded is the template of a Machine. Most Machines of a set equal the one before them, and a
// comparison costs a small part of an encoding.
type encoded struct {
	of       Desired
	template machinev1alpha1.GroupTemplate
}

// isOf reports whether another Machine has the same template.
func (e encoded) isOf(m Desired) bool {
	a := e.of.Machine
	return a != nil && maps.Equal(a.Labels, m.Labels) && maps.Equal(a.Annotations, m.Annotations) &&
		slices.Equal(a.Finalizers, m.Finalizers) && reflect.DeepEqual(a.Spec, m.Spec)
}

// references returns references to all Machines of a set, for clients that follow them. A Machine that is
// being deleted is included until it is gone.
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

// template of a Machine: all of it except its name. Most Machines of a set share one.
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

// MatchLabels returns the labels of the set's selector. All Machines of the set have them: the template has
// them, and so do the Machines that the set may adopt.
func MatchLabels(set *machinev1alpha1.MachineSet) map[string]string {
	return machinev1alpha1.LabelsOf(set.Spec.Selector.MatchLabels)
}

// Expect adds the status of the set's MachineGroup. It reports whether the observed Machines differ from
// those that the group's controller saw.
func (o *Observed) Expect(g *machinev1alpha1.MachineGroup) (bool, error) {
	o.Gone, o.NotApplied, o.Released = g.Status.Gone, notApplied(g), g.Status.Released
	o.Members, o.Templates = g.Spec.Machines, g.Spec.Templates
	var err error
	o.IsBehind, err = isBehind(g, *o)
	return o.IsBehind, err
}

// notApplied returns why the group's controller cannot apply a Machine, or "".
func notApplied(g *machinev1alpha1.MachineGroup) string {
	if c := meta.FindStatusCondition(g.Status.Conditions, machinev1alpha1.ConditionApplied); c != nil && c.Status == metav1.ConditionFalse {
		return c.Message
	}
	return ""
}

// isBehind reports whether the observed Machines differ from those that the group's controller saw. Either
// view may be a little stale: the group enqueues the set, the set decides by the Machines, and each has its
// own cache.
func isBehind(g *machinev1alpha1.MachineGroup, o Observed) (bool, error) {
	all := slices.Clone(o.Foreign)
	for _, m := range slices.Concat(o.Machines, o.Orphans) {
		all = append(all, m.Machine)
	}
	digest, err := group.Digest(o.Set.UID, all)
	return digest != g.Status.Digest, err
}
