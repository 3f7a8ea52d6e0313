package vsphere

import (
	"slices"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/vsphere/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

const (
	// A SCSI controller has the units 0 to 15 with every hardware version, and occupies one of them
	// itself. PVSCSI has 64 units with newer versions only.
	scsiUnits          = 16
	scsiControllerUnit = 7
	// maxSCSIControllers is the number of SCSI controllers that a VM can have.
	maxSCSIControllers = 4

	// Devices of a spec have negative keys, which the vCenter replaces. Each range is for a kind of
	// device: network cards begin at -100.
	firstDiskKey           = -200
	firstSCSIControllerKey = -300
)

// addDataDisks returns the changes that add empty disks to a clone. They are part of the clone's
// spec, so a clone has all of them or does not exist: no restart can add a disk twice.
func addDataDisks(p v1alpha1.VirtualMachineParameters, at places) ([]types.BaseVirtualDeviceConfigSpec, error) {
	var out []types.BaseVirtualDeviceConfigSpec
	devices := slices.Clone(at.devices)
	for i, d := range p.DataDisks {
		controller, unit, isFree := freeSCSIUnit(devices)
		if !isFree {
			c := newSCSIController(devices)
			if c == nil {
				return nil, native.Invalid("dataDisks", "invalid number %d: the %d SCSI controllers of the VM have no free unit for disk %d", len(p.DataDisks), maxSCSIControllers, i+1)
			}
			devices = append(devices, c)
			out = append(out, &types.VirtualDeviceConfigSpec{Operation: types.VirtualDeviceConfigSpecOperationAdd, Device: c})
			controller, unit = c.Key, 0
		}
		disk := newDisk(d, at.diskDatastores[i])
		disk.Key, disk.ControllerKey, disk.UnitNumber = int32(firstDiskKey-i), controller, &unit
		devices = append(devices, disk)
		out = append(out, &types.VirtualDeviceConfigSpec{
			Operation:     types.VirtualDeviceConfigSpecOperationAdd,
			FileOperation: types.VirtualDeviceConfigSpecFileOperationCreate,
			Device:        disk,
		})
	}
	return out, nil
}

// newDisk returns a disk whose file the vCenter names: in the VM's folder of the datastore, or, if
// there is none, in the folder that has the VM's configuration.
func newDisk(d v1alpha1.DataDisk, datastore *object.Datastore) *types.VirtualDisk {
	b := &types.VirtualDiskFlatVer2BackingInfo{DiskMode: string(types.VirtualDiskModePersistent)}
	if datastore != nil {
		b.FileName, b.Datastore = datastore.Path(""), ptr.To(datastore.Reference())
	}
	switch ptr.Deref(d.ProvisioningMode, "") {
	case v1alpha1.ProvisionThin:
		b.ThinProvisioned = ptr.To(true)
	case v1alpha1.ProvisionThick:
		b.ThinProvisioned, b.EagerlyScrub = ptr.To(false), ptr.To(false)
	case v1alpha1.ProvisionEagerlyZeroed:
		b.ThinProvisioned, b.EagerlyScrub = ptr.To(false), ptr.To(true)
	}
	size := d.SizeGiB * gib
	return &types.VirtualDisk{VirtualDevice: types.VirtualDevice{Backing: b}, CapacityInBytes: size, CapacityInKB: size / 1024}
}

// scsiControllers returns the SCSI controllers among the devices, in the order of their buses.
func scsiControllers(devices object.VirtualDeviceList) []*types.VirtualSCSIController {
	var out []*types.VirtualSCSIController
	for _, d := range devices {
		if c, ok := d.(types.BaseVirtualSCSIController); ok {
			out = append(out, c.GetVirtualSCSIController())
		}
	}
	slices.SortFunc(out, func(a, b *types.VirtualSCSIController) int { return int(a.BusNumber - b.BusNumber) })
	return out
}

// freeSCSIUnit returns the first unit of a SCSI controller that no device has, and the controller's
// key.
func freeSCSIUnit(devices object.VirtualDeviceList) (controller, unit int32, isFree bool) {
	for _, c := range scsiControllers(devices) {
		used := map[int32]bool{scsiControllerUnit: true}
		for _, d := range devices {
			if v := d.GetVirtualDevice(); v.ControllerKey == c.Key && v.UnitNumber != nil {
				used[*v.UnitNumber] = true
			}
		}
		for unit := range int32(scsiUnits) {
			if !used[unit] {
				return c.Key, unit, true
			}
		}
	}
	return 0, 0, false
}

// newSCSIController returns a PVSCSI controller on a free bus, nil if the VM has no further bus.
func newSCSIController(devices object.VirtualDeviceList) *types.ParaVirtualSCSIController {
	var buses []int32
	for _, c := range scsiControllers(devices) {
		buses = append(buses, c.BusNumber)
	}
	for bus := range int32(maxSCSIControllers) {
		if slices.Contains(buses, bus) {
			continue
		}
		c := &types.ParaVirtualSCSIController{}
		c.Key, c.BusNumber, c.SharedBus = firstSCSIControllerKey-bus, bus, types.VirtualSCSISharingNoSharing
		return c
	}
	return nil
}
