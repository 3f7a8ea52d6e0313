package vcenter

import (
	"context"
	"errors"
	"fmt"

	"github.com/vmware/govmomi/fault"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/drover-dev/drover/internal/gzipb64"
)

// A VM is a virtual machine, running or not.
type VM struct {
	Booted
	InstanceUUID string
	// Attributes are the custom ones.
	Attributes map[string]string

	folder string
	runs   bool
}

// VMs of a folder, by the folder's name. A VM that is being cloned is one of them.
func (v *VCenter) VMs(folder string) []VM {
	var out []VM
	for _, vm := range v.vms() {
		if vm.folder == folder {
			out = append(out, vm)
		}
	}
	return out
}

// vms that exist, without the template.
func (v *VCenter) vms() []VM {
	ctx := v.context()
	names := v.attributeNames(ctx)
	var out []VM
	for _, e := range v.registry().All("VirtualMachine") {
		vm, ok := e.(*simulator.VirtualMachine)
		if !ok {
			continue
		}
		ctx.WithLock(vm, func() {
			if vm.Config != nil {
				out = append(out, v.read(vm, names))
			}
		})
	}
	return out
}

func (v *VCenter) read(vm *simulator.VirtualMachine, attributes map[int32]string) VM {
	out := VM{
		Booted:       Booted{ID: vm.Self.Value, Name: vm.Name, BIOSUUID: vm.Config.Uuid, UserData: userData(vm.Config.ExtraConfig)},
		InstanceUUID: vm.Config.InstanceUuid,
		Attributes:   map[string]string{},
		runs:         vm.Runtime.PowerState == types.VirtualMachinePowerStatePoweredOn,
	}
	for _, value := range vm.CustomValue {
		if s, ok := value.(*types.CustomFieldStringValue); ok {
			out.Attributes[attributes[s.Key]] = s.Value
		}
	}
	if vm.Parent != nil {
		if f, ok := v.registry().Get(*vm.Parent).(*simulator.Folder); ok {
			out.folder = f.Name
		}
	}
	return out
}

func (v *VCenter) attributeNames(ctx *simulator.Context) map[int32]string {
	out := map[int32]string{}
	m := v.registry().CustomFieldsManager()
	ctx.WithLock(m, func() {
		for _, f := range m.Field {
			out[f.Key] = f.Name
		}
	})
	return out
}

// userData as cloud-init reads it. Data that cannot be decoded is returned unchanged.
func userData(config []types.BaseOptionValue) []byte {
	kv := map[string]string{}
	for _, o := range config {
		kv[o.GetOptionValue().Key], _ = o.GetOptionValue().Value.(string)
	}
	const key = "guestinfo.userdata"
	text := kv[key]
	if text == "" {
		return nil
	}
	if kv[key+".encoding"] != "gzip+base64" {
		return []byte(text)
	}
	plain, err := gzipb64.Decode(text)
	if err != nil {
		return []byte(text)
	}
	return plain
}

// Create a VM in a folder without the provider, and return its instance UUID. The VM is not
// powered on.
func (v *VCenter) Create(ctx context.Context, path, name string, attributes map[string]string) (string, error) {
	id := string(uuid.NewUUID())
	f, err := v.finder(ctx)
	if err != nil {
		return "", err
	}
	from, err := f.VirtualMachine(ctx, template)
	if err != nil {
		return "", err
	}
	to, err := f.Folder(ctx, path)
	if err != nil {
		return "", err
	}
	p, err := f.ResourcePool(ctx, pool)
	if err != nil {
		return "", err
	}
	poolRef := p.Reference()
	task, err := from.Clone(ctx, to, name, types.VirtualMachineCloneSpec{
		Location: types.VirtualMachineRelocateSpec{Pool: &poolRef},
		Config:   &types.VirtualMachineConfigSpec{InstanceUuid: id},
	})
	if err != nil {
		return "", err
	}
	info, err := task.WaitForResult(ctx, nil)
	if err != nil {
		return "", err
	}
	ref, ok := info.Result.(types.ManagedObjectReference)
	if !ok {
		return "", fmt.Errorf("the clone of %s has no result", template)
	}
	return id, v.setAttributes(ctx, ref, attributes)
}

func (v *VCenter) setAttributes(ctx context.Context, vm types.ManagedObjectReference, attributes map[string]string) error {
	m, err := object.GetCustomFieldsManager(v.admin.Client)
	if err != nil {
		return err
	}
	for name, value := range attributes {
		key, err := m.FindKey(ctx, name)
		if errors.Is(err, object.ErrKeyNameNotFound) {
			var def *types.CustomFieldDef
			if def, err = m.Add(ctx, name, "VirtualMachine", nil, nil); err == nil {
				key = def.Key
			}
		}
		if err != nil {
			return err
		}
		if err := m.Set(ctx, vm, key, value); err != nil {
			return err
		}
	}
	return nil
}

// Lose powers off and deletes a VM behind the provider's back. It waits until the guest has
// ended, and returns the VM as it was.
func (v *VCenter) Lose(ctx context.Context, instanceUUID string) (VM, error) {
	for _, vm := range v.vms() {
		if vm.InstanceUUID != instanceUUID {
			continue
		}
		o := object.NewVirtualMachine(v.admin.Client, types.ManagedObjectReference{Type: "VirtualMachine", Value: vm.ID})
		if vm.runs {
			if err := done(ctx)(o.PowerOff(ctx)); err != nil {
				return vm, err
			}
		}
		err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
			err := done(ctx)(o.Destroy(ctx))
			return err == nil, ignoreBusy(err)
		})
		if err != nil {
			return vm, err
		}
		return vm, v.awaitEnd(ctx, vm.ID)
	}
	return VM{}, fmt.Errorf("there is no VM with the instance UUID %s", instanceUUID)
}

func ignoreBusy(err error) error {
	var busy *types.TaskInProgress
	if _, ok := fault.As(err, &busy); ok {
		return nil
	}
	return err
}
