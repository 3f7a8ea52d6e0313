package metalstack

import (
	"cmp"
	"crypto/ed25519"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/drover-dev/drover/test/fakes"
)

// A Booted is a machine whose operating system starts or stops, for a hook.
type Booted struct {
	// ID of the machine, and UUID of its allocation.
	ID, Allocation            string
	Hostname, Partition, Data string
}

// Options of a metal-api.
type Options struct {
	// Machines is the number of machines of each size in each partition. Default 60.
	Machines int
	// InstallTakes is the time from an allocation until the machine phones home. WipeTakes is the time from the end of
	// an allocation until the machine waits for the next one.
	InstallTakes, WipeTakes time.Duration
	// ClockIsAhead is how much the clock of the metal-api is ahead.
	ClockIsAhead time.Duration
	// RateLimit is the number of calls that are allowed at once. One more is allowed after each Refill. Default 0: no
	// limit.
	RateLimit int
	Refill    time.Duration
	// Boot is called when an installed machine boots, and returns the address of its guest, which takes the place of
	// its private address. Stop is called when a machine stops, and Reboot when it phones home after a reset. All are
	// called without the lock.
	Boot   func(Booted) (address string)
	Stop   func(Booted)
	Reboot func(Booted)
}

// IDs of the objects that every metal-api of this package has.
const (
	PartitionEast    = "fra-equ01"
	PartitionWest    = "muc-equ02"
	SizeMedium       = "c1-medium-x86"
	SizeLarge        = "c1-large-x86"
	Image            = "debian-12.0"
	ImageExact       = "debian-12.0.20260801"
	ImageOfFirewalls = "firewall-ubuntu-3.0.20260801"
	FilesystemLayout = "default"
	NetworkEast      = "nodes-east"
	NetworkWest      = "nodes-west"
	NetworkInternet  = "internet"
	NetworkUnderlay  = "underlay-east"
	Project          = "b7c1f2a0-0000-4000-8000-000000000001"
	OtherProject     = "b7c1f2a0-0000-4000-8000-000000000002"
)

type object = map[string]any

// An API is a metal-api.
type API struct {
	fakes.Face
	fakes.Limit
	opts Options

	mu fakes.Lock
	// hmacs are the HMAC keys by user, such as Metal-Edit.
	hmacs map[string]string
	// signing is the key of the issuer of tokens, and keyID its ID.
	signing ed25519.PrivateKey
	keyID   string
	// objects by kind and ID.
	objects  map[string]map[string]object
	quotas   map[string]int
	machines map[string]*machine
	// used are the numbers of used addresses by network, and sizes the numbers of addresses.
	used  map[string]map[int]bool
	sizes map[string]int
}

// A machine is a physical server.
type machine struct {
	id, partition, size, rack  string
	state, description, issuer string
	allocation                 *allocation
	tags                       []string
	// events are the provisioning events, the newest first.
	events []event
	// due are events that come later.
	due       []event
	crashLoop bool
	booted    bool
	// off means that the management controller powered it off, and wasReset that it has not phoned home since a reset.
	off, wasReset bool
}

type event struct {
	name, message string
	at            time.Time
}

// An allocation is the use of a machine by a project.
type allocation struct {
	uuid, creator string
	created       time.Time
	spec          allocationSpec
	image         string
	networks      []networkOfMachine
	// resets are those of the machine during the allocation, with its starts.
	resets int
}

type networkOfMachine struct {
	id      string
	private bool
	ips     []string
	numbers []int
}

// Provisioning events.
const (
	eventPXE        = "PXE Booting"
	eventPreparing  = "Preparing"
	eventRegister   = "Registering"
	eventWaiting    = "Waiting"
	eventInstalling = "Installing"
	eventKernel     = "Booting New Kernel"
	eventHome       = "Phoned Home"
	eventReboot     = "Planned Reboot"
	eventReclaim    = "Machine Reclaim"
)

