package alibaba

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	"github.com/drover-dev/drover/apis/alibaba/v1alpha1"
	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/console"
	"github.com/drover-dev/drover/internal/native"
)

const (
	// settle is the time after which the list certainly shows an instance that ECS accepted.
	settle = 2 * time.Minute
	// deletingFor is how long an instance counts as being deleted after ECS accepted the deletion.
	deletingFor = 30 * time.Second
)

// FindLost returns the ID of the instance with the tag of the VM. ECS sets the tags together with the creation.
func (a *account) FindLost(ctx context.Context, vm *v1alpha1.VirtualMachine) (string, error) {
	all, err := a.describeAll(ctx, withTag(tagVM, string(vm.GetUID())))
	if err != nil || len(all) == 0 {
		return "", err
	}
	return all[0].InstanceId, nil
}

// Get returns the instance of a VM.
func (a *account) Get(ctx context.Context, vm *v1alpha1.VirtualMachine, _ time.Time) (native.VM, error) {
	at, id := &vm.Status.AtProvider, meta.GetExternalName(vm)
	i, exists, err := a.batch.get(ctx, id)
	if err != nil {
		return native.VM{}, err
	}
	if !exists {
		return a.absent(ctx, vm, id)
	}
	created := !meta.GetExternalCreatePending(vm).IsZero()
	out := native.VM{
		State: stateOf(i, created, at.ProviderID != ""), Text: i.text(),
		ProviderID: i.providerID(), Addresses: i.addresses(), HasAddresses: true,
	}
	at.InstanceID, at.RegionID, at.ZoneID, at.HostName, at.ImageID, at.LockReasons = id, i.RegionId, i.ZoneId, i.HostName, i.ImageId, i.locks()
	if meta.WasDeleted(vm) && (a.deleting.Has(id) || i.isChanging()) {
		out.State = native.StateDeleting // ECS refuses to delete an instance that is changing.
	}
	a.readConsole(ctx, vm)
	return out, nil
}

// absent returns the state of a VM whose instance is not listed.
func (a *account) absent(ctx context.Context, vm *v1alpha1.VirtualMachine, id string) (native.VM, error) {
	at := &vm.Status.AtProvider
	accepted := meta.GetExternalCreateSucceeded(vm)
	if at.InstanceID != id && a.now().Sub(accepted) < settle {
		return native.VM{State: native.StateCreating, Text: "accepted, not listed yet"}, nil
	}
	// ECS returned an empty list to a RAM user who lacks a right until December 2025.
	err := a.callRegion(ctx, "DescribeInstanceAttribute", map[string]string{"InstanceId": id}, &struct{}{})
	if err == nil {
		return native.VM{}, &native.Error{Class: fn.ErrorTransient, Err: fmt.Errorf("instance %s exists, and is not listed", id), Refused: true}
	}
	if !hasCode(err, codeNoInstance) {
		return native.VM{}, classify("cannot read instance "+id, err)
	}
	at.LockReasons, at.Console = nil, ""
	out := native.VM{}
	if at.ProviderID == "" && !accepted.IsZero() && !meta.WasDeleted(vm) && at.RemovedInstanceID != id {
		at.RemovedInstanceID = id
		out.Problem = &native.Error{Class: fn.ErrorTransient, Err: fmt.Errorf("instance %s was removed before it ran", id), Refused: true}
	}
	return out, nil
}

// readConsole reads the console of a VM while a Machine requests it. A failure does not fail the observation.
func (a *account) readConsole(ctx context.Context, vm *v1alpha1.VirtualMachine) {
	at := &vm.Status.AtProvider
	if vm.GetAnnotations()[machinev1alpha1.AnnotationReadConsole] != "true" || meta.WasDeleted(vm) {
		at.Console = ""
		return
	}
	var out struct{ ConsoleOutput string }
	if a.callRegion(ctx, "GetInstanceConsoleOutput", map[string]string{"InstanceId": at.InstanceID}, &out) != nil {
		return
	}
	if text, err := base64.StdEncoding.DecodeString(out.ConsoleOutput); err == nil {
		at.Console = console.Excerpt(string(text))
	}
}

// Continue starts an instance that ECS created and did not start.
func (a *account) Continue(ctx context.Context, vm *v1alpha1.VirtualMachine, _ native.UserData) error {
	id := meta.GetExternalName(vm)
	return classify("cannot start instance "+id, a.callRegion(ctx, "StartInstance", map[string]string{"InstanceId": id}, &struct{}{}))
}

// Delete deletes the instance, also if it runs. ECS deletes its disks with it, except those with
// deleteWithInstance false.
func (a *account) Delete(ctx context.Context, vm *v1alpha1.VirtualMachine) error {
	id := meta.GetExternalName(vm)
	if a.deleting.Has(id) {
		return nil
	}
	err := a.callRegion(ctx, "DeleteInstance", map[string]string{"InstanceId": id, "Force": "true"}, &struct{}{})
	if err != nil && !hasCode(err, codeNoInstance) {
		return classify("cannot delete instance "+id, err)
	}
	a.deleting.Add(id)
	return nil
}

// errNoInstance is returned if ECS accepts a creation and returns no ID.
var errNoInstance = errors.New("ECS returned no ID of an instance")
