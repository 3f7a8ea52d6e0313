package proxmox

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-dev/drover/test/fakes"
)

const gib = int64(1) << 30

// A Booted is a VM that starts or stops, for a hook.
type Booted struct {
	Name, UUID         string
	UserData, MetaData string
}

// Options of a cluster.
type Options struct {
	// Name of the cluster. Default "lab".
	Name string
	// Nodes of the cluster. Default pve1 and pve2.
	Nodes []string
	// Step is the duration of a task. A task that copies disks takes longer by CloneTakes. Default 0.
	Step, CloneTakes time.Duration
	// AgentAfter is the time from the start of a VM until its guest agent responds.
	AgentAfter time.Duration
	// StatusEvery is the maximum age of the states in /cluster/resources, which pvestatd updates.
	StatusEvery time.Duration
	// RateLimit is the number of calls that are allowed at once. One more is allowed after each Refill.
	// Proxmox VE has no limit, but a proxy may have one. Default 0: no limit.
	RateLimit int
	Refill    time.Duration
	// Boot is called when a VM starts, and returns the address of its guest. Stop is called when a VM
	// stops, and Reboot when it starts again after a reboot. All are called without the lock of the cluster. Without
	// Reboot, a VM that is rebooted is stopped and booted.
	Boot   func(Booted) (address string)
	Stop   func(Booted)
	Reboot func(Booted)
}

// A Token is an API token.
type Token struct {
	Secret string
	// Pools whose VMs the token may read and change. Nil means all VMs.
	Pools []string
	// Audit means that the token has VM.Audit on /vms: it may read all VMs.
	Audit bool
	// ReadOnly means that VM.Audit is the only privilege.
	ReadOnly bool
}

// A Cluster is a cluster of Proxmox VE.
type Cluster struct {
	fakes.Faults
	fakes.Count
	opts Options

	mu       fakes.Lock
	tokens   map[string]Token
	nodes    map[string]*node
	storages map[string]*storage
	vms      map[int]*machine
	tasks    map[string]*task
	pools    map[string]bool
	bridges  map[string]bool
	pids     int
	addrs    int
	bucket   fakes.Bucket
	// unavailable is the time until which all calls fail with 503, as a proxy does it.
	unavailable time.Time
	// failTask returns the error of a task, or "" for none.
	failTask func(kind, pool, vmName string) string
}

type node struct {
	name   string
	online bool
	memory int64
}

// A storage exists on some nodes, or on all if nodes is empty. A volume of a shared storage is on all of
// them, and another volume on one.
type storage struct {
	name    string
	content []string
	nodes   []string
	shared  bool
	// images by node ("" if shared) and name.
	images map[string]map[string]image
}

type image struct {
	data    []byte
	created time.Time
}

// A machine is a VM or a template.
type machine struct {
	id       int
	node     string
	pool     string
	template bool
	config   map[string]string
	// hidden means that the VM is a clone in progress: its configuration has only the lock.
	hidden    bool
	running   bool
	startedAt time.Time
	// reported is the state in /cluster/resources, and reportedAt the time of its last update.
	reported   string
	reportedAt time.Time
	address    string
	booted     bool
	// restarts means that the VM stopped for a reboot.
	restarts bool
	memory   int64
	// hangs means that the guest does not shut down when it is asked to.
	hangs bool
	// reboots are "Soft" for each time that the guest was asked to shut down and start again, and "Hard" for each reset and
	// each start of a VM that ran before.
	reboots []string
}

func (m *machine) status() string {
	if m.running {
		return "running"
	}
	return "stopped"
}

func (m *machine) name() string {
	return cmp.Or(m.config["name"], fmt.Sprintf("VM %d", m.id))
}

// A task runs until endsAt. Then done is called, which returns the exit status.
type task struct {
	upid, node, kind, id, user string
	startedAt, endsAt          time.Time
	done                       func(now time.Time) string
	vm                         int
	exit                       string
}

