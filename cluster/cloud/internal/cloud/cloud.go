package cloud

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/drover-dev/drover/internal/console"
	"github.com/drover-dev/drover/internal/localcloud"

	"github.com/drover-dev/drover/cluster/cloud/internal/guest"
	"github.com/drover-dev/drover/cluster/cloud/internal/kubelet"
	"github.com/drover-dev/drover/cluster/cloud/internal/real"
	"github.com/drover-dev/drover/cluster/cloud/internal/store"
)

// Guests runs the guests of simulated VMs. Start and Stop do not wait.
type Guests interface {
	Start(guest.VM, guest.Host)
	Stop(id string)
}

// Machines runs real VMs. Start, Stop and Delete do not wait.
type Machines interface {
	ImageNames() ([]string, error)
	Start(real.VM, real.Host)
	Stop(id string)
	// Delete stops a VM, and deletes its disk.
	Delete(id string)
	// Keep deletes the files of all VMs except these.
	Keep(ids []string) error
}

// account is the state of the cloud without its VMs.
type account struct {
	Settings localcloud.Settings `json:"settings"`
	Quota    localcloud.Quota    `json:"quota"`
	Faults   []localcloud.Fault  `json:"faults"`
}

const accountFile = "account"

// Cloud is one local cloud. It is safe for concurrent use. Errors of the API are *localcloud.Error.
// Any other error is a failure of the computer.
type Cloud struct {
	clock    clock.Clock
	guests   Guests
	machines Machines
	log      *slog.Logger
	vmFiles  *store.Dir
	files    *store.Dir
	consoles consoles
	history  history
	wake     chan struct{}

	mu      sync.Mutex
	vms     map[string]*Record
	account account
}

// Open reads the cloud in a directory, or creates one with these settings. VMs that were running
// continue to run.
func Open(dir string, settings localcloud.Settings, guests Guests, machines Machines, c clock.Clock, log *slog.Logger) (*Cloud, error) {
	if err := validateSettings(settings); err != nil {
		return nil, err
	}
	cl := &Cloud{clock: c, guests: guests, machines: machines, log: log, consoles: consoles{filepath.Join(dir, "consoles")}, history: history{filepath.Join(dir, "history")},
		wake: make(chan struct{}, 1), vms: map[string]*Record{}, account: account{Settings: settings}}
	var err error
	if cl.files, err = store.Open(dir); err != nil {
		return nil, err
	}
	if cl.vmFiles, err = store.Open(filepath.Join(dir, "vms")); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cl.consoles.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	if _, err := cl.files.Get(accountFile, &cl.account); err != nil {
		return nil, err
	}
	ids, err := cl.vmFiles.Names()
	if err != nil {
		return nil, err
	}
	if err := machines.Keep(ids); err != nil {
		return nil, err
	}
	for _, id := range ids {
		r := &Record{}
		if _, err := cl.vmFiles.Get(id, r); err != nil {
			return nil, err
		}
		cl.vms[id] = r
		if r.on() {
			cl.start(r, false)
		}
	}
	_, err = cl.Advance()
	return cl, err
}

// Run advances VMs as time passes, until the context ends.
func (c *Cloud) Run(ctx context.Context) {
	for {
		next, err := c.Advance()
		if err != nil {
			c.log.Error("cannot move VMs on", "err", err)
			next = c.clock.Now().Add(time.Second)
		}
		var timer <-chan time.Time
		if !next.IsZero() {
			timer = c.clock.After(next.Sub(c.clock.Now()))
		}
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		case <-timer:
		}
	}
}

// Advance moves every VM to its state at the current time. It returns the time of the next step of
// any VM, zero if there is none.
func (c *Cloud) Advance() (next time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.advance()
}

func (c *Cloud) advance() (next time.Time, err error) {
	var errs []error
	for _, r := range c.vms {
		moved, o := advance(*r, c.clock.Now())
		if !o.next.IsZero() && (next.IsZero() || o.next.Before(next)) {
			next = o.next
		}
		switch {
		case o.gone:
			errs = append(errs, c.remove(moved.VM.ID))
		case o.changed:
			errs = append(errs, c.put(moved))
		}
	}
	return next, errors.Join(errs...)
}

// put writes a record, and then starts or stops the VM's guest accordingly. The history is written
// first, so that it has every creation, even if the process is killed in between.
func (c *Cloud) put(r Record) error {
	if kind := changeOf(c.vms[r.VM.ID], &r); kind != "" {
		if err := c.history.add(c.clock.Now(), kind, &r); err != nil {
			return err
		}
	}
	if err := c.vmFiles.Put(r.VM.ID, r); err != nil {
		return err
	}
	old := c.vms[r.VM.ID]
	c.vms[r.VM.ID] = &r
	switch {
	case r.on():
		c.start(&r, old != nil && !old.Booted)
	case old != nil && old.on():
		c.stop(&r)
	}
	return nil
}

