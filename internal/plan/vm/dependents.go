package vm

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

// A dependent is a companion that depends on the VM, such as the attachment of a disk. It is created
// after the VM, and its class is needed until its creation began.

// LackingDependents returns the companions of an existing VM that depend on it, and whose creation
// has not begun. They are rendered from the class.
func (b *Binding) LackingDependents(o Observed) []Companion {
	if o.VM == nil || o.Machine.Status.Phase == machinev1alpha1.MachineFailed {
		return nil
	}
	var out []Companion
	for _, c := range b.CompanionsMade(*o.VM) {
		if there, ok := o.Companions[c.Name]; c.afterVM && (!ok || !plan.CreationBegan(there)) {
			out = append(out, c)
		}
	}
	return out
}

// composeDependents composes the companions that depend on an existing VM, in order, up to the first
// one that is not ready. A Machine that has not run yet waits for them.
func (d *Desired) composeDependents(b *Binding, o Observed) {
	if b == nil || d.Word.ProviderID == "" || d.Word.State != plan.VMCreating && d.Word.State != plan.VMRunning {
		return
	}
	made := b.CompanionsMade(*o.VM)
	for i, c := range made {
		if !c.afterVM {
			continue
		}
		if there, exists := o.Companions[c.Name]; !exists || !plan.CreationBegan(there) {
			if d.holdForAny(b, made[:i], o) {
				return
			}
			d.composeDependent(b, o, c, made[:i])
		}
		if d.holdForAny(b, made[i:i+1], o) {
			return
		}
	}
}

// composeDependent renders a companion that does not exist yet. It renders none while the VM resource
// does not report the providerID, and while there is a problem, and a Failed Machine is not completed.
func (d *Desired) composeDependent(b *Binding, o Observed, c Companion, before []Companion) {
	there, exists := o.Companions[c.Name]
	switch {
	case exists && there.GetDeletionTimestamp() != nil:
	case !d.Word.Confirmed || d.Word.Problem != nil || o.Machine.Status.Phase == machinev1alpha1.MachineFailed:
	case o.ClassProblem != nil:
		d.Word.Problem = o.ClassProblem
	case o.InstallationProblem != nil:
		d.Word.Problem = o.InstallationProblem
	case o.Class.Spec.Provider != b.provider:
		d.Word.Problem = plan.ProviderMismatch(o.Class, b.provider)
	default:
		o.Class = b.classFor(o.Class, *o.VM)
		var made *unstructured.Unstructured
		if made, d.Word.Problem = renderDependent(b, o, c, before); d.Word.Problem == nil {
			d.Companions[c.Name] = made
		}
	}
}

// renderDependent creates a companion of an existing VM from the class, which may be another one of
// the same name than the class of the VM.
func renderDependent(b *Binding, o Observed, c Companion, before []Companion) (*unstructured.Unstructured, *plan.Problem) {
	if _, ok := o.Class.Spec.Companions[c.Name]; !ok && c.optional {
		return nil, problemOf(machinev1alpha1.ReasonForProviderInvalid, o.Class, fmt.Sprintf("companions.%s: is missing, and the VM of the Machine was created with it", c.Name))
	}
	r := newRendering(b, o)
	companions := map[string]any{}
	for _, known := range before {
		companions[known.Name] = whole(o.Companions[known.Name].Object)
	}
	r.variables["companions"], r.variables["vm"] = companions, whole(o.VM.Object)
	if problem := r.renderCompanion(c); problem != nil {
		return nil, problem
	}
	return r.companions[c.Name], r.wrong.of(o.Class)
}

// holdForAny holds the Machine for the first of the companions that is not ready or is being deleted. It
// reports whether there is one.
func (d *Desired) holdForAny(b *Binding, companions []Companion, o Observed) bool {
	for _, c := range companions {
		if ready, word := await(b, c, o); !ready {
			d.holdFor(word, o)
			return true
		}
	}
	return false
}

// holdFor keeps a Machine from running until a companion of its VM is ready, of which word is the output. A
// Machine that has run is not held: a companion that fails later must not have it replaced.
func (d *Desired) holdFor(word plan.VM, o Observed) {
	if d.Word.Problem == nil {
		d.Word.Problem = word.Problem
	}
	if plan.HasRun(o.Machine.Status) {
		return
	}
	d.Word.AwaitsCompanion = true
	if word.State == plan.VMCreateUnknown {
		d.Word.State, d.Word.Message, d.Word.ErrorCode = word.State, word.Message, ""
		return
	}
	// A VM that does not run yet, or has an error, comes before a companion that is only waited for.
	runs, fails := d.Word.State == plan.VMRunning, d.Word.Message != ""
	if runs && !fails || word.ErrorCode != "" && (runs || !fails) {
		d.Word.Message, d.Word.ErrorCode = word.Message, word.ErrorCode
	}
	d.Word.State = plan.VMCreating
}
