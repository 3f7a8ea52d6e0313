package metalstack

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/apis/metalstack/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// actWithin is the maximum time between the look at a machine and the call that frees or resets it.
const actWithin = 10 * time.Second

// FindLost returns the external name of the machine with the tag of the VM that was allocated first.
func (a *account) FindLost(ctx context.Context, vm *v1alpha1.VirtualMachine) (string, error) {
	found, err := a.search(ctx, tagVM+"="+string(vm.GetUID()))
	if err != nil || len(found) == 0 {
		return "", err
	}
	return found[0].externalName(), nil
}

// Get returns the machine that is allocated for the VM.
func (a *account) Get(ctx context.Context, vm *v1alpha1.VirtualMachine, _ time.Time) (native.VM, error) {
	m, err := a.read(ctx, meta.GetExternalName(vm))
	if err != nil {
		return native.VM{}, err
	}
	if m == nil {
		return absent(vm), nil
	}
	return observe(vm, *m), nil
}

// absent returns the state of a VM without a machine. An allocation that ended before the machine ran is a problem,
// which is reported once and delays the next creation.
func absent(vm *v1alpha1.VirtualMachine) native.VM {
	at, name := &vm.Status.AtProvider, meta.GetExternalName(vm)
	at.MachineState = ""
	if at.ProviderID != "" || meta.GetExternalCreateSucceeded(vm).IsZero() || meta.WasDeleted(vm) || at.RemovedAllocation == name {
		return native.VM{}
	}
	at.RemovedAllocation = name
	id, _, _ := strings.Cut(name, "/")
	return native.VM{Problem: &native.Error{Class: fn.ErrorTransient, Err: fmt.Errorf("machine %s was freed before it ran", id), Refused: true}}
}

// observe returns the state of the VM and fills its status.
func observe(vm *v1alpha1.VirtualMachine, m machine) native.VM {
	at := &vm.Status.AtProvider
	out := native.VM{
		State: stateOf(m, at.ProviderID != ""), Text: m.text(), ProviderID: m.providerID(), Addresses: m.addresses(), HasAddresses: true,
	}
	at.MachineID, at.AllocationUUID, at.Partition, at.Rack = m.ID, m.Allocation.UUID, m.Partition.ID, m.RackID
	at.Hostname, at.MachineState = m.Allocation.Hostname, m.State.Value
	if i := m.Allocation.Image; i != nil {
		at.Image, at.ImageExpiresAt = i.ID, nil
		if !i.Expires.IsZero() {
			t := metav1.NewTime(i.Expires)
			at.ImageExpiresAt = &t
		}
	}
	return out
}

// Continue is never called: the metal-api installs and starts a machine that it allocated.
func (a *account) Continue(context.Context, *v1alpha1.VirtualMachine, native.UserData) error {
	return nil
}

// Delete frees the machine, if it is still allocated for the VM. The metal-api wipes it.
func (a *account) Delete(ctx context.Context, vm *v1alpha1.VirtualMachine) error {
	ctx, cancel := context.WithTimeout(ctx, actWithin)
	defer cancel()
	m, err := a.read(ctx, meta.GetExternalName(vm))
	if err != nil || m == nil {
		// Without a machine: another user freed it, and perhaps it has another owner already.
		return err
	}
	if m.isLocked() {
		return &native.Error{Class: fn.ErrorPermissionDenied, Err: fmt.Errorf("machine %s cannot be freed: it is %s", m.ID, m.lock())}
	}
	err = a.call(ctx, http.MethodDelete, "/v1/machine/"+url.PathEscape(m.ID)+"/free", nil, &struct{}{})
	return classify("cannot free machine "+m.ID, err)
}
