package nutanix

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"k8s.io/utils/ptr"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	nativev1alpha1 "github.com/drover-dev/drover/apis/native/v1alpha1"
	"github.com/drover-dev/drover/apis/nutanix/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// Power states of VMs.
const (
	powerOn     = "ON"
	powerOff    = "OFF"
	powerPaused = "PAUSED"
)

// A machine is a VM of the API, with the fields that the provider reads.
type machine struct {
	ExtID       string    `json:"extId"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	PowerState  string    `json:"powerState"`
	CreateTime  time.Time `json:"createTime"`
	Cluster     reference `json:"cluster"`
	Host        reference `json:"host"`
	NICs        []nic     `json:"nics"`
	Disks       []vmDisk  `json:"disks"`
}

// A vmDisk is a disk of a VM.
type vmDisk struct {
	ExtID   string `json:"extId"`
	Address struct {
		Bus   string `json:"busType"`
		Index int    `json:"index"`
	} `json:"diskAddress"`
	Backing struct {
		SizeBytes int64 `json:"diskSizeBytes"`
	} `json:"backingInfo"`
}

// tooSmall returns the UUID of the system disk, if the disk is smaller than wanted. Some versions of the API create a
// copy of an image with the size of the image.
func (m machine) tooSmall(p v1alpha1.VirtualMachineParameters) string {
	for _, d := range m.Disks {
		if size := d.Backing.SizeBytes; d.Address.Bus == systemBus && d.Address.Index == 0 && size > 0 && size < ptr.Deref(p.SystemDiskSizeGiB, 0)*gib {
			return d.ExtID
		}
	}
	return ""
}

type reference struct {
	ExtID string `json:"extId"`
}

// A nic is a network card. Version 4.1 has nicBackingInfo and nicNetworkInfo beside the older backingInfo and
// networkInfo.
type nic struct {
	Backing     backing     `json:"backingInfo"`
	NICBacking  backing     `json:"nicBackingInfo"`
	Network     networkInfo `json:"networkInfo"`
	NICNetworks networkInfo `json:"nicNetworkInfo"`
}

type backing struct {
	MAC string `json:"macAddress"`
}

type networkInfo struct {
	IPv4Config struct {
		Address   ipAddress   `json:"ipAddress"`
		Secondary []ipAddress `json:"secondaryIpAddressList"`
	} `json:"ipv4Config"`
	IPv4Info struct {
		Learned []ipAddress `json:"learnedIpAddresses"`
	} `json:"ipv4Info"`
	IPv6Info struct {
		Learned []ipAddress `json:"learnedIpv6Addresses"`
	} `json:"ipv6Info"`
}

type ipAddress struct {
	Value string `json:"value"`
}

// addresses returns the addresses that the IP address management of Nutanix assigned to the VM, and the addresses
// that Nutanix learned from the traffic of the guest, which the guest chooses.
func (m machine) addresses() (assigned, learned []nativev1alpha1.Address) {
	add := func(to []nativev1alpha1.Address, list ...ipAddress) []nativev1alpha1.Address {
		for _, text := range list {
			ip, err := netip.ParseAddr(text.Value)
			if err != nil || ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsUnspecified() || ip.IsMulticast() {
				continue
			}
			address := nativev1alpha1.Address{Type: nativev1alpha1.AddressInternal, Address: ip.Unmap().WithZone("").String()}
			if !slices.Contains(to, address) && !slices.Contains(assigned, address) {
				to = append(to, address)
			}
		}
		return to
	}
	for _, n := range m.NICs {
		for _, i := range []networkInfo{n.Network, n.NICNetworks} {
			assigned = add(assigned, append([]ipAddress{i.IPv4Config.Address}, i.IPv4Config.Secondary...)...)
		}
	}
	for _, n := range m.NICs {
		for _, i := range []networkInfo{n.Network, n.NICNetworks} {
			learned = add(learned, append(slices.Clone(i.IPv4Info.Learned), i.IPv6Info.Learned...)...)
		}
	}
	return assigned, learned
}

// macs returns the MAC addresses of the network cards.
func (m machine) macs() []string {
	var out []string
	for _, n := range m.NICs {
		for _, b := range []backing{n.Backing, n.NICBacking} {
			if mac := strings.ToLower(b.MAC); mac != "" && !slices.Contains(out, mac) {
				out = append(out, mac)
			}
		}
	}
	return out
}

// A view is the part of an observation that the step after it needs.
type view struct {
	// uuid of the VM, or "" if there is no VM or a task changes it.
	uuid string
	// etag is the version of the VM, which a change needs.
	etag string
	// power is the power state of the VM.
	power string
	// tooSmall is the UUID of a system disk that must grow before the VM is powered on.
	tooSmall string
}

// FindLost is never called, because the external name is known before the creation.
func (a *account) FindLost(context.Context, *v1alpha1.VirtualMachine) (string, error) { return "", nil }

// Get returns the VM with the external name.
func (a *account) Get(ctx context.Context, vm *v1alpha1.VirtualMachine, since time.Time) (native.VM, error) {
	initialize(vm)
	a.views.Recall(meta.GetExternalName(vm))
	busy, problem, err := a.lookAtTask(ctx, vm)
	if err != nil || busy != nil {
		return ptr.Deref(busy, native.VM{}), err
	}
	m, etag, err := a.find(ctx, vm, since)
	if errors.Is(err, errNotReadable) {
		return native.VM{State: native.StateCreating, Text: "created, and not readable yet"}, nil
	}
	if err != nil {
		return native.VM{}, err
	}
	if m == nil {
		vm.Status.AtProvider.LearnedAddresses = nil
		return native.VM{Problem: problem}, nil
	}
	out, err := a.observe(vm, *m, etag)
	out.Problem = problem
	return out, err
}

// initialize completes the status from the annotations: a status that was set before a creation is lost.
func initialize(vm *v1alpha1.VirtualMachine) {
	at := &vm.Status.AtProvider
	if at.ProviderID != "" {
		at.UUID = strings.TrimPrefix(at.ProviderID, scheme)
		return
	}
	if create := vm.GetAnnotations()[v1alpha1.AnnotationCreateTask]; at.CreateTask != create {
		at.CreateTask, at.Task, at.UUID = create, create, ""
	}
}

// lookAtTask observes the task of the VM. While the task runs, it returns the state of the VM, unless the task reboots the
// VM: the VM exists meanwhile, and a guest that hangs must not delay a reset. If the task failed, lookAtTask returns the
// problem once.
func (a *account) lookAtTask(ctx context.Context, vm *v1alpha1.VirtualMachine) (busy *native.VM, problem, err error) {
	at := &vm.Status.AtProvider
	if at.Task == "" {
		return nil, nil, nil
	}
	t, known, err := a.readTask(ctx, at.Task)
	if err != nil {
		return nil, nil, err
	}
	isCreation := at.Task == at.CreateTask
	if uuid := t.vm(); isCreation && uuid != "" {
		at.UUID = strings.ToLower(uuid)
	}
	if known && !t.hasEnded() {
		if at.ProviderID != "" && !meta.WasDeleted(vm) {
			return nil, nil, nil
		}
		state := native.StateCreating
		if meta.WasDeleted(vm) && !isCreation {
			state = native.StateDeleting
		}
		return &native.VM{State: state, Text: fmt.Sprintf("busy with the task %s (%s, %d%%)", t.Operation, t.Status, t.Progress)}, nil, nil
	}
	if isCreation && t.Status == "SUCCEEDED" && at.UUID == "" {
		// Without this error, another VM would be created.
		return nil, nil, &native.Error{Class: fn.ErrorTransient, Err: errors.New("the task that created the VM names no VM"), Refused: true}
	}
	at.Task, at.LastTask = "", at.Task
	switch {
	case !known || t.Status == "SUCCEEDED":
	case isCreation && !meta.WasDeleted(vm):
		at.UUID = ""
		return nil, taskError(t), nil
	case meta.WasDeleted(vm) && (isCreation || t.failure().Group == "VM_NOT_FOUND"):
		// The result is as desired.
	default:
		return nil, taskError(t), nil
	}
	return nil, nil, nil
}

// propagation is longer than the time in which a VM that was just created may be unknown to a part of the services of
// Prism Central.
const propagation = time.Minute

var errNotReadable = errors.New("the VM was created, and is not readable yet")

// isPropagating reports whether the VM was created a moment ago, so that it may exist although it cannot be read. A
// restart only prolongs that moment. Without it, a second VM would be created.
func (a *account) isPropagating(vm *v1alpha1.VirtualMachine) bool {
	at := &vm.Status.AtProvider
	if at.CreateTask == "" || at.LastTask != at.CreateTask {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	since, ok := a.unreadable[at.CreateTask]
	if !ok {
		since = a.now()
		a.unreadable[at.CreateTask] = since
	}
	if a.now().Sub(since) < propagation {
		return true
	}
	delete(a.unreadable, at.CreateTask)
	return false
}

func (a *account) forgetUnreadable(createTask string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.unreadable, createTask)
}

// find returns the VM and its version, or nil if it certainly does not exist.
func (a *account) find(ctx context.Context, vm *v1alpha1.VirtualMachine, since time.Time) (*machine, string, error) {
	at, name := &vm.Status.AtProvider, meta.GetExternalName(vm)
	if at.UUID != "" {
		m, etag, err := a.read(ctx, at.UUID)
		if err != nil || m != nil {
			return m, etag, err
		}
		if at.ProviderID != "" {
			return nil, "", a.proveAbsence(ctx, vm)
		}
		if a.isPropagating(vm) {
			return nil, "", errNotReadable
		}
		at.UUID = ""
	}
	created, own := !meta.GetExternalCreatePending(vm).IsZero(), name == string(vm.GetUID())
	var found *machine
	var err error
	switch {
	case !created && own:
		// The provider has not started to create the VM.
		return nil, "", nil
	case created && vm.Spec.ForProvider.Name != nil:
		found, err = a.findByName(ctx, *vm.Spec.ForProvider.Name, name)
	default:
		found, err = a.adopt(ctx, name, since)
	}
	if err != nil || found == nil {
		return nil, "", err
	}
	return a.read(ctx, found.ExtID)
}

// adopt returns the VM that the provider did not create for the managed resource: the external name is in its
// description, or is its UUID.
func (a *account) adopt(ctx context.Context, externalName string, since time.Time) (*machine, error) {
	vms, complete, err := a.listVMs(ctx, since)
	if err != nil {
		return nil, err
	}
	if m := pick(vms, externalName); m != nil {
		return m, nil
	}
	if i := slices.IndexFunc(vms, func(m machine) bool { return strings.EqualFold(m.ExtID, externalName) }); i >= 0 {
		return &vms[i], nil
	}
	if !complete {
		return nil, &native.Error{Class: fn.ErrorTransient, Err: errors.New("the list of VMs changed while it was read"), Refused: true}
	}
	return nil, nil
}

// read returns the VM with a UUID and its version, or nil if there is none.
func (a *account) read(ctx context.Context, uuid string) (*machine, string, error) {
	m, etag, err := get[machine](ctx, a.client, pathVMs+"/"+uuid)
	if isNotFound(err) {
		return nil, "", nil
	}
	if err == nil && !strings.EqualFold(m.ExtID, uuid) {
		err = errors.New("the response has another VM")
	}
	return &m, etag, classify("cannot read the VM", err)
}

// proveAbsence returns an error if a VM that Prism Central does not have may exist: Prism Central forgets all VMs of
// a cluster that is unregistered.
func (a *account) proveAbsence(ctx context.Context, vm *v1alpha1.VirtualMachine) error {
	at := &vm.Status.AtProvider
	if at.Cluster == "" {
		return nil
	}
	_, _, err := get[cluster](ctx, a.client, pathClusters+"/"+at.Cluster)
	if isNotFound(err) {
		return &native.Error{Class: fn.ErrorTransient, Refused: true, Err: fmt.Errorf(
			"the cluster %s of the VM is not registered with Prism Central: nothing can be concluded about the VM", at.Cluster)}
	}
	return classify("cannot read the cluster of the VM", err)
}

// observe returns the state of an existing VM.
func (a *account) observe(vm *v1alpha1.VirtualMachine, m machine, etag string) (native.VM, error) {
	at := &vm.Status.AtProvider
	// An adopted VM was not created for this resource, so its creation is never continued.
	finished := at.ProviderID != "" || meta.GetExternalCreatePending(vm).IsZero()
	at.UUID, at.Cluster, at.Host, at.MACAddresses = strings.ToLower(m.ExtID), m.Cluster.ExtID, m.Host.ExtID, m.macs()
	out := native.VM{ProviderID: providerID(m.ExtID), Text: m.PowerState}
	v := view{uuid: at.UUID, etag: etag, power: m.PowerState}
	if !finished {
		v.tooSmall = m.tooSmall(vm.Spec.ForProvider)
	}
	a.views.Remember(meta.GetExternalName(vm), v)
	a.forgetUnreadable(at.CreateTask)
	switch m.PowerState {
	case powerOn:
		out.State = native.StateRunning
		var learned []nativev1alpha1.Address
		if out.Addresses, learned = m.addresses(); learned != nil {
			at.LearnedAddresses = learned
		}
		out.HasAddresses = len(m.NICs) > 0 && len(at.LearnedAddresses) == 0
	case powerOff:
		if out.State = native.StateStopped; !finished {
			out.State, out.Text = native.StateIncomplete, "created, next step: power on"
		}
		if v.tooSmall != "" {
			out.Text = "created, next step: grow the system disk"
		}
	case powerPaused:
		out.State = native.StateStopped
	default:
		if !meta.WasDeleted(vm) {
			return out, &native.Error{Class: fn.ErrorTransient, Err: fmt.Errorf("the power state of the VM is %q", m.PowerState), Refused: true}
		}
		out.State = native.StateStopped
	}
	return out, nil
}