// New returns a cluster with the storages local (iso, one per node), local-lvm (images, one per node) and
// ceph (images and iso, shared), the pool k8s, the bridges vmbr0 and vmbr1, and the template ubuntu-24.04
// with VMID 9000, which is on the first node and has a network card and a disk of 4 GiB on ceph.
func New(o Options) *Cluster {
	o.Name = cmp.Or(o.Name, "lab")
	if len(o.Nodes) == 0 {
		o.Nodes = []string{"pve1", "pve2"}
	}
	c := &Cluster{
		opts: o, tokens: map[string]Token{}, nodes: map[string]*node{}, vms: map[int]*machine{}, tasks: map[string]*task{},
		pools: map[string]bool{"k8s": true}, bridges: map[string]bool{"vmbr0": true, "vmbr1": true}, pids: 4000,
		storages: map[string]*storage{
			"local":     {name: "local", content: []string{"iso", "vztmpl", "backup"}, images: map[string]map[string]image{}},
			"local-lvm": {name: "local-lvm", content: []string{"images", "rootdir"}, images: map[string]map[string]image{}},
			"ceph":      {name: "ceph", content: []string{"images", "iso"}, shared: true, images: map[string]map[string]image{}},
		},
	}
	for _, n := range o.Nodes {
		c.nodes[n] = &node{name: n, online: true, memory: 128 * gib}
	}
	c.vms[9000] = &machine{id: 9000, node: o.Nodes[0], template: true, memory: 2 * gib, config: map[string]string{
		"name": "ubuntu-24.04", "template": "1", "cores": "2", "memory": "2048", "scsihw": "virtio-scsi-single", "boot": "order=scsi0",
		"scsi0": "ceph:base-9000-disk-0,size=4G", "net0": "virtio=BC:24:11:00:00:01,bridge=vmbr0",
		"description": "A template.\n", "smbios1": "uuid=3f1d4c1e-0000-4000-8000-000000009000", "ostype": "l26",
	}}
	return c
}

// AddPool adds a pool.
func (c *Cluster) AddPool(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pools[name] = true
}

// AddStorage adds a storage that is not shared. Without nodes it exists on all.
func (c *Cluster) AddStorage(name string, content []string, nodes ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.storages[name] = &storage{name: name, content: content, nodes: nodes, images: map[string]map[string]image{}}
}

// SetToken adds or replaces a token, whose ID is like drover@pve!drover.
func (c *Cluster) SetToken(id string, t Token) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens[id] = t
}

// SetOnline sets whether a node responds.
func (c *Cluster) SetOnline(name string, online bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[name].online = online
}

// FailTasks makes tasks fail with the exit status that fail returns for the type of the task, such as
// qmclone, and the pool and the name of its VM. A task for which fail returns "" succeeds.
func (c *Cluster) FailTasks(fail func(kind, pool, vmName string) string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failTask = fail
}

// Throttle makes all calls fail with 503 for some time.
func (c *Cluster) Throttle(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unavailable = time.Now().Add(d)
}

// A VM is an existing VM.
type VM struct {
	VMID           int
	Node, Name     string
	Pool           string
	UUID           string
	Tags, Notes    string
	UserData       string
	Running        bool
	Config         map[string]string
	Locked, Hidden bool
}

// VMs returns the existing VMs. Templates are not VMs.
func (c *Cluster) VMs() []VM {
	c.mu.Lock()
	c.settle(time.Now())
	defer c.mu.Release()
	var out []VM
	for _, id := range slices.Sorted(maps.Keys(c.vms)) {
		if m := c.vms[id]; !m.template {
			out = append(out, c.view(m))
		}
	}
	return out
}

func (c *Cluster) view(m *machine) VM {
	return VM{
		VMID: m.id, Node: m.node, Name: m.config["name"], Pool: m.pool, UUID: smbiosUUID(m.config["smbios1"]), Tags: m.config["tags"],
		Notes: m.config["description"], UserData: c.cloudInit(m)["user-data"], Running: m.running, Config: maps.Clone(m.config),
		Locked: m.config["lock"] != "", Hidden: m.hidden,
	}
}

