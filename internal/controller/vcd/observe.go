package vcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"k8s.io/utils/ptr"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	nativev1alpha1 "github.com/drover-dev/drover/apis/native/v1alpha1"
	"github.com/drover-dev/drover/apis/vcd/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// A view is the part of an observation that the step after it needs.
type view struct {
	// vm is the VM, or nil if there is none or a task changes it.
	vm *machine
	// leftover is the path of the vApp or the VM that a failed creation has left.
	leftover string
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
	out, err := a.look(ctx, vm, since)
	out.Problem = problem
	return out, err
}

// initialize completes the status from the annotations: a status that was set before a creation is lost.
func initialize(vm *v1alpha1.VirtualMachine) {
	at := &vm.Status.AtProvider
	if at.ProviderID != "" {
		at.ID = strings.TrimPrefix(at.ProviderID, scheme)
		return
	}
	if create := vm.GetAnnotations()[v1alpha1.AnnotationCreateTask]; at.CreateTask != create {
		at.CreateTask, at.Task, at.Step, at.ID, at.VApp, at.CompletedSteps = create, create, "", "", "", nil
	}
}

// lookAtTask observes the task of the VM. While the task runs, it returns the state of the VM. If the task failed,
// it returns the problem once.
func (a *account) lookAtTask(ctx context.Context, vm *v1alpha1.VirtualMachine) (busy *native.VM, problem, err error) {
	at := &vm.Status.AtProvider
	if at.Task == "" {
		return nil, nil, nil
	}
	var t task
	err = a.client.do(ctx, request{method: http.MethodGet, path: pathTask + at.Task}, &t)
	isKnown := !isInvisible(err)
	if err != nil && isKnown {
		return nil, nil, classify("cannot read a task of the VM", err)
	}
	isCreation := at.Task == at.CreateTask
	if isCreation && isKnown {
		at.VApp = t.Owner.uuid()
	}
	if isKnown && t.isRunning() {
		state := native.StateCreating
		if meta.WasDeleted(vm) {
			state = native.StateDeleting
		}
		return &native.VM{State: state, Text: fmt.Sprintf("busy with the task %s (%s, %d%%)", t.Operation, t.Status, t.Progress)}, nil, nil
	}
	if isCreation && t.Status == "success" && at.VApp == "" {
		// Without this error, another VM would be created.
		return nil, nil, &native.Error{Class: fn.ErrorTransient, Err: errors.New("the task that created the VM names no vApp"), Refused: true}
	}
	step := at.Step
	at.Task, at.Step, at.LastTask = "", "", at.Task
	switch {
	case t.Status == "success":
		if step != "" && step != stepCleanUp && !slices.Contains(at.CompletedSteps, step) {
			at.CompletedSteps = append(at.CompletedSteps, step)
		}
	case !isKnown || meta.WasDeleted(vm) && isCreation:
		// The VM is observed below.
	default:
		return nil, taskError(t), nil
	}
	return nil, nil, nil
}

// look finds the VM and returns its state.
func (a *account) look(ctx context.Context, vm *v1alpha1.VirtualMachine, since time.Time) (native.VM, error) {
	at := &vm.Status.AtProvider
	if at.ID != "" {
		m, err := a.read(ctx, uuidOf(at.ID))
		if err != nil {
			return native.VM{}, err
		}
		if m != nil {
			return a.observe(ctx, vm, *m)
		}
		return a.searchAgain(ctx, vm)
	}
	if at.VApp != "" {
		out, found, err := a.lookIntoVApp(ctx, vm)
		if err != nil || found {
			return out, err
		}
	}
	found, err := a.search(ctx, vm, since)
	if err != nil || found == nil {
		return native.VM{}, err
	}
	at.VDC = uuidOf(found.VDC)
	return a.readListed(ctx, vm, found.uuid())
}

// readListed returns the state of a VM that a query or a vApp lists.
func (a *account) readListed(ctx context.Context, vm *v1alpha1.VirtualMachine, uuid string) (native.VM, error) {
	m, err := a.read(ctx, uuid)
	switch {
	case err != nil:
		return native.VM{}, err
	case m == nil:
		// Without this error, another VM would be created.
		return native.VM{}, &native.Error{Class: fn.ErrorTransient, Err: errors.New("the VM is listed, and cannot be read"), Refused: true}
	}
	return a.observe(ctx, vm, *m)
}

