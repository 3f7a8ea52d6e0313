package vsphere

import (
	"context"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/apis/vsphere/v1alpha1"
	"github.com/drover-dev/drover/internal/attempt"
)

// Delays until the next observation of a VM.
const (
	// whileCloning is long enough to observe a thousand clones at once.
	whileCloning = 5 * time.Second
	whileBusy    = 2 * time.Second
	// untilAddresses is the interval until the tools of the VM report addresses.
	untilAddresses = 10 * time.Second
	// patienceForAddresses is the time after which a VM without addresses is polled like any other.
	patienceForAddresses = 10 * time.Minute
)

// shared has the dependencies of all clients.
type shared struct {
	kube   client.Client
	record event.Recorder
	again  interface {
		After(client.Object, time.Duration)
	}
	memory *attempt.Memory[note]
	now    func() time.Time
}

// An external is used for one reconcile.
type external struct {
	*shared
	// config names the provider config in errors.
	config  string
	vcenter *vcenter

	note *note
	step step
	// vm is the observed VM, if there is one.
	vm *types.ManagedObjectReference
	// pool is the resource pool of the observed VM, nil if the vCenter does not know it.
	pool *types.ManagedObjectReference
	// attributes to set, foreign disks to detach, and the task to cancel.
	attributes map[string]string
	foreign    []*types.VirtualDisk
	task       taskState
	// userData of a VM to create.
	userData string
}

func (x *external) Disconnect(context.Context) error { return nil }

// do calls f with a client, a second time if the session has ended, and adds the failed operation and
// the configuration to an error.
func (x *external) do(ctx context.Context, what string, f func(*vim25.Client) error) error {
	if err := classify(what, x.vcenter.do(ctx, f)); err != nil {
		return fmt.Errorf("%s: %w", x.config, err)
	}
	return nil
}

// Observe observes the VM, and plans the next step.
func (x *external) Observe(ctx context.Context, vm *v1alpha1.VirtualMachine) (managed.ExternalObservation, error) {
	x.note = x.memory.Of(vm.GetUID())
	var s sight
	err := x.do(ctx, "cannot observe the VM", func(c *vim25.Client) error {
		var err error
		s, err = x.look(ctx, c, vm)
		return err
	})
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	x.step = plan(s)
	if requested, err := x.reboot(ctx, vm, s); requested || err != nil {
		return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, err
	}
	x.report(vm, s)
	x.wake(vm, s)

	switch x.step {
	case stepGone:
		x.memory.Forget(vm.GetUID())
		return managed.ExternalObservation{}, nil
	case stepNone:
		x.note.Clear()
		return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
	case stepWait, stepLost:
		return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
	}
	if wait := x.note.Wait(x.now(), vm.GetGeneration(), x.vcenter); wait > 0 {
		x.again.After(vm, wait)
		return managed.ExternalObservation{}, x.note.Last()
	}
	if x.step == stepClone {
		// User data are read before the creation starts: the Secret may be created a moment after the
		// VM.
		if x.userData, err = x.readUserData(ctx, vm); err != nil {
			return managed.ExternalObservation{}, x.tried(vm, x.failed("cannot read the user data", err))
		}
	}
	return managed.ExternalObservation{ResourceExists: x.step != stepClone}, nil
}

// Create starts to clone the template. The task is stored in an annotation, in the same write as the
// one that records the successful creation.
func (x *external) Create(ctx context.Context, vm *v1alpha1.VirtualMachine) (managed.ExternalCreation, error) {
	p := vm.Spec.ForProvider
	extra, err := extraConfig(p, text(p.Name), meta.GetExternalName(vm), x.userData)
	if err != nil {
		return managed.ExternalCreation{}, err
	}
	var task string
	err = x.do(ctx, "cannot clone the template "+text(p.Template), func(c *vim25.Client) error {
		var err error
		task, err = clone(ctx, c, p, meta.GetExternalName(vm), extra)
		return err
	})
	if err != nil {
		return managed.ExternalCreation{}, x.tried(vm, err)
	}
	x.again.After(vm, whileCloning)
	if task == "" {
		return managed.ExternalCreation{}, nil
	}
	meta.AddAnnotations(vm, map[string]string{v1alpha1.AnnotationCloneTask: task})
	x.record.Event(vm, event.Normal(machinev1alpha1.EventCloning, fmt.Sprintf("The template %s is cloned to VM %s by %s", text(p.Template), text(p.Name), task)))
	return managed.ExternalCreation{}, nil
}

// Update carries out the planned step.
func (x *external) Update(ctx context.Context, vm *v1alpha1.VirtualMachine) (managed.ExternalUpdate, error) {
	err := x.do(ctx, "cannot update the VM", func(c *vim25.Client) error { return x.act(ctx, c, vm) })
	return managed.ExternalUpdate{}, x.tried(vm, err)
}

// Delete carries out the planned step.
func (x *external) Delete(ctx context.Context, vm *v1alpha1.VirtualMachine) (managed.ExternalDelete, error) {
	err := x.do(ctx, "cannot delete the VM", func(c *vim25.Client) error { return x.act(ctx, c, vm) })
	return managed.ExternalDelete{}, x.tried(vm, err)
}

// tried records the failure of an attempt, and requests the next one.
func (x *external) tried(vm *v1alpha1.VirtualMachine, err error) error {
	if err == nil {
		return nil
	}
	x.again.After(vm, x.note.fail(x.now(), err, vm.GetGeneration(), x.vcenter))
	return err
}