// remove deletes a VM, and everything that runs of it.
func (c *Cloud) remove(id string) error {
	if err := c.history.add(c.clock.Now(), localcloud.ChangeGone, c.vms[id]); err != nil {
		return err
	}
	if err := c.vmFiles.Delete(id); err != nil {
		return err
	}
	isReal := c.vms[id].Real
	delete(c.vms, id)
	if isReal {
		c.machines.Delete(id)
	} else {
		c.guests.Stop(id)
	}
	return c.consoles.remove(id)
}

func (c *Cloud) stop(r *Record) {
	if r.Real {
		c.machines.Stop(r.VM.ID)
		return
	}
	c.guests.Stop(r.VM.ID)
}

func (c *Cloud) start(r *Record, firstBoot bool) {
	s := sizes[r.VM.Size]
	providerID := r.VM.ProviderID
	if r.NoProviderID {
		providerID = ""
	}
	if r.Real {
		c.machines.Start(real.VM{
			ID: r.VM.ID, Name: r.VM.Name, Image: r.VM.Image, IP: ip(r.Network), ProviderID: providerID, UserData: r.UserData,
			CPUs: int(s.cpu.Value()), MemoryMiB: int(s.memory.Value() >> 20),
		}, host{c, r.VM.ID})
		return
	}
	c.guests.Start(guest.VM{
		Facts: kubelet.Facts{
			ID: r.VM.ID, Name: r.VM.Name, Zone: r.VM.Zone, Size: r.VM.Size, ProviderID: providerID,
			BootID: fmt.Sprintf("%s-%d", r.VM.ID, r.Boots), OSImage: images[r.VM.Image], IP: ip(r.Network), PodCIDR: podCIDR(r.Network), CPU: s.cpu, Memory: s.memory,
		},
		UserData: r.UserData, FirstBoot: firstBoot, State: r.Kubelet,
	}, host{c, r.VM.ID})
}

