package azure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v7"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/azure/v1alpha1"
	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	nativev1alpha1 "github.com/drover-dev/drover/apis/native/v1alpha1"
	"github.com/drover-dev/drover/internal/console"
	"github.com/drover-dev/drover/internal/native"
)

// FindLost is never called, because the external name is known before the creation.
func (a *account) FindLost(context.Context, *v1alpha1.VirtualMachine) (string, error) { return "", nil }

// Get returns the VM of a managed resource.
func (a *account) Get(ctx context.Context, vm *v1alpha1.VirtualMachine, since time.Time) (native.VM, error) {
	externalName := meta.GetExternalName(vm)
	a.views.Recall(externalName)
	if meta.GetExternalCreatePending(vm).IsZero() && externalName == string(vm.GetUID()) {
		return native.VM{}, nil // The provider has not started to create it.
	}
	m, err := a.find(ctx, vm, since)
	if err != nil {
		return native.VM{}, err
	}
	if m != nil && m.power == "" && m.provisioning() == provisioningSucceeded {
		// The list of the states may be older than that of the VMs.
		if m, err = a.read(ctx, m.name()); err != nil {
			return native.VM{}, err
		}
	}
	if m == nil {
		var out native.VM
		if m, out, err = a.absent(ctx, vm, since); err != nil || m == nil {
			return out, err
		}
	}
	return a.observe(ctx, vm, *m, since)
}

// ageFor returns the age of the lists that is enough for a VM.
func ageFor(vm *v1alpha1.VirtualMachine) time.Duration {
	if vm.Status.AtProvider.ProviderID != "" && !meta.WasDeleted(vm) {
		return restingFor
	}
	return changingFor
}

// find returns the VM of a managed resource in the list, or nil.
func (a *account) find(ctx context.Context, vm *v1alpha1.VirtualMachine, since time.Time) (*machine, error) {
	all, err := a.listed(ctx, since, ageFor(vm))
	if err != nil {
		return nil, err
	}
	tagged := slices.DeleteFunc(slices.Clone(all), func(m machine) bool { return tagOf(m.Tags) != meta.GetExternalName(vm) })
	return choose(tagged, knownVM(vm))
}

// choose returns the VM with a name of those with the tag: a user may have copied the tags of a VM to another one. If the
// name is not known, there must be only one.
func choose(tagged []machine, known name) (*machine, error) {
	if known != (name{}) {
		if i := slices.IndexFunc(tagged, func(m machine) bool { return m.name().is(known) }); i >= 0 {
			return &tagged[i], nil
		}
		return nil, nil
	}
	switch len(tagged) {
	case 0:
		return nil, nil
	case 1:
		return &tagged[0], nil
	}
	return nil, &native.Error{Class: fn.ErrorTransient, Refused: true, Err: fmt.Errorf(
		"%s and %s have the same tag %s: nothing is concluded until one of them has another value", ptr.Deref(tagged[0].ID, ""), ptr.Deref(tagged[1].ID, ""), tagVM)}
}

// read returns the VM with a name and its instance view, or nil if there is none.
func (a *account) read(ctx context.Context, n name) (*machine, error) {
	v, err := a.api.vms.Get(ctx, n.group, n.name, &armcompute.VirtualMachinesClientGetOptions{Expand: ptr.To(armcompute.InstanceViewTypesInstanceView)})
	if hasStatus(err, http.StatusNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, classify("cannot read VM "+n.name, err)
	}
	return withPower(&v.VirtualMachine), nil
}

// own returns the VM of a managed resource by its name, or nil if there is none. Another VM of the name is none.
func (a *account) own(ctx context.Context, vm *v1alpha1.VirtualMachine) (*machine, error) {
	n := knownVM(vm)
	if n == (name{}) {
		return nil, nil
	}
	m, err := a.read(ctx, n)
	if err != nil || m == nil || tagOf(m.Tags) == meta.GetExternalName(vm) {
		return m, err
	}
	if at := &vm.Status.AtProvider; at.VMID != "" && at.VMID == m.vmID() {
		return nil, &native.Error{Class: fn.ErrorTransient, Refused: true, Err: fmt.Errorf(
			"VM %s in resource group %s exists, and its tag %s is %q: set it to %q", n.name, n.group, tagVM, tagOf(m.Tags), meta.GetExternalName(vm))}
	}
	return nil, nil
}

// absent returns the VM of a managed resource that the list does not have, or the state of one without a VM.
func (a *account) absent(ctx context.Context, vm *v1alpha1.VirtualMachine, since time.Time) (*machine, native.VM, error) {
	at, externalName := &vm.Status.AtProvider, meta.GetExternalName(vm)
	deleted := meta.WasDeleted(vm)
	if !deleted && a.accepted.Has(externalName) {
		return nil, native.VM{State: native.StateCreating, Text: "accepted"}, nil
	}
	isLost := at.ProviderID != "" && !deleted
	var parts []part
	var err error
	if !isLost {
		if parts, err = a.listedParts(ctx, vm, since); err != nil {
			return nil, native.VM{}, err
		}
		// While they change, there is no VM that uses them.
		if state := stateOfParts(parts, deleted); state == native.StateCreating || state == native.StateDeleting {
			return nil, native.VM{State: state, Text: "waiting for the resources beside the VM"}, nil
		}
	}
	m, err := a.own(ctx, vm)
	if err != nil || m != nil {
		return m, native.VM{}, err
	}
	if isLost {
		at.Console = ""
		return nil, native.VM{}, nil
	}
	if deleted && len(parts) == 0 {
		// The lists may lack a resource that was just created.
		if parts, err = a.certainParts(ctx, vm); err != nil {
			return nil, native.VM{}, err
		}
	}
	out := native.VM{State: stateOfParts(parts, deleted)}
	if !deleted {
		if at.VMID != "" && at.VMID != at.FailedVMID {
			out.Problem = &native.Error{Class: fn.ErrorTransient, Err: fmt.Errorf("VM %s was removed before it ran", at.VMName), Refused: true}
		}
		at.ID, at.VMID, at.VMName, at.Zone, at.Console = "", "", "", "", ""
	}
	a.views.Remember(externalName, view{parts: parts})
	return nil, out, nil
}

