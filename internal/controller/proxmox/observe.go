package proxmox

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"k8s.io/utils/ptr"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/apis/proxmox/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// A view is the part of an observation that the step after it needs.
type view struct {
	// config is nil if there is no VM, or if its configuration was not read.
	config config
	// running reports whether the VM is powered on.
	running bool
	// node and vmid of the VM.
	node string
	vmid int64
	// hidden reports whether the VM is a clone in progress, or busy with a task.
	hidden bool
	// leftovers are the images of a VM that no longer exists.
	leftovers []volume
}

// FindLost is never called, because the external name is known before the creation.
func (a *account) FindLost(context.Context, *v1alpha1.VirtualMachine) (string, error) { return "", nil }

// Get returns the VM with the UUID.
func (a *account) Get(ctx context.Context, vm *v1alpha1.VirtualMachine, since time.Time) (native.VM, error) {
	at := &vm.Status.AtProvider
	initialize(vm)
	busy, problem, err := a.lookAtTasks(ctx, vm)
	if err != nil || busy != nil {
		return ptr.Deref(busy, native.VM{}), err
	}
	if problem != nil || at.LastTask != "" {
		// A task may have ended since the last list.
		since = latest(since, a.endedAt(vm))
	}
	f, err := a.find(ctx, vm, since)
	if err != nil {
		return native.VM{}, err
	}
	if f == nil {
		out := native.VM{Problem: problem}
		if meta.WasDeleted(vm) {
			return a.findLeftovers(ctx, vm, out)
		}
		return out, nil
	}
	at.VMID, at.Node = f.VMID, f.Node
	out, err := a.observe(ctx, vm, *f)
	out.Problem = problem
	return out, err
}

// initialize completes the status from the annotations: a status that was set before a creation is lost.
func initialize(vm *v1alpha1.VirtualMachine) {
	at, from := &vm.Status.AtProvider, vm.GetAnnotations()
	if at.VMID == 0 || at.ProviderID == "" {
		if id, err := strconv.ParseInt(from[v1alpha1.AnnotationVMID], 10, 64); err == nil {
			at.VMID = id
		}
	}
	if at.Node == "" {
		at.Node = from[v1alpha1.AnnotationNode]
	}
	if clone := from[v1alpha1.AnnotationCloneTask]; at.Task == "" && at.ProviderID == "" && at.CloneTask != clone {
		at.Task, at.CloneTask = clone, clone
	}
}

// lookAtTasks observes the task of the VM. While the task runs, it returns the state of the VM. If the task
// failed, it returns the problem once.
func (a *account) lookAtTasks(ctx context.Context, vm *v1alpha1.VirtualMachine) (busy *native.VM, problem, err error) {
	at := &vm.Status.AtProvider
	if at.Task == "" {
		return nil, nil, nil
	}
	s, known, err := a.lookAtTask(ctx, at.Task)
	if err != nil {
		return nil, nil, err
	}
	if known && s.Status != "stopped" {
		state := native.StateCreating
		if meta.WasDeleted(vm) && !isInterruptible(s.Type) {
			state = native.StateDeleting
		}
		a.views.Remember(meta.GetExternalName(vm), view{hidden: true})
		return &native.VM{State: state, Text: "busy with the task " + s.Type}, nil, nil
	}
	at.Task, at.LastTask = "", at.Task
	failure := s.failure()
	switch {
	case failure == "" && s.Type == taskUpload:
		at.Image = imageOf(vm)
	case failure == "" || isAchieved(s.Type, failure):
	case meta.WasDeleted(vm) && isInterruptible(s.Type):
		// The deletion interrupted the task.
	default:
		return nil, taskError(s.Type, failure), nil
	}
	return nil, nil, nil
}

// Types of tasks.
const (
	taskClone   = "qmclone"
	taskUpload  = "imgcopy"
	taskStart   = "qmstart"
	taskDestroy = "qmdestroy"
	taskReboot  = "qmreboot"
)

// isInterruptible reports whether a deletion interrupts a task of the type, instead of waiting for its end.
func isInterruptible(kind string) bool { return kind == taskClone || kind == taskReboot }

