package gcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"
	"k8s.io/utils/ptr"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/apis/gcp/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	cloudgcp "github.com/drover-dev/drover/internal/cloud/gcp"
	"github.com/drover-dev/drover/internal/console"
	"github.com/drover-dev/drover/internal/native"
)

const (
	// deletingFor is how long an instance counts as being deleted after the deletion was accepted. The deletion is
	// then requested again: its operation may have failed.
	deletingFor = 2 * time.Minute
	// consoleBytes is how much of the console is read, from its end.
	consoleBytes = 16 << 10
	// typePreempted is the type of the operation by which Compute Engine takes a spot VM back.
	typePreempted = "compute.instances.preempted"
)

// FindLost is never called, because the external name is known before the creation.
func (a *account) FindLost(context.Context, *v1alpha1.VirtualMachine) (string, error) { return "", nil }

// Get returns the instance of a VM.
func (a *account) Get(ctx context.Context, vm *v1alpha1.VirtualMachine, since time.Time) (native.VM, error) {
	name := meta.GetExternalName(vm)
	a.views.Recall(name)
	if meta.GetExternalCreatePending(vm).IsZero() && name == string(vm.GetUID()) {
		return native.VM{}, nil // The provider has not started to create it.
	}
	p, err := a.project(ctx)
	if err != nil {
		return native.VM{}, err
	}
	i, complete, err := a.find(ctx, vm, since)
	if err != nil {
		return native.VM{}, err
	}
	if i == nil {
		var out native.VM
		if i, out, err = a.absent(ctx, p, vm, complete); err != nil || i == nil {
			return out, err
		}
	}
	return a.observe(ctx, p, vm, i)
}

// find returns the instance of a VM in the list, or nil. The second value is false if the list may lack it.
func (a *account) find(ctx context.Context, vm *v1alpha1.VirtualMachine, since time.Time) (*compute.Instance, bool, error) {
	age := changingFor
	if vm.Status.AtProvider.ProviderID != "" && !meta.WasDeleted(vm) {
		age = restingFor
	}
	all, complete, err := a.listed(ctx, since, age)
	if err != nil {
		return nil, false, err
	}
	i := slices.IndexFunc(all, func(i *compute.Instance) bool { return i.Labels[labelVM] == meta.GetExternalName(vm) })
	if i < 0 {
		return nil, complete, nil
	}
	return all[i], complete, nil
}

// absent returns the instance of a VM that the list does not have, or the state of a VM without an instance.
func (a *account) absent(ctx context.Context, p *cloudgcp.Project, vm *v1alpha1.VirtualMachine, complete bool) (*compute.Instance, native.VM, error) {
	at := &vm.Status.AtProvider
	if at.InstanceID != "" {
		i, err := a.readByNumber(ctx, p, vm)
		if err != nil || i != nil {
			return i, native.VM{}, err
		}
		if at.ProviderID != "" {
			at.Console = ""
			return nil, native.VM{}, nil
		}
	}
	spec := vm.Spec.ForProvider
	if meta.GetExternalCreatePending(vm).IsZero() || spec.Zone == nil || spec.Name == nil {
		if !complete {
			return nil, native.VM{}, &native.Error{Class: fn.ErrorTransient, Err: errIncomplete, Refused: true}
		}
		return nil, native.VM{}, nil
	}
	busy, problem, err := a.lookAtOperation(ctx, p, vm)
	if err != nil || busy != nil {
		return nil, ptr.Deref(busy, native.VM{}), err
	}
	i, err := a.readByName(ctx, p, vm)
	if err != nil || i != nil {
		return i, native.VM{}, err
	}
	if problem == nil && at.InstanceID != "" {
		problem = &native.Error{Class: fn.ErrorTransient, Err: fmt.Errorf("instance %s was removed before it ran", at.InstanceName), Refused: true}
	}
	if meta.WasDeleted(vm) {
		problem = nil
	}
	at.InstanceID, at.InstanceName, at.Zone, at.Console = "", "", "", ""
	return nil, native.VM{Problem: problem}, nil
}

// lookAtOperation observes the operation of a creation. While it is not done, it returns the state of the VM. If it
// failed, lookAtOperation returns the problem once.
func (a *account) lookAtOperation(ctx context.Context, p *cloudgcp.Project, vm *v1alpha1.VirtualMachine) (busy *native.VM, problem, err error) {
	at := &vm.Status.AtProvider
	zone, name, ok := strings.Cut(vm.GetAnnotations()[v1alpha1.AnnotationOperation], "/")
	if !ok || at.EndedOperation == name {
		return nil, nil, nil
	}
	o, err := p.Service.ZoneOperations.Get(p.ID, zone, name).Fields("name,status,operationType,error").Context(ctx).Do()
	if hasStatus(err, http.StatusNotFound) {
		return nil, nil, nil // Compute Engine forgets operations after two weeks.
	}
	if err != nil {
		return nil, nil, classify("cannot read operation "+name, err)
	}
	if o.Status != "DONE" {
		return &native.VM{State: native.StateCreating, Text: "the creation is accepted: " + o.Status}, nil, nil
	}
	if problem = errorOfOperation(o); problem != nil {
		at.EndedOperation = name
	}
	return nil, problem, nil
}

