package nutanix

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/drover-dev/drover/test/fakes"
)

const gib = int64(1) << 30

// A Booted is a VM that starts or stops, for a hook.
type Booted struct {
	Name, UUID         string
	UserData, MetaData string
}

// Options of a Prism Central.
type Options struct {
	// QueuedFor is the time until a task starts. Step is its duration. The creation of a VM takes longer by CreateTakes.
	QueuedFor, Step, CreateTakes time.Duration
	// ReadableAfter is the time in which a new VM cannot be read by its UUID, ListedAfter that in which no list has it.
	ReadableAfter, ListedAfter time.Duration
	// SkipsSizes means that a disk that is created from an image has the size of the image.
	SkipsSizes bool
	// Unmanaged means that the subnets have no IP address management: Nutanix learns the addresses of the guests.
	Unmanaged bool
	// RateLimit is the number of calls that are allowed at once. One more is allowed after each Refill. Default 0: no
	// limit.
	RateLimit int
	Refill    time.Duration
	// Boot is called when a VM is powered on, and returns the address of its guest. Stop is called when a VM stops, and
	// Reboot when it restarts. All are called without the lock. Without Reboot, a VM that restarts is stopped and booted.
	Boot   func(Booted) (address string)
	Stop   func(Booted)
	Reboot func(Booted)
}

// A User is a user of Prism Central.
type User struct {
	Password string
	// Projects whose VMs the user may read and change, by UUID. Nil means all VMs.
	Projects []string
	// ReadOnly means that the user may change nothing.
	ReadOnly bool
}

// UUIDs of the objects that every Prism Central of this package has.
const (
	PrismCentral  = "00060000-0000-0000-0000-00000000c000"
	ClusterEast   = "00060000-0000-0000-0000-0000000000e1"
	ClusterWest   = "00060000-0000-0000-0000-0000000000f1"
	SubnetEast    = "5b000000-0000-4000-8000-0000000000e1"
	SubnetWest    = "5b000000-0000-4000-8000-0000000000f1"
	SubnetOverlay = "5b000000-0000-4000-8000-000000000001"
	ImageUbuntu   = "1a000000-0000-4000-8000-000000000001"
	ContainerEast = "c0000000-0000-4000-8000-0000000000e1"
	Category      = "ca000000-0000-4000-8000-000000000001"
	ProjectK8s    = "b0000000-0000-4000-8000-000000000001"
)

// A Prism is a Prism Central.
type Prism struct {
	fakes.Face
	fakes.Limit
	opts Options

	mu    fakes.Lock
	users map[string]User
	// objects by path and UUID, except VMs and tasks.
	objects  map[string]map[string]object
	projects map[string]string
	vms      map[string]*machine
	tasks    map[string]*task
	// requests are the tasks of requests, by user and NTNX-Request-Id.
	requests map[string]string
	addrs    int
	// failTask returns the error of a task, or nil.
	failTask func(operation, project, vmName string) *Message
}

type object = map[string]any

// A machine is a VM.
type machine struct {
	uuid     string
	spec     object
	project  string
	power    string
	version  int
	created  time.Time
	owner    string
	address  string
	booted   bool
	userData string
	metaData string
	// hangs means that the guest ignores requests by ACPI, until it is reset.
	hangs bool
	// ran means that the VM was powered on once.
	ran bool
	// reboots are "Soft" for each request by ACPI, and "Hard" for each reset and each power-on of a VM that ran before.
	reboots []string
}

func (m *machine) name() string { return text(m.spec["name"]) }

// etag is the version of the VM, as the header ETag has it.
func (m *machine) etag() string { return fmt.Sprintf("W/%q", fmt.Sprintf("%s-%d", m.uuid, m.version)) }

// A Message is an error of a task.
type Message struct{ Code, Group, Text string }

// A task is queued, runs until endsAt, and then calls done, which returns the error.
type task struct {
	id, operation              string
	createdAt, runsAt, endsAt  time.Time
	vm, vmName, project, owner string
	done                       func(now time.Time) *Message
	ended                      bool
	failure                    *Message
}

