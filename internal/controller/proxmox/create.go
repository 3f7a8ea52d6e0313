package proxmox

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	pve "github.com/luthermonson/go-proxmox"
	"k8s.io/utils/ptr"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/apis/proxmox/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
	"github.com/drover-dev/drover/internal/nocloud"
)

// Create starts the clone of the template with the chosen VMID.
func (a *account) Create(ctx context.Context, vm *v1alpha1.VirtualMachine, _ native.UserData) error {
	p, uuid, node := vm.Spec.ForProvider, meta.GetExternalName(vm), vm.GetAnnotations()[v1alpha1.AnnotationNode]
	vmid, err := strconv.Atoi(vm.GetAnnotations()[v1alpha1.AnnotationVMID])
	if err != nil || node == "" {
		return &native.Error{Class: fn.ErrorTransient, Err: fmt.Errorf("the annotations %s and %s must have the chosen VMID and node", v1alpha1.AnnotationVMID, v1alpha1.AnnotationNode), Refused: true}
	}
	vms, err := a.listVMs(ctx, time.Time{})
	if err != nil {
		return native.Refused(err)
	}
	t, err := templateFor(vms, ptr.Deref(p.Template, ""), node)
	if err != nil {
		return err
	}
	o := &pve.VirtualMachineCloneOptions{
		NewID: vmid, Name: ptr.Deref(p.Name, ""), Description: notesOf(uuid, p.Attributes), Pool: ptr.Deref(p.Pool, ""),
		Full: pve.IntOrBool(p.CloneMode != v1alpha1.CloneLinked), Storage: ptr.Deref(p.Storage, ""),
	}
	if t.Node != node {
		o.Target = node
	}
	var upid string
	err = a.client.Post(ctx, fmt.Sprintf("/nodes/%s/qemu/%d/clone", t.Node, t.VMID), o, &upid)
	if err != nil {
		return classify(fmt.Sprintf("cannot clone template %q to VMID %d on node %s", ptr.Deref(p.Template, ""), vmid, node), err)
	}
	meta.AddAnnotations(vm, map[string]string{v1alpha1.AnnotationCloneTask: upid})
	return nil
}

// Continue carries out the next step after the clone.
func (a *account) Continue(ctx context.Context, vm *v1alpha1.VirtualMachine, userData native.UserData) error {
	at, p, uuid := &vm.Status.AtProvider, vm.Spec.ForProvider, meta.GetExternalName(vm)
	v := a.views.Recall(uuid)
	if v.config == nil {
		return nil
	}
	url := fmt.Sprintf("/nodes/%s/qemu/%d", at.Node, at.VMID)
	switch nextMove(v.config, p, uuid, imageOf(vm), v.running) {
	case moveConfigure:
		return a.begin(vm, "cannot configure the VM", func(upid any) error {
			return a.client.Post(ctx, url+"/config", configure(v.config, p, uuid), upid)
		})
	case moveResize:
		boot := v.config.bootDisk()
		return a.begin(vm, fmt.Sprintf("cannot resize the disk %s to forProvider.diskSizeGiB", boot), func(upid any) error {
			return a.client.Put(ctx, url+"/resize", map[string]string{"disk": boot, "size": strconv.FormatInt(*p.DiskSizeGiB, 10) + "G"}, upid)
		})
	case moveAttach:
		if at.Image == imageOf(vm) {
			return a.attach(ctx, vm, url)
		}
		return a.upload(ctx, vm, userData)
	case moveStart:
		return a.begin(vm, "cannot start the VM", func(upid any) error { return a.client.Post(ctx, url+"/status/start", nil, upid) })
	}
	return nil
}

// begin makes a call that starts a task, and records the task in the status. In older versions of Proxmox VE
// some calls start none.
func (a *account) begin(vm *v1alpha1.VirtualMachine, what string, call func(upid any) error) error {
	var raw json.RawMessage
	if err := call(&raw); err != nil {
		return classify(what, err)
	}
	var upid string
	if json.Unmarshal(raw, &upid) == nil && strings.HasPrefix(upid, "UPID:") {
		vm.Status.AtProvider.Task = upid
	}
	return nil
}

// upload uploads the image. It replaces an image that an earlier process uploaded.
func (a *account) upload(ctx context.Context, vm *v1alpha1.VirtualMachine, userData native.UserData) error {
	at, p, uuid := &vm.Status.AtProvider, vm.Spec.ForProvider, meta.GetExternalName(vm)
	data, err := userData(ctx)
	if err != nil {
		return err
	}
	image, err := nocloud.Image(nocloud.Data{UserData: data, MetaData: metaDataOf(p, uuid), NetworkConfig: ptr.Deref(p.CloudInit.NetworkConfig, "")})
	if err != nil {
		return native.Invalid("userDataSecretRef", "%v", err)
	}
	return a.begin(vm, "cannot upload the image with the user data to forProvider.cloudInit.storage", func(upid any) error {
		return a.client.UploadReader(fmt.Sprintf("/nodes/%s/storage/%s/upload", at.Node, p.CloudInit.Storage),
			map[string]string{"content": "iso"}, imageName(uuid, p.Attributes), strings.NewReader(string(image)), int64(len(image)), upid)
	})
}

