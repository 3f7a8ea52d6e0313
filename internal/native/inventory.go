package native

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/drover-dev/drover/internal/inventory"
)

// An InventoryKind is the kind of inventories of a provider.
type InventoryKind[I inventory.Inventory] struct {
	Kind   schema.GroupVersionKind
	Object I
	List   resource.ManagedList
}

func (k InventoryKind[I]) setup(mgr ctrl.Manager, o controller.Options, connect inventory.Connect[I]) {
	inventory.Kind[I]{Kind: k.Kind, Object: k.Object, List: k.List, Connect: connect}.Setup(mgr, o)
}

// connectInventory returns a function that opens the account of an inventory.
func connectInventory[I inventory.Inventory, T Resource, C any](s *shared[T, C]) inventory.Connect[I] {
	return func(ctx context.Context, i I) (inventory.Lister, error) { return s.lister(ctx, i) }
}

func (s *shared[T, C]) lister(ctx context.Context, mg resource.ModernManaged) (inventory.Lister, error) {
	c, err := s.connect(ctx, mg)
	if err != nil {
		return nil, err
	}
	l := lister[T]{c}
	if r, ok := c.account.Account.(inventory.ResourceLister); ok {
		return resourceLister[T]{lister: l, resources: r}, nil
	}
	return l, nil
}

// A lister lists and finds the VMs of an account, and classifies errors.
type lister[T Resource] struct{ connection[T] }

func (l lister[T]) List(ctx context.Context, installation string) (vms []inventory.VM, complete bool, err error) {
	err = l.do("cannot list VMs", func() error {
		vms, complete, err = l.account.List(ctx, installation)
		return err
	})
	return vms, complete, err
}

func (l lister[T]) Find(ctx context.Context, externalNames []string) (vms []inventory.VM, complete bool, err error) {
	err = l.do("cannot find VMs", func() error {
		vms, complete, err = l.account.Find(ctx, externalNames)
		return err
	})
	return vms, complete, err
}

// A resourceLister also lists resources that are not VMs.
type resourceLister[T Resource] struct {
	lister[T]
	resources inventory.ResourceLister
}

func (l resourceLister[T]) ListResources(ctx context.Context, installation string) (out []inventory.Resource, complete bool, err error) {
	err = l.do("cannot list resources", func() error {
		out, complete, err = l.resources.ListResources(ctx, installation)
		return err
	})
	return out, complete, err
}
