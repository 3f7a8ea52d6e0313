package vsphere

import (
	"path"
	"slices"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"
)

// disksOf returns the disks among a VM's devices.
func disksOf(devices object.VirtualDeviceList) []*types.VirtualDisk {
	var out []*types.VirtualDisk
	for _, d := range devices {
		if disk, ok := d.(*types.VirtualDisk); ok {
			out = append(out, disk)
		}
	}
	return out
}

// foreignDisks returns the disks that must not be deleted with the VM: a disk that is attached to the
// VM and was not created with it is a user's volume. own has the UUIDs of the disks that were created
// with it. If own is empty, vmx, the path of the VM's configuration, and the properties of the disks
// decide.
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

// ownDisks returns the UUIDs of the disks of a VM that was just created. If the VM never ran, these
// are all except first-class ones, since only a Node gets volumes. Otherwise they are the disks that
// do not look foreign.
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

// looksForeign reports whether a disk is a first-class one, as CSI creates them, or is outside of the
// VM's folder, or is excluded from snapshots, as volumes are.
func looksForeign(disk *types.VirtualDisk, b backing, vmx string) bool {
	return disk.VDiskId != nil || b.independent || folderOf(b.file) != folderOf(vmx)
}

// folderOf returns the folder of a datastore path. The datastore is omitted: a VM may have disks in
// several.
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
