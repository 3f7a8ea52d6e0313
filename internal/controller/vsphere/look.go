package vsphere

import (
	"context"
	"fmt"
	"maps"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/drover-dev/drover/apis/vsphere/v1alpha1"
	"github.com/drover-dev/drover/internal/reboot"
)

// look observes the input of the plan. It may be called twice.
func (x *external) look(ctx context.Context, c *vim25.Client, vm *v1alpha1.VirtualMachine) (sight, error) {
	at := &vm.Status.AtProvider
	if here := c.ServiceContent.About.InstanceUuid; at.VCenter != "" && at.VCenter != here {
		return sight{}, fmt.Errorf("the VM is in the vCenter with the instance UUID %s, and %s is another, %s: it can be neither observed nor changed from there", at.VCenter, x.vcenter.Server, here)
	}
	s := sight{deleting: meta.WasDeleted(vm), wantOn: vm.Spec.ForProvider.PowerState != v1alpha1.PowerOff, finished: at.ProviderID != ""}

	var err error
	// A VM that is finished exists while a task reboots it.
	if s.task, err = x.lookAtTasks(ctx, c, vm, s.finished); err != nil || s.task != noTask && (s.deleting || !s.finished) {
		return s, err
	}
	seen, err := findVM(ctx, c, at.MoRef, meta.GetExternalName(vm))
	if err != nil {
		return s, err
	}
	x.vm = nil
	// The result of the creation does not matter: a response can be lost while the clone continues.
	if began := meta.GetExternalCreatePending(vm); seen == nil && s.deleting && at.MoRef == "" && !began.IsZero() {
		if s.cloneMayRun, err = cloneRunsSince(ctx, c, began); err != nil || s.cloneMayRun {
			return s, err
		}
		// The clone may have ended since the VM was looked for.
		seen, err = findVM(ctx, c, at.MoRef, meta.GetExternalName(vm))
	}
	if err != nil || seen == nil {
		return s, err
	}
	x.vm = &seen.Self
	x.pool = seen.ResourcePool
	rule := ruleOf(vm)
	s.vm = &found{
		power: seen.Runtime.PowerState,
		// The VM runs only after it has joined.
		isInRule:  rule == "" || s.finished || !mayUpdate(vm) || x.note.hasJoined || seen.Runtime.PowerState == types.VirtualMachinePowerStatePoweredOn,
		mustLeave: rule != "" && !x.note.hasLeft,
	}
	at.VCenter, at.MoRef = c.ServiceContent.About.InstanceUuid, seen.Self.Value
	at.State, at.ConnectionState = string(seen.Runtime.PowerState), ""
	if seen.Runtime.ConnectionState != types.VirtualMachineConnectionStateConnected {
		at.ConnectionState = string(seen.Runtime.ConnectionState)
	}
	if seen.Config != nil {
		at.BIOSUUID = seen.Config.Uuid
	}
	at.Addresses = addressesOf(seen.Guest, vm.Spec.ForProvider.Networks)

	if s.deleting || len(at.Disks) == 0 && !s.finished {
		devices, err := readDevices(ctx, c, seen.Self)
		if err != nil {
			return s, err
		}
		if len(at.Disks) == 0 && !s.finished {
			// A VM that another client created, such as an adopted orphan, may have run.
			neverRan := seen.Runtime.PowerState == types.VirtualMachinePowerStatePoweredOff && !meta.GetExternalCreatePending(vm).IsZero()
			at.Disks = ownDisks(devices, vmxOf(seen), neverRan)
		}
		x.foreign = foreignDisks(devices, at.Disks, vmxOf(seen))
		s.vm.foreign = len(x.foreign)
	}
	if s.deleting {
		return s, nil
	}
	s.vm.marked, err = x.marked(ctx, c, vm, seen.CustomValue, s.finished)
	return s, err
}

// lookAtTasks observes the tasks that were started for the VM. It records the failure of a task once.
func (x *external) lookAtTasks(ctx context.Context, c *vim25.Client, vm *v1alpha1.VirtualMachine, finished bool) (runningTask, error) {
	if clone := vm.GetAnnotations()[v1alpha1.AnnotationCloneTask]; clone != "" && !finished && x.note.failedClone != clone {
		t, err := lookAtTask(ctx, c, clone)
		switch {
		case err != nil:
			return noTask, err
		case t.running:
			x.task = t
			return cloneTask, nil
		case t.err != nil:
			// The task may be that of a second clone, which found the name of the first one in use: the
			// response to the first one was lost.
			there, err := findVM(ctx, c, vm.Status.AtProvider.MoRef, meta.GetExternalName(vm))
			if err != nil {
				return noTask, err
			}
			x.note.failedClone = clone
			if there != nil {
				break
			}
			x.note.fail(x.now(), x.failed("cannot clone the template "+text(vm.Spec.ForProvider.Template), t.err), vm.GetGeneration(), x.vcenter)
		}
	}
	if x.note.task == "" {
		return noTask, nil
	}
	t, err := lookAtTask(ctx, c, x.note.task)
	switch {
	case err != nil:
		return noTask, err
	case t.running:
		return otherTask, nil
	case t.err != nil:
		err := x.failed("a task of the VM failed", t.err)
		x.note.fail(x.now(), err, vm.GetGeneration(), x.vcenter)
		if finished && !meta.WasDeleted(vm) {
			reboot.Fail(vm, err)
		}
	}
	x.note.task = ""
	return noTask, nil
}

func (x *external) failed(what string, err error) error {
	return fmt.Errorf("%s: %w", x.config, classify(what, err))
}

// marked reports whether the VM has its custom attributes and tags. If the VM may not be updated,
// they are not changed. Tags are attached only once.
func (x *external) marked(ctx context.Context, c *vim25.Client, vm *v1alpha1.VirtualMachine, values []types.BaseCustomFieldValue, finished bool) (bool, error) {
	p := vm.Spec.ForProvider
	x.attributes = nil
	if !mayUpdate(vm) {
		return true, nil
	}
	attributes := p.CustomAttributes
	if rule := ruleOf(vm); rule != "" && !finished {
		attributes = maps.Clone(attributes)
		if attributes == nil {
			attributes = map[string]string{}
		}
		attributes[attributeRule] = rule
	}
	if len(attributes) > 0 {
		m, err := object.GetCustomFieldsManager(c)
		if err != nil {
			return false, err
		}
		fields, err := m.Field(ctx)
		if err != nil {
			return false, err
		}
		x.attributes = attributesMissing(attributes, fields, values)
	}
	if len(p.Tags) == 0 || finished && len(x.attributes) == 0 {
		return len(x.attributes) == 0, nil
	}
	missing, err := x.tagsMissing(ctx, c, p.Tags)
	return len(x.attributes) == 0 && len(missing) == 0, err
}
