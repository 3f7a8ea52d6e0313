package proxmox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"golang.org/x/sync/semaphore"
	"k8s.io/utils/ptr"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/apis/proxmox/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// A choice coordinates the VMIDs and nodes of VMs that are created at the same time. All of it can be lost:
// then two clones may request one VMID, and the cluster refuses the second one.
type choice struct {
	// turn is held while a VM chooses. It guards reserved and the templates of the account.
	turn *semaphore.Weighted
	// reserved are the VMIDs and nodes of VMs that may not be listed yet, by UUID.
	reserved map[string]reservation
}

type reservation struct {
	vmid int64
	node string
	at   time.Time
}

// templates has the configurations of templates by node and VMID.
type templates struct{ configs map[string]template }

type template struct {
	config config
	at     time.Time
}

// Prepare validates the references in the spec, and chooses the node and the VMID.
func (a *account) Prepare(ctx context.Context, vm *v1alpha1.VirtualMachine) error {
	p, uuid := vm.Spec.ForProvider, meta.GetExternalName(vm)
	if err := validate(p, uuid); err != nil {
		return err
	}
	if err := a.choice.turn.Acquire(ctx, 1); err != nil {
		return err
	}
	defer a.choice.turn.Release(1)
	vms, err := a.listVMs(ctx, time.Time{})
	if err != nil {
		return err
	}
	if a.isKept(vm, vms) {
		return nil
	}
	node, err := a.chooseNode(ctx, p, uuid, vms)
	if err != nil {
		return err
	}
	t, err := templateFor(vms, ptr.Deref(p.Template, ""), node)
	if err != nil {
		return err
	}
	if err := a.checkStorages(ctx, p, node); err != nil {
		return err
	}
	if err := a.checkTemplate(ctx, p, t); err != nil {
		return err
	}
	vmid, err := a.chooseVMID(ctx, uuid)
	if err != nil {
		return err
	}
	a.choice.reserved[uuid] = reservation{vmid: vmid, node: node, at: a.now()}
	meta.RemoveAnnotations(vm, v1alpha1.AnnotationCloneTask)
	meta.AddAnnotations(vm, map[string]string{v1alpha1.AnnotationVMID: strconv.FormatInt(vmid, 10), v1alpha1.AnnotationNode: node})
	return nil
}

// isKept reports whether the earlier choice is kept: the result of the last clone is unknown, and no VM has
// the VMID.
func (a *account) isKept(vm *v1alpha1.VirtualMachine, vms []entry) bool {
	id, err := strconv.ParseInt(vm.GetAnnotations()[v1alpha1.AnnotationVMID], 10, 64)
	if err != nil || vm.GetAnnotations()[v1alpha1.AnnotationNode] == "" || !meta.ExternalCreateIncomplete(vm) {
		return false
	}
	return !slices.ContainsFunc(vms, func(e entry) bool { return e.VMID == id })
}

// chooseNode returns the online node with the smallest share of its memory assigned to VMs, of those that the
// spec allows.
func (a *account) chooseNode(ctx context.Context, p v1alpha1.VirtualMachineParameters, uuid string, vms []entry) (string, error) {
	nodes, err := a.listNodes(ctx)
	if err != nil {
		return "", err
	}
	names, field := p.Nodes, "nodes"
	if p.Node != nil {
		names, field = []string{*p.Node}, "node"
	}
	for _, n := range names {
		if !slices.ContainsFunc(nodes, func(e entry) bool { return e.Node == n }) {
			return "", native.Invalid(field, "%q: the cluster has no such node, or the token may not read it", n)
		}
	}
	a.expire()
	assigned := map[string]int64{}
	for _, e := range vms {
		if e.Template == 0 {
			assigned[e.Node] += e.MaxMem
		}
	}
	memory := ptr.Deref(p.MemoryMiB, 2048) << 20
	for u, r := range a.choice.reserved {
		if u != uuid && !slices.ContainsFunc(vms, func(e entry) bool { return e.VMID == r.vmid }) {
			assigned[r.node] += memory
		}
	}
	best, load := "", 0.0
	slices.SortFunc(nodes, func(a, b entry) int { return cmp.Compare(a.Node, b.Node) })
	for _, e := range nodes {
		if e.Status != "online" || e.MaxMem == 0 || len(names) > 0 && !slices.Contains(names, e.Node) {
			continue
		}
		if l := float64(assigned[e.Node]) / float64(e.MaxMem); best == "" || l < load {
			best, load = e.Node, l
		}
	}
	if best == "" {
		err := errors.New("no node of the cluster is online")
		if len(names) > 0 {
			err = fmt.Errorf("none of the nodes %q is online", names)
		}
		return "", &native.Error{Class: fn.ErrorCapacityExhausted, What: "forProvider." + field, Err: err}
	}
	return best, nil
}

