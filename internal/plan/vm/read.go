package vm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/workernode"
)

// read returns the state of an observed VM. If the binding cannot be evaluated, values from the
// Machine's status are used, and the error has the cause.
func read(b *Binding, o Observed) (plan.VM, error) {
	vm := *o.VM
	conditions := conditionsOf(vm.Unstructured)
	out := plan.VM{State: plan.VMCreating, Name: vm.GetName(), ProviderID: o.Machine.Status.ProviderID}

	said := facts{
		running: conditions.Get(xpv2.TypeReady).Status == corev1.ConditionTrue,
		error:   providerError(conditions),
		lost: conditions.Get(xpv2.TypeReady).Reason == machinev1alpha1.ReasonMissing ||
			strings.Contains(conditions.Get(xpv2.TypeSynced).Message, NotExist),
	}
	var err error
	if b != nil {
		err = said.evaluate(b, map[string]any{"machine": o.RawMachine, "vm": whole(vm.Object), "companions": observedCompanions(b, o.Companions)})
	}
	if said.providerID != "" {
		out.ProviderID, out.Confirmed = said.providerID, true
	}
	// The addresses in the Machine's status may come from its Node. They must not be used here,
	// because certificates are approved by these addresses.
	out.Addresses = said.addresses
	if b != nil && b.console != nil {
		out.Console = readConsole(said.console, o)
	}
	if b != nil && b.reboots {
		out.Reboot = readReboot(vm, conditions)
	}

	if out.Message = truncate(said.error); out.Message != "" && b != nil {
		code := b.classify(out.Message)
		out.ErrorCode = string(code)
		if code == fn.ErrorPermissionDenied {
			out.Message = withConfig(out.Message, vm)
		}
	}
	end := func(state plan.VMState, code fn.ErrorCode, format string, args ...any) {
		out.State, out.ErrorCode, out.Message = state, string(code), truncate(fmt.Sprintf(format, args...))
	}
	switch {
	case vm.GetDeletionTimestamp() != nil:
		end(plan.VMLost, "", "%s %q is being deleted, although its Machine is not", vm.GetKind(), vm.GetName())
	case out.ProviderID != "" && said.lost:
		end(plan.VMLost, "", "the provider finds VM %s no more", out.ProviderID)
	case said.failed != "":
		end(plan.VMFailed, b.classify(said.failed), "%s", said.failed)
	case meta.ExternalCreateIncomplete(vm) && strings.Contains(conditions.Get(xpv2.TypeSynced).Message, createIncomplete):
		end(plan.VMCreateUnknown, "", "the provider began to create the VM, and it is unknown whether the VM exists")
	case out.ProviderID != "" && said.running:
		out.State = plan.VMRunning
	case out.ProviderID == "" && err == nil && conditions.Get(xpv2.TypeReady).Status == corev1.ConditionTrue:
		out.Unidentified = b != nil && b.providerID != nil
	}
	if out.State == plan.VMCreating || out.State == plan.VMRunning {
		out.Verdict = verdictOf(o.Inventory, vm)
	}
	return out, err
}

// verdictOf returns the verdict of an inventory about the VM that a resource claims now.
func verdictOf(r *plan.InventoryReport, vm plan.Object) *plan.Verdict {
	if r == nil || r.ExternalName == "" || r.ExternalName != meta.GetExternalName(vm) {
		return nil
	}
	text := ""
	if r.Text != "" {
		text = " (" + r.Text + ")"
	}
	switch r.State {
	case plan.InventoryMissing:
		return &plan.Verdict{State: plan.VMLost, Message: fmt.Sprintf("the cloud has not listed VM %s since %s (%s)", r.ExternalName, r.Since, r.Inventory)}
	case plan.InventoryStopped:
		return &plan.Verdict{State: plan.VMFailed, Message: truncate(fmt.Sprintf("VM %s has been stopped since %s%s (%s)", r.ExternalName, r.Since, text, r.Inventory))}
	case plan.InventoryFailed:
		return &plan.Verdict{State: plan.VMFailed, Message: truncate(fmt.Sprintf("the cloud could not create VM %s%s (%s)", r.ExternalName, text, r.Inventory))}
	}
	return nil
}

// facts are the values of a binding's expressions for a VM.
type facts struct {
	providerID    string
	addresses     []workernode.Address
	running, lost bool
	failed        string
	error         string
	console       string
}

func (f *facts) evaluate(b *Binding, variables map[string]any) error {
	var err error
	if f.providerID, err = evalAs[string](b.providerID, variables); err != nil {
		return err
	}
	if b.running != nil {
		if f.running, err = evalAs[bool](b.running, variables); err != nil {
			return err
		}
	}
	if b.error != nil {
		if f.error, err = evalAs[string](b.error, variables); err != nil {
			return err
		}
	}
	if b.failed != nil {
		if f.failed, err = evalAs[string](b.failed, variables); err != nil {
			return err
		}
	}
	if b.lost != nil {
		lost, err := evalAs[bool](b.lost, variables)
		if err != nil {
			return err
		}
		f.lost = f.lost || lost
	}
	if b.console != nil {
		if f.console, err = evalAs[string](b.console, variables); err != nil {
			return err
		}
	}
	if b.addresses != nil {
		if f.addresses, err = evalAddresses(b.addresses, variables); err != nil {
			return err
		}
	}
	if b.guestAddresses != nil {
		reported, err := evalAddresses(b.guestAddresses, variables)
		if err != nil {
			return err
		}
		for _, a := range reported {
			a.Guest = true
			f.addresses = append(f.addresses, a)
		}
	}
	return nil
}

// evalAddresses returns an error for addresses that the Machine's schema refuses: otherwise the API
// server would refuse the whole status because of one address.
func evalAddresses(e *expression, variables map[string]any) ([]workernode.Address, error) {
	list, err := evalAs[[]any](e, variables)
	if err != nil {
		return nil, err
	}
	known := []machinev1alpha1.AddressType{"Hostname", "InternalIP", "ExternalIP", "InternalDNS", "ExternalDNS"}
	var out []workernode.Address
	for i, v := range list {
		m, _ := v.(map[string]any)
		typ, _ := m["type"].(string)
		address, _ := m["address"].(string)
		if !slices.Contains(known, machinev1alpha1.AddressType(typ)) || address == "" {
			return nil, e.error(1, 0, fmt.Sprintf("address %d: must be {type, address} with a type of %v, is %v", i, known, v))
		}
		out = append(out, workernode.Address{Type: typ, Address: address})
	}
	return out, nil
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