// Images returns the volumes of type iso, as node/storage:iso/name.
func (c *Cluster) Images() []string {
	c.mu.Lock()
	c.settle(time.Now())
	defer c.mu.Release()
	var out []string
	for _, s := range c.storages {
		for node, images := range s.images {
			for name := range images {
				out = append(out, node+"/"+s.name+":iso/"+name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// Lose deletes a VM, and not its image, as a user does it.
func (c *Cluster) Lose(id int) {
	c.mu.Lock()
	c.settle(time.Now())
	defer c.mu.Release()
	if m := c.vms[id]; m != nil {
		c.halt(m)
		delete(c.vms, id)
	}
}

// PowerOff stops a VM.
func (c *Cluster) PowerOff(id int) {
	c.mu.Lock()
	c.settle(time.Now())
	defer c.mu.Release()
	if m := c.vms[id]; m != nil {
		c.halt(m)
	}
}

// Hang makes the guest of a VM ignore requests to shut down, until it is reset or started again.
func (c *Cluster) Hang(id int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.vms[id].hangs = true
}

// Reboots returns the reboots of a VM in their order: "Soft" if its guest was asked to shut down and start again, "Hard" if
// it was reset, or started again after it had stopped.
func (c *Cluster) Reboots(id int) []string {
	c.mu.Lock()
	c.settle(time.Now())
	defer c.mu.Release()
	if m := c.vms[id]; m != nil {
		return slices.Clone(m.reboots)
	}
	return nil
}

// Migrate moves a VM to another node.
func (c *Cluster) Migrate(id int, to string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.vms[id].node = to
}

// Set sets a key of a VM's configuration, as a user does it.
func (c *Cluster) Set(id int, key, value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.vms[id].config[key] = value
}

// Occupy creates a VM of another owner with a VMID.
func (c *Cluster) Occupy(id int, name, node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.occupy(id, name, node)
}

func (c *Cluster) occupy(id int, name, node string) {
	c.vms[id] = &machine{id: id, node: node, memory: gib, config: map[string]string{
		"name": name, "smbios1": fmt.Sprintf("uuid=aaaaaaaa-0000-4000-8000-%012d", id), "scsi0": fmt.Sprintf("ceph:vm-%d-disk-0,size=4G", id),
	}}
}

// Create creates a running VM, as an earlier process of Drover does it.
func (c *Cluster) Create(name, node, pool, uuid, tags, notes string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := c.nextID()
	c.occupy(id, name, node)
	m := c.vms[id]
	m.pool, m.running, m.reported, m.startedAt = pool, true, "running", time.Now()
	maps.Copy(m.config, map[string]string{"smbios1": "uuid=" + uuid, "tags": tags, "description": notes})
	return id
}

func (c *Cluster) nextID() int {
	id := 100
	for c.vms[id] != nil {
		id++
	}
	return id
}

// settle ends the tasks that are due, in the order of their ends.
func (c *Cluster) settle(now time.Time) {
	var due []*task
	for _, t := range c.tasks {
		if t.exit == "" && !t.endsAt.After(now) {
			due = append(due, t)
		}
	}
	slices.SortFunc(due, func(a, b *task) int { return cmp.Or(a.endsAt.Compare(b.endsAt), strings.Compare(a.upid, b.upid)) })
	for _, t := range due {
		t.exit = cmp.Or(t.done(t.endsAt), "OK")
	}
	for _, m := range c.vms {
		if c.opts.StatusEvery == 0 || now.Sub(m.reportedAt) >= c.opts.StatusEvery {
			m.reported, m.reportedAt = m.status(), now
		}
	}
}

// begin starts a task. Its function done returns the text of a failure, or "".
func (c *Cluster) begin(now time.Time, node, kind string, vm int, user string, takes time.Duration, done func(now time.Time) string) string {
	c.pids++
	id := strconv.Itoa(vm)
	if vm == 0 {
		id = ""
	}
	t := &task{
		upid: fmt.Sprintf("UPID:%s:%08X:%08X:%08X:%s:%s:%s:", node, c.pids, c.pids*7, now.Unix(), kind, id, user),
		node: node, kind: kind, id: id, user: user, startedAt: now, endsAt: now.Add(takes), vm: vm,
	}
	t.done = func(at time.Time) string {
		if c.failTask != nil {
			pool, name := "", ""
			if m := c.vms[vm]; m != nil {
				pool, name = m.pool, m.config["name"]
			}
			if text := c.failTask(kind, pool, name); text != "" {
				return text
			}
		}
		return done(at)
	}
	c.tasks[t.upid] = t
	return t.upid
}

// boot starts a VM.
func (c *Cluster) boot(m *machine, now time.Time) {
	m.running, m.startedAt, m.hangs = true, now, false
	if m.address == "" {
		c.addrs++
		m.address = fmt.Sprintf("10.20.%d.%d", c.addrs/250, c.addrs%250+1)
	}
	b := c.booted(m)
	if m.restarts {
		m.restarts = false
		c.mu.Later(func() { c.opts.Reboot(b) })
		return
	}
	if c.opts.Boot == nil {
		return
	}
	m.booted = true
	c.mu.Later(func() {
		if address := c.opts.Boot(b); address != "" {
			c.mu.Lock()
			defer c.mu.Unlock()
			m.address = address
		}
	})
}

// restart stops a VM whose guest keeps its disks and starts again.
func (c *Cluster) restart(m *machine) {
	if !m.booted || c.opts.Reboot == nil {
		c.halt(m)
		return
	}
	m.running, m.restarts = false, true
}

// halt stops a VM.
func (c *Cluster) halt(m *machine) {
	m.running, m.restarts = false, false
	if !m.booted || c.opts.Stop == nil {
		return
	}
	m.booted = false
	b := c.booted(m)
	c.mu.Later(func() { c.opts.Stop(b) })
}

// booted returns the argument of the hooks.
func (c *Cluster) booted(m *machine) Booted {
	files := c.cloudInit(m)
	return Booted{
		Name: m.config["name"], UUID: smbiosUUID(m.config["smbios1"]),
		UserData: files["user-data"], MetaData: files["meta-data"],
	}
}

// option returns an option of a property string, such as size of "ceph:vm-100-disk-0,size=4G".
func option(property, key string) string {
	for _, part := range strings.Split(property, ",") {
		if k, v, ok := strings.Cut(part, "="); ok && k == key {
			return v
		}
	}
	return ""
}

func smbiosUUID(property string) string { return option(property, "uuid") }
