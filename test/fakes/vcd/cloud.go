package vcd

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/drover-dev/drover/test/fakes"
)

// A Booted is a VM that starts or stops, for a hook.
type Booted struct {
	Name, ID string
	// Properties are the guest properties.
	Properties map[string]string
}

// Options of a Cloud Director.
type Options struct {
	// QueuedFor is the time until a task starts. Step is its duration. The creation of a VM takes longer by CreateTakes.
	QueuedFor, Step, CreateTakes time.Duration
	// ListedAfter is the time in which no query lists a new VM.
	ListedAfter time.Duration
	// SessionLasts is the maximum time of a session. Default 0: no limit.
	SessionLasts time.Duration
	// Operations is the number of tasks of a user that may run or wait at the same time. Default 0: no limit.
	Operations int
	// RateLimit is the number of calls that are allowed at once. One more is allowed after each Refill. Default 0: no
	// limit.
	RateLimit int
	Refill    time.Duration
	// Boot is called when a VM is powered on, and returns the addresses of its guest in its networks: IPv4, and optionally
	// IPv6. Stop is called when a VM stops, and Reboot when it restarts. All are called without the lock.
	Boot   func(Booted) []Addresses
	Stop   func(Booted)
	Reboot func(Booted)
}

// Addresses of a network card.
type Addresses struct{ V4, V6 string }

// A User is a user of an organization.
type User struct {
	Password string
	// APIToken of the user. Empty means that the user has none.
	APIToken string
	// ServiceAccount means that the API token changes with each use.
	ServiceAccount bool
	// ReadOnly means that the user may change nothing. Own means that the user sees its own VMs only.
	ReadOnly, Own bool

	id string
}

// Names of the objects that each organization has.
const (
	Catalog = "images"
	// Template is a template with one VM.
	Template = "ubuntu-24.04"
	// TwoVMs is a template with two VMs.
	TwoVMs = "two-vms"
)

const gib = int64(1) << 10 // In MiB.

// A Director is a Cloud Director.
type Director struct {
	fakes.Face
	fakes.Limit
	opts Options

	mu       fakes.Lock
	orgs     map[string]*org
	sessions map[string]*session
	vApps    map[string]*vApp
	vms      map[string]*vm
	tasks    map[string]*task
	addrs    int
	// failTask returns the error of a task, or nil.
	failTask func(operation, org, vmName string) *Message
}

// An org is an organization.
type org struct {
	id, name string
	users    map[string]*User
	vdcs     map[string]*vdc
	// templates by UUID. All are in the catalog.
	templates map[string]*template
}

type vdc struct {
	id, name           string
	networks, profiles map[string]string
	policies           []computePolicy
	disabled           bool
}

type template struct {
	id, name, status string
	// vms are the UUIDs of its VMs.
	vms []string
	// diskMiB is the size of the disk of each VM.
	diskMiB int64
}

type computePolicy struct {
	ID           string `json:"id"`
	Name         string `json:"name"`
	IsSizingOnly bool   `json:"isSizingOnly"`
	cpus         int
	memory       int64
}

type session struct {
	org  *org
	user string
	ends time.Time
}

// A vApp has one VM.
type vApp struct {
	id, name string
	org      *org
	vdc      *vdc
	status   int
	owner    string
	created  time.Time
}

type vm struct {
	id, name, description string
	vApp                  *vApp
	status                int
	deployed              bool
	created               time.Time
	cpus, cores           int
	memory                int64
	disks                 []disk
	nics                  []nic
	customized            bool
	computerName          string
	properties            map[string]string
	metadata              map[string]string
	profile               string
	sizing, placement     string
	booted                bool
	// ran means that the VM was powered on once. lacksTools means that VMware Tools do not run.
	ran, lacksTools bool
	reboots         []string
}

type disk struct {
	id, adapter, profile string
	size, iops           int64
	unit, bus            int
	// named is the UUID of a named disk.
	named string
}

type nic struct {
	network, mode, secondaryMode, adapter, mac string
	v4, v6                                     string
}

