package diagnosis

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/view"
)

// A Branch is an object with the objects below it.
type Branch struct {
	view.Ref
	State State `json:"state"`
	// Note is the state of the object, in a few words.
	Note     string   `json:"note,omitempty"`
	Branches []Branch `json:"branches,omitempty"`
}

// Tree returns all objects in the view, or one object: NodePool, MachineDeployments, MachineSets, Machines, and
// the VM, companions, Secret and Node of each Machine.
func Tree(v *view.View, only *view.Ref, now time.Time) ([]Branch, error) {
	t := tree{v, now}
	if only != nil {
		b, ok := t.branch(*only)
		if !ok {
			return nil, notFound(v, *only)
		}
		return []Branch{b}, nil
	}
	var out []Branch
	for _, ref := range roots(v) {
		if b, ok := t.branch(ref); ok {
			out = append(out, b)
		}
	}
	return out, nil
}

type tree struct {
	v   *view.View
	now time.Time
}

func (t tree) branch(ref view.Ref) (Branch, bool) {
	g, ok := groupOf(t.v, ref, t.now)
	if !ok {
		return Branch{}, false
	}
	b := Branch{Ref: ref, State: g.State, Note: fmt.Sprintf("%d of %d available", g.Counts.Available, g.Counts.Desired)}
	if g.Version != "" {
		b.Note += ", " + g.Version
	}
	if len(g.Findings) > 0 {
		b.Note += ", " + g.Findings[0].Reason
	}
	switch ref.Kind {
	case view.NodePool:
		for _, d := range t.v.DeploymentsOf(t.v.Pool(ref.Namespace, ref.Name)) {
			t.add(&b, refOf(view.MachineDeployment, d))
		}
	case view.MachineDeployment:
		for _, s := range t.v.SetsOf(t.v.Deployment(ref.Namespace, ref.Name)) {
			t.add(&b, refOf(view.MachineSet, s))
		}
	case view.MachineSet:
		for _, m := range t.v.MachinesOf(t.v.Set(ref.Namespace, ref.Name)) {
			t.add(&b, refOf(view.Machine, m))
		}
	case view.Machine:
		m := t.v.Machine(ref.Namespace, ref.Name)
		b.Note = phaseOf(m) + ", " + m.Spec.Version
		if w := waitsFor(m); w != "" {
			b.Note += ", " + w
		}
		if c := view.NodeClaimName(m); c != "" {
			b.Note += ", " + view.NodeClaimKind + " " + c
		}
		b.Branches = t.below(m)
	}
	return b, true
}

func (t tree) add(b *Branch, ref view.Ref) {
	if below, ok := t.branch(ref); ok {
		b.Branches = append(b.Branches, below)
	}
}

// ofInfraMachine returns the branch of the object that the VM is made from, with its conditions.
func ofInfraMachine(o view.InfraMachine) Branch {
	b := Branch{Ref: view.Ref{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}, State: Complete}
	var notes []string
	for _, c := range o.Conditions {
		note := c.Type + " " + string(c.Status)
		if c.Type == machinev1alpha1.ConditionReady && c.Status != metav1.ConditionTrue {
			b.State = InProgress
		}
		if c.Reason != "" && c.Status != metav1.ConditionTrue {
			note += " (" + c.Reason + ")"
		}
		notes = append(notes, note)
	}
	b.Note = strings.Join(notes, ", ")
	return b
}

// below returns the resources and the Node of a Machine.
func (t tree) below(m *machinev1alpha1.Machine) []Branch {
	var out []Branch
	for i := range t.v.Resources {
		r := &t.v.Resources[i]
		if r.Namespace != m.Namespace || r.Machine != m.Name {
			continue
		}
		b := Branch{Ref: view.Ref{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}, State: Complete, Note: r.Role}
		switch failing := ofVM(r); {
		case r.Missing:
			b.State, b.Note = InProgress, r.Role+", does not exist"
		case r.Deleted != nil:
			b.State, b.Note = InProgress, r.Role+", is being deleted"
		case len(failing) > 0:
			b.State, b.Note = InProgress, r.Role+", "+failing[0].Reason
		}
		if r.InfraMachine != nil {
			b.Branches = append(b.Branches, ofInfraMachine(*r.InfraMachine))
		}
		out = append(out, b)
	}
	if n := m.Status.NodeRef; n != nil {
		b := Branch{Ref: view.Ref{Kind: "Node", Name: n.Name}, State: Complete, Note: "in the target cluster"}
		switch {
		case m.Status.NodeGoneSince != nil:
			b.State, b.Note = InProgress, "was deleted from the target cluster"
		case m.Status.ReadySince == nil:
			b.State, b.Note = InProgress, b.Note+", not Ready"
		}
		out = append(out, b)
	}
	return out
}
