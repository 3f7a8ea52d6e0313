package terraform

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/drover-dev/drover/apis/terraform/v1alpha1"
	"github.com/drover-dev/drover/internal/terraform/plugin"
)

const (
	// observeTimeout is the timeout of one observation of the cloud, or of one plan.
	observeTimeout = 2 * time.Minute
	// applyTimeout is the timeout of a creation or a deletion that the provider waits for. Providers
	// have timeouts of their own, of 5 to 60 minutes.
	applyTimeout = time.Hour
	// afterDeletion is the delay after a deletion, as the cloud may still show the VM for a moment.
	afterDeletion = time.Second
)

// An external is used for one reconcile.
type external struct {
	*shared
	config   *configuration
	provider *plugin.Provider
	release  func()

	// plan and binding of a VM that does not exist.
	plan    *plugin.Plan
	binding *binding
	// secrets that no error may contain.
	secrets []string
	// record and state of a VM that exists.
	record *record
	state  plugin.State
}

// Disconnect releases the provider, which ends when no other VM needs it.
func (x *external) Disconnect(context.Context) error {
	x.release()
	return nil
}

// failed adds the name of the configuration to an error, and masks secrets.
func (x *external) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", x.config.name, mask(err, append(x.secrets, x.config.secrets...)))
}

// Observe observes the VM, or validates and plans its creation.
func (x *external) Observe(ctx context.Context, vm *v1alpha1.VirtualMachine) (managed.ExternalObservation, error) {
	ctx, cancel := context.WithTimeout(ctx, observeTimeout)
	defer cancel()
	r, err := x.store.load(ctx, vm)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	x.record = r
	switch name := meta.GetExternalName(vm); {
	case r != nil:
		x.state, err = x.upgrade(ctx, r)
	case name != "":
		x.state, err = x.adopt(ctx, vm, name)
	case meta.WasDeleted(vm):
		return managed.ExternalObservation{}, nil
	default:
		return managed.ExternalObservation{}, x.failed(x.prepare(ctx, vm))
	}
	if err != nil {
		return managed.ExternalObservation{}, x.failed(err)
	}
	return x.look(ctx, vm)
}

// prepare validates the arguments of a VM that does not exist, and plans it.
func (x *external) prepare(ctx context.Context, vm *v1alpha1.VirtualMachine) error {
	b, err := x.config.typeOf(vm)
	if err != nil {
		return err
	}
	userData, err := x.userDataOf(ctx, vm)
	if err != nil {
		return err
	}
	x.secrets = append(x.secrets, string(userData))
	arguments, err := b.argumentsOf(vm.Spec.ForProvider, userData)
	if err != nil {
		return fmt.Errorf("cannot make the arguments of %s: %w", b.Type, err)
	}
	plan, err := x.provider.PlanCreate(ctx, b.Type, arguments)
	if err != nil {
		return fmt.Errorf("cannot plan %s: %w", b.Type, err)
	}
	x.plan, x.binding = plan, b
	return nil
}

// upgrade reads a saved state, and upgrades it to the provider's present version.
func (x *external) upgrade(ctx context.Context, r *record) (plugin.State, error) {
	if r.Provider != x.config.spec.Provider.Source {
		return plugin.State{}, fmt.Errorf("the VM was created with the provider %s, and the configuration has %s", r.Provider, x.config.spec.Provider.Source)
	}
	return x.provider.Upgrade(ctx, r.Type, r.State)
}

// adopt imports a VM by its external name: one that a user names, or one whose state is lost, for
// example because the VM resource was restored or moved to another control cluster.
func (x *external) adopt(ctx context.Context, vm *v1alpha1.VirtualMachine, name string) (plugin.State, error) {
	b, err := x.config.typeOf(vm)
	if err != nil {
		return plugin.State{}, err
	}
	state, err := x.provider.Import(ctx, b.Type, name)
	if err != nil {
		return plugin.State{}, fmt.Errorf("cannot import %s %q: %w", b.Type, name, err)
	}
	x.record = x.recordOf(b, name)
	return state, nil
}

func (x *external) recordOf(b *binding, name string) *record {
	p := x.config.spec.Provider
	return &record{Provider: p.Source, Version: p.Version, Type: b.Type, Configuration: x.config.digest, ExternalName: name}
}

