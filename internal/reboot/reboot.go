// Package reboot carries out, in a provider, the request of a VM resource for a reboot: once for each request, also if
// the provider is killed at any point.
//
// The request is the annotation machine.drover.dev/reboot of the VM resource, a mode and an ID. The provider writes it to
// the annotation machine.drover.dev/rebooted before it calls the cloud. If it is killed between the two, the VM may not
// be rebooted: the Node proves no reboot then, and the Machine requests another mode. The opposite order could reboot
// a VM twice, the second time with pods on its Node.
//
// The API server accepts the record only for the VM resource as the provider read it. A cache may be older than the record of
// a process that was killed, and a process that lost its lease may still run.
package reboot

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// timeout bounds the record and the call, which continue while the provider is stopped.
const timeout = 25 * time.Second

// A Call asks the cloud for a reboot. It does not wait for its end.
type Call func(ctx context.Context, mode machinev1alpha1.RebootMode) error

// Requested returns the mode in which a VM shall be rebooted. ok is false if no request is in force, if the provider began
// to carry it out, or if the VM is being deleted.
func Requested(vm resource.Managed) (mode machinev1alpha1.RebootMode, ok bool) {
	request := vm.GetAnnotations()[machinev1alpha1.AnnotationReboot]
	mode, _, ok = machinev1alpha1.ParseRebootRequest(request)
	return mode, ok && request != vm.GetAnnotations()[machinev1alpha1.AnnotationRebooted] && !meta.WasDeleted(vm)
}

// Busy returns err as a refusal without effect that passes by itself, such as that of a VM with another task. The
// request is repeated until the Machine withdraws it.
func Busy(err error) error { return &busyError{err} }

// IsBusy reports whether an error is one of Busy.
func IsBusy(err error) bool {
	var b *busyError
	return errors.As(err, &b)
}

type busyError struct{ error }

func (e *busyError) Unwrap() error { return e.error }

// CarryOut records the request of a VM resource and calls the cloud. The result of the call is the condition Rebooted of
// the VM resource. An error means that nothing was requested, so that the request is to be repeated: it could not be
// recorded, as when the VM resource has changed since it was read, or isUnsent reports that the call had no effect and may
// have one later, as when the cloud throttles. The condition is Unknown in the second case.
//
// The record replaces the object by that of the API server, with its status.
func CarryOut(ctx context.Context, vm resource.Managed, kube client.Client, call Call, isUnsent func(error) bool) error {
	mode, ok := Requested(vm)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	request, before := vm.GetAnnotations()[machinev1alpha1.AnnotationReboot], vm.GetAnnotations()[machinev1alpha1.AnnotationRebooted]
	meta.AddAnnotations(vm, map[string]string{machinev1alpha1.AnnotationRebooted: request})
	if err := kube.Update(ctx, vm); err != nil {
		return fmt.Errorf("cannot record the reboot %s before it is requested: %w", request, err)
	}
	err := call(ctx, mode)
	if err != nil && isUnsent(err) && undo(ctx, vm, kube, request, before) == nil {
		c := condition(request, err)
		c.Status, c.Reason = corev1.ConditionUnknown, machinev1alpha1.ReasonRebootDelayed
		vm.SetConditions(c)
		return fmt.Errorf("cannot reboot the VM: %w", err)
	}
	vm.SetConditions(condition(request, err))
	return nil
}

// undo the record of a request that had no effect, also if the VM resource has changed meanwhile.
func undo(ctx context.Context, vm resource.Managed, kube client.Client, request, before string) error {
	isRead := true
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if !isRead {
			if err := kube.Get(ctx, client.ObjectKeyFromObject(vm), vm); err != nil {
				return err
			}
		}
		isRead = false
		if vm.GetAnnotations()[machinev1alpha1.AnnotationRebooted] != request {
			return nil
		}
		meta.AddAnnotations(vm, map[string]string{machinev1alpha1.AnnotationRebooted: before})
		return kube.Update(ctx, vm)
	})
}

// AcceptedAt returns when the cloud accepted the last request. It is zero if there was none, or if the cloud refused it.
func AcceptedAt(vm resource.Managed) time.Time {
	c := vm.GetCondition(machinev1alpha1.ConditionRebooted)
	if c.Status != corev1.ConditionTrue {
		return time.Time{}
	}
	return c.LastTransitionTime.Time
}

// Fail reports that the last request, which the cloud accepted, failed after that, as when its task fails.
func Fail(vm resource.Managed, err error) {
	if request := vm.GetAnnotations()[machinev1alpha1.AnnotationRebooted]; request != "" {
		vm.SetConditions(condition(request, err))
	}
}

func condition(request string, err error) xpv2.Condition {
	c := xpv2.Condition{
		Type: machinev1alpha1.ConditionRebooted, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(),
		Reason: machinev1alpha1.ReasonRebootAccepted, Message: request + ": the cloud accepted the request",
	}
	if err != nil {
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, machinev1alpha1.ReasonRebootRefused, request+": "+err.Error()
	}
	return c
}
