package terraform

import (
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/drover-dev/drover/apis/terraform/v1alpha1"
)

const (
	// soon is the delay of the first observation of a created VM. While the VM does not run, the
	// delay grows, up to latest.
	soon   = 250 * time.Millisecond
	latest = 30 * time.Second
	// patience is how long a VM is awaited to run, after which it is polled like any other.
	patience = time.Hour
)

// report writes the outputs of the VM to its status.
func (x *external) report(vm *v1alpha1.VirtualMachine) error {
	at := &vm.Status.AtProvider
	p := x.config.spec.Provider
	at.Provider, at.Type, at.Failed = p.Source+" "+p.Version, x.record.Type, x.record.Failure
	b := x.config.bindings[x.record.Type]
	if b == nil {
		if meta.WasDeleted(vm) {
			return nil // Its outputs are not needed any more.
		}
		_, err := x.config.typeOf(vm)
		return err
	}
	attributes, err := x.state.JSON()
	if err != nil {
		return err
	}
	out, err := b.read(vm.Spec.ForProvider.Name, attributes)
	if err != nil {
		return err
	}
	if at.Failed == "" {
		at.Failed = out.failed
	}
	at.ProviderID, at.Addresses, at.Running = out.providerID, out.addresses, out.running && at.Failed == ""
	vm.SetConditions(conditionOf(vm))
	if !at.Running && at.Failed == "" && !meta.WasDeleted(vm) {
		x.wake(vm)
	}
	return nil
}

func conditionOf(vm *v1alpha1.VirtualMachine) xpv2.Condition {
	switch at := vm.Status.AtProvider; {
	case meta.WasDeleted(vm):
		return xpv2.Deleting()
	case at.Failed != "":
		return xpv2.Unavailable().WithMessage(at.Failed)
	case at.Running:
		return xpv2.Available()
	case hasRun(vm):
		return xpv2.Unavailable().WithMessage("the VM does not run")
	default:
		return xpv2.Creating()
	}
}

// hasRun reports whether the VM was observed running.
func hasRun(vm *v1alpha1.VirtualMachine) bool {
	c := vm.GetCondition(xpv2.TypeReady)
	return c.Status == corev1.ConditionTrue || c.Reason == xpv2.ReasonUnavailable
}

// wake requests a reconcile before the next poll while the VM does not run.
func (x *external) wake(vm *v1alpha1.VirtualMachine) {
	since := x.now().Sub(meta.GetExternalCreateSucceeded(vm))
	if since < patience {
		x.again.After(vm, min(max(since/4, soon), latest))
	}
}