// New returns a Prism Central with the clusters east and west, a subnet workers on each of them, the overlay subnet
// overlay, the image ubuntu-24.04 of 4 GiB, the storage container default on east, the category
// AppType:Kubernetes, and the project k8s.
func New(o Options) *Prism {
	p := &Prism{
		opts: o, users: map[string]User{}, projects: map[string]string{ProjectK8s: "k8s"}, vms: map[string]*machine{}, tasks: map[string]*task{},
		requests: map[string]string{}, objects: map[string]map[string]object{},
	}
	p.add(pathClusters, PrismCentral, object{"name": "Unnamed", "config": object{"clusterFunction": []string{"PRISM_CENTRAL"}}})
	p.add(pathClusters, ClusterEast, object{"name": "east", "config": object{"clusterFunction": []string{"AOS"}}})
	p.add(pathClusters, ClusterWest, object{"name": "west", "config": object{"clusterFunction": []string{"AOS"}}})
	p.add(pathSubnets, SubnetEast, object{"name": "workers", "subnetType": "VLAN", "clusterReference": ClusterEast})
	p.add(pathSubnets, SubnetWest, object{"name": "workers", "subnetType": "VLAN", "clusterReference": ClusterWest})
	p.add(pathSubnets, SubnetOverlay, object{"name": "overlay", "subnetType": "OVERLAY"})
	p.add(pathImages, ImageUbuntu, object{"name": "ubuntu-24.04", "type": "DISK_IMAGE", "sizeBytes": 4 * gib})
	p.add(pathContainers, ContainerEast, object{"name": "default", "containerExtId": ContainerEast, "clusterExtId": ClusterEast})
	p.add(pathCategories, Category, object{"key": "AppType", "value": "Kubernetes", "type": "SYSTEM"})
	return p
}

func (p *Prism) add(path, id string, o object) {
	if p.objects[path] == nil {
		p.objects[path] = map[string]object{}
	}
	o["extId"] = id
	p.objects[path][id] = o
}

// AddImage adds an image.
func (p *Prism) AddImage(id, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(pathImages, id, object{"name": name, "type": "DISK_IMAGE", "sizeBytes": 4 * gib})
}

// AddProject adds a project.
func (p *Prism) AddProject(id, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.projects[id] = name
}

// SetUser adds or replaces a user.
func (p *Prism) SetUser(name string, u User) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users[name] = u
}

// Unregister removes a cluster with its VMs from Prism Central.
func (p *Prism) Unregister(cluster string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.objects[pathClusters], cluster)
	maps.DeleteFunc(p.vms, func(_ string, m *machine) bool { return extID(m.spec["cluster"]) == cluster })
}

// FailTasks makes tasks fail with the error that fail returns for an operation, such as VmCreate, and the project
// and the name of its VM. A task for which fail returns nil succeeds.
func (p *Prism) FailTasks(fail func(operation, project, vmName string) *Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failTask = fail
}

// A VM is an existing VM.
type VM struct {
	UUID, Name, Description string
	Project                 string
	UserData                string
	Running                 bool
	Spec                    map[string]any
}

// VMs returns the existing VMs.
func (p *Prism) VMs() []VM {
	p.mu.Lock()
	p.settle(time.Now())
	defer p.mu.Release()
	var out []VM
	for _, id := range slices.Sorted(maps.Keys(p.vms)) {
		m := p.vms[id]
		out = append(out, VM{UUID: id, Name: m.name(), Description: text(m.spec["description"]), Project: m.project, UserData: m.userData, Running: m.power == "ON", Spec: m.spec})
	}
	return out
}

// Lose deletes a VM, as a user does it.
func (p *Prism) Lose(id string) {
	p.mu.Lock()
	p.settle(time.Now())
	defer p.mu.Release()
	if m := p.vms[id]; m != nil {
		p.halt(m)
		delete(p.vms, id)
	}
}

// PowerOff powers off a VM, as a user does it.
func (p *Prism) PowerOff(id string) {
	p.mu.Lock()
	p.settle(time.Now())
	defer p.mu.Release()
	if m := p.vms[id]; m != nil {
		p.halt(m)
	}
}

// Hang makes the guest of a VM ignore requests by ACPI, until it is reset or powered on again.
func (p *Prism) Hang(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.vms[id].hangs = true
}