// templateFor returns the template with a name or VMID. If several templates have the name, it returns the one
// on the node, or else the one with the lowest VMID.
func templateFor(vms []entry, name, node string) (entry, error) {
	var all []entry
	for _, e := range vms {
		if e.Type == "qemu" && (e.Name == name || strconv.FormatInt(e.VMID, 10) == name) {
			all = append(all, e)
		}
	}
	if len(all) == 0 {
		return entry{}, native.Invalid("template", "%q: the cluster has no such template, or the token may not read it", name)
	}
	all = slices.DeleteFunc(all, func(e entry) bool { return e.Template == 0 })
	if len(all) == 0 {
		return entry{}, native.Invalid("template", "%q: is a VM and no template", name)
	}
	slices.SortFunc(all, func(a, b entry) int {
		if (a.Node == node) != (b.Node == node) {
			if a.Node == node {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.VMID, b.VMID)
	})
	return all[0], nil
}

// checkStorages checks the storages in the spec.
func (a *account) checkStorages(ctx context.Context, p v1alpha1.VirtualMachineParameters, node string) error {
	all, err := a.listStorages(ctx)
	if err != nil {
		return err
	}
	check := func(field, name, content string) error {
		i := slices.IndexFunc(all, func(e entry) bool { return e.Storage == name && e.Node == node })
		switch {
		case i < 0 && slices.ContainsFunc(all, func(e entry) bool { return e.Storage == name }):
			return native.Invalid(field, "%q: is not available on node %s", name, node)
		case i < 0:
			return native.Invalid(field, "%q: the cluster has no such storage, or the token may not read it", name)
		case !all[i].allows(content):
			return native.Invalid(field, "%q: allows content of the types %s, and not %s", name, all[i].Content, content)
		}
		return nil
	}
	if p.Storage != nil {
		if err := check("storage", *p.Storage, "images"); err != nil {
			return err
		}
	}
	for i, d := range p.Disks {
		if err := check(fmt.Sprintf("disks[%d].storage", i), d.Storage, "images"); err != nil {
			return err
		}
	}
	if p.CloudInit == nil {
		return nil
	}
	return check("cloudInit.storage", p.CloudInit.Storage, "iso")
}

// checkTemplate checks that the boot disk of the template is not larger than the disk of the VM.
func (a *account) checkTemplate(ctx context.Context, p v1alpha1.VirtualMachineParameters, t entry) error {
	if p.DiskSizeGiB == nil {
		return nil
	}
	key := fmt.Sprintf("%s/%d", t.Node, t.VMID)
	known, ok := a.templates.configs[key]
	if !ok || a.now().Sub(known.at) > stockFor {
		c, there, err := a.readConfig(ctx, t.Node, t.VMID)
		if err != nil {
			return err
		}
		if !there {
			return native.Invalid("template", "%q: is no longer on node %s", t.Name, t.Node)
		}
		known = template{config: c, at: a.now()}
		a.templates.configs = map[string]template{key: known}
	}
	boot := known.config.bootDisk()
	if boot == "" {
		return native.Invalid("diskSizeGiB", "template %q has no boot disk", t.Name)
	}
	if has := known.config.sizeOf(boot); *p.DiskSizeGiB*gib < has {
		return native.Invalid("diskSizeGiB", "invalid value %d: must be at least %d, the size of disk %s of template %q", *p.DiskSizeGiB, (has+gib-1)/gib, boot, t.Name)
	}
	return nil
}

// chooseVMID returns a free VMID. /cluster/nextid reserves nothing: it returns the same VMID to concurrent
// requests.
func (a *account) chooseVMID(ctx context.Context, uuid string) (int64, error) {
	a.expire()
	delete(a.choice.reserved, uuid)
	var text string
	if err := a.client.Get(ctx, "/cluster/nextid", &text); err != nil {
		return 0, classify("cannot get a free VMID", err)
	}
	vmid, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("cannot get a free VMID: unexpected response %q", text)
	}
	highest, taken := int64(0), false
	for _, r := range a.choice.reserved {
		highest = max(highest, r.vmid)
		taken = taken || r.vmid == vmid
	}
	if !taken {
		return vmid, nil
	}
	const most = 100
	for vmid = highest + 1; vmid <= highest+most; vmid++ {
		free, err := a.isFree(ctx, vmid)
		if err != nil || free {
			return vmid, err
		}
	}
	return 0, fmt.Errorf("no VMID from %d to %d is free", highest+1, highest+most)
}

// expire deletes the reservations of VMs that are listed by now or were never created.
func (a *account) expire() {
	for uuid, r := range a.choice.reserved {
		if a.now().Sub(r.at) > reservedFor {
			delete(a.choice.reserved, uuid)
		}
	}
}