// look observes a VM that should exist.
func (x *external) look(ctx context.Context, vm *v1alpha1.VirtualMachine) (managed.ExternalObservation, error) {
	read, err := x.provider.Read(ctx, x.record.Type, x.state)
	if err != nil {
		return managed.ExternalObservation{}, x.failed(fmt.Errorf("cannot read %s %q: %w", x.record.Type, x.record.ExternalName, err))
	}
	if !read.Exists() {
		return managed.ExternalObservation{}, x.gone(vm)
	}
	x.state = read
	if err := x.keep(ctx, vm); err != nil {
		return managed.ExternalObservation{}, err
	}
	if err := x.report(vm); err != nil {
		return managed.ExternalObservation{}, x.failed(err)
	}
	// A VM that exists is never changed, even if Terraform finds differences.
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
}

// gone handles a VM that the cloud does not have: it was deleted, or is lost.
func (x *external) gone(vm *v1alpha1.VirtualMachine) error {
	if x.record.Configuration != "" && x.record.Configuration != x.config.digest {
		return x.failed(fmt.Errorf("%s %q is not found, but spec.configuration is not the one that it was created with: it counts as lost only if it is not found with that",
			x.record.Type, x.record.ExternalName))
	}
	if meta.WasDeleted(vm) {
		return nil
	}
	vm.Status.AtProvider.Running = false
	c := missing(x.record.ExternalName)
	vm.SetConditions(c)
	return fmt.Errorf("%s: %s", c.Reason, c.Message)
}

// keep saves the state if it changed.
func (x *external) keep(ctx context.Context, vm *v1alpha1.VirtualMachine) error {
	saved, err := x.provider.Save(x.record.Type, x.state)
	if err != nil {
		return err
	}
	x.record.Version = x.config.spec.Provider.Version
	x.record.State = saved
	return x.store.save(ctx, vm, x.record)
}

// Create applies the plan. It is not interrupted when the controller is stopped: the manager waits
// for it.
func (x *external) Create(ctx context.Context, vm *v1alpha1.VirtualMachine) (managed.ExternalCreation, error) {
	if x.plan == nil {
		return managed.ExternalCreation{}, errors.New("nothing was planned")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), applyTimeout)
	defer cancel()
	state, err := x.provider.ApplyCreate(ctx, x.binding.Type, x.plan)
	if state.Exists() {
		return managed.ExternalCreation{}, errors.Join(x.failed(err), x.created(ctx, vm, state, x.failed(err)))
	}
	if err == nil {
		err = fmt.Errorf("the provider created no %s and reported no error", x.binding.Type)
	}
	if isUnknown(err) {
		x.records.MarkUnknown(vm)
	}
	return managed.ExternalCreation{}, x.failed(err)
}

// created records a VM that exists, even if its creation failed afterwards.
func (x *external) created(ctx context.Context, vm *v1alpha1.VirtualMachine, state plugin.State, failure error) error {
	attributes, err := state.JSON()
	if err != nil {
		x.records.MarkUnknown(vm)
		return err
	}
	name, err := x.binding.nameOf(map[string]any{"name": vm.Spec.ForProvider.Name, "state": attributes})
	if err != nil || name == "" {
		x.records.MarkUnknown(vm)
		return errors.Join(err, fmt.Errorf("%s has no external name: set outputs.externalName in %s", x.binding.Type, x.config.name))
	}
	x.state, x.record = state, x.recordOf(x.binding, name)
	if failure != nil {
		x.record.Failure = failure.Error()
	}
	// If the state cannot be saved, it can be imported again by the name.
	meta.SetExternalName(vm, name)
	x.again.After(vm, soon)
	return x.keep(ctx, vm)
}

// Update does nothing: a VM is never changed.
func (x *external) Update(context.Context, *v1alpha1.VirtualMachine) (managed.ExternalUpdate, error) {
	return managed.ExternalUpdate{}, nil
}

// Delete deletes the VM, and waits for it as long as the provider does.
func (x *external) Delete(ctx context.Context, vm *v1alpha1.VirtualMachine) (managed.ExternalDelete, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), applyTimeout)
	defer cancel()
	if err := x.provider.Destroy(ctx, x.record.Type, x.state); err != nil {
		return managed.ExternalDelete{}, x.failed(fmt.Errorf("cannot delete %s %q: %w", x.record.Type, x.record.ExternalName, err))
	}
	x.again.After(vm, afterDeletion)
	return managed.ExternalDelete{}, nil
}
