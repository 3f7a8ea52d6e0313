package vsphere

import (
	"path"
	"slices"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"
)

// disksOf a VM's devices.
func disksOf(devices object.VirtualDeviceList) []*types.VirtualDisk {
	var out []*types.VirtualDisk
	for _, d := range devices {
		if disk, ok := d.(*types.VirtualDisk); ok {
			out = append(out, disk)
		}
	}
	return out
}

// foreignDisks are those that are not to go with the VM: what is attached to it and
// was not made with it is a volume of somebody. own are the UUIDs of those that were;
// where they are not known, vmx, the path of the VM's configuration, and what disks
// tell of themselves decide.
func foreignDisks(devices object.VirtualDeviceList, own []string, vmx string) []*types.VirtualDisk {
	var out []*types.VirtualDisk
	for _, disk := range disksOf(devices) {
		b := backingOf(disk)
		foreign := looksForeign(disk, b, vmx)
		if len(own) > 0 {
			foreign = disk.VDiskId != nil || !slices.Contains(own, b.uuid)
		}
		if foreign {
			out = append(out, disk)
		}
	}
	return out
}

// ownDisks are the UUIDs of the disks of a VM that was just made: all but first-class
// ones while it never ran, since only a Node is given volumes, and after that those
// that do not look foreign.
func ownDisks(devices object.VirtualDeviceList, vmx string, neverRan bool) []string {
	var out []string
	for _, disk := range disksOf(devices) {
		b := backingOf(disk)
		foreign := looksForeign(disk, b, vmx)
		if neverRan {
			foreign = disk.VDiskId != nil
		}
		if b.uuid != "" && !foreign {
			out = append(out, b.uuid)
		}
	}
	slices.Sort(out)
	return out
}

// looksForeign says whether a disk is a first-class one, as CSI makes them, or lies
// outside of the VM's folder, or is left out of snapshots, as volumes are.
func looksForeign(disk *types.VirtualDisk, b backing, vmx string) bool {
	return disk.VDiskId != nil || b.independent || folderOf(b.file) != folderOf(vmx)
}

// folderOf a datastore path. The datastore is left out: a VM may have disks in several.
func folderOf(file string) string {
	var p object.DatastorePath
	if !p.FromString(file) {
		return ""
	}
	return path.Dir(p.Path)
}

type backing struct {
	file, uuid  string
	independent bool
}

func backingOf(disk *types.VirtualDisk) backing {
	out := backing{}
	if f, ok := disk.Backing.(types.BaseVirtualDeviceFileBackingInfo); ok {
		out.file = f.GetVirtualDeviceFileBackingInfo().FileName
	}
	var mode string
	switch b := disk.Backing.(type) {
	case *types.VirtualDiskFlatVer2BackingInfo:
		out.uuid, mode = b.Uuid, b.DiskMode
	case *types.VirtualDiskSeSparseBackingInfo:
		out.uuid, mode = b.Uuid, b.DiskMode
	case *types.VirtualDiskSparseVer2BackingInfo:
		out.uuid, mode = b.Uuid, b.DiskMode
	case *types.VirtualDiskRawDiskMappingVer1BackingInfo:
		out.uuid, mode = b.Uuid, b.DiskMode
	}
	out.independent = mode == string(types.VirtualDiskModeIndependent_persistent) || mode == string(types.VirtualDiskModeIndependent_nonpersistent)
	return out
}
