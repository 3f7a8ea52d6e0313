package native

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/reboot"
)

// createTimeout bounds one call of Create, which continues while the provider is stopped.
const createTimeout = 25 * time.Second

// An external is the external client of one reconcile.
type external[T Resource, C any] struct {
	*shared[T, C]
	connection[T]
	userData UserData

	note *note
	step step
	// repeats is the time of the creation of unknown result that this one repeats. It is zero if there is none.
	repeats time.Time
}

func (x *external[T, C]) Disconnect(context.Context) error { return nil }

// Observe observes the VM and plans the next step.
func (x *external[T, C]) Observe(ctx context.Context, vm T) (managed.ExternalObservation, error) {
	x.note = x.memory.Of(vm.GetUID())
	var seen VM
	err := x.do("cannot observe the VM", func() error {
		var err error
		seen, err = x.look(ctx, vm)
		return err
	})
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	if seen.Problem != nil {
		x.note.fail(x.now(), fmt.Errorf("%s: %w", x.config, asError("a step of the VM failed", seen.Problem)), vm.GetGeneration(), x.account)
		if vm.Observation().ProviderID != "" && !meta.WasDeleted(vm) {
			// Nothing else than a reboot starts a task of a VM that ran.
			reboot.Fail(vm, x.note.Last())
		}
	}
	f := x.factsOf(vm, seen)
	if x.step = plan(f); x.step == stepCreate && f.settling {
		x.repeats = meta.GetExternalCreatePending(vm)
	}
	if requested, err := x.reboot(ctx, vm, seen); requested || err != nil {
		return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, err
	}
	report(vm, x.step, seen)
	x.wake(vm, seen)

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
	if wait := x.note.Wait(x.now(), vm.GetGeneration(), x.account); wait > 0 {
		x.again.After(vm, wait)
		return managed.ExternalObservation{}, x.note.Last()
	}
	if x.step == stepCreate && mayCreate(vm) {
		if err := x.prepare(ctx, vm); err != nil {
			return managed.ExternalObservation{}, x.tried(vm, err)
		}
	}
	return managed.ExternalObservation{ResourceExists: x.step != stepCreate}, nil
}

// look finds the VM by its external name. If there is no external name yet, it searches for the VM of
// an earlier creation.
func (x *external[T, C]) look(ctx context.Context, vm T) (VM, error) {
	place, err := x.account.Place(ctx)
	if err != nil {
		return VM{}, err
	}
	at := vm.Observation()
	if at.Place != "" && at.Place != place {
		return VM{}, fmt.Errorf("the VM is in %s, and the configuration reaches %s: nothing can be concluded about the VM from there", at.Place, place)
	}
	if meta.GetExternalName(vm) == "" && !meta.GetExternalCreatePending(vm).IsZero() {
		name, err := x.account.FindLost(ctx, vm)
		if err != nil {
			return VM{}, err
		}
		if name != "" {
			if err := x.records.Succeeded(ctx, vm, name); err != nil {
				return VM{}, err
			}
			// The write replaced the object, and its status, by that of the API server.
			at = vm.Observation()
		}
	}
	if meta.GetExternalName(vm) == "" {
		return VM{}, nil
	}
	seen, err := x.account.Get(ctx, vm, x.note.changed)
	if err != nil {
		return VM{}, err
	}
	if seen.State != StateNone {
		at.Place = place
	}
	return seen, nil
}

func (x *external[T, C]) factsOf(vm T, seen VM) facts {
	pending := meta.GetExternalCreatePending(vm)
	return facts{
		deleting:   meta.WasDeleted(vm),
		finished:   vm.Observation().ProviderID != "",
		settling:   meta.ExternalCreateIncomplete(vm) && x.now().Sub(pending) < x.provider.Settle,
		repeatable: x.provider.Repeatable,
		state:      seen.State,
	}
}

// mayCreate reports whether the management policies allow the creation. The spec of a VM that is only observed
// may be empty, and is not validated.
func mayCreate(vm resource.Managed) bool {
	p := vm.GetManagementPolicies()
	return slices.Contains(p, xpv2.ManagementActionAll) || slices.Contains(p, xpv2.ManagementActionCreate)
}

// prepare prepares the creation, before its start is recorded.
func (x *external[T, C]) prepare(ctx context.Context, vm T) error {
	// The Secret may be created a moment after the VM.
	if _, err := x.userData(ctx); err != nil {
		return fmt.Errorf("%s: %w", x.config, err)
	}
	return x.do("cannot prepare the creation of the VM", func() error { return x.account.Prepare(ctx, vm) })
}

// Create starts the creation. A stop of the provider does not interrupt it, so that the response of
// the cloud is recorded.
func (x *external[T, C]) Create(ctx context.Context, vm T) (managed.ExternalCreation, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), createTimeout)
	defer cancel()
	x.note.changed = x.now()
	err := x.do("cannot create the VM", func() error { return x.account.Create(ctx, vm, x.userData) })
	x.note.changed = x.now()
	if err != nil {
		switch {
		case hasUnknownResult(err):
			x.records.MarkUnknown(vm)
		case !x.repeats.IsZero():
			x.records.StaysUnknown(vm, x.repeats)
		}
		return managed.ExternalCreation{}, x.tried(vm, err)
	}
	x.again.After(vm, soonest)
	x.record.Event(vm, event.Normal(machinev1alpha1.EventCreating, "Started the creation of the VM"))
	return managed.ExternalCreation{}, nil
}

// Update carries out the next step of the creation.
func (x *external[T, C]) Update(ctx context.Context, vm T) (managed.ExternalUpdate, error) {
	if x.step != stepContinue {
		return managed.ExternalUpdate{}, nil
	}
	err := x.do("cannot continue the creation of the VM", func() error { return x.account.Continue(ctx, vm, x.userData) })
	x.note.changed = x.now()
	return managed.ExternalUpdate{}, x.tried(vm, err)
}

// Delete carries out the next step of the deletion.
func (x *external[T, C]) Delete(ctx context.Context, vm T) (managed.ExternalDelete, error) {
	if x.step != stepDelete {
		return managed.ExternalDelete{}, nil
	}
	err := x.do("cannot delete the VM", func() error { return x.account.Delete(ctx, vm) })
	x.note.changed = x.now()
	return managed.ExternalDelete{}, x.tried(vm, err)
}

// tried records the failure of an attempt, if it failed, and returns it.
func (x *external[T, C]) tried(vm T, err error) error {
	if err == nil {
		return nil
	}
	x.again.After(vm, x.note.fail(x.now(), err, vm.GetGeneration(), x.account))
	return err
}