// New returns a metal-api with two partitions, two sizes, two projects, and machines that wait.
func New(o Options) *API {
	o.Machines = cmp.Or(o.Machines, 60)
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		panic(err)
	}
	a := &API{
		opts: o, hmacs: map[string]string{}, signing: key, keyID: uuid.NewString(), objects: map[string]map[string]object{}, quotas: map[string]int{},
		machines: map[string]*machine{}, used: map[string]map[int]bool{}, sizes: map[string]int{},
	}
	for _, p := range []string{PartitionEast, PartitionWest} {
		a.add("partition", p, object{"bootconfig": object{}})
		for _, s := range []string{SizeMedium, SizeLarge} {
			a.add("size", s, object{"constraints": []object{}, "labels": object{}})
			for n := range o.Machines {
				id := uuid.NewString()
				a.machines[id] = &machine{
					id: id, partition: p, size: s, rack: fmt.Sprintf("%s-rack%02d", p, n%4+1), events: []event{{name: eventWaiting, at: time.Now()}},
				}
			}
		}
	}
	a.add("filesystemlayout", FilesystemLayout, object{"constraints": object{}})
	a.add("image", ImageExact, object{"features": []string{"machine"}, "expirationDate": "2027-08-01T00:00:00.000Z"})
	a.add("image", "debian-12.0.20260701", object{"features": []string{"machine"}, "expirationDate": "2027-07-01T00:00:00.000Z"})
	a.add("image", ImageOfFirewalls, object{"features": []string{"firewall"}, "expirationDate": "2027-08-01T00:00:00.000Z"})
	a.addNetwork(NetworkEast, object{"parentnetworkid": "super-east", "projectid": Project, "partitionid": PartitionEast}, 4000)
	a.addNetwork(NetworkWest, object{"parentnetworkid": "super-west", "projectid": Project, "partitionid": PartitionWest}, 4000)
	a.addNetwork("nodes-other", object{"parentnetworkid": "super-east", "projectid": OtherProject, "partitionid": PartitionEast}, 4000)
	a.addNetwork(NetworkInternet, object{}, 4000)
	a.addNetwork(NetworkUnderlay, object{"underlay": true, "partitionid": PartitionEast}, 4000)
	a.addNetwork("super-east", object{"privatesuper": true, "partitionid": PartitionEast}, 4000)
	a.addProject(Project, "workers")
	a.addProject(OtherProject, "other")
	return a
}

func (a *API) add(kind, id string, o object) {
	if a.objects[kind] == nil {
		a.objects[kind] = map[string]object{}
	}
	o["id"] = id
	a.objects[kind][id] = o
}

func (a *API) addNetwork(id string, o object, addresses int) {
	for _, k := range []string{"underlay", "privatesuper", "nat", "shared"} {
		if o[k] == nil {
			o[k] = false
		}
	}
	o["prefixes"], o["destinationprefixes"] = []string{}, []string{}
	a.add("network", id, o)
	a.sizes[id], a.used[id] = addresses, map[int]bool{}
}

func (a *API) addProject(id, name string) {
	a.add("project", id, object{"name": name, "tenant_id": "metal-stack", "meta": object{"id": id, "kind": "Project", "created_time": "2024-05-06T07:08:09.123456Z"}})
}

// AddProject adds a project with a private network in the partition east. The network has IPv4 and IPv6 addresses.
func (a *API) AddProject(id, name, network string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.addProject(id, name)
	a.addNetwork(network, object{"parentnetworkid": "super-east", "projectid": id, "partitionid": PartitionEast, "dual": true}, 4000)
}

// SetAddresses sets the number of addresses of a network.
func (a *API) SetAddresses(network string, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sizes[network] = n
}

// RemoveImage removes an image, as the metal-api does it some time after the image expired.
func (a *API) RemoveImage(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.objects["image"], id)
}

// SetQuota sets the maximum number of machines of a project.
func (a *API) SetQuota(project string, machines int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.quotas[project] = machines
}

// SetHMAC sets the HMAC key of a user: Metal-View, Metal-Edit or Metal-Admin.
func (a *API) SetHMAC(user, key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hmacs[user] = key
}

// A Machine is an allocated machine.
type Machine struct {
	ID, Allocation, Project, Name, Hostname, Partition, Size, Image, UserData string
	// Event is the newest provisioning event.
	Event string
	Tags  []string
	// SSHKeys, Placement, DNS and NTP are those of the request.
	SSHKeys, Placement, DNS, NTP []string
	// Resets is how often the machine was reset or powered on during the allocation.
	Resets int
}

// Tag returns the value of the tag with the key.
func (m Machine) Tag(key string) string {
	for _, t := range m.Tags {
		if v, ok := strings.CutPrefix(t, key+"="); ok {
			return v
		}
	}
	return ""
}

