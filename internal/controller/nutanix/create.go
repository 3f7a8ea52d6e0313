package nutanix

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/nutanix/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

const (
	mib, gib = int64(1) << 20, int64(1) << 30
	// typePrefix is the prefix of types in the API.
	typePrefix = "vmm.v4.ahv.config."
	// systemBus is the bus of the system disk, which has the index 0.
	systemBus = "SCSI"
	// maxUserData is the maximum size of a script that AHV accepts, in the encoding of the API.
	maxUserData = 32 << 10
)

// object is a JSON object of the API.
type object = map[string]any

// typed returns an object with its type, by which the API distinguishes alternatives.
func typed(kind string, o object) object {
	o["$objectType"] = typePrefix + kind
	return o
}

func ref(uuid string) object { return object{"extId": uuid} }

// body returns the body of the request that creates a VM.
func body(p v1alpha1.VirtualMachineParameters, externalName, userData string, r resolved) (object, error) {
	out := typed("Vm", object{
		"name": ptr.Deref(p.Name, ""), "description": native.WriteNotes(externalName, p.Attributes), "cluster": ref(r.cluster),
		"numSockets": p.VCPUSockets, "numCoresPerSocket": p.VCPUsPerSocket, "memorySizeBytes": ptr.Deref(p.MemoryMiB, 0) * mib,
	})
	disks := []object{disk(systemBus, 0, ptr.Deref(p.SystemDiskSizeGiB, 0)*gib, r.image, "")}
	next := map[v1alpha1.BusType]int{"SCSI": 1}
	for i, d := range p.DataDisks {
		bus := d.BusType
		if bus == "" {
			bus = "SCSI"
		}
		disks = append(disks, disk(string(bus), next[bus], d.SizeGiB*gib, r.diskImages[i], r.diskContainers[i]))
		next[bus]++
	}
	out["disks"] = disks
	nics := []object{}
	for _, s := range r.subnets {
		nics = append(nics, typed("Nic", object{"networkInfo": typed("NicNetworkInfo", object{
			"nicType": "NORMAL_NIC", "vlanMode": "ACCESS", "subnet": ref(s),
		})}))
	}
	out["nics"] = nics
	if len(r.categories) > 0 {
		refs := []object{}
		for _, c := range r.categories {
			refs = append(refs, ref(c))
		}
		out["categories"] = refs
	}
	if r.project != "" {
		out["project"] = ref(r.project)
	}
	gpus := []object{}
	for _, g := range p.GPUs {
		gpus = append(gpus, object{"mode": g.Mode, "deviceId": g.DeviceID, "vendor": g.Vendor})
	}
	if len(gpus) > 0 {
		out["gpus"] = gpus
	}
	boot(out, p.BootType)
	if userData == "" {
		return out, nil
	}
	customization, err := cloudInit(ptr.Deref(p.Name, ""), externalName, userData)
	out["guestCustomization"] = customization
	return out, err
}

// boot sets the firmware of a VM.
func boot(out object, t v1alpha1.BootType) {
	config := typed("LegacyBoot", object{})
	if t == v1alpha1.BootUEFI || t == v1alpha1.BootSecure {
		config = typed("UefiBoot", object{"isSecureBootEnabled": t == v1alpha1.BootSecure})
	}
	if t == v1alpha1.BootSecure {
		out["machineType"] = "Q35"
	}
	out["bootConfig"], out["$bootConfigItemDiscriminator"] = config, config["$objectType"]
}

// disk returns a disk. A size of 0 is that of the image. A copy of an image is in the storage container of the image:
// the API refuses another one.
func disk(bus string, index int, size int64, image, container string) object {
	backing := typed("VmDisk", object{})
	if size > 0 {
		backing["diskSizeBytes"] = size
	}
	if image != "" {
		backing["dataSource"] = typed("DataSource", object{"reference": typed("ImageReference", object{"imageExtId": image})})
	}
	if container != "" {
		backing["storageContainer"] = ref(container)
	}
	return typed("Disk", object{"diskAddress": object{"busType": bus, "index": index}, "backingInfo": backing})
}