// readByNumber returns the instance that was observed before, or nil if it does not exist.
func (a *account) readByNumber(ctx context.Context, p *cloudgcp.Project, vm *v1alpha1.VirtualMachine) (*compute.Instance, error) {
	at := &vm.Status.AtProvider
	i, err := a.read(ctx, p, at.Zone, at.InstanceID)
	if err != nil || i == nil || i.Labels[labelVM] == meta.GetExternalName(vm) {
		return i, err
	}
	return nil, &native.Error{Class: fn.ErrorTransient, Refused: true, Err: fmt.Errorf(
		"instance %s in zone %s exists, and its label %s is %q: set it to %q", i.Name, at.Zone, labelVM, i.Labels[labelVM], meta.GetExternalName(vm))}
}

// readByName returns the instance with the name and the zone of the spec, or nil if there is none that was created for
// the VM.
func (a *account) readByName(ctx context.Context, p *cloudgcp.Project, vm *v1alpha1.VirtualMachine) (*compute.Instance, error) {
	i, err := a.read(ctx, p, *vm.Spec.ForProvider.Zone, *vm.Spec.ForProvider.Name)
	if err != nil || i == nil || i.Labels[labelVM] != meta.GetExternalName(vm) {
		return nil, err
	}
	return i, nil
}

// read returns the instance with a name or a number, or nil if there is none.
func (a *account) read(ctx context.Context, p *cloudgcp.Project, zone, instance string) (*compute.Instance, error) {
	i, err := p.Service.Instances.Get(p.ID, zone, instance).Fields(googleapi.Field(fields)).Context(ctx).Do()
	if hasStatus(err, http.StatusNotFound) {
		return nil, nil
	}
	return i, classify("cannot read instance "+instance, err)
}

// observe returns the state of an existing instance.
func (a *account) observe(ctx context.Context, p *cloudgcp.Project, vm *v1alpha1.VirtualMachine, i *compute.Instance) (native.VM, error) {
	at := &vm.Status.AtProvider
	created := !meta.GetExternalCreatePending(vm).IsZero()
	wasPreempted := at.State == string(native.StateFailed) && at.InstanceID == strconv.FormatUint(i.Id, 10)
	at.InstanceID, at.InstanceName, at.Zone, at.MachineType = strconv.FormatUint(i.Id, 10), i.Name, path.Base(i.Zone), path.Base(i.MachineType)
	at.HostName, at.Spot = i.Hostname, isSpot(i)
	out := native.VM{
		State: stateOf(i.Status, created, at.ProviderID != ""), Text: textOf(i),
		ProviderID: a.providerID(i), Addresses: addresses(i), HasAddresses: true,
	}
	a.views.Remember(meta.GetExternalName(vm), view{zone: at.Zone, id: i.Id})
	switch {
	case meta.WasDeleted(vm):
		if a.deleting.Has(i.Id) || i.Status == statusDeprovisioning {
			out.State = native.StateDeleting
		}
	case mayBePreempted(i):
		preempted, err := wasPreempted, error(nil)
		if !preempted {
			preempted, err = a.isPreempted(ctx, p, at.Zone, i.Id)
		}
		if err != nil {
			return native.VM{}, err
		}
		if preempted {
			out.State, out.Text = native.StateFailed, i.Status+": Compute Engine took the spot VM back"
		}
	}
	a.readConsole(ctx, p, vm)
	return out, nil
}

// isPreempted reports whether Compute Engine took an instance back. A spot VM that a user stopped has the same status.
func (a *account) isPreempted(ctx context.Context, p *cloudgcp.Project, zone string, id uint64) (bool, error) {
	filter := fmt.Sprintf("(operationType = %q) AND (targetId = %d)", typePreempted, id)
	list, err := p.Service.ZoneOperations.List(p.ID, zone).Filter(filter).MaxResults(1).Fields("items(name,operationType,targetId)").Context(ctx).Do()
	if err != nil {
		return false, classify("cannot list the operations by which Compute Engine takes spot VMs back", err)
	}
	return len(list.Items) > 0, nil
}

// readConsole reads the console of a VM while a Machine requests it. A failure does not fail the observation.
func (a *account) readConsole(ctx context.Context, p *cloudgcp.Project, vm *v1alpha1.VirtualMachine) {
	at := &vm.Status.AtProvider
	if vm.GetAnnotations()[machinev1alpha1.AnnotationReadConsole] != "true" || meta.WasDeleted(vm) {
		at.Console = ""
		return
	}
	out, err := p.Service.Instances.GetSerialPortOutput(p.ID, at.Zone, at.InstanceID).Port(1).Start(-consoleBytes).Context(ctx).Do()
	if err == nil {
		at.Console = console.Excerpt(out.Contents)
	}
}

// Delete deletes the instance, also if it runs. Compute Engine deletes its disks with it, except those with keep. While
// a creation was accepted and shows no instance yet, there is nothing to delete: the next observation finds the instance.
func (a *account) Delete(ctx context.Context, vm *v1alpha1.VirtualMachine) error {
	v := a.views.Recall(meta.GetExternalName(vm))
	if v.id == 0 {
		return nil
	}
	p, err := a.project(ctx)
	if err != nil {
		return err
	}
	_, err = p.Service.Instances.Delete(p.ID, v.zone, v.number()).Context(ctx).Do()
	if err != nil && !hasStatus(err, http.StatusNotFound) {
		return classify("cannot delete the instance", err)
	}
	a.deleting.Add(v.id)
	return nil
}

func (v view) number() string { return strconv.FormatUint(v.id, 10) }

var errUnknown = errors.New("the instance was not observed yet")
