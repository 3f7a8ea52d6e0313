// Package action computes the changes by the commands of kubectl drover: a merge patch or a deletion, and why a
// change is refused. It is pure; the package command carries the changes out.
package action

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/view"
)

// A Change of an object.
type Change struct {
	view.Ref
	// Patch is a JSON merge patch, nil if there is none.
	Patch []byte
	// Delete the object, after the patch.
	Delete bool
	// Done is the text that kubectl writes after the name of the object, such as "paused".
	Done string
	// Note is a sentence for the user about the change, "" if none.
	Note string
}

// patch of nested fields. Values that are nil remove their field.
func patch(fields map[string]any) []byte {
	b, err := json.Marshal(fields)
	if err != nil {
		// Maps of strings, numbers and API types always encode.
		panic(err)
	}
	return b
}

func annotate(ref view.Ref, done string, annotations map[string]any) Change {
	return Change{Ref: ref, Done: done, Patch: patch(map[string]any{"metadata": map[string]any{"annotations": annotations}})}
}

func refOf(kind string, o metav1.Object) view.Ref {
	return view.Ref{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// A Drain has the options of kubectl drover drain.
type Drain struct {
	// Delete the Machine: Drover drains its Node first.
	Delete bool
	// Force deletes pods without regard to their budgets, and Skip does not drain at all.
	Force, Skip bool
	// Undo a Force or a Skip that was set before.
	Undo bool
}

// DrainMachine returns the change for a drain of a Machine. Drover drains a Node when its Machine is deleted:
// there is no drain of a Machine that stays.
func DrainMachine(m *machinev1alpha1.Machine, o Drain) (Change, error) {
	ref := refOf(view.Machine, m)
	terminating := m.DeletionTimestamp != nil
	switch {
	case o.Undo && (o.Force || o.Skip || o.Delete):
		return Change{}, fmt.Errorf("--undo removes what --force and --skip set: it goes with none of --delete, --force and --skip")
	case o.Undo:
		return annotate(ref, "drained by its rules again", map[string]any{machinev1alpha1.AnnotationForceDrain: nil, machinev1alpha1.AnnotationSkipDrain: nil}), nil
	case o.Force && o.Skip:
		return Change{}, fmt.Errorf("--force and --skip exclude each other")
	case !terminating && !o.Delete:
		return Change{}, fmt.Errorf("%s is not being deleted: Drover drains a Node when its Machine is deleted. Add --delete to drain the Node and delete the Machine with its VM, "+
			"run kubectl drover replace to have another Machine first, or kubectl drain to empty a Node that stays", ref)
	case terminating && !o.Force && !o.Skip:
		return Change{}, fmt.Errorf("%s is being drained and deleted already: kubectl drover why %s -n %s shows what it waits for; --force ignores budgets", ref, ref, ref.Namespace)
	}
	c := Change{Ref: ref, Done: "drained and deleted"}
	switch {
	case o.Force:
		c = annotate(ref, "drained by force", map[string]any{machinev1alpha1.AnnotationForceDrain: "true"})
	case o.Skip:
		c = annotate(ref, "deleted without a drain", map[string]any{machinev1alpha1.AnnotationSkipDrain: "true"})
	}
	c.Delete = !terminating
	return c, nil
}

// Replace returns the change that marks a Machine to be replaced, or removes the mark. The name of the user goes to
// status.replacements of the pool; it may be empty.
func Replace(m *machinev1alpha1.Machine, user string, undo bool) (Change, error) {
	ref := refOf(view.Machine, m)
	switch {
	case undo && m.Status.NodeRequestedReplacement:
		// The annotation of the Node stays in force without it.
		return annotate(ref, "not replaced", replaceAnnotations("false", "")), nil
	case undo:
		return annotate(ref, "not replaced", replaceAnnotations("", "")), nil
	case view.NodeClaimName(m) != "":
		return Change{}, fmt.Errorf("%s is Karpenter's: delete the NodeClaim %s in the target cluster, and Karpenter replaces it", ref, view.NodeClaimName(m))
	case metav1.GetControllerOf(m) == nil:
		return Change{}, fmt.Errorf("%s has no MachineSet: nothing replaces it. Create another Machine and delete this one", ref)
	case m.DeletionTimestamp != nil:
		return Change{}, fmt.Errorf("%s is being deleted already", ref)
	}
	c := annotate(ref, "marked to be replaced", replaceAnnotations("true", user))
	c.Note = "Its set replaces it within spec.remediation."
	return c, nil
}

// replaceAnnotations returns the annotations of a request. Those that are empty are removed.
func replaceAnnotations(value, user string) map[string]any {
	out := map[string]any{machinev1alpha1.AnnotationReplace: nil, machinev1alpha1.AnnotationReplaceRequestedBy: nil}
	if value != "" {
		out[machinev1alpha1.AnnotationReplace] = value
	}
	if user != "" {
		out[machinev1alpha1.AnnotationReplaceRequestedBy] = user
	}
	return out
}

// A Reboot has the options of kubectl drover reboot.
type Reboot struct {
	// ID of the request.
	ID string
	// SkipDrain cordons the Node and does not drain it.
	SkipDrain bool
	// Undo withdraws the request.
	Undo bool
}

// RebootMachine returns the change that requests a reboot of the VM of a Machine, or withdraws the request.
func RebootMachine(m *machinev1alpha1.Machine, o Reboot) (Change, error) {
	ref := refOf(view.Machine, m)
	last := m.Status.Reboot
	switch {
	case o.Undo && o.SkipDrain:
		return Change{}, fmt.Errorf("--undo withdraws a request: it goes without --drain")
	case o.Undo && last != nil && last.State == machinev1alpha1.RebootRebooting:
		return Change{}, fmt.Errorf("the reboot %s of %s was requested from its provider already: it ends by itself", last.ID, ref)
	case o.Undo:
		return annotate(ref, "not rebooted", map[string]any{machinev1alpha1.AnnotationReboot: nil, machinev1alpha1.AnnotationRebootDrain: nil}), nil
	case !machinev1alpha1.IsRebootID(o.ID):
		return Change{}, fmt.Errorf("--id=%s: must have %s", o.ID, machinev1alpha1.FormOfRebootID)
	case m.DeletionTimestamp != nil:
		return Change{}, fmt.Errorf("%s is being deleted", ref)
	case m.Status.NodeRef == nil:
		return Change{}, fmt.Errorf("%s has no Node yet, and only its Node proves a reboot: kubectl drover why %s -n %s shows what it waits for", ref, ref, ref.Namespace)
	case last.Has(o.ID):
		return Change{}, fmt.Errorf("--id=%s: %s was rebooted for this request already: choose another ID", o.ID, ref)
	case last.IsInProgress():
		return Change{}, fmt.Errorf("%s is being rebooted already, for request %s: kubectl drover why %s -n %s shows what it waits for", ref, last.ID, ref, ref.Namespace)
	}
	drain := any(nil)
	if o.SkipDrain {
		drain = machinev1alpha1.RebootDrainNever
	}
	c := annotate(ref, "to be rebooted", map[string]any{machinev1alpha1.AnnotationReboot: o.ID, machinev1alpha1.AnnotationRebootDrain: drain})
	c.Note = "Its Node is drained first. The condition Rebooted of the Machine shows the progress."
	if o.SkipDrain {
		c.Note = "Its Node is cordoned, and not drained. The condition Rebooted of the Machine shows the progress."
	}
	return c, nil
}

// Preserve returns the change that keeps a Machine for analysis, or no longer keeps it.
func Preserve(m *machinev1alpha1.Machine, whenFailed, undo bool) (Change, error) {
	ref := refOf(view.Machine, m)
	switch {
	case undo && whenFailed:
		return Change{}, fmt.Errorf("--undo and --when-failed exclude each other")
	case undo:
		// A set that preserves by itself would write its value again.
		value := any(nil)
		if m.Annotations[machinev1alpha1.AnnotationPreserve] == machinev1alpha1.PreserveAuto || nodePreserves(m) {
			value = machinev1alpha1.PreserveFalse
		}
		c := annotate(ref, "not preserved", map[string]any{machinev1alpha1.AnnotationPreserve: value})
		if nodePreserves(m) {
			c.Note = fmt.Sprintf("The annotation of its Node goes before: remove %s from the Node too.", machinev1alpha1.AnnotationPreserve)
		}
		return c, nil
	case m.DeletionTimestamp != nil:
		return Change{}, fmt.Errorf("%s is being deleted: it cannot be preserved any more", ref)
	case whenFailed:
		return annotate(ref, "preserved when it fails", map[string]any{machinev1alpha1.AnnotationPreserve: machinev1alpha1.PreserveWhenFailed}), nil
	}
	return annotate(ref, "preserved", map[string]any{machinev1alpha1.AnnotationPreserve: machinev1alpha1.PreserveNow}), nil
}

// nodePreserves reports whether the value in force is that of the Node, which differs from the Machine's.
func nodePreserves(m *machinev1alpha1.Machine) bool {
	return m.Status.Preserve != "" && m.Status.Preserve != m.Annotations[machinev1alpha1.AnnotationPreserve]
}

// Freeze returns the changes that hold the creation and the replacement of Machines, or end that. They are of a
// MachineDeployment, a MachineSet without a MachineDeployment, or each MachineDeployment of a NodePool.
func Freeze(v *view.View, ref view.Ref, undo bool) ([]Change, error) {
	var value any = "true"
	done := "frozen"
	if undo {
		value, done = nil, "not frozen"
	}
	change := func(ref view.Ref) Change {
		return Change{Ref: ref, Done: done, Patch: patch(map[string]any{"metadata": map[string]any{"labels": map[string]any{machinev1alpha1.LabelFreeze: value}}})}
	}
	switch ref.Kind {
	case view.NodePool:
		p := v.Pool(ref.Namespace, ref.Name)
		if p == nil {
			return nil, view.NotFound(ref)
		}
		var out []Change
		for _, d := range v.DeploymentsOf(p) {
			out = append(out, change(refOf(view.MachineDeployment, d)))
		}
		return out, nil
	case view.MachineDeployment:
		if v.Deployment(ref.Namespace, ref.Name) == nil {
			return nil, view.NotFound(ref)
		}
	case view.MachineSet:
		s := v.Set(ref.Namespace, ref.Name)
		if s == nil {
			return nil, view.NotFound(ref)
		}
		if by := metav1.GetControllerOf(s); by != nil {
			return nil, fmt.Errorf("%s is controlled by %s, which passes the label on: freeze that", ref, view.Ref{Kind: by.Kind, Name: by.Name})
		}
	default:
		return nil, fmt.Errorf("a %s cannot be frozen: name a NodePool, MachineDeployment or MachineSet", ref.Kind)
	}
	return []Change{change(ref)}, nil
}
