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

// Observed is the view of the step.
type Observed struct {
	Now     time.Time
	Machine *machinev1alpha1.Machine
	// RawMachine is metadata and spec of the Machine as the API server returns them.
	RawMachine map[string]any
	// VM is nil if there is no VM resource.
	VM *plan.Object
	// Companions of the VM that exist, by their names.
	Companions map[string]plan.Object

	// Node of the Machine, as last observed in its cluster.
	Node workernode.Observation

	// Bootstrap is the output of the step bootstrap, and UserData the user data itself.
	Bootstrap plan.Bootstrap
	UserData  string
	// Inventory is the report of the cloud's inventory about the VM, nil if there is none.
	Inventory *plan.InventoryReport
	// MissingConfig is the configuration of the provider that the VM would refer to, if it does not
	// exist. It is nil if it exists, or if that is not known.
	MissingConfig *plan.MissingConfig
	// Secrets that are part of the user data. The guest may print them on its console.
	Secrets []string

	// Class of the Machine, or the problem with it. Validator is that of its VM, nil if there is
	// none, and Validators are those of its companions by their names. They are needed until
	// creation began, and while the VM has LackingDependents.
	Class        *machinev1alpha1.MachineClass
	ClassProblem *plan.Problem
	Validator    *Validator
	Validators   map[string]*Validator
	// Installation is the ID of the installation, or the problem with it. It is needed as long as
	// the class.
	Installation        string
	InstallationProblem *plan.Problem
}

// Begun reports whether the VM exists or may exist.
func (o Observed) Begun() bool {
	return o.Machine.Status.ProviderID != "" || o.VM != nil && plan.CreationBegan(*o.VM)
}

// Desired is the output of the step.
type Desired struct {
	// VM is nil while no VM resource shall exist.
	VM *unstructured.Unstructured
	// Companions of the VM by their names.
	Companions map[string]*unstructured.Unstructured
	// Word is the output for the later steps.
	Word plan.VM
}

// Plan decides the VM of a Machine. If the binding is invalid, it is nil, and the problem describes
// why.
func Plan(b *Binding, invalid *plan.Problem, o Observed) Desired {
	d := planVM(b, invalid, o)
	d.keepCompanions(b, o)
	d.requestRetries(b, o)
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
		d.composeDependents(b, o)
		return d
	}
	// The provider has not begun the creation, so changes such as a renewed join token can still be
	// applied. If the VM cannot be rendered now, the resource stays unchanged.
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

// isRefusingPolicies reports whether the provider refuses the management policies of a VM resource.
// Such a provider could not delete the VM that it creates, because pin sets other policies by then.
func isRefusingPolicies(vm plan.Object) bool {
	return strings.Contains(conditionsOf(vm.Unstructured).Get(xpv2.TypeSynced).Message, policiesDisabled)
}

func policiesProblem(vm plan.Object) *plan.Problem {
	return &plan.Problem{Reason: machinev1alpha1.ReasonManagementPoliciesDisabled, Message: fmt.Sprintf(
		"the provider of %s (%s) runs without management policies, and could not delete a VM: start it with --enable-management-policies",
		vm.GetKind(), vm.GroupVersionKind().Group)}
}

// keep a resource as it was requested, with the finalizer of its provider. The step lifecycle sees
// finalizers only on observed resources, and this one may come from a request for required
// resources.
func keep(there plan.Object, m *machinev1alpha1.Machine) *unstructured.Unstructured {
	kept := plan.AsObserved(there, m)
	if slices.Contains(there.GetFinalizers(), plan.FinalizerManaged) {
		kept.SetFinalizers([]string{plan.FinalizerManaged})
	}
	return kept
}

// create a VM, or return the reason why it cannot be created.
func create(b *Binding, invalid *plan.Problem, o Observed) Desired {
	m := o.Machine
	d := Desired{Companions: map[string]*unstructured.Unstructured{}, Word: plan.VM{State: plan.VMAbsent, Name: names.OfMachine(m.Name, m.UID), ProviderID: m.Status.ProviderID}}
	switch {
	case invalid != nil:
		d.Word.Problem = invalid
	case m.Status.ProviderID != "":
		// A VM existed. It is not created again under the same identity.
		d.Word.State = plan.VMLost
		d.Word.Message = fmt.Sprintf("the %s of VM %s is gone", b.VM.GVK.Kind, m.Status.ProviderID)
	case m.Status.Phase == machinev1alpha1.MachineFailed:
	case o.ClassProblem != nil:
		d.Word.Problem = o.ClassProblem
	case o.InstallationProblem != nil:
		d.Word.Problem = o.InstallationProblem
	case o.Class.Spec.Provider != b.provider:
		d.Word.Problem = plan.ProviderMismatch(o.Class, b.provider)
	case o.Bootstrap.Problem != nil || o.Bootstrap.SecretName == "":
		// The output of that step has the reason.
	default:
		// If the VM cannot be rendered, no companion is created either.
		var made rendering
		if made, d.Word.Problem = render(b, o); d.Word.Problem == nil && o.VM == nil && o.MissingConfig != nil {
			d.Word.Problem = noProviderConfig(o.Class, *o.MissingConfig)
		}
		if d.Word.Problem == nil {
			d.compose(b, o, made)
		}
	}
	return d
}

// noProviderConfig is the problem of a class that names a configuration which does not exist.
func noProviderConfig(c *machinev1alpha1.MachineClass, missing plan.MissingConfig) *plan.Problem {
	where := ""
	if missing.Namespace != "" {
		where = fmt.Sprintf(" in the namespace %q", missing.Namespace)
	}
	return problemOf(machinev1alpha1.ReasonProviderConfigNotFound, c, fmt.Sprintf("spec.providerConfigRef: there is no %s %q of %s%s. No VM is created until it exists",
		missing.Kind, missing.Name, missing.Group, where))
}

// pin restricts the provider to observe and delete the VM. Without the right to delete,
// crossplane-runtime would remove the resource without deleting the VM.
func pin(vm *unstructured.Unstructured) {
	spec, ok := vm.Object["spec"].(map[string]any)
	if !ok {
		return
	}
	spec["managementPolicies"] = []any{"Observe", "Delete"}
}
