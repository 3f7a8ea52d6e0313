package vsphere

import (
	"context"
	"fmt"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
	"k8s.io/utils/ptr"
)

// vmProperties are the properties of a VM that are read in each reconcile.
var vmProperties = []string{
	"config.instanceUuid", "config.uuid", "config.files.vmPathName",
	"runtime.powerState", "runtime.connectionState", "resourcePool", "guest.net", "guest.hostName", "customValue",
}

// findVM returns the VM with the managed object ID, or else with the instance UUID. It returns nil if
// the vCenter knows neither.
func findVM(ctx context.Context, c *vim25.Client, moRef, instanceUUID string) (*mo.VirtualMachine, error) {
	if moRef != "" {
		vm, err := readVM(ctx, c, types.ManagedObjectReference{Type: vmType, Value: moRef})
		// A VM that cannot be reached has no configuration.
		if err != nil || vm != nil && (vm.Config == nil || vm.Config.InstanceUuid == instanceUUID) {
			return vm, err
		}
	}
	refs, err := object.NewSearchIndex(c).FindAllByUuid(ctx, nil, instanceUUID, true, ptr.To(true))
	if err != nil {
		return nil, err
	}
	switch len(refs) {
	case 0:
		return nil, nil
	case 1:
		return readVM(ctx, c, refs[0].Reference())
	}
	return nil, fmt.Errorf("%d VMs have the instance UUID %s", len(refs), instanceUUID)
}

// readVM returns nil for a VM that does not exist.
func readVM(ctx context.Context, c *vim25.Client, ref types.ManagedObjectReference) (*mo.VirtualMachine, error) {
	vm := &mo.VirtualMachine{}
	if err := property.DefaultCollector(c).RetrieveOne(ctx, ref, vmProperties, vm); err != nil {
		if is[*types.ManagedObjectNotFound](err) {
			return nil, nil
		}
		return nil, err
	}
	return vm, nil
}

func readDevices(ctx context.Context, c *vim25.Client, ref types.ManagedObjectReference) (object.VirtualDeviceList, error) {
	vm := &mo.VirtualMachine{}
	if err := property.DefaultCollector(c).RetrieveOne(ctx, ref, []string{"config.hardware.device"}, vm); err != nil {
		return nil, err
	}
	if vm.Config == nil {
		return nil, fmt.Errorf("the vCenter does not know the devices of %s", ref.Value)
	}
	return vm.Config.Hardware.Device, nil
}

func vmxOf(vm *mo.VirtualMachine) string {
	if vm.Config == nil {
		return ""
	}
	return vm.Config.Files.VmPathName
}
