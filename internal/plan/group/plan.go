package group

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// A Change creates or updates a Machine.
type Change struct {
	Name     string
	Template *v1alpha1.GroupTemplate
	// Existing is nil for a Machine that is to be created.
	Existing *v1alpha1.Machine
}

// A Plan lists the changes of a group.
type Plan struct {
	Apply  []Change
	Delete []*v1alpha1.Machine
	// Missing Machines are gone, if the API server has none of them either.
	Missing []string
	// Created Machines that exist or have existed, newest last.
	Created []string
	// Errors in the group itself.
	Errors []error
}

// Creates reports whether the plan creates a Machine.
func (p Plan) Creates() bool {
	return slices.ContainsFunc(p.Apply, func(ch Change) bool { return ch.Existing == nil })
}

// PlanOf returns the plan of a group whose MachineSet has the UID. Machines, by name, are those of
// its namespace that the group names or that the set controls.
func PlanOf(g *v1alpha1.MachineGroup, owner types.UID, machines map[string]*v1alpha1.Machine) Plan {
	p := Plan{}
	templates := map[string]*v1alpha1.GroupTemplate{}
	for i := range g.Spec.Templates {
		templates[g.Spec.Templates[i].Name] = &g.Spec.Templates[i]
	}
	p.Created = remember(g, machines)
	created, doomed := sets.New(p.Created...), sets.New(g.Spec.Delete...)
	for _, member := range g.Spec.Machines {
		if doomed.Has(member.Name) {
			continue
		}
		m, t := machines[member.Name], templates[member.Template]
		switch {
		case t == nil:
			p.Errors = append(p.Errors, fmt.Errorf("spec.machines: Machine %q has template %q, which is not in spec.templates", member.Name, member.Template))
		case m == nil && member.Create && !created.Has(member.Name):
			p.Apply = append(p.Apply, Change{Name: member.Name, Template: t})
		case m == nil && member.Create:
			p.Missing = append(p.Missing, member.Name)
		case m == nil || m.DeletionTimestamp != nil:
		case controlledByOther(m, owner):
			p.Errors = append(p.Errors, fmt.Errorf("spec.machines: Machine %q is controlled by %s %q", m.Name, metav1.GetControllerOf(m).Kind, metav1.GetControllerOf(m).Name))
		case member.Create && metav1.GetControllerOfNoCopy(m) != nil && m.Annotations[v1alpha1.AnnotationTemplate] != t.Name:
			// The set has not observed the new Machine yet, and the group's template may have
			// changed since its creation.
		case differs(m, t):
			p.Apply = append(p.Apply, Change{Name: member.Name, Template: t, Existing: m})
		}
	}
	for _, name := range g.Spec.Delete {
		m := machines[name]
		switch {
		case m == nil:
			p.Missing = append(p.Missing, name)
		case m.DeletionTimestamp == nil && !controlledByOther(m, owner):
			p.Delete = append(p.Delete, m)
		}
	}
	return p
}

func controlledByOther(m *v1alpha1.Machine, owner types.UID) bool {
	by := metav1.GetControllerOfNoCopy(m)
	return by != nil && by.UID != owner
}

// differs reports whether a Machine differs from its template. It was created from another
// template, has no controller, or another client changed it.
func differs(m *v1alpha1.Machine, t *v1alpha1.GroupTemplate) bool {
	if m.Annotations[v1alpha1.AnnotationTemplate] != t.Name || metav1.GetControllerOfNoCopy(m) == nil {
		return true
	}
	want := v1alpha1.MachineSpec{}
	if json.Unmarshal(t.Spec.Raw, &want) != nil {
		return false // The API server returns a better error when the template is applied.
	}
	// The Machine's controller writes the providerID and the revision of the Composition, to which
	// it pins the Machine.
	is := m.Spec
	is.ProviderID, is.Crossplane, want.Crossplane = nil, nil, nil
	return !equality.Semantic.DeepEqual(is, want) || !has(m.Labels, t.Metadata.Labels) || !has(m.Annotations, t.Metadata.Annotations)
}

// Matches reports whether the selector of a group's set matches a Machine. A selector without
// labels matches none: a release without the field wrote that group.
func Matches(g *v1alpha1.MachineGroup, m metav1.Object) bool {
	return len(g.Spec.MatchLabels) > 0 && has(m.GetLabels(), g.Spec.MatchLabels)
}

func has(is, want map[string]string) bool {
	for k, v := range want {
		if got, ok := is[k]; !ok || got != v {
			return false
		}
	}
	return true
}