// A Message is the error of a task.
type Message struct{ Code, Text string }

// A task is queued, runs until endsAt, and then calls done.
type task struct {
	id, operation             string
	createdAt, runsAt, endsAt time.Time
	org                       *org
	user                      string
	vApp                      *vApp
	vm                        *vm
	done                      func(now time.Time) *Message
	ended                     bool
	failure                   *Message
}

// New returns a Cloud Director without organizations.
func New(o Options) *Director {
	return &Director{
		opts: o, orgs: map[string]*org{}, sessions: map[string]*session{}, vApps: map[string]*vApp{}, vms: map[string]*vm{}, tasks: map[string]*task{},
	}
}

// AddOrganization adds an organization with the VDCs east and west, each with the networks workers and storage, the storage
// profiles gold and silver, and the policies medium (4 CPUs, 8 GiB) and gpu. Its catalog images has the template
// ubuntu-24.04 with a disk of 4 GiB.
func (d *Director) AddOrganization(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := &org{id: uuid.NewString(), name: name, users: map[string]*User{}, vdcs: map[string]*vdc{}, templates: map[string]*template{}}
	for _, v := range []string{"east", "west"} {
		id := uuid.NewString()
		o.vdcs[id] = &vdc{
			id: id, name: v, networks: map[string]string{"workers": uuid.NewString(), "storage": uuid.NewString()},
			profiles: map[string]string{"gold": uuid.NewString(), "silver": uuid.NewString()},
			policies: []computePolicy{
				{ID: policyURN + uuid.NewString(), Name: "medium", IsSizingOnly: true, cpus: 4, memory: 8 * gib},
				{ID: policyURN + uuid.NewString(), Name: "gpu"},
			},
		}
	}
	o.addTemplate(Template, "RESOLVED", 1)
	o.addTemplate(TwoVMs, "RESOLVED", 2)
	o.addTemplate("uploading", "UNRESOLVED", 1)
	d.orgs[name] = o
}

const policyURN = "urn:vcloud:vdcComputePolicy:"

func (o *org) addTemplate(name, status string, vms int) {
	t := &template{id: uuid.NewString(), name: name, status: status, diskMiB: 4 * gib}
	for range vms {
		t.vms = append(t.vms, uuid.NewString())
	}
	o.templates[t.id] = t
}

// SetUser adds or replaces a user of an organization, and ends the sessions of the user.
func (d *Director) SetUser(organization, name string, u User) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := d.orgs[organization]
	u.id = uuid.NewString()
	if old := o.users[name]; old != nil {
		u.id = old.id
	}
	o.users[name] = &u
	maps.DeleteFunc(d.sessions, func(_ string, s *session) bool { return s.org == o && s.user == name })
}

// RenameUser renames a user of an organization. Its VMs stay its own.
func (d *Director) RenameUser(organization, name, to string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := d.orgs[organization]
	o.users[to] = o.users[name]
	delete(o.users, name)
	for _, a := range d.vApps {
		if a.org == o && a.owner == name {
			a.owner = to
		}
	}
	maps.DeleteFunc(d.sessions, func(_ string, s *session) bool { return s.org == o && s.user == name })
}

// DisableVDC disables the VDCs with a name.
func (d *Director) DisableVDC(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, o := range d.orgs {
		for _, v := range o.vdcs {
			v.disabled = v.disabled || v.name == name
		}
	}
}

// HideVDC removes the access of the users to the VDCs with a name, and to their VMs, as an administrator does it.
func (d *Director) HideVDC(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, o := range d.orgs {
		maps.DeleteFunc(o.vdcs, func(_ string, v *vdc) bool { return v.name == name })
	}
}

// FailTasks makes tasks fail with the error that fail returns for an operation, such as vdcInstantiateVmTemplate, the
// organization and the name of the VM. A task for which fail returns nil succeeds.
func (d *Director) FailTasks(fail func(operation, org, vmName string) *Message) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failTask = fail
}

