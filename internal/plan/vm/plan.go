package vm

import (
	"fmt"
	"strings"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/plan"
)

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
	d.Word.InstanceType = instanceTypeOf(b, o)
	d.believeInventory(b, o)
	if o.isDiscarded() || d.isRefused(o) {
		d.fallBack(b, o)
		return d
	}
	if o.Begun() {
		if word.ProviderID != "" {
			pin(d.VM)
		}
		d.Word.LookAgain = d.requestLook(o)
		if d.isUncertain(o) {
			d.awaitInstanceType(b, o)
			return d
		}
		d.composeDependents(b, o)
		return d
	}
	// The provider has not begun the creation, so changes such as a renewed join token can still be
	// applied. If the VM cannot be rendered now, the resource stays unchanged.
	if made := create(b, invalid, o); made.VM != nil {
		d.VM, d.Companions = made.VM, made.Companions
		d.Word.InstanceType, d.Word.Exhausted = made.Word.InstanceType, made.Word.Exhausted
		d.describeFallback()
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
		d.createVariant(b, o)
	}
	return d
}

// createVariant renders the VM for the instance type that is tried now. If the VM cannot be rendered, no companion is
// created either.
func (d *Desired) createVariant(b *Binding, o Observed) {
	variants, problem := b.variantsOf(o.Class)
	if problem != nil {
		d.Word.Problem = problem
		return
	}
	c := choose(variants, o)
	d.Word.InstanceType, d.Word.Exhausted = c.status, c.exhausted
	if c.variant == nil {
		d.exhaust(o)
		return
	}
	var made rendering
	if made, d.Word.Problem = renderVariant(b, o, *c.variant); d.Word.Problem == nil && o.VM == nil && o.MissingConfig != nil {
		d.Word.Problem = noProviderConfig(o.Class, *o.MissingConfig)
	}
	if d.Word.Problem == nil {
		d.Word.InstanceType = c.variant.describe(b, c.status)
		d.compose(b, o, made)
		d.describeFallback()
	}
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
