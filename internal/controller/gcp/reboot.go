package gcp

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/apis/gcp/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

var errNoSoftReboot = &native.Error{
	Class: fn.ErrorInvalidRequest, Err: errors.New("the operating system of an instance of Compute Engine cannot be asked to restart: the instance can only be reset"),
}

// Reboot resets an instance that runs, and starts one that is stopped. Compute Engine carries out a request for a
// reboot once, because its request ID follows from the request.
func (a *account) Reboot(ctx context.Context, vm *v1alpha1.VirtualMachine, mode machinev1alpha1.RebootMode) error {
	at := &vm.Status.AtProvider
	if at.InstanceID == "" {
		return native.Refused(errUnknown)
	}
	p, err := a.project(ctx)
	if err != nil {
		return native.Refused(err)
	}
	i, err := a.read(ctx, p, at.Zone, at.InstanceID)
	if err == nil && i == nil {
		err = &native.Error{Class: fn.ErrorTransient, Err: fmt.Errorf("instance %s does not exist", at.InstanceName)}
	}
	if err != nil {
		return native.Refused(err)
	}
	id := rebootID(vm)
	switch {
	case isStopped(i.Status):
		_, err = p.Service.Instances.Start(p.ID, at.Zone, at.InstanceID).RequestId(id).Context(ctx).Do()
	case i.Status != statusRunning:
		return &native.Error{Class: fn.ErrorTransient, Refused: true, Err: fmt.Errorf("instance %s has the status %s", at.InstanceName, i.Status)}
	case mode == machinev1alpha1.RebootSoft:
		return errNoSoftReboot
	default:
		_, err = p.Service.Instances.Reset(p.ID, at.Zone, at.InstanceID).RequestId(id).Context(ctx).Do()
	}
	return classify("cannot reboot the instance", err)
}

// rebootID returns the request ID of the reboot that a VM resource requests.
func rebootID(vm *v1alpha1.VirtualMachine) string {
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte(string(vm.GetUID())+"/"+vm.GetAnnotations()[machinev1alpha1.AnnotationReboot])).String()
}