// stateOfParts returns the state of a VM that does not exist, by the resources beside it.
func stateOfParts(parts []part, deleted bool) native.State {
	busy := func(p part) bool { return p.state != provisioningSucceeded && p.state != provisioningFailed }
	switch {
	case len(parts) == 0:
		return native.StateNone
	case !deleted && slices.ContainsFunc(parts, busy):
		return native.StateCreating
	case deleted && !slices.ContainsFunc(parts, func(p part) bool { return p.state != provisioningDeleting }):
		return native.StateDeleting
	}
	return native.StateIncomplete
}

// observe returns the state of an existing VM.
func (a *account) observe(ctx context.Context, vm *v1alpha1.VirtualMachine, m machine, since time.Time) (native.VM, error) {
	at, externalName := &vm.Status.AtProvider, meta.GetExternalName(vm)
	created, finished := !meta.GetExternalCreatePending(vm).IsZero(), at.ProviderID != ""
	n := m.name()
	at.ID, at.VMID, at.VMName, at.Zone, at.Spot = ptr.Deref(m.ID, ""), m.vmID(), n.name, "", m.isSpot()
	if len(m.Zones) > 0 {
		at.Zone = ptr.Deref(m.Zones[0], "")
	}
	if m.Properties != nil && m.Properties.HardwareProfile != nil {
		at.Size = string(ptr.Deref(m.Properties.HardwareProfile.VMSize, ""))
	}
	out := native.VM{State: stateOf(m, created, finished), Text: textOf(m), ProviderID: a.providerID(n), HasAddresses: true}
	if meta.WasDeleted(vm) {
		at.Console = ""
		if a.deleting.Has(m.vmID()) {
			out.State = native.StateDeleting
		}
		return out, nil
	}
	failed := hasFailed(m, finished)
	if failed && created && at.FailedVMID != m.vmID() {
		var err error
		if out.Problem, err = a.failure(ctx, m); err != nil {
			return native.VM{}, err
		}
		at.FailedVMID = m.vmID()
	}
	if failed && a.deleting.Has(m.vmID()) {
		out.State = native.StateDeleting
	}
	a.views.Remember(externalName, view{failed: failed, stopped: isStopped(m.power) && !failed})
	if out.State == native.StateRunning {
		var err error
		if out.Addresses, err = a.addressesOf(ctx, vm, m, since); err != nil {
			return native.VM{}, err
		}
	}
	a.readConsole(ctx, vm, n)
	return out, nil
}

// failure returns the error of a VM whose creation failed after Azure accepted it.
func (a *account) failure(ctx context.Context, m machine) (problem, err error) {
	seen, err := a.read(ctx, m.name())
	if err != nil {
		return nil, err
	}
	var statuses []*armcompute.InstanceViewStatus
	if seen != nil && seen.vmID() == m.vmID() && seen.Properties.InstanceView != nil {
		statuses = seen.Properties.InstanceView.Statuses
	}
	return errorOfCreation(statuses), nil
}

// addressesOf returns the addresses of a running VM. While none is known, the lists are as new as those of the VMs.
func (a *account) addressesOf(ctx context.Context, vm *v1alpha1.VirtualMachine, m machine, since time.Time) ([]nativev1alpha1.Address, error) {
	age := addressesFor
	if len(vm.Status.AtProvider.Addresses) == 0 {
		age = restingFor
	} else {
		since = time.Time{}
	}
	interfaces, err := a.listedInterfaces(ctx, since, age)
	if err != nil {
		return nil, err
	}
	var public []*armnetwork.PublicIPAddress
	if hasPublicAddress(m, interfaces) {
		if public, err = a.listedAddresses(ctx, since, age); err != nil {
			return nil, err
		}
	}
	return addressesOf(m, interfaces, public), nil
}

// readConsole reads the console of a VM while a Machine requests it. A failure does not fail the observation.
func (a *account) readConsole(ctx context.Context, vm *v1alpha1.VirtualMachine, n name) {
	at := &vm.Status.AtProvider
	if vm.GetAnnotations()[machinev1alpha1.AnnotationReadConsole] != "true" {
		at.Console = ""
		return
	}
	where, err := a.api.vms.RetrieveBootDiagnosticsData(ctx, n.group, n.name, nil)
	if err != nil || where.SerialConsoleLogBlobURI == nil {
		return
	}
	// The URL is a secret: it has the right to read.
	if text, err := a.api.readConsole(ctx, *where.SerialConsoleLogBlobURI); err == nil {
		at.Console = console.Excerpt(text)
	}
}

var errUnknown = errors.New("the VM was not observed yet")
