package vm

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/plan"
)

// inClass is the prefix of the paths of a companion's fields in the class.
func (c Companion) inClass() string { return "companions." + c.Name + "." }

// of returns the companion's settings in a class, and the prefix of their paths.
func (c Companion) of(class *machinev1alpha1.MachineClass) (*machinev1alpha1.MachineClass, *runtime.RawExtension, string) {
	return class, class.Spec.Companions[c.Name].ForProvider, c.inClass()
}

// CompanionsOf returns the companions for the VMs of a class, in their order. Without a class it
// returns those that all VMs have.
func (b *Binding) CompanionsOf(class *machinev1alpha1.MachineClass) []Companion {
	var named map[string]machinev1alpha1.Companion
	if class != nil {
		named = class.Spec.Companions
	}
	var out []Companion
	for _, c := range b.companions {
		if _, ok := named[c.Name]; ok || !c.optional {
			out = append(out, c)
		}
	}
	return out
}

// CompanionsMade returns the companions that an existing VM was created with.
func (b *Binding) CompanionsMade(vm plan.Object) []Companion {
	with := strings.Split(vm.GetAnnotations()[machinev1alpha1.AnnotationCompanions], ",")
	var out []Companion
	for _, c := range b.companions {
		if slices.Contains(with, c.Name) {
			out = append(out, c)
		}
	}
	return out
}

// orderOf returns the index of a companion in the binding.
func (b *Binding) orderOf(name string) int {
	return slices.IndexFunc(b.companions, func(c Companion) bool { return c.Name == name })
}

// unknownCompanion returns the problem of a class with a companion that is not in the binding.
func unknownCompanion(b *Binding, class *machinev1alpha1.MachineClass) *plan.Problem {
	known := make([]string, 0, len(b.companions))
	for _, c := range b.companions {
		known = append(known, c.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(class.Spec.Companions)) {
		if slices.Contains(known, name) {
			continue
		}
		has := "none"
		if len(known) > 0 {
			has = strings.Join(known, ", ")
		}
		return problemOf(machinev1alpha1.ReasonForProviderInvalid, class, fmt.Sprintf("companions.%s: VMs of provider %q have no such companion: they may have %s", name, b.provider, has))
	}
	return nil
}

// compose the rendered resources in order, up to the VM or the first companion before it that is not
// ready. keepCompanions keeps companions whose creation may have begun.
func (d *Desired) compose(b *Binding, o Observed, made rendering) {
	for _, c := range b.CompanionsOf(o.Class) {
		if c.afterVM {
			break
		}
		if there, ok := o.Companions[c.Name]; !ok || !plan.CreationBegan(there) {
			d.Companions[c.Name] = made.companions[c.Name]
		}
		if ready, word := await(b, c, o); !ready {
			word.Name, word.ProviderID = d.Word.Name, d.Word.ProviderID
			d.Word = word
			return
		}
	}
	d.VM, d.Word.State = made.vm, plan.VMCreating
}

// await reports whether a companion is ready. If it is not, the second result is the output for the
// VM.
func await(b *Binding, c Companion, o Observed) (bool, plan.VM) {
	there, ok := o.Companions[c.Name]
	what := c.describe(o)
	word := plan.VM{State: plan.VMCreating, Message: "waiting for " + what + ", which the VM needs"}
	if c.afterVM {
		word.Message = "waiting for " + what + ", which completes the VM"
	}
	if !ok {
		return false, word
	}
	conditions := conditionsOf(there.Unstructured)
	ready, err := c.isReady(o)
	if err != nil {
		word.Problem = invalidBinding(err)
		return false, word
	}
	switch said := providerError(conditions); {
	case there.GetDeletionTimestamp() != nil && c.afterVM:
		word.Message = "waiting for " + what + ", which is being deleted and then created again"
		return false, word
	case there.GetDeletionTimestamp() != nil:
		word.State, word.Message = plan.VMLost, what+" is being deleted, although its Machine is not"
		return false, word
	case isCreateUnknown(there):
		word.State, word.Message = plan.VMCreateUnknown, "the provider began to create "+what+", and it is unknown whether it exists"
		return false, word
	case !ready && said != "":
		code := b.classify(said)
		if code == fn.ErrorPermissionDenied {
			said = withConfig(said, there)
		}
		word.Message, word.ErrorCode = truncate(what+": "+said), string(code)
	}
	return ready, word
}

// isCreateUnknown reports whether the provider of a companion gave up on a creation whose result it does not know.
func isCreateUnknown(there plan.Object) bool {
	return meta.ExternalCreateIncomplete(there) && strings.Contains(conditionsOf(there.Unstructured).Get(xpv2.TypeSynced).Message, createIncomplete)
}

// describe returns the kind and the name of a companion.
func (c Companion) describe(o Observed) string {
	return fmt.Sprintf("%s %s", c.GVK.Kind, names.OfCompanion(o.Machine.Name, o.Machine.UID, c.Name))
}

// isReady reports whether the observed companion is ready, by the binding or by its provider.
func (c Companion) isReady(o Observed) (bool, error) {
	there := o.Companions[c.Name]
	if c.ready == nil {
		return IsReady(there), nil
	}
	return evalAs[bool](c.ready, map[string]any{"machine": o.RawMachine, "companion": whole(there.Object)})
}

// IsReady reports whether the provider of a resource reports it as ready.
func IsReady(o plan.Object) bool {
	return conditionsOf(o.Unstructured).Get(xpv2.TypeReady).Status == corev1.ConditionTrue
}

// keepCompanions keeps existing companions desired: only the deletion of their Machine deletes
// them. Those of an existing VM are pinned like the VM, and those that depend on it once they are
// ready.
func (d *Desired) keepCompanions(b *Binding, o Observed) {
	for name, there := range o.Companions {
		if d.Companions[name] == nil {
			d.Companions[name] = keep(there, o.Machine)
		}
		if d.Word.ProviderID != "" && (!plan.IsAfterVM(there) || b.isCompanionReady(name, o)) {
			pin(d.Companions[name])
		}
	}
}

// observedCompanions returns the companions for expressions. Each companion of the binding has an
// entry, possibly empty.
func observedCompanions(b *Binding, observed map[string]plan.Object) map[string]any {
	out := map[string]any{}
	for _, c := range b.companions {
		out[c.Name] = whole(nil)
	}
	for name, there := range observed {
		out[name] = whole(there.Object)
	}
	return out
}