// Machines returns the allocated machines.
func (a *API) Machines() []Machine {
	a.mu.Lock()
	defer a.mu.Release()
	a.settle(time.Now())
	var out []Machine
	for _, id := range slices.Sorted(maps.Keys(a.machines)) {
		m := a.machines[id]
		al := m.allocation
		if al == nil {
			continue
		}
		view := Machine{
			ID: id, Allocation: al.uuid, Project: al.spec.Project, Name: al.spec.Name, Hostname: al.spec.Hostname, Partition: m.partition, Size: m.size,
			Image: al.image, UserData: al.spec.UserData, Event: m.events[0].name, Tags: slices.Clone(m.tags),
			SSHKeys: al.spec.SSHKeys, Placement: al.spec.PlacementTags, Resets: al.resets,
		}
		for _, s := range al.spec.DNSServers {
			view.DNS = append(view.DNS, s.IP)
		}
		for _, s := range al.spec.NTPServers {
			view.NTP = append(view.NTP, s.Address)
		}
		out = append(out, view)
	}
	return out
}

// IDs returns the IDs of all machines.
func (a *API) IDs() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Sorted(maps.Keys(a.machines))
}

// UsedAddresses returns the number of addresses of a network that are in use.
func (a *API) UsedAddresses(network string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.used[network])
}

// Free frees a machine, as another user does it.
func (a *API) Free(id string) {
	a.mu.Lock()
	defer a.mu.Release()
	a.settle(time.Now())
	if m := a.machines[id]; m != nil && m.allocation != nil {
		a.free(m, time.Now())
	}
}

// Take allocates the machine with the ID for a project, as an administrator does it.
func (a *API) Take(id, project, name string, tags ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := a.machines[id]
	m.due = nil
	a.allocate(m, allocationSpec{Project: project, Name: name, Hostname: name, Tags: tags}, "someone@example.org", time.Now())
	m.due, m.events = nil, append([]event{{name: eventHome, at: time.Now()}}, m.events...)
}

// TakeAny allocates a machine in the partition east for a project, as another program does it. It returns the ID of the
// machine and the UUID of the allocation.
func (a *API) TakeAny(project, name string, tags ...string) (id, allocation string) {
	a.mu.Lock()
	for _, k := range slices.Sorted(maps.Keys(a.machines)) {
		if m := a.machines[k]; m.isAvailable(PartitionEast, SizeLarge) {
			id = k
			break
		}
	}
	a.mu.Unlock()
	a.Take(id, project, name, tags...)
	a.mu.Lock()
	defer a.mu.Unlock()
	return id, a.machines[id].allocation.uuid
}

// PowerOff powers off a machine, as a user does it.
func (a *API) PowerOff(id string) {
	a.mu.Lock()
	defer a.mu.Release()
	a.settle(time.Now())
	m := a.machines[id]
	m.due, m.off = nil, true
	a.note(m, event{name: eventReboot, message: "OFF", at: time.Now()})
	a.halt(m)
}

// SetEvent adds a provisioning event of a machine, and removes those that would come later.
func (a *API) SetEvent(id, name, message string, crashLoop bool) {
	a.mu.Lock()
	defer a.mu.Release()
	a.settle(time.Now())
	m := a.machines[id]
	m.due, m.crashLoop = nil, crashLoop
	a.note(m, event{name: name, message: message, at: time.Now()})
}

// SetState sets the state of a machine, such as LOCKED, as a user does it.
func (a *API) SetState(id, state, description string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := a.machines[id]
	m.state, m.description, m.issuer = state, description, "someone@example.org"
}

// SetTags sets the tags of an allocated machine, as an administrator does it.
func (a *API) SetTags(id string, tags ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.machines[id].tags = tags
}

// settle carries out what is due.
func (a *API) settle(now time.Time) {
	for _, m := range a.machines {
		for len(m.due) > 0 && !m.due[0].at.After(now) {
			e := m.due[0]
			m.due = m.due[1:]
			a.note(m, e)
		}
	}
}

// note adds a provisioning event.
func (a *API) note(m *machine, e event) {
	m.events = append([]event{e}, m.events...)
	if e.name == eventHome {
		m.crashLoop = false
	}
	switch {
	case e.name != eventHome || m.allocation == nil:
	case m.wasReset && m.booted:
		if b := m.asBooted(); a.opts.Reboot != nil {
			a.mu.Later(func() { a.opts.Reboot(b) })
		}
	default:
		a.boot(m)
	}
	m.wasReset = m.wasReset && e.name != eventHome
}