// Pause pauses a VM, as a user does it.
func (p *Prism) Pause(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.vms[id].power = "PAUSED"
	p.vms[id].version++
}

// Reboots returns the reboots of a VM in their order: "Soft" if its guest was asked by ACPI, "Hard" if the VM was reset, or
// powered on after it had stopped.
func (p *Prism) Reboots(id string) []string {
	p.mu.Lock()
	p.settle(time.Now())
	defer p.mu.Release()
	if m := p.vms[id]; m != nil {
		return slices.Clone(m.reboots)
	}
	return nil
}

// Describe sets the description of a VM, as a user does it.
func (p *Prism) Describe(id, description string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.vms[id].spec["description"] = description
	p.vms[id].version++
}

// Create creates a running VM on the cluster east, as an earlier process of Drover does it.
func (p *Prism) Create(name, project, description string) (id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id = uuid.NewString()
	p.vms[id] = &machine{
		uuid: id, project: project, power: "ON", ran: true, created: time.Now().Add(-time.Hour), version: 1,
		spec: object{"name": name, "description": description, "cluster": object{"extId": ClusterEast}},
	}
	return id
}

// settle ends the tasks that are due, in the order of their ends.
func (p *Prism) settle(now time.Time) {
	var due []*task
	for _, t := range p.tasks {
		if !t.ended && !t.endsAt.After(now) {
			due = append(due, t)
		}
	}
	slices.SortFunc(due, func(a, b *task) int {
		return cmp.Or(a.endsAt.Compare(b.endsAt), a.createdAt.Compare(b.createdAt), cmp.Compare(a.id, b.id))
	})
	for _, t := range due {
		t.ended = true
		if p.failTask != nil {
			t.failure = p.failTask(t.operation, t.project, t.vmName)
		}
		if t.failure == nil {
			t.failure = t.done(t.endsAt)
		}
	}
}

// taskPrefix is "ergon" in base64, the service of tasks.
const taskPrefix = "ZXJnb24=:"

// begin starts a task for a VM, and returns its ID.
func (p *Prism) begin(now time.Time, operation, owner string, m *machine, takes time.Duration, done func(time.Time) *Message) string {
	t := &task{
		id: taskPrefix + uuid.NewString(), operation: operation, createdAt: now, runsAt: now.Add(p.opts.QueuedFor), endsAt: now.Add(p.opts.QueuedFor + takes),
		vm: m.uuid, vmName: m.name(), project: m.project, owner: owner, done: done,
	}
	p.tasks[t.id] = t
	p.settle(now)
	return t.id
}

// boot powers on a VM. The hook returns the address of the guest.
func (p *Prism) boot(m *machine) {
	m.power, m.ran, m.hangs = "ON", true, false
	m.version++
	if p.opts.Boot == nil {
		if m.address == "" {
			p.addrs++
			m.address = fmt.Sprintf("10.0.%d.%d", p.addrs/250, p.addrs%250+1)
		}
		return
	}
	m.booted = true
	b := Booted{Name: m.name(), UUID: m.uuid, UserData: m.userData, MetaData: m.metaData}
	p.mu.Later(func() {
		address := p.opts.Boot(b)
		p.mu.Lock()
		defer p.mu.Unlock()
		m.address = address
	})
}

// restart a VM that is powered on.
func (p *Prism) restart(m *machine) {
	if !m.booted || p.opts.Reboot == nil {
		p.halt(m)
		p.boot(m)
		return
	}
	m.power = "ON"
	m.version++
	b := Booted{Name: m.name(), UUID: m.uuid}
	p.mu.Later(func() { p.opts.Reboot(b) })
}

// halt powers off a VM.
func (p *Prism) halt(m *machine) {
	if m.power == "OFF" {
		return
	}
	m.power = "OFF"
	m.version++
	if m.booted && p.opts.Stop != nil {
		b := Booted{Name: m.name(), UUID: m.uuid}
		p.mu.Later(func() { p.opts.Stop(b) })
	}
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func extID(v any) string {
	o, _ := v.(object)
	return text(o["extId"])
}

func number(v any) int64 {
	switch v := v.(type) {
	case json.Number:
		n, _ := v.Int64()
		return n
	case int64:
		return v
	}
	return 0
}

func lower(s string) string { return strings.ToLower(s) }