// attach attaches the uploaded image.
func (a *account) attach(ctx context.Context, vm *v1alpha1.VirtualMachine, url string) error {
	at, p := &vm.Status.AtProvider, vm.Spec.ForProvider
	err := a.begin(vm, "cannot attach the image with the user data", func(upid any) error {
		return a.client.Post(ctx, url+"/config", map[string]any{device(p.CloudInit): at.Image + ",media=cdrom"}, upid)
	})
	if err != nil && strings.Contains(err.Error(), "does not exist") {
		at.Image = "" // A user deleted the image. The next step uploads it again.
	}
	return err
}

// imageOf returns the volume of a VM's image, or "" if the VM has none.
func imageOf(vm *v1alpha1.VirtualMachine) string {
	p := vm.Spec.ForProvider
	if p.CloudInit == nil {
		return ""
	}
	return p.CloudInit.Storage + ":iso/" + imageName(meta.GetExternalName(vm), p.Attributes)
}

// metaDataOf returns the metadata of a VM. The default is JSON, which is valid YAML.
func metaDataOf(p v1alpha1.VirtualMachineParameters, uuid string) string {
	if p.CloudInit.MetaData != nil {
		return *p.CloudInit.MetaData
	}
	b, err := json.Marshal(map[string]string{"instance-id": uuid, "local-hostname": ptr.Deref(p.Name, "")})
	if err != nil {
		return ""
	}
	return string(b)
}

// A volume is an image on a storage of a node.
type volume struct{ node, storage, name string }

// volumeOf parses a volume ID such as local:iso/x.iso.
func volumeOf(node, id string) (volume, bool) {
	storage, name, ok := strings.Cut(id, ":iso/")
	return volume{node: node, storage: storage, name: name}, ok && node != "" && name == path.Base(name)
}

// Delete carries out the next step of a deletion: it interrupts the clone or the reboot, stops the VM, destroys it,
// or deletes the image.
func (a *account) Delete(ctx context.Context, vm *v1alpha1.VirtualMachine) error {
	at, uuid := &vm.Status.AtProvider, meta.GetExternalName(vm)
	v := a.views.Recall(uuid)
	url := fmt.Sprintf("/nodes/%s/qemu/%d", at.Node, at.VMID)
	switch {
	case v.hidden:
		return a.interrupt(ctx, at.Task)
	case v.config != nil && v.running:
		return a.begin(vm, "cannot stop the VM", func(upid any) error { return a.client.Post(ctx, url+"/status/stop", nil, upid) })
	case v.config != nil:
		// Purge removes the VM from backup jobs, replication and high availability.
		err := a.begin(vm, "cannot destroy the VM", func(upid any) error {
			return a.client.DeleteWithParams(ctx, url, map[string]any{"purge": 1}, upid)
		})
		if isNoConfiguration(err) {
			return nil
		}
		return err
	}
	for _, l := range v.leftovers {
		err := a.begin(vm, "cannot delete the image with the user data", func(upid any) error {
			return a.client.Delete(ctx, fmt.Sprintf("/nodes/%s/storage/%s/content/iso/%s", l.node, l.storage, l.name), upid)
		})
		if e := asAPIError(err); e != nil && e.Status == http.StatusInternalServerError && strings.Contains(e.Text, "does not exist") {
			continue
		}
		return err
	}
	return nil
}

// interrupt interrupts the clone or the reboot of a VM that is to be deleted. If the task of the clone is unknown, the
// deletion waits for its end.
func (a *account) interrupt(ctx context.Context, upid string) error {
	parts := strings.Split(upid, ":")
	if len(parts) < 8 || !isInterruptible(parts[5]) {
		return nil
	}
	err := a.client.Delete(ctx, fmt.Sprintf("/nodes/%s/tasks/%s", parts[1], upid), nil)
	return classify("cannot interrupt the task "+parts[5]+" of the VM", err)
}

// findLeftovers finds the image of a VM that does not exist.
func (a *account) findLeftovers(ctx context.Context, vm *v1alpha1.VirtualMachine, out native.VM) (native.VM, error) {
	at := &vm.Status.AtProvider
	var left []volume
	seen := map[volume]bool{}
	for _, id := range []string{at.Image, imageOf(vm)} {
		for _, node := range []string{at.Node, vm.GetAnnotations()[v1alpha1.AnnotationNode]} {
			v, ok := volumeOf(node, id)
			if !ok || seen[v] {
				continue
			}
			seen[v] = true
			there, err := a.hasImage(ctx, v)
			if err != nil {
				return out, err
			}
			if there {
				left = append(left, v)
			}
		}
	}
	if len(left) == 0 {
		a.forget(meta.GetExternalName(vm))
		return out, nil
	}
	a.views.Remember(meta.GetExternalName(vm), view{leftovers: left})
	out.State, out.Text = native.StateIncomplete, "destroyed, its image still exists"
	return out, nil
}

func (a *account) hasImage(ctx context.Context, v volume) (bool, error) {
	images, err := a.listImages(ctx, v.node, v.storage)
	if err != nil {
		return false, err
	}
	for _, i := range images {
		if i.name() == v.name {
			return true, nil
		}
	}
	return false, nil
}
