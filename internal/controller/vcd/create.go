package vcd

import (
	"context"
	"encoding/base64"
	"maps"
	"net/http"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/vcd/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// maxUserData is the maximum size of user data in bytes. The guest reads all guest properties from one variable, of
// which 64 KiB are certain.
const maxUserData = 40 << 10

// Steps of the creation after the VM exists, in their order. Metadata is written first, because inventories find the
// Machine of a VM by it.
const (
	stepMetadata   = "Metadata"
	stepHardware   = "Hardware"
	stepProperties = "GuestProperties"
	stepPowerOn    = "PowerOn"
	// stepCleanUp deletes the vApp of a creation that failed.
	stepCleanUp = "CleanUp"
)

// Create starts the creation of the VM. The VM is powered off until the other steps are complete.
func (a *account) Create(ctx context.Context, vm *v1alpha1.VirtualMachine, userData native.UserData) error {
	p := vm.Spec.ForProvider
	data, err := userData(ctx)
	if err != nil {
		return err
	}
	if err := checkUserData(data); err != nil {
		return native.Refused(err)
	}
	r, err := a.resolve(ctx, p)
	if err != nil {
		return native.Refused(err)
	}
	id, err := a.client.start(ctx, request{
		method: http.MethodPost, path: r.create, contentType: "instantiateVmTemplateParams", body: instantiationOf(p, meta.GetExternalName(vm), r),
	})
	if err != nil {
		return classify("cannot create the VM", err)
	}
	meta.AddAnnotations(vm, map[string]string{v1alpha1.AnnotationCreateTask: id})
	return nil
}

func checkUserData(data string) error {
	if len(data) > maxUserData {
		return native.Invalid("userDataSecretRef", "the user data has %d bytes, at most %d are allowed", len(data), maxUserData)
	}
	return nil
}

// instantiationOf returns the body of the request that creates a VM.
func instantiationOf(p v1alpha1.VirtualMachineParameters, externalName string, r resolved) instantiation {
	name, text := ptr.Deref(p.Name, ""), describe(externalName, p.Metadata)
	out := instantiation{
		Xmlns: nsVCloud, OVF: nsOVF, Name: name, Description: text, AcceptsEULAs: true,
		Item: sourcedItem{
			Source: r.template, StorageProfile: r.storageProfile,
			General: generalParams{Name: name, Description: text, NeedsCustomization: customizes(p, r.networks), RegenerateBIOSUUID: true},
		},
	}
	section := connectionSection{Info: "Network cards"}
	for i, n := range r.networks {
		section.Connections = append(section.Connections, connection{
			Network: n.Name, Index: i, Connected: true, Mode: string(n.IPAllocationMode), SecondaryMode: string(ptr.Deref(n.SecondaryIPAllocationMode, "")),
			Adapter: string(n.AdapterType),
		})
	}
	out.Item.Instantiation.Networks = section
	if r.sizing != nil || r.placement != nil {
		out.ComputePolicy = &computePolicy{Sizing: r.sizing, Placement: r.placement}
	}
	return out
}

// customizes reports whether Cloud Director configures the guest.
func customizes(p v1alpha1.VirtualMachineParameters, networks []v1alpha1.Network) bool {
	if p.GuestCustomization != nil {
		return *p.GuestCustomization
	}
	return slices.ContainsFunc(networks, func(n v1alpha1.Network) bool {
		return n.IPAllocationMode == v1alpha1.IPAllocationPool || ptr.Deref(n.SecondaryIPAllocationMode, "") == v1alpha1.IPAllocationPool
	})
}

// nextStep returns the next step of the creation.
func nextStep(vm *v1alpha1.VirtualMachine) string {
	for _, s := range []string{stepMetadata, stepHardware, stepProperties} {
		if s == stepMetadata && len(vm.Spec.ForProvider.Metadata) == 0 {
			continue
		}
		if !slices.Contains(vm.Status.AtProvider.CompletedSteps, s) {
			return s
		}
	}
	return stepPowerOn
}

// Continue carries out the next step of the creation. A step is repeated if the response to it was lost: it then changes
// nothing.
func (a *account) Continue(ctx context.Context, vm *v1alpha1.VirtualMachine, userData native.UserData) error {
	v := a.views.Recall(meta.GetExternalName(vm))
	if v.vm == nil && v.leftover == "" {
		return nil
	}
	var r request
	var step string
	if v.leftover != "" {
		step, r = stepCleanUp, request{method: http.MethodDelete, path: v.leftover}
	} else {
		var err error
		step = nextStep(vm)
		if r, err = a.requestOf(ctx, step, vm, *v.vm, userData); err != nil {
			return err
		}
	}
	id, err := a.client.start(ctx, r)
	if err != nil {
		return classify(stepTexts[step], err)
	}
	vm.Status.AtProvider.Task, vm.Status.AtProvider.Step = id, step
	return nil
}

// stepTexts are the errors of steps.
var stepTexts = map[string]string{
	stepMetadata: "cannot write the metadata of the VM", stepHardware: "cannot change the hardware of the VM", stepProperties: "cannot write the guest properties of the VM",
	stepPowerOn: "cannot power on the VM", stepCleanUp: "cannot delete the remains of a failed creation",
}

// requestOf returns the call that carries out a step.
func (a *account) requestOf(ctx context.Context, step string, vm *v1alpha1.VirtualMachine, m machine, userData native.UserData) (request, error) {
	p, path := vm.Spec.ForProvider, pathVM+m.uuid()
	switch step {
	case stepMetadata:
		return request{method: http.MethodPost, path: path + "/metadata", contentType: "metadata", body: metadataOf(p.Metadata)}, nil
	case stepHardware:
		r, err := a.resolve(ctx, p)
		if err != nil {
			return request{}, err
		}
		body, err := reconfigurationOf(p, m, r)
		return request{method: http.MethodPost, path: path + "/action/reconfigureVm", contentType: "vm", body: body}, err
	case stepProperties:
		data, err := userData(ctx)
		if err == nil {
			err = checkUserData(data)
		}
		return request{method: http.MethodPut, path: path + "/productSections", contentType: "productSections", body: propertiesOf(p, m, data)}, err
	}
	return request{method: http.MethodPost, path: path + powerOn}, nil
}

func metadataOf(entries map[string]string) newMetadata {
	out := newMetadata{Xmlns: nsVCloud, Xsi: nsXSI}
	for _, k := range slices.Sorted(maps.Keys(entries)) {
		out.Entries = append(out.Entries, metadataEntry{Key: k, Value: typedValue{Type: "MetadataStringValue", Value: entries[k]}})
	}
	return out
}

// reconfigurationOf returns the change of a VM to the hardware of its class. The disks are left out if they stay as they
// are.
func reconfigurationOf(p v1alpha1.VirtualMachineParameters, m machine, r resolved) (reconfiguration, error) {
	out := reconfiguration{
		Xmlns: nsVCloud, OVF: nsOVF, Name: m.Name, Description: m.Description,
		Guest: &customization{Info: "Guest customization", Enabled: customizes(p, r.networks), ComputerName: ptr.Deref(p.Name, "")},
	}
	s := newSpec{Modified: true, Info: "Hardware", CPUs: p.CPUs, CoresPerSocket: p.CoresPerSocket}
	if p.MemoryMiB != nil {
		s.Memory = &newMemory{Configured: *p.MemoryMiB}
	}
	disks, changed, err := disksOf(p, m, r)
	if err != nil {
		return out, err
	}
	if changed {
		s.Disks = &diskSection{Settings: disks}
	}
	if changed || s.CPUs != nil || s.CoresPerSocket != nil || s.Memory != nil {
		out.Spec = &s
	}
	return out, nil
}

// reservedUnit is the number of the SCSI controller on its own bus.
const reservedUnit = 7

// disksOf returns the disks that a VM shall have, and whether they differ from those that it has. Disks of an earlier
// attempt are not added again.
func disksOf(p v1alpha1.VirtualMachineParameters, m machine, r resolved) (disks []diskSetting, changed bool, err error) {
	disks = slices.Clone(m.Spec.Disks)
	if len(disks) == 0 {
		if p.SystemDiskSizeGiB != nil || p.SystemDiskIOPS != nil || len(p.DataDisks) > 0 {
			return nil, false, native.Invalid("systemDiskSizeGiB", "the template has no disk, so that no size, IOPS and dataDisks are allowed")
		}
		return nil, false, nil
	}
	system := &disks[0]
	if size := ptr.Deref(p.SystemDiskSizeGiB, 0) << 10; size > system.SizeMiB {
		system.SizeMiB, changed = size, true
	} else if size > 0 && size < system.SizeMiB {
		return nil, false, native.Invalid("systemDiskSizeGiB", "invalid value %d: must be at least %d, the size of the template", size>>10, (system.SizeMiB+1023)>>10)
	}
	if iops := ptr.Deref(p.SystemDiskIOPS, 0); iops > 0 && (system.IOPS == nil || system.IOPS.Reservation != iops) {
		system.IOPS, changed = &iopsAllocation{Reservation: iops}, true
	}
	if len(p.DataDisks) == 0 || len(disks) == 1+len(p.DataDisks) {
		return disks, changed, nil
	}
	if len(disks) != 1 {
		return nil, false, native.Invalid("dataDisks", "must be empty with a template that has %d disks", len(disks))
	}
	unit := disks[0].Unit
	for i, d := range p.DataDisks {
		if unit++; unit == reservedUnit {
			unit++
		}
		disks = append(disks, diskSetting{
			SizeMiB: d.SizeGiB << 10, Unit: unit, Bus: disks[0].Bus, Adapter: disks[0].Adapter, ThinProvisioned: disks[0].ThinProvisioned,
			StorageProfile: r.diskProfiles[i], OverridesVM: r.diskProfiles[i] != nil,
		})
	}
	return disks, true, nil
}

// propertiesOf returns the guest properties, which the datasource OVF of cloud-init and Ignition read. The providerID of
// the Node is made of the instance-id.
func propertiesOf(p v1alpha1.VirtualMachineParameters, m machine, userData string) productSections {
	encoded := base64.StdEncoding.EncodeToString([]byte(userData))
	values := [][2]string{{"instance-id", urn + m.uuid()}, {"hostname", ptr.Deref(p.Name, "")}}
	switch {
	case userData == "":
	case isIgnition(userData):
		values = append(values, [2]string{"guestinfo.ignition.config.data", encoded}, [2]string{"guestinfo.ignition.config.data.encoding", "base64"})
	default:
		values = append(values, [2]string{"user-data", encoded})
	}
	out := productSections{Xmlns: nsVCloud, OVF: nsOVF, Section: productSection{Info: "Guest properties"}}
	for _, v := range values {
		out.Section.Properties = append(out.Section.Properties, property{Key: v[0], Type: "string", UserConfigurable: true, Label: v[0], Value: propertyValue{v[1]}})
	}
	return out
}

// isIgnition reports whether user data is a configuration of Ignition, which is JSON.
func isIgnition(userData string) bool { return len(userData) > 0 && userData[0] == '{' }

// Delete carries out the next step of the deletion: it powers off the VM, detaches its named disks, which are the volumes
// of a CSI driver, and deletes it. While a task changes the VM, it waits for the end of the task.
func (a *account) Delete(ctx context.Context, vm *v1alpha1.VirtualMachine) error {
	v := a.views.Recall(meta.GetExternalName(vm))
	var r request
	switch {
	case v.leftover != "":
		r = request{method: http.MethodDelete, path: v.leftover}
	case v.vm == nil:
		return nil
	default:
		r = deletionOf(*v.vm)
	}
	id, err := a.client.start(ctx, r)
	if err != nil {
		// If the VM is gone, the next observation shows that.
		return classify("cannot delete the VM", err)
	}
	vm.Status.AtProvider.Task, vm.Status.AtProvider.Step = id, ""
	return nil
}

// deletionOf returns the call of the next step of a deletion.
func deletionOf(m machine) request {
	path := pathVM + m.uuid()
	if m.Deployed || m.Status == statusPoweredOn || m.Status == statusSuspended {
		return request{method: http.MethodPost, path: path + "/action/undeploy", contentType: "undeployVAppParams", body: undeployment{Xmlns: nsVCloud, Action: "powerOff"}}
	}
	for _, d := range m.Spec.Disks {
		if d.Disk != nil {
			return request{method: http.MethodPost, path: path + "/disk/action/detach", contentType: "diskAttachOrDetachParams", body: detachment{Xmlns: nsVCloud, Disk: reference{HREF: d.Disk.HREF}}}
		}
	}
	return request{method: http.MethodDelete, path: path}
}