// A VM is an existing VM.
type VM struct {
	ID, Name, Description, Organization string
	Properties, Metadata                map[string]string
	Running, Customized                 bool
	// VDC, StorageProfile, Sizing and Placement are names.
	VDC, StorageProfile, Sizing, Placement, ComputerName string
	CPUs, Cores                                          int
	MemoryMiB                                            int64
	// DisksMiB, DiskProfiles and Networks, with their modes.
	DisksMiB     []int64
	DiskProfiles []string
	Networks     []string
	// Reboots since the VM was powered on first: each is Soft or Hard.
	Reboots []string
}

// VMs returns the existing VMs.
func (d *Director) VMs() []VM {
	d.mu.Lock()
	d.settle(time.Now())
	defer d.mu.Release()
	var out []VM
	for _, id := range slices.Sorted(maps.Keys(d.vms)) {
		m := d.vms[id]
		v := VM{
			ID: id, Name: m.name, Description: m.description, Organization: m.vApp.org.name, Properties: maps.Clone(m.properties), Metadata: maps.Clone(m.metadata),
			Running: m.status == poweredOn, Customized: m.customized, VDC: m.vApp.vdc.name, StorageProfile: m.profile, Sizing: m.sizing, Placement: m.placement,
			ComputerName: m.computerName, CPUs: m.cpus, Cores: m.cores, MemoryMiB: m.memory,
			Reboots: slices.Clone(m.reboots),
		}
		for _, k := range m.disks {
			v.DisksMiB, v.DiskProfiles = append(v.DisksMiB, k.size), append(v.DiskProfiles, k.profile)
		}
		for _, n := range m.nics {
			v.Networks = append(v.Networks, n.network+" "+n.mode)
		}
		out = append(out, v)
	}
	return out
}

// VApps returns the names of the vApps that have no VM.
func (d *Director) VApps() []string {
	d.mu.Lock()
	d.settle(time.Now())
	defer d.mu.Release()
	var out []string
	for _, a := range d.vApps {
		if a.vm(d) == nil {
			out = append(out, a.name)
		}
	}
	return out
}

func (a *vApp) vm(d *Director) *vm {
	for _, m := range d.vms {
		if m.vApp == a {
			return m
		}
	}
	return nil
}

// Lose deletes a VM, as a user does it.
func (d *Director) Lose(id string) {
	d.mu.Lock()
	d.settle(time.Now())
	defer d.mu.Release()
	if m := d.vms[id]; m != nil {
		d.halt(m)
		delete(d.vms, id)
		delete(d.vApps, m.vApp.id)
	}
}

// PowerOff powers off a VM, as a user does it in the guest.
func (d *Director) PowerOff(id string) {
	d.mu.Lock()
	d.settle(time.Now())
	defer d.mu.Release()
	if m := d.vms[id]; m != nil {
		d.halt(m)
	}
}

// StopTools stops VMware Tools in the guest of a VM.
func (d *Director) StopTools(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.vms[id].lacksTools = true
}

// AttachDisk attaches a named disk to a VM, as a CSI driver does it.
func (d *Director) AttachDisk(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.vms[id]
	m.disks = append(m.disks, disk{id: "2099", size: gib, unit: 15, adapter: "5", named: uuid.NewString()})
}

// Create creates a running VM in the VDC east, as an earlier process of Drover does it.
func (d *Director) Create(organization, user, name, description string, metadata map[string]string) (id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := d.orgs[organization]
	a := &vApp{id: uuid.NewString(), name: name + "-" + uuid.NewString(), org: o, vdc: o.vdc("east"), status: poweredOn, owner: user, created: time.Now().Add(-time.Hour)}
	m := &vm{id: uuid.NewString(), name: name, description: description, vApp: a, status: poweredOn, deployed: true, ran: true, created: a.created, metadata: maps.Clone(metadata)}
	d.vApps[a.id], d.vms[m.id] = a, m
	return m.id
}