// lookIntoVApp finds the VM in the vApp that the creation has made for it. The second value is false if there is no such
// vApp any longer.
func (a *account) lookIntoVApp(ctx context.Context, vm *v1alpha1.VirtualMachine) (native.VM, bool, error) {
	at := &vm.Status.AtProvider
	var parent vApp
	err := a.client.do(ctx, request{method: http.MethodGet, path: pathVApp + at.VApp}, &parent)
	switch {
	case isInvisible(err):
		return native.VM{}, false, a.proveVisibility(ctx, vm)
	case err != nil:
		return native.VM{}, false, classify("cannot read the vApp of the VM", err)
	case parent.Status == statusFailedCreation || len(parent.VMs) == 0:
		a.views.Remember(meta.GetExternalName(vm), view{leftover: pathVApp + at.VApp})
		return native.VM{State: native.StateIncomplete, Text: "creation failed, next step: delete its vApp"}, true, nil
	}
	at.VDC = parentOf(parent.Links, "vdc+xml")
	out, err := a.readListed(ctx, vm, parent.VMs[0].uuid())
	return out, true, err
}

// search finds a VM whose ID is not known, by a query. It returns nil if there is none.
func (a *account) search(ctx context.Context, vm *v1alpha1.VirtualMachine, since time.Time) (*record, error) {
	name := meta.GetExternalName(vm)
	created, own := !meta.GetExternalCreatePending(vm).IsZero(), name == string(vm.GetUID())
	switch {
	case !created && own:
		// The provider has not started to create the VM.
		return nil, nil
	case created && vm.Spec.ForProvider.Name != nil:
		found, err := a.findByName(ctx, *vm.Spec.ForProvider.Name, name)
		return first(found), err
	}
	return a.adopt(ctx, name, since)
}

// first returns the VM with the lowest UUID, or nil. The same one is chosen each time.
func first(found []record) *record {
	if len(found) == 0 {
		return nil
	}
	out := slices.MinFunc(found, func(a, b record) int { return cmp.Compare(a.uuid(), b.uuid()) })
	return &out
}

// adopt returns the VM that the provider did not create for the managed resource: the external name is in its
// description, or is its UUID.
func (a *account) adopt(ctx context.Context, externalName string, since time.Time) (*record, error) {
	vms, complete, err := a.listVMs(ctx, since)
	if err != nil {
		return nil, err
	}
	if r := first(described(vms, externalName)); r != nil {
		return r, nil
	}
	if i := slices.IndexFunc(vms, func(r record) bool { return r.uuid() == strings.ToLower(externalName) }); i >= 0 {
		return &vms[i], nil
	}
	if !complete {
		return nil, &native.Error{Class: fn.ErrorTransient, Err: errors.New("the list of VMs changed while it was read"), Refused: true}
	}
	return nil, nil
}

// read returns the VM with a UUID, or nil if the user sees none.
func (a *account) read(ctx context.Context, uuid string) (*machine, error) {
	var m machine
	err := a.client.do(ctx, request{method: http.MethodGet, path: pathVM + uuid}, &m)
	if isInvisible(err) {
		return nil, nil
	}
	if err == nil && uuidOf(m.ID) != uuid {
		err = errors.New("the response has another VM")
	}
	return &m, classify("cannot read the VM", err)
}

// searchAgain searches for a VM that could not be read by its ID. It returns a VM without a state only if it proved that
// the VM does not exist.
func (a *account) searchAgain(ctx context.Context, vm *v1alpha1.VirtualMachine) (native.VM, error) {
	at := &vm.Status.AtProvider
	lost := uuidOf(at.ID)
	var found []record
	var err error
	complete := true
	if created := !meta.GetExternalCreatePending(vm).IsZero(); created && vm.Spec.ForProvider.Name != nil {
		found, err = a.findByName(ctx, *vm.Spec.ForProvider.Name, meta.GetExternalName(vm))
	} else {
		found, complete, err = a.listVMs(ctx, a.now())
	}
	switch {
	case err != nil:
		return native.VM{}, err
	case slices.ContainsFunc(found, func(r record) bool { return r.uuid() == lost }):
		return native.VM{}, &native.Error{Class: fn.ErrorPermissionDenied, Err: errors.New("a query lists the VM, but the user may not read it"), Refused: true}
	case !complete:
		return native.VM{}, &native.Error{Class: fn.ErrorTransient, Err: errors.New("the list of VMs changed while it was read"), Refused: true}
	}
	if err := a.proveVisibility(ctx, vm); err != nil {
		return native.VM{}, err
	}
	at.GuestAddresses = nil
	if !meta.WasDeleted(vm) {
		return native.VM{}, nil
	}
	// Two creations may have succeeded. The other VM is deleted too.
	other := first(described(found, meta.GetExternalName(vm)))
	if other == nil {
		return native.VM{}, nil
	}
	return a.readListed(ctx, vm, other.uuid())
}

