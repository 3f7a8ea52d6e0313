package vm

import (
	"fmt"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/plan"
)

// isCompanionReady reports whether a companion is ready. Without a binding, the provider decides.
func (b *Binding) isCompanionReady(name string, o Observed) bool {
	if b != nil {
		if i := b.orderOf(name); i >= 0 {
			ready, err := b.companions[i].isReady(o)
			return ready && err == nil
		}
	}
	return IsReady(o.Companions[name])
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

// describe returns the kind and the name of a companion.
func (c Companion) describe(o Observed) string {
	return fmt.Sprintf("%s %s", c.GVK.Kind, names.OfCompanion(o.Machine.Name, o.Machine.UID, c.Name))
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