func (o *org) vdc(name string) *vdc {
	for _, v := range o.vdcs {
		if v.name == name {
			return v
		}
	}
	return nil
}

// settle ends the tasks that are due, in the order of their ends.
func (d *Director) settle(now time.Time) {
	var due []*task
	for _, t := range d.tasks {
		if !t.ended && !t.endsAt.After(now) {
			due = append(due, t)
		}
	}
	slices.SortFunc(due, func(a, b *task) int {
		return cmp.Or(a.endsAt.Compare(b.endsAt), a.createdAt.Compare(b.createdAt), cmp.Compare(a.id, b.id))
	})
	for _, t := range due {
		t.ended = true
		if d.failTask != nil {
			t.failure = d.failTask(t.operation, t.org.name, t.vm.name)
		}
		if t.failure == nil {
			t.failure = t.done(t.endsAt)
		}
		if t.failure != nil && t.operation == operationCreate {
			// The VM is gone, and its vApp stays.
			t.vApp.status = failedCreation
			delete(d.vms, t.vm.id)
		}
	}
}

// Operations of tasks.
const (
	operationCreate = "vdcInstantiateVmTemplate"
	// OperationPowerOn is the operation of the task that powers on a VM.
	OperationPowerOn = "vappDeploy"
	// OperationCreate is the operation of the task that creates a VM.
	OperationCreate = operationCreate
	// OperationReboot is the operation of the task that reboots the guest of a VM.
	OperationReboot = "vappRebootGuest"
	// OperationReset is the operation of the task that resets a VM.
	OperationReset = "vappReset"
)

// Kinds of reboots.
const (
	// Soft means that VMware Tools restarted the guest.
	Soft = "Soft"
	// Hard means that the VM was reset or powered on.
	Hard = "Hard"
)

// begin starts a task for a VM.
func (d *Director) begin(c *call, operation string, m *vm, takes time.Duration, done func(time.Time) *Message) *task {
	t := &task{
		id: uuid.NewString(), operation: operation, createdAt: c.now, runsAt: c.now.Add(d.opts.QueuedFor), endsAt: c.now.Add(d.opts.QueuedFor + takes),
		org: c.org, user: c.name, vApp: m.vApp, vm: m, done: done,
	}
	d.tasks[t.id] = t
	d.settle(c.now)
	return t
}

// boot powers on a VM. The hook returns the addresses of the guest.
func (d *Director) boot(m *vm) {
	m.status, m.vApp.status, m.deployed = poweredOn, poweredOn, true
	if d.opts.Boot == nil {
		for i := range m.nics {
			if m.nics[i].v4 != "" {
				continue
			}
			d.addrs++
			m.nics[i].v4 = fmt.Sprintf("10.0.%d.%d", d.addrs/250, d.addrs%250+1)
			if m.nics[i].secondaryMode == "POOL" {
				m.nics[i].v6 = fmt.Sprintf("2001:db8::%x", d.addrs)
			}
		}
		return
	}
	m.booted = true
	b := m.asBooted()
	d.mu.Later(func() {
		addresses := d.opts.Boot(b)
		d.mu.Lock()
		defer d.mu.Unlock()
		for i := range m.nics {
			if i >= len(addresses) {
				break
			}
			m.nics[i].v4 = addresses[i].V4
			if m.nics[i].secondaryMode == "POOL" {
				m.nics[i].v6 = addresses[i].V6
			}
		}
	})
}

func (m *vm) asBooted() Booted {
	return Booted{Name: m.name, ID: m.id, Properties: maps.Clone(m.properties)}
}

// halt powers off a VM.
func (d *Director) halt(m *vm) {
	if m.status != poweredOn {
		return
	}
	m.status, m.vApp.status, m.deployed = poweredOff, poweredOff, false
	if m.booted && d.opts.Stop != nil {
		b := m.asBooted()
		d.mu.Later(func() { d.opts.Stop(b) })
	}
}

// newToken returns a token as long as the real ones.
func newToken() string {
	b := make([]byte, 128)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}
