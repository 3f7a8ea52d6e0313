package vm

import (
	"fmt"
	"slices"
	"strings"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/workernode"
)

// Observed is what the step sees.
type Observed struct {
	Now     time.Time
	Machine *machinev1alpha1.Machine
	// RawMachine is metadata and spec of the Machine as the API server has them.
	RawMachine map[string]any
	// VM is nil while there is no VM resource, or none any more.
	VM *plan.Object
	// Companions of it that are there, by their names.
	Companions map[string]plan.Object

	// Node of the Machine, as its cluster has it.
	Node workernode.Observation

	// Bootstrap is the word of the step before, and UserData the user data itself.
	Bootstrap plan.Bootstrap
	UserData  string
	// Inventory is what the cloud's inventory reports of the VM, nil if nothing.
	Inventory *plan.InventoryReport
	// Secrets that the user data was filled with. The guest may show them on its console.
	Secrets []string

	// Class of the Machine, or the problem with it, the Validator of its VM, if there is
	// one, and those of its companions by their names. They are needed only until
	// creation began.
	Class        *machinev1alpha1.MachineClass
	ClassProblem *plan.Problem
	Validator    *Validator
	Validators   map[string]*Validator
	// Installation is its ID, needed as long, or the problem with it.
	Installation        string
	InstallationProblem *plan.Problem
}

// Begun says whether the VM is, or may be, there already.
func (o Observed) Begun() bool {
	return o.Machine.Status.ProviderID != "" || o.VM != nil && plan.CreationBegan(*o.VM)
}

// Desired is what the step wants.
type Desired struct {
	// VM is nil when there shall be none yet, or none any more.
	VM *unstructured.Unstructured
	// Companions of it by their names.
	Companions map[string]*unstructured.Unstructured
	// Word for the steps after this one.
	Word plan.VM
}

// Plan decides what VM a Machine has. The binding is nil if it is not valid, which
// the problem then tells of.
func Plan(b *Binding, invalid *plan.Problem, o Observed) Desired {
	d := planVM(b, invalid, o)
	d.keepCompanions(o)
	return d
}

func planVM(b *Binding, invalid *plan.Problem, o Observed) Desired {
	if o.VM == nil {
		return create(b, invalid, o)
	}
	word, err := read(b, o)
	word.Problem = invalid
	if err != nil {
		word.Problem = invalidBinding(err)
	}
	d := Desired{VM: keep(*o.VM, o.Machine), Companions: map[string]*unstructured.Unstructured{}, Word: word}
	if o.Begun() {
		if word.ProviderID != "" {
			pin(d.VM)
		}
		d.Word.LookAgain = d.requestLook(o)
		return d
	}
	// Nothing came of it yet: what has changed meanwhile, like a join token that
	// was renewed, can still go in. What cannot be made now stays as it is.
	if made := create(b, invalid, o); made.VM != nil {
		d.VM, d.Companions = made.VM, made.Companions
	} else if word.Problem == nil {
		d.Word.Problem = made.Word.Problem
	}
	if d.Word.Problem == nil && isRefusingPolicies(*o.VM) {
		d.Word.Problem = policiesProblem(*o.VM)
	}
	return d
}

// isRefusingPolicies reports whether the provider refuses the management policies of a VM
// resource. A VM that it created could not be deleted: it must have other policies by then, see pin.
func isRefusingPolicies(vm plan.Object) bool {
	return strings.Contains(conditionsOf(vm.Unstructured).Get(xpv2.TypeSynced).Message, policiesDisabled)
}

func policiesProblem(vm plan.Object) *plan.Problem {
	return &plan.Problem{Reason: machinev1alpha1.ReasonManagementPoliciesDisabled, Message: fmt.Sprintf(
		"the provider of %s (%s) runs without management policies, and could not delete a VM: start it with --enable-management-policies",
		vm.GetKind(), vm.GroupVersionKind().Group)}
}

// keep a resource as it was requested, with the finalizer of its provider: the step
// lifecycle knows the finalizers only of what is observed, and this may have been looked up.
func keep(there plan.Object, m *machinev1alpha1.Machine) *unstructured.Unstructured {
	kept := plan.AsObserved(there, m)
	if slices.Contains(there.GetFinalizers(), plan.FinalizerManaged) {
		kept.SetFinalizers([]string{plan.FinalizerManaged})
	}
	return kept
}

// create a VM, or say why not.
func create(b *Binding, invalid *plan.Problem, o Observed) Desired {
	m := o.Machine
	d := Desired{Companions: map[string]*unstructured.Unstructured{}, Word: plan.VM{State: plan.VMAbsent, Name: names.OfMachine(m.Name, m.UID), ProviderID: m.Status.ProviderID}}
	switch {
	case invalid != nil:
		d.Word.Problem = invalid
	case m.Status.ProviderID != "":
		// There was one. What it was is not made again under the same identity.
		d.Word.State = plan.VMLost
		d.Word.Message = fmt.Sprintf("the %s of VM %s is gone", b.VM.GVK.Kind, m.Status.ProviderID)
	case m.Status.Phase == machinev1alpha1.MachineFailed:
	case o.ClassProblem != nil:
		d.Word.Problem = o.ClassProblem
	case o.InstallationProblem != nil:
		d.Word.Problem = o.InstallationProblem
	case o.Class.Spec.Provider != b.provider:
		d.Word.Problem = mismatch(b, o.Class)
	case o.Bootstrap.Problem != nil || o.Bootstrap.SecretName == "":
		// That step says what it waits for.
	default:
		// Nothing is made for a VM that cannot be.
		var made rendering
		if made, d.Word.Problem = render(b, o); d.Word.Problem == nil {
			d.compose(b, o, made)
		}
	}
	return d
}

func mismatch(b *Binding, c *machinev1alpha1.MachineClass) *plan.Problem {
	return problemOf(machinev1alpha1.ReasonProviderMismatch, c, fmt.Sprintf(
		"spec.provider: is %q, but the Machine's Composition makes VMs of provider %q: select the Composition labelled provider: %s with the Machine's spec.crossplane.compositionSelector.matchLabels",
		c.Spec.Provider, b.provider, c.Spec.Provider))
}

// pin a VM: its provider may look at it and delete it, and no more. Without the right to
// delete it, crossplane-runtime would let go of it as soon as it is marked for deletion.
func pin(vm *unstructured.Unstructured) {
	spec, ok := vm.Object["spec"].(map[string]any)
	if !ok {
		return
	}
	spec["managementPolicies"] = []any{"Observe", "Delete"}
}