// proveVisibility returns an error if a VM that the user does not see may exist: the user may have lost the access to the
// VDC, and another user may see other VMs.
func (a *account) proveVisibility(ctx context.Context, vm *v1alpha1.VirtualMachine) error {
	at := &vm.Status.AtProvider
	s, err := a.client.login(ctx, "")
	if err != nil {
		return classify("cannot log in", err)
	}
	if at.User != "" && at.User != s.User {
		return &native.Error{Class: fn.ErrorTransient, Refused: true, Err: fmt.Errorf(
			"the user %s does not see the VM, which the user %s saw last: nothing can be concluded about the VM", s.User, at.User)}
	}
	if at.VDC == "" {
		return nil
	}
	err = a.client.do(ctx, request{method: http.MethodGet, path: "/api/vdc/" + at.VDC}, nil)
	if isInvisible(err) {
		return &native.Error{Class: fn.ErrorTransient, Refused: true, Err: fmt.Errorf(
			"the user does not see the virtual data center %s of the VM: nothing can be concluded about the VM", at.VDC)}
	}
	return classify("cannot read the virtual data center of the VM", err)
}

// observe returns the state of an existing VM.
func (a *account) observe(ctx context.Context, vm *v1alpha1.VirtualMachine, m machine) (native.VM, error) {
	at := &vm.Status.AtProvider
	s, err := a.client.login(ctx, "")
	if err != nil {
		return native.VM{}, classify("cannot log in", err)
	}
	// An adopted VM was not created for this resource, so its creation is never continued.
	finished := at.ProviderID != "" || meta.GetExternalCreatePending(vm).IsZero()
	at.ID, at.User, at.MACAddresses = urn+m.uuid(), s.User, m.macs()
	if parent := parentOf(m.Links, "vApp+xml"); parent != "" {
		at.VApp = parent
	}
	out := native.VM{ProviderID: providerID(m.uuid()), Text: textOf(m.Status)}
	deleted := meta.WasDeleted(vm)
	if i := slices.IndexFunc(m.Tasks, task.isRunning); i >= 0 && (deleted || !finished) {
		// The response that named the task was lost.
		out.State, out.Text = native.StateCreating, "busy with the task "+m.Tasks[i].Operation
		if deleted {
			out.State = native.StateDeleting
		}
		return out, nil
	}
	v := view{vm: &m}
	switch m.Status {
	case statusPoweredOn:
		out.State = native.StateRunning
		var reported []nativev1alpha1.Address
		if out.Addresses, reported = m.addresses(); reported != nil {
			at.GuestAddresses = reported
		}
		out.HasAddresses = len(m.Networks) > 0 && len(at.GuestAddresses) == 0
	case statusFailedCreation:
		out.State = native.StateIncomplete
		if finished {
			out.State = native.StateFailed
		}
		v.leftover = pathVM + m.uuid()
		out.Text = "creation failed, next step: delete the VM"
	case statusPoweredOff, statusPartlyOff:
		if out.State = native.StateStopped; !finished {
			out.State, out.Text = native.StateIncomplete, "created, next step: "+nextStep(vm)
		}
	case statusSuspended:
		out.State = native.StateStopped
	default:
		if out.State = native.StateStopped; !deleted {
			return out, &native.Error{Class: fn.ErrorTransient, Err: fmt.Errorf("the status of the VM is %s", out.Text), Refused: true}
		}
	}
	a.views.Remember(meta.GetExternalName(vm), v)
	return out, nil
}

func textOf(status int) string {
	if text, ok := statusText[status]; ok {
		return text
	}
	return fmt.Sprintf("status %d", status)
}

// parentOf returns the UUID of the parent of an object, whose type has an ending.
func parentOf(links []link, ending string) string {
	i := slices.IndexFunc(links, func(l link) bool { return l.Rel == "up" && strings.HasSuffix(l.Type, "vcloud."+ending) })
	if i < 0 {
		return ""
	}
	return links[i].uuid()
}

// macs returns the MAC addresses of the network cards.
func (m machine) macs() []string {
	var out []string
	for _, n := range m.Networks {
		if n.MAC != "" {
			out = append(out, strings.ToLower(n.MAC))
		}
	}
	return out
}

// addresses returns the addresses that Cloud Director assigned to the VM, and the addresses that the guest reports
// through VMware Tools. The guest chooses the latter.
func (m machine) addresses() (assigned, reported []nativev1alpha1.Address) {
	add := func(to *[]nativev1alpha1.Address, kind, text string) {
		ip, err := netip.ParseAddr(text)
		if err != nil || ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsUnspecified() || ip.IsMulticast() {
			return
		}
		address := nativev1alpha1.Address{Type: kind, Address: ip.Unmap().WithZone("").String()}
		if !slices.Contains(assigned, address) && !slices.Contains(*to, address) {
			*to = append(*to, address)
		}
	}
	listOf := func(mode string) *[]nativev1alpha1.Address {
		if mode == string(v1alpha1.IPAllocationPool) || mode == "MANUAL" {
			return &assigned
		}
		return &reported
	}
	for _, n := range m.Networks {
		add(listOf(n.Mode), nativev1alpha1.AddressInternal, n.IP)
		add(listOf(n.SecondaryMode), nativev1alpha1.AddressInternal, n.SecondaryIP)
		add(&assigned, nativev1alpha1.AddressExternal, n.ExternalIP)
	}
	return assigned, reported
}
