package vsphere

import (
	"context"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/view"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/apis/vsphere/v1alpha1"
	"github.com/drover-dev/drover/internal/inventory"
)

// setupInventories adds the controller of inventories.
func setupInventories(mgr ctrl.Manager, o controller.Options, sessions *pool) {
	inventory.Kind[*v1alpha1.VirtualMachineInventory]{
		Kind:    v1alpha1.VirtualMachineInventoryGroupVersionKind,
		Object:  &v1alpha1.VirtualMachineInventory{},
		List:    &v1alpha1.VirtualMachineInventoryList{},
		Connect: connectInventory(mgr.GetClient(), sessions),
	}.Setup(mgr, o)
}

func connectInventory(c client.Reader, sessions *pool) inventory.Connect[*v1alpha1.VirtualMachineInventory] {
	return func(ctx context.Context, i *v1alpha1.VirtualMachineInventory) (inventory.Lister, error) {
		v, config, err := sessionOf(ctx, c, sessions, i)
		if err != nil {
			return nil, err
		}
		return lister{vcenter: v, config: config}, nil
	}
}

// lister lists the VMs of a vCenter that the account may see.
type lister struct {
	vcenter *vcenter
	config  string
}

// List reads the custom attributes of all VMs: a vCenter cannot search by them.
func (l lister) List(ctx context.Context, installation string) (vms []inventory.VM, complete bool, err error) {
	err = l.vcenter.do(ctx, func(c *vim25.Client) error {
		var err error
		vms, complete, err = list(ctx, c, installation)
		return err
	})
	if err = classify("cannot list VMs", err); err != nil {
		return nil, false, fmt.Errorf("%s: %w", l.config, err)
	}
	return vms, complete, nil
}

func list(ctx context.Context, c *vim25.Client, installation string) ([]inventory.VM, bool, error) {
	m, err := object.GetCustomFieldsManager(c)
	if err != nil {
		return nil, false, err
	}
	fields, err := m.Field(ctx)
	if err != nil {
		return nil, false, err
	}
	all, err := view.NewManager(c).CreateContainerView(ctx, c.ServiceContent.RootFolder, []string{vmType}, true)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = all.Destroy(context.WithoutCancel(ctx)) }()
	var found []mo.VirtualMachine
	if err := all.Retrieve(ctx, []string{vmType}, []string{"config.instanceUuid", "config.uuid", "config.createDate", "customValue"}, &found); err != nil {
		return nil, false, err
	}
	var out []inventory.VM
	complete := true
	for i := range found {
		attributes := attributesOf(fields, found[i].CustomValue)
		if attributes[machinev1alpha1.TagInstallation] != installation {
			continue
		}
		if found[i].Config == nil || found[i].Config.InstanceUuid == "" {
			// The VM cannot be reached, or is being cloned. Nothing identifies it.
			complete = false
			continue
		}
		out = append(out, asListed(found[i].Config, attributes))
	}
	return out, complete, nil
}

func asListed(config *types.VirtualMachineConfigInfo, attributes map[string]string) inventory.VM {
	vm := inventory.VM{ExternalName: config.InstanceUuid, Tags: attributes}
	if config.Uuid != "" {
		vm.ProviderID = providerID(config.Uuid)
	}
	if config.CreateDate != nil {
		vm.CreatedAt = *config.CreateDate
	}
	return vm
}