// Create creates a VM. If lose is not nil, a fault requests that the answer is lost after this
// time: the VM exists nevertheless.
func (c *Cloud) Create(req localcloud.CreateVMRequest) (vm localcloud.VM, lose *time.Duration, err error) {
	if req.Zone == "" {
		req.Zone = localcloud.DefaultZone
	}
	available, err := c.Images()
	if err != nil {
		return vm, nil, err
	}
	if err := validateCreate(&req, available); err != nil {
		return vm, nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.advance(); err != nil {
		return vm, nil, err
	}
	if q := c.account.Quota.VMs; q > 0 && len(c.vms) >= q {
		return vm, nil, localcloud.NewError(localcloud.CodeQuotaExceeded, "the quota of %d VMs is used up", q)
	}
	network, err := networkFor(req.Address, c.vms)
	if err != nil {
		return vm, nil, err
	}
	e, left := hit(c.account.Faults, req.Name, req.Size, req.Tags)
	if len(left) != len(c.account.Faults) || !slices.EqualFunc(left, c.account.Faults, sameFault) {
		// Write the fault before the VM: a fault must not hit more often than requested.
		if err := c.putAccount(func(a *account) { a.Faults = left }); err != nil {
			return vm, nil, err
		}
	}
	if e.refuse != nil {
		return vm, nil, e.refuse
	}
	r := c.newRecord(req, network, e)
	if err := c.put(r); err != nil {
		return vm, nil, err
	}
	c.note(r.VM.ID, "created VM %s in zone %s", r.VM.ID, r.VM.Zone)
	c.poke()
	if e.loseAnswer {
		lose = &e.loseAfter
	}
	return show(&r), lose, nil
}

func sameFault(a, b localcloud.Fault) bool { return a.ID == b.ID && a.Count == b.Count }

func (c *Cloud) newRecord(req localcloud.CreateVMRequest, network int, e effects) Record {
	id := c.newID("vm-")
	now := c.clock.Now().UTC()
	r := Record{
		VM: localcloud.VM{
			ID: id, Name: req.Name, Image: req.Image, Size: req.Size, Zone: req.Zone, Tags: maps.Clone(req.Tags),
			State: localcloud.StatePending, ProviderID: "local:///" + req.Zone + "/" + id, CreatedAt: now,
		},
		UserData: req.UserData, Network: network, Real: !isSimulated(req.Image), NeverBoots: e.neverBoots, NoProviderID: e.noProviderID,
	}
	r.RunAt = now.Add(time.Duration(c.account.Settings.CreateTime))
	r.BootAt = r.RunAt.Add(time.Duration(c.account.Settings.BootTime) + e.bootLater)
	if e.failure != nil {
		at := now.Add(e.failAfter)
		r.FailAt, r.Failure = &at, e.failure
	}
	return r
}

func (c *Cloud) newID(prefix string) string {
	for {
		var b [5]byte
		_, _ = rand.Read(b[:]) // It never fails.
		id := prefix + hex.EncodeToString(b[:])
		if _, taken := c.vms[id]; !taken {
			return id
		}
	}
}

// Get returns a VM.
func (c *Cloud) Get(id string) (localcloud.VM, error) {
	r, err := c.find(id)
	if err != nil {
		return localcloud.VM{}, err
	}
	vm := show(&r)
	if !mayExplain(&r, c.clock.Now()) {
		return vm, nil
	}
	text, err := c.consoles.read(id)
	vm.Console = console.Excerpt(text)
	return vm, err
}

// List returns the VMs that match, oldest first.
func (c *Cloud) List(o localcloud.ListVMsOptions) (localcloud.VMList, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.advance(); err != nil {
		return localcloud.VMList{}, err
	}
	fault, left := hitList(c.account.Faults, o)
	if fault == nil {
		return localcloud.VMList{Items: c.list(o)}, nil
	}
	if err := c.putAccount(func(a *account) { a.Faults = left }); err != nil {
		return localcloud.VMList{}, err
	}
	if fault.Kind == localcloud.FaultListFails {
		return localcloud.VMList{}, localcloud.NewError(fault.Code, "%s", fault.Message)
	}
	return withoutAZone(c.list(o)), nil
}

// withoutAZone returns the VMs without those in the zone of the first one.
func withoutAZone(vms []localcloud.VM) localcloud.VMList {
	zone := localcloud.DefaultZone
	if len(vms) > 0 {
		zone = vms[0].Zone
	}
	rest := slices.DeleteFunc(vms, func(vm localcloud.VM) bool { return vm.Zone == zone })
	return localcloud.VMList{Items: rest, Unreachable: []string{zone}}
}

func (c *Cloud) list(o localcloud.ListVMsOptions) []localcloud.VM {
	out := []localcloud.VM{}
	for _, r := range c.vms {
		if (o.Name == "" || o.Name == r.VM.Name) && hasTags(r.VM.Tags, o.Tags) {
			out = append(out, show(r))
		}
	}
	slices.SortFunc(out, func(a, b localcloud.VM) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// SetTags replaces a VM's tags.
func (c *Cloud) SetTags(id string, tags map[string]string) (localcloud.VM, error) {
	if err := validateTags("tags", tags); err != nil {
		return localcloud.VM{}, err
	}
	r, err := c.change(id, func(r Record) Record {
		r.VM.Tags = maps.Clone(tags)
		return r
	})
	return show(&r), err
}

// Delete starts the deletion of a VM. Its guest ends at once.
func (c *Cloud) Delete(id string) error {
	_, err := c.change(id, func(r Record) Record {
		return terminate(r, c.clock.Now().UTC().Add(time.Duration(c.account.Settings.ShutdownTime)))
	})
	c.poke()
	return err
}

// Reboot powers off a running VM without a shutdown, and boots it again. Its disk is kept, and a kubelet that had stopped
// starts again.
func (c *Cloud) Reboot(id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, err := c.lookUp(id)
	if err != nil {
		return err
	}
	if r.VM.State != localcloud.StateRunning || !r.Booted {
		return localcloud.NewError(localcloud.CodeInvalidRequest, "VM %q is %s and nothing runs in it: only a VM that runs can be rebooted", id, r.VM.State)
	}
	c.note(id, "rebooted")
	c.stop(&r)
	r.Boots, r.KubeletStopped = r.Boots+1, false
	return c.put(r)
}

// History returns the changes of all VMs, including deleted ones, oldest first.
func (c *Cloud) History() ([]localcloud.Change, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.advance(); err != nil {
		return nil, err
	}
	return c.history.read()
}

// Console returns the end of a VM's console output.
func (c *Cloud) Console(id string) (string, error) {
	if _, err := c.find(id); err != nil {
		return "", err
	}
	return c.consoles.read(id)
}

func (c *Cloud) find(id string) (Record, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lookUp(id)
}

// lookUp returns a VM in its state at the current time.
func (c *Cloud) lookUp(id string) (Record, error) {
	if _, err := c.advance(); err != nil {
		return Record{}, err
	}
	r, ok := c.vms[id]
	if !ok {
		return Record{}, localcloud.NewError(localcloud.CodeNotFound, "VM %q does not exist", id)
	}
	return *r, nil
}

func (c *Cloud) change(id string, f func(Record) Record) (Record, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, err := c.lookUp(id)
	if err != nil {
		return r, err
	}
	r = f(r)
	return r, c.put(r)
}

// show returns a VM as the API shows it. The result shares no memory with the record.
func show(r *Record) localcloud.VM {
	vm := r.VM
	vm.Tags = map[string]string{}
	maps.Copy(vm.Tags, r.VM.Tags)
	vm.Addresses = slices.Clone(r.VM.Addresses)
	if r.VM.Error != nil {
		e := *r.VM.Error
		vm.Error = &e
	}
	return vm
}

// poke makes Run compute the time of the next step again.
func (c *Cloud) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *Cloud) note(id, format string, args ...any) {
	if err := c.consoles.write(id, c.clock.Now(), format, args...); err != nil {
		c.log.Error("cannot write console", "vm", id, "err", err)
	}
}