// cloudInit returns the guest customization, which the datasource ConfigDrive of cloud-init reads.
func cloudInit(name, id, userData string) (object, error) {
	script := base64.StdEncoding.EncodeToString([]byte(userData))
	if len(script) > maxUserData {
		return nil, native.Invalid("userDataSecretRef", "the user data has %d bytes, at most %d are allowed", len(userData), maxUserData/4*3)
	}
	metaData, err := json.Marshal(map[string]string{"hostname": name, "name": name, "uuid": id})
	if err != nil {
		return nil, err
	}
	return typed("GuestCustomizationParams", object{"config": typed("CloudInit", object{
		"datasourceType":  "CONFIG_DRIVE_V2",
		"metadata":        base64.StdEncoding.EncodeToString(metaData),
		"cloudInitScript": typed("Userdata", object{"value": script}),
	})}), nil
}

// Create starts the creation of the VM with the recorded request ID.
func (a *account) Create(ctx context.Context, vm *v1alpha1.VirtualMachine, userData native.UserData) error {
	p := vm.Spec.ForProvider
	data, err := userData(ctx)
	if err != nil {
		return err
	}
	r, err := a.resolve(ctx, p)
	if err != nil {
		return native.Refused(err)
	}
	b, err := body(p, meta.GetExternalName(vm), data, r)
	if err != nil {
		return native.Refused(err)
	}
	id, err := a.client.start(ctx, request{
		method: http.MethodPost, path: pathVMs, id: vm.GetAnnotations()[v1alpha1.AnnotationRequestID], body: b,
	})
	if err != nil {
		return classify("cannot create the VM", err)
	}
	meta.AddAnnotations(vm, map[string]string{v1alpha1.AnnotationCreateTask: id})
	return nil
}

// Continue grows the system disk, or powers on the VM.
func (a *account) Continue(ctx context.Context, vm *v1alpha1.VirtualMachine, _ native.UserData) error {
	v := a.views.Recall(meta.GetExternalName(vm))
	if v.uuid == "" {
		return nil
	}
	if v.tooSmall != "" {
		id, err := a.grow(ctx, pathVMs+"/"+v.uuid+"/disks/"+v.tooSmall, ptr.Deref(vm.Spec.ForProvider.SystemDiskSizeGiB, 0)*gib)
		if err != nil {
			return classify("cannot resize the system disk to forProvider.systemDiskSizeGiB", err)
		}
		vm.Status.AtProvider.Task = id
		return nil
	}
	id, err := a.client.start(ctx, request{method: http.MethodPost, path: pathVMs + "/" + v.uuid + "/$actions/power-on", etag: v.etag})
	if err != nil {
		return classify("cannot power on the VM", err)
	}
	vm.Status.AtProvider.Task = id
	return nil
}

// grow starts the task that grows a disk. The API refuses a change with the source of the data.
func (a *account) grow(ctx context.Context, path string, size int64) (string, error) {
	d, etag, err := get[object](ctx, a.client, path)
	if err != nil {
		return "", err
	}
	backing, _ := d["backingInfo"].(object)
	if backing == nil {
		return "", errors.New("the response has no disk")
	}
	backing["diskSizeBytes"] = size
	delete(backing, "dataSource")
	return a.client.start(ctx, request{method: http.MethodPut, path: path, etag: etag, body: d})
}

// Delete deletes the VM with its disks. While a task changes the VM, it waits for the end of the task.
func (a *account) Delete(ctx context.Context, vm *v1alpha1.VirtualMachine) error {
	v := a.views.Recall(meta.GetExternalName(vm))
	if v.uuid == "" {
		return nil
	}
	id, err := a.client.start(ctx, request{method: http.MethodDelete, path: pathVMs + "/" + v.uuid, etag: v.etag})
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return classify("cannot delete the VM", err)
	}
	vm.Status.AtProvider.Task = id
	return nil
}