func (m *machine) asBooted() Booted {
	return Booted{ID: m.id, Allocation: m.allocation.uuid, Hostname: m.allocation.spec.Hostname, Partition: m.partition, Data: m.allocation.spec.UserData}
}

// boot starts the operating system.
func (a *API) boot(m *machine) {
	if a.opts.Boot == nil || m.booted {
		return
	}
	m.booted = true
	b, al := m.asBooted(), m.allocation
	a.mu.Later(func() {
		address := a.opts.Boot(b)
		a.mu.Lock()
		defer a.mu.Unlock()
		if address != "" && len(al.networks) > 0 && len(al.networks[0].ips) > 0 {
			al.networks[0].ips[0] = address
		}
	})
}

// halt stops the operating system.
func (a *API) halt(m *machine) {
	if !m.booted {
		return
	}
	m.booted = false
	b := m.asBooted()
	a.mu.Later(func() { a.opts.Stop(b) })
}

// isAvailable reports whether the machine can be allocated.
func (m *machine) isAvailable(partition, size string) bool {
	return m.allocation == nil && m.state == "" && m.partition == partition && m.size == size && m.events[0].name == eventWaiting
}

// free ends an allocation. The machine is wiped, and waits again.
func (a *API) free(m *machine, now time.Time) {
	a.halt(m)
	for _, n := range m.allocation.networks {
		for _, number := range n.numbers {
			delete(a.used[n.id], number)
		}
	}
	m.allocation, m.tags, m.crashLoop, m.off, m.wasReset = nil, nil, false, false, false
	m.events = append([]event{{name: eventReclaim, message: "free machine called", at: now}}, m.events...)
	m.due = nil
	for i, name := range []string{eventPXE, eventPreparing, eventRegister, eventWaiting} {
		m.due = append(m.due, event{name: name, at: now.Add(a.opts.WipeTakes * time.Duration(i+1) / 4)})
	}
}

// allocate writes an allocation. It returns the error of the networks.
func (a *API) allocate(m *machine, s allocationSpec, creator string, now time.Time) *failure {
	al := &allocation{uuid: uuid.NewString(), creator: creator, created: now, spec: s, image: s.exactImage}
	for _, n := range s.Networks {
		number := 1
		for a.used[n.ID][number] {
			number++
		}
		if number > a.sizes[n.ID] {
			for _, done := range al.networks {
				for _, number := range done.numbers {
					delete(a.used[done.id], number)
				}
			}
			return fail(500, "unable to make networks:unable to allocate an ip in network: %s cannot allocate free ip in ipam, no ips left", n.ID)
		}
		a.used[n.ID][number] = true
		o := a.objects["network"][n.ID]
		private := o["parentnetworkid"] != nil
		prefix := "212.34"
		if private {
			prefix = "10.130"
		}
		used := networkOfMachine{id: n.ID, private: private, numbers: []int{number}, ips: []string{fmt.Sprintf("%s.%d.%d", prefix, number/250, number%250+1)}}
		if o["dual"] == true {
			used.ips = append(used.ips, fmt.Sprintf("fd00:10:130::%x", number))
		}
		al.networks = append(al.networks, used)
	}
	slices.SortStableFunc(al.networks, func(x, y networkOfMachine) int {
		switch {
		case x.private == y.private:
			return 0
		case x.private:
			return -1
		}
		return 1
	})
	m.allocation, m.tags = al, tagsOf(m, s.Tags)
	for i, name := range []string{eventInstalling, eventKernel, eventHome} {
		m.due = append(m.due, event{name: name, at: now.Add(a.opts.InstallTakes * time.Duration(i+1) / 3)})
	}
	return nil
}

// tagsOf returns the tags of an allocated machine. Tags with a key and a value are unique by their keys, and the
// metal-api sets some of its own.
func tagsOf(m *machine, requested []string) []string {
	labels, out := map[string]string{}, map[string]bool{}
	for _, t := range requested {
		if k, v, ok := strings.Cut(t, "="); ok {
			labels[k] = v
		} else {
			out[t] = true
		}
	}
	labels["machine.metal-stack.io/rack"] = m.rack
	labels["machine.metal-stack.io/network.primary.asn"] = "4200000001"
	for k, v := range labels {
		out[k+"="+v] = true
	}
	return slices.Sorted(maps.Keys(out))
}
