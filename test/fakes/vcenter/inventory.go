package vcenter

import (
	"context"
	"fmt"
	"time"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/task"
	"github.com/vmware/govmomi/vapi/rest"
	"github.com/vmware/govmomi/vapi/tags"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
	"k8s.io/utils/ptr"
)

// Inventory of the datacenter DC0.
const (
	template = "ubuntu-24.04"
	folder   = "/DC0/vm/kubernetes"
	pool     = "/DC0/host/cluster-a/Resources/kubernetes"
)

// furnish creates the objects that examples/vsphere/machineclass.yaml names, from those of the
// simulator's model.
func (v *VCenter) furnish(ctx context.Context) error {
	f, err := v.finder(ctx)
	if err != nil {
		return err
	}
	for _, furnish := range []func(context.Context, *find.Finder) error{v.makeCluster, v.makeTemplate, v.makeNetwork, v.makeDatastoreCluster} {
		if err := furnish(ctx, f); err != nil {
			return err
		}
	}
	vms, err := f.DefaultFolder(ctx)
	if err != nil {
		return err
	}
	if _, err := vms.CreateFolder(ctx, "kubernetes"); err != nil {
		return err
	}
	return v.makeTag(ctx)
}

func (v *VCenter) finder(ctx context.Context) (*find.Finder, error) {
	f := find.NewFinder(v.admin.Client)
	dc, err := f.DefaultDatacenter(ctx)
	if err != nil {
		return nil, err
	}
	return f.SetDatacenter(dc), nil
}

func (v *VCenter) makeCluster(ctx context.Context, f *find.Finder) error {
	c, err := f.ClusterComputeResource(ctx, "DC0_C0")
	if err != nil {
		return err
	}
	if err := done(ctx)(c.Rename(ctx, "cluster-a")); err != nil {
		return err
	}
	all, err := c.ResourcePool(ctx)
	if err != nil {
		return err
	}
	_, err = all.Create(ctx, "kubernetes", types.DefaultResourceConfigSpec())
	return err
}

func (v *VCenter) makeTemplate(ctx context.Context, f *find.Finder) error {
	vm, err := f.VirtualMachine(ctx, "DC0_C0_RP0_VM0")
	if err != nil {
		return err
	}
	if err := done(ctx)(vm.Rename(ctx, template)); err != nil {
		return err
	}
	if err := vm.MarkAsTemplate(ctx); err != nil {
		return err
	}
	there, ok := v.registry().Get(vm.Reference()).(*simulator.VirtualMachine)
	if !ok {
		return fmt.Errorf("%s is no VM", template)
	}
	v.registry().Put(&refusable{VirtualMachine: there, refusal: v.refusal})
	return nil
}

func (v *VCenter) makeNetwork(ctx context.Context, f *find.Finder) error {
	n, err := f.Network(ctx, "DC0_DVPG0")
	if err != nil {
		return err
	}
	return done(ctx)(object.NewCommon(v.admin.Client, n.Reference()).Rename(ctx, "k8s-nodes"))
}

// makeDatastoreCluster from a datastore that has no files of the template.
func (v *VCenter) makeDatastoreCluster(ctx context.Context, f *find.Finder) error {
	stores, err := f.Folder(ctx, "/DC0/datastore")
	if err != nil {
		return err
	}
	pod, err := stores.CreateStoragePod(ctx, "ssd")
	if err != nil {
		return err
	}
	ds, err := f.Datastore(ctx, "LocalDS_1")
	if err != nil {
		return err
	}
	if err := done(ctx)(object.NewFolder(v.admin.Client, pod.Reference()).MoveInto(ctx, []types.ManagedObjectReference{ds.Reference()})); err != nil {
		return err
	}
	return done(ctx)(object.NewStorageResourceManager(v.admin.Client).ConfigureStorageDrsForPod(ctx, pod, types.StorageDrsConfigSpec{
		PodConfigSpec: &types.StorageDrsPodConfigSpec{Enabled: ptr.To(true)},
	}, true))
}

func (v *VCenter) makeTag(ctx context.Context) error {
	rc := rest.NewClient(v.admin.Client)
	if err := rc.Login(ctx, root); err != nil {
		return err
	}
	m := tags.NewManager(rc)
	category, err := m.CreateCategory(ctx, &tags.Category{Name: "environment", Cardinality: "SINGLE"})
	if err != nil {
		return err
	}
	_, err = m.CreateTag(ctx, &tags.Tag{Name: "production", CategoryID: category})
	return err
}

// CreateFolder below /DC0/vm/kubernetes, and return its path.
func (v *VCenter) CreateFolder(ctx context.Context, name string) (string, error) {
	f, err := v.finder(ctx)
	if err != nil {
		return "", err
	}
	parent, err := f.Folder(ctx, folder)
	if err != nil {
		return "", err
	}
	_, err = parent.CreateFolder(ctx, name)
	return folder + "/" + name, err
}

// done waits for the task that a call started.
func done(ctx context.Context) func(*object.Task, error) error {
	return func(t *object.Task, err error) error {
		if err != nil {
			return err
		}
		if err := Wait(ctx, t); err != nil {
			return fmt.Errorf("%s: %w", t.Reference().Value, err)
		}
		return nil
	}
}

// Wait until a task has ended, and return its error. The simulator sometimes loses the last update of a task if the computer
// is busy, so that WaitEx never ends: this asks for the state instead.
func Wait(ctx context.Context, t *object.Task) error {
	for {
		var o mo.Task
		if err := property.DefaultCollector(t.Client()).RetrieveOne(ctx, t.Reference(), []string{"info"}, &o); err != nil {
			return err
		}
		switch o.Info.State {
		case types.TaskInfoStateSuccess:
			return nil
		case types.TaskInfoStateError:
			return task.Error{LocalizedMethodFault: o.Info.Error, Description: o.Info.Description}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(interval / 10):
		}
	}
}