// isAchieved reports whether a task failed because there was nothing left to do.
func isAchieved(kind, failure string) bool {
	return kind == taskStart && strings.Contains(failure, "already running") ||
		kind == taskDestroy && strings.Contains(failure, "does not exist")
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// endedAt returns the time when the last task of the VM was first observed to have ended.
func (a *account) endedAt(vm *v1alpha1.VirtualMachine) time.Time {
	at := &vm.Status.AtProvider
	a.mu.Lock()
	defer a.mu.Unlock()
	uuid := meta.GetExternalName(vm)
	if e, ok := a.ended[uuid]; ok && e.task == at.LastTask {
		return e.at
	}
	e := ended{task: at.LastTask, at: a.now()}
	a.ended[uuid] = e
	return e.at
}

// A found is an existing VM.
type found struct {
	entry
	// config is nil if it was not read.
	config config
	// hidden reports whether the VM is a clone in progress, whose configuration has only its lock.
	hidden bool
}

// find returns the VM, or nil if it certainly does not exist.
func (a *account) find(ctx context.Context, vm *v1alpha1.VirtualMachine, since time.Time) (*found, error) {
	at, uuid := &vm.Status.AtProvider, strings.ToLower(meta.GetExternalName(vm))
	if at.ProviderID == "" && at.VMID != 0 && at.Node != "" {
		// A VM is on the node that it was cloned to while it is being created: no list is needed.
		c, there, err := a.readConfig(ctx, at.Node, at.VMID)
		if err == nil && there && c.isOf(uuid) {
			return &found{entry: entry{Type: "qemu", VMID: at.VMID, Node: at.Node}, config: c}, nil
		}
	}
	entries, err := a.listVMs(ctx, since)
	if err != nil {
		return nil, err
	}
	// A VM has its tag as soon as it is configured. A user may have removed it.
	i := slices.IndexFunc(entries, func(e entry) bool { return e.isVM() && uuidOfTags(e.Tags) == uuid })
	if i < 0 {
		i = slices.IndexFunc(entries, func(e entry) bool { return e.isVM() && e.VMID == at.VMID && at.VMID != 0 })
	}
	if i < 0 {
		return nil, a.proveAbsence(ctx, vm)
	}
	f := &found{entry: entries[i]}
	if at.ProviderID != "" && !meta.WasDeleted(vm) && uuidOfTags(f.Tags) == uuid {
		return f, nil // A complete VM: the entry suffices for the status.
	}
	c, there, err := a.readConfig(ctx, f.Node, f.VMID)
	switch {
	case err != nil:
		return nil, err
	case !there:
		return nil, &native.Error{Class: fn.ErrorTransient, Err: fmt.Errorf("the VM with the VMID %d is no longer on node %s", f.VMID, f.Node), Refused: true}
	case c.isOf(uuid):
		f.config = c
		return f, nil
	case c.isHidden() && at.ProviderID == "" && strconv.FormatInt(f.VMID, 10) == vm.GetAnnotations()[v1alpha1.AnnotationVMID]:
		f.hidden = true
		return f, nil
	}
	return nil, nil // Another VM has the VMID.
}

// proveAbsence returns an error if a VM that is not listed may exist: a list omits VMs that the token may not
// read.
func (a *account) proveAbsence(ctx context.Context, vm *v1alpha1.VirtualMachine) error {
	at := &vm.Status.AtProvider
	if at.VMID == 0 {
		return nil
	}
	free, err := a.isFree(ctx, at.VMID)
	if err != nil || free {
		return err
	}
	c, there, err := a.readConfig(ctx, at.Node, at.VMID)
	switch {
	case err != nil && !isForbidden(err):
		return err
	case there && c.isOf(meta.GetExternalName(vm)):
		return &native.Error{Class: fn.ErrorTransient, Err: fmt.Errorf("the VM with the VMID %d is not listed yet", at.VMID), Refused: true}
	case there:
		return nil
	}
	if failed, err := a.isCloneFailed(ctx, vm); err != nil || failed {
		return err
	}
	return &native.Error{Class: fn.ErrorPermissionDenied, Err: fmt.Errorf("a VM or container that the token may not read has the VMID %d: the token needs VM.Audit on /vms/%d", at.VMID, at.VMID)}
}

// isCloneFailed reports whether the last clone for the VM was refused, or its task failed. The VMID that was
// chosen for it may be that of another VM by now.
func (a *account) isCloneFailed(ctx context.Context, vm *v1alpha1.VirtualMachine) (bool, error) {
	if vm.Status.AtProvider.ProviderID != "" || meta.ExternalCreateIncomplete(vm) {
		return false, nil
	}
	upid := vm.GetAnnotations()[v1alpha1.AnnotationCloneTask]
	if upid == "" {
		return !meta.GetExternalCreateFailed(vm).IsZero(), nil
	}
	s, _, err := a.lookAtTask(ctx, upid)
	return s.failure() != "", err
}

// observe returns the state of an existing VM.
func (a *account) observe(ctx context.Context, vm *v1alpha1.VirtualMachine, f found) (native.VM, error) {
	at, p, uuid := &vm.Status.AtProvider, vm.Spec.ForProvider, meta.GetExternalName(vm)
	// An adopted VM was not created for this resource, so its creation is never continued.
	finished, deleting := at.ProviderID != "" || meta.GetExternalCreatePending(vm).IsZero(), meta.WasDeleted(vm)
	out := native.VM{ProviderID: providerID(uuid), HasAddresses: ptr.Deref(p.Agent, true)}
	if lock := f.config["lock"]; f.hidden || !finished && (lock == "clone" || lock == "create") {
		a.views.Remember(uuid, view{hidden: true})
		out.State, out.Text = native.StateCreating, "locked by its clone"
		return out, nil
	}
	if f.config != nil {
		at.MACAddresses = f.config.macs()
		if image := f.config.image(); image != "" {
			at.Image = image
		}
	}
	move := moveNone
	if !finished && !deleting {
		move = nextMove(f.config, p, uuid, imageOf(vm), false)
	}
	status := f.Status
	if deleting || move == moveStart || status == "" {
		var err error
		if status, err = a.powerState(ctx, f.Node, f.VMID); err != nil {
			return out, err
		}
	}
	if status == "unknown" {
		return out, &native.Error{Class: fn.ErrorTransient, Err: fmt.Errorf("node %s of the VM does not respond", f.Node), Refused: true}
	}
	running := status == "running"
	a.views.Remember(uuid, view{config: f.config, running: running, node: f.Node, vmid: f.VMID})
	out.Text = status
	switch {
	case move != moveNone && !(move == moveStart && running):
		out.State, out.Text = native.StateIncomplete, "incomplete, next step: "+string(move)
	case running:
		out.State = native.StateRunning
		if !deleting && out.HasAddresses {
			out.Addresses = a.addresses(ctx, f.Node, f.VMID, at.MACAddresses)
		}
	default:
		out.State = native.StateStopped
	}
	return out, nil
}

func (a *account) powerState(ctx context.Context, node string, vmid int64) (string, error) {
	var s struct {
		Status string `json:"status"`
	}
	err := a.client.Get(ctx, fmt.Sprintf("/nodes/%s/qemu/%d/status/current", node, vmid), &s)
	return s.Status, classify("cannot read the status of the VM", err)
}
