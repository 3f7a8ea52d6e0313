package vsphere

import (
	"context"
	"errors"
	"fmt"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/types"
	"k8s.io/utils/ptr"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/apis/vsphere/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

const gib = 1 << 30

// cloneSpec returns the spec of the clone. The VM is powered off: it may run only after its custom
// attributes make it discoverable.
func cloneSpec(p v1alpha1.VirtualMachineParameters, at places, instanceUUID string, extra []types.BaseOptionValue) (types.VirtualMachineCloneSpec, error) {
	devices, err := deviceChanges(p, at)
	if err != nil {
		return types.VirtualMachineCloneSpec{}, err
	}
	pool := at.pool.Reference()
	folder := at.folder.Reference()
	spec := types.VirtualMachineCloneSpec{
		Location: types.VirtualMachineRelocateSpec{
			Folder:       &folder,
			Pool:         &pool,
			Datastore:    at.datastore,
			DiskMoveType: string(types.VirtualMachineRelocateDiskMoveOptionsMoveAllDiskBackingsAndConsolidate),
		},
		Config: &types.VirtualMachineConfigSpec{
			InstanceUuid:      instanceUUID,
			NumCPUs:           ptr.Deref(p.CPUs, 0),
			NumCoresPerSocket: p.CoresPerSocket,
			MemoryMB:          ptr.Deref(p.MemoryMiB, 0),
			ExtraConfig:       extra,
			DeviceChange:      devices,
			// Without disk UUIDs, a guest, and so CSI, cannot distinguish disks.
			Flags: &types.VirtualMachineFlagInfo{DiskUuidEnabled: ptr.To(true)},
		},
		Snapshot: at.snapshot,
	}
	if p.CloneMode == v1alpha1.CloneLinked {
		spec.Location.DiskMoveType = string(types.VirtualMachineRelocateDiskMoveOptionsCreateNewChildDiskBacking)
	}
	return spec, nil
}

// deviceChanges returns the changes that grow the first disk, that add the data disks, and that replace the network cards of
// the template by the requested ones.
func deviceChanges(p v1alpha1.VirtualMachineParameters, at places) ([]types.BaseVirtualDeviceConfigSpec, error) {
	var out []types.BaseVirtualDeviceConfigSpec
	if p.DiskSizeGiB != nil {
		disks := disksOf(at.devices)
		if len(disks) == 0 {
			return nil, native.Invalid("diskSizeGiB", "template %q has no disk", text(p.Template))
		}
		first := disks[0]
		is := max(first.CapacityInBytes, first.CapacityInKB*1024)
		want := *p.DiskSizeGiB * gib
		if want < is {
			return nil, native.Invalid("diskSizeGiB", "invalid value %d: the disk of template %q has %d GiB, and cannot shrink", *p.DiskSizeGiB, text(p.Template), (is+gib-1)/gib)
		}
		if want > is {
			grown := *first
			grown.CapacityInBytes, grown.CapacityInKB = want, want/1024
			out = append(out, &types.VirtualDeviceConfigSpec{Operation: types.VirtualDeviceConfigSpecOperationEdit, Device: &grown})
		}
	}
	disks, err := addDataDisks(p, at)
	if err != nil {
		return nil, err
	}
	out = append(out, disks...)
	if len(p.Networks) == 0 {
		return out, nil
	}
	for _, d := range at.devices.SelectByType((*types.VirtualEthernetCard)(nil)) {
		out = append(out, &types.VirtualDeviceConfigSpec{Operation: types.VirtualDeviceConfigSpecOperationRemove, Device: d})
	}
	for i, n := range p.Networks {
		card, err := at.devices.CreateEthernetCard(string(n.Adapter), at.networks[i])
		if err != nil {
			return nil, native.Invalid(fmt.Sprintf("networks[%d].adapter", i), "%v", err)
		}
		// Each card has a temporary key, which the vCenter replaces.
		card.GetVirtualDevice().Key = int32(-100 - i)
		out = append(out, &types.VirtualDeviceConfigSpec{Operation: types.VirtualDeviceConfigSpecOperationAdd, Device: card})
	}
	return out, nil
}

// place sets the datastore of the datastore cluster that Storage DRS recommends for the clone.
func place(ctx context.Context, c *vim25.Client, p v1alpha1.VirtualMachineParameters, at places, name string, spec *types.VirtualMachineCloneSpec) error {
	if at.pod == nil {
		return nil
	}
	template, folder, pool := at.template.Reference(), at.folder.Reference(), at.pool.Reference()
	res, err := object.NewStorageResourceManager(c).RecommendDatastores(ctx, types.StoragePlacementSpec{
		Type:         string(types.StoragePlacementSpecPlacementTypeClone),
		Vm:           &template,
		CloneName:    name,
		CloneSpec:    spec,
		Folder:       &folder,
		ResourcePool: &pool,
		PodSelectionSpec: types.StorageDrsPodSelectionSpec{
			StoragePod:      at.pod,
			InitialVmConfig: []types.VmPodConfigForPlacement{{StoragePod: *at.pod}},
		},
	})
	what := fmt.Sprintf("cannot choose a datastore of forProvider.datastoreCluster %q", text(p.DatastoreCluster))
	if err != nil {
		return classify(what, err)
	}
	for _, r := range res.Recommendations {
		for _, a := range r.Action {
			if action, ok := a.(*types.StoragePlacementAction); ok {
				ds := action.Destination
				spec.Location.Datastore = &ds
				return nil
			}
		}
	}
	return &native.Error{Class: fn.ErrorCapacityExhausted, What: what, Err: errors.New("none has room for the VM, or Storage DRS is off")}
}

// clone starts a clone and returns its task. It returns none if a clone whose task was not recorded
// runs already.
func clone(ctx context.Context, c *vim25.Client, p v1alpha1.VirtualMachineParameters, instanceUUID string, extra []types.BaseOptionValue) (string, error) {
	at, err := resolve(ctx, c, p)
	if err != nil {
		return "", err
	}
	name := text(p.Name)
	there, err := object.NewSearchIndex(c).FindChild(ctx, at.folder, name)
	if err != nil {
		return "", err
	}
	if there != nil {
		return "", taken(ctx, c, there.Reference(), p, instanceUUID)
	}
	spec, err := cloneSpec(p, at, instanceUUID, extra)
	if err != nil {
		return "", err
	}
	if err := place(ctx, c, p, at, name, &spec); err != nil {
		return "", err
	}
	t, err := at.template.Clone(ctx, at.folder, name, spec)
	if err != nil {
		return "", err
	}
	return t.Reference().Value, nil
}

// taken returns an error if another object has the name. A VM without a configuration is being
// cloned, and its name proves that the clone is Drover's.
func taken(ctx context.Context, c *vim25.Client, ref types.ManagedObjectReference, p v1alpha1.VirtualMachineParameters, instanceUUID string) error {
	if ref.Type == vmType {
		vm, err := readVM(ctx, c, ref)
		if err != nil || vm == nil || vm.Config == nil || vm.Config.InstanceUuid == instanceUUID {
			return err
		}
	}
	return native.Invalid("name", "%q: the folder has another %s of that name, %s", text(p.Name), ref.Type, ref.Value)
}
