package inventory

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/inventory/v1alpha1"
	"github.com/drover-dev/drover/internal/text"
)

// An Inventory is a managed resource of any cloud.
type Inventory interface {
	resource.ModernManaged
	client.Object

	// Asked returns the parameters. Seen returns the observation, to be read and set.
	Asked() v1alpha1.InventoryParameters
	Seen() *v1alpha1.InventoryObservation
}

// A Connect function returns the Lister of the account that the inventory's
// configuration names.
type Connect[T Inventory] func(ctx context.Context, inventory T) (Lister, error)

var errIncomplete = errors.New("the cloud listed only a part of its VMs: nothing is concluded from that")

type connector[T Inventory] struct {
	connect Connect[T]
	failed  func(T, error)
	live    client.Reader
	now     func() time.Time
}

// Connect needs no cloud for an inventory that is being deleted.
func (c *connector[T]) Connect(ctx context.Context, i T) (managed.TypedExternalClient[T], error) {
	if meta.WasDeleted(i) {
		return &external[T]{connector: c}, nil
	}
	l, err := c.connect(ctx, i)
	return &external[T]{connector: c, lister: l}, err
}

type external[T Inventory] struct {
	*connector[T]
	lister Lister
}

// Observe looks once, and sets the observation.
func (x *external[T]) Observe(ctx context.Context, i T) (managed.ExternalObservation, error) {
	if meta.WasDeleted(i) {
		return managed.ExternalObservation{}, nil
	}
	l, err := x.look(ctx, i)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	*i.Seen() = l.After(*i.Seen(), i.Asked())
	i.SetConditions(xpv2.Available())
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
}

func (x *external[T]) look(ctx context.Context, i T) (Look, error) {
	l, p := Look{At: x.now()}, i.Asked()
	for _, installation := range p.Installations {
		vms, complete, err := x.lister.List(ctx, installation)
		if err != nil {
			return l, x.fail(i, "cannot list VMs", err)
		}
		if !complete {
			return l, errIncomplete
		}
		l.VMs = append(l.VMs, vms...)
	}
	var err error
	if l.Claims, err = claims(ctx, x.live, p.VirtualMachine); err != nil {
		return l, err
	}
	if err := x.prove(ctx, i, &l); err != nil {
		return l, err
	}
	x.lookBeside(ctx, p, &l)
	return l, nil
}

// fail reports an error of the cloud to failed, and returns it as the error of the look.
func (x *external[T]) fail(i T, what string, err error) error {
	if x.failed != nil {
		x.failed(i, err)
	}
	return fmt.Errorf("%s: %w", what, steadyError{err})
}

// prove reads which claims belong to the account, and which VMs exist although the list lacks them.
func (x *external[T]) prove(ctx context.Context, i T, l *Look) error {
	listed, unlisted := l.toProve(*i.Seen(), i.Asked())
	var err error
	if l.Ours, err = ours(ctx, x.live, i, append(listed, unlisted...)); err != nil {
		return err
	}
	finder, ok := x.lister.(Finder)
	if !ok || len(unlisted) == 0 {
		return nil
	}
	names := make([]string, 0, len(unlisted))
	for _, c := range unlisted {
		names = append(names, c.ExternalName)
	}
	vms, complete, err := finder.Find(ctx, names)
	if err != nil {
		return x.fail(i, "cannot find VMs by their names", err)
	}
	if !complete {
		return errIncomplete
	}
	l.Found = map[string]bool{}
	for _, vm := range vms {
		l.Found[vm.ExternalName] = true
	}
	return nil
}

// lookBeside lists the resources beside the VMs. The result for the VMs stays valid if that fails,
// so the error is a part of the Look and does not end it.
func (x *external[T]) lookBeside(ctx context.Context, p v1alpha1.InventoryParameters, l *Look) {
	lister, ok := x.lister.(ResourceLister)
	if !ok {
		return
	}
	l.lists = true
	for _, installation := range p.Installations {
		found, complete, err := lister.ListResources(ctx, installation)
		if err == nil && !complete {
			err = errIncomplete
		}
		if err != nil {
			l.ResourcesProblem = text.Shorten(steady(err.Error()), maxText)
			return
		}
		l.Resources = append(l.Resources, found...)
	}
}

// requestID matches the ID of a request, which AWS and other clouds add to their errors. It differs
// in each error.
var requestID = regexp.MustCompile(`(?i)\b(request ?id|requestid)[:=] ?"?[0-9A-Za-z-]+"?`)

// steady returns a message that stays the same as long as its cause does: a status with it is
// written once, and not after each look.
func steady(message string) string { return requestID.ReplaceAllString(message, "request ID") }

// A steadyError has a steady message.
type steadyError struct{ error }

func (e steadyError) Error() string { return steady(e.error.Error()) }

func (e steadyError) Unwrap() error { return e.error }

// Create, Update and Delete are never called: Observe reports that an inventory exists until it is
// deleted.
func (x *external[T]) Create(context.Context, T) (managed.ExternalCreation, error) {
	return managed.ExternalCreation{}, nil
}

func (x *external[T]) Update(context.Context, T) (managed.ExternalUpdate, error) {
	return managed.ExternalUpdate{}, nil
}

func (x *external[T]) Delete(context.Context, T) (managed.ExternalDelete, error) {
	return managed.ExternalDelete{}, nil
}

func (x *external[T]) Disconnect(context.Context) error { return nil }
