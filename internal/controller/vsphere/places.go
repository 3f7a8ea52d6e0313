package vsphere

import (
	"context"
	"fmt"
	"strings"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/drover-dev/drover/apis/vsphere/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// places has the objects of the inventory that a VM's parameters name.
type places struct {
	template *object.VirtualMachine
	// devices of the template.
	devices object.VirtualDeviceList
	// snapshot of a linked clone.
	snapshot *types.ManagedObjectReference

	folder    *object.Folder
	pool      *object.ResourcePool
	datastore *types.ManagedObjectReference
	pod       *types.ManagedObjectReference
	// diskDatastores of the data disks, nil for that of the VM.
	diskDatastores []*object.Datastore
	networks       []types.BaseVirtualDeviceBackingInfo
}

// resolve looks up the names in the parameters. An error names the field.
func resolve(ctx context.Context, c *vim25.Client, p v1alpha1.VirtualMachineParameters) (places, error) {
	f := find.NewFinder(c)
	dc, err := f.DatacenterOrDefault(ctx, text(p.Datacenter))
	if err != nil {
		return places{}, unresolved("datacenter", p.Datacenter, err)
	}
	f.SetDatacenter(dc)

	out := places{}
	for _, of := range []func(context.Context, *find.Finder, v1alpha1.VirtualMachineParameters) error{
		out.findTemplate, out.findFolder, out.findPool, out.findStorage, out.findDiskStorage, out.findNetworks,
	} {
		if err := of(ctx, f, p); err != nil {
			return places{}, err
		}
	}
	return out, out.checkDRS(ctx, c, p)
}

func (out *places) findTemplate(ctx context.Context, f *find.Finder, p v1alpha1.VirtualMachineParameters) error {
	var err error
	if out.template, err = f.VirtualMachine(ctx, text(p.Template)); err != nil {
		return unresolved("template", p.Template, err)
	}
	var vm mo.VirtualMachine
	if err := out.template.Properties(ctx, out.template.Reference(), []string{"config.hardware.device", "snapshot", "runtime.powerState"}, &vm); err != nil {
		return classify("cannot read the template "+text(p.Template), err)
	}
	if vm.Config != nil {
		out.devices = vm.Config.Hardware.Device
	}
	if p.CloneMode != v1alpha1.CloneLinked {
		return nil
	}
	if vm.Snapshot == nil {
		return native.Invalid("template", "%q has no snapshot, which a linked clone needs", text(p.Template))
	}
	out.snapshot = vm.Snapshot.CurrentSnapshot
	if p.Snapshot != nil {
		if out.snapshot, err = out.template.FindSnapshot(ctx, *p.Snapshot); err != nil {
			return native.Invalid("snapshot", "%q of template %q: %v", *p.Snapshot, text(p.Template), err)
		}
	}
	return nil
}

func (out *places) findFolder(ctx context.Context, f *find.Finder, p v1alpha1.VirtualMachineParameters) error {
	var err error
	if p.Folder == nil {
		out.folder, err = f.DefaultFolder(ctx)
	} else {
		out.folder, err = f.Folder(ctx, *p.Folder)
	}
	return unresolved("folder", p.Folder, err)
}

func (out *places) findPool(ctx context.Context, f *find.Finder, p v1alpha1.VirtualMachineParameters) error {
	if p.Cluster == nil {
		var err error
		out.pool, err = f.ResourcePool(ctx, text(p.ResourcePool))
		return unresolved("resourcePool", p.ResourcePool, err)
	}
	cluster, err := f.ComputeResource(ctx, *p.Cluster)
	if err != nil {
		return unresolved("cluster", p.Cluster, err)
	}
	if p.ResourcePool == nil {
		out.pool, err = cluster.ResourcePool(ctx)
		return classify("cannot read the cluster "+*p.Cluster, err)
	}
	path := *p.ResourcePool
	if !strings.HasPrefix(path, "/") {
		path = cluster.InventoryPath + "/Resources/" + path
	}
	out.pool, err = f.ResourcePool(ctx, path)
	return unresolved("resourcePool", &path, err)
}

func (out *places) findStorage(ctx context.Context, f *find.Finder, p v1alpha1.VirtualMachineParameters) error {
	switch {
	case p.Datastore != nil:
		ds, err := f.Datastore(ctx, *p.Datastore)
		if err != nil {
			return unresolved("datastore", p.Datastore, err)
		}
		ref := ds.Reference()
		out.datastore = &ref
	case p.DatastoreCluster != nil:
		pod, err := f.DatastoreCluster(ctx, *p.DatastoreCluster)
		if err != nil {
			return unresolved("datastoreCluster", p.DatastoreCluster, err)
		}
		ref := pod.Reference()
		out.pod = &ref
	}
	return nil
}

func (out *places) findDiskStorage(ctx context.Context, f *find.Finder, p v1alpha1.VirtualMachineParameters) error {
	for i, d := range p.DataDisks {
		var ds *object.Datastore
		if d.Datastore != nil {
			var err error
			if ds, err = f.Datastore(ctx, *d.Datastore); err != nil {
				return unresolved(fmt.Sprintf("dataDisks[%d].datastore", i), d.Datastore, err)
			}
		}
		out.diskDatastores = append(out.diskDatastores, ds)
	}
	return nil
}

func (out *places) findNetworks(ctx context.Context, f *find.Finder, p v1alpha1.VirtualMachineParameters) error {
	for _, n := range p.Networks {
		net, err := f.Network(ctx, n.Name)
		if err != nil {
			return unresolved("networks", &n.Name, err)
		}
		b, err := net.EthernetCardBackingInfo(ctx)
		if err != nil {
			return classify("cannot read the network "+n.Name, err)
		}
		out.networks = append(out.networks, b)
	}
	return nil
}

// unresolved returns an error that names the field and the name that is missing in the inventory, or
// is there more than once.
func unresolved(field string, name *string, err error) error {
	switch {
	case err == nil:
		return nil
	case notFound(err):
		return native.Invalid(field, "%q: %v", text(name), err)
	}
	return classify("cannot look for forProvider."+field+" "+text(name), err)
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
