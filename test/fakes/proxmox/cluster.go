package proxmox

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/drover-dev/drover/test/fakes"
)

const gib = int64(1) << 30

// A Booted VM is what a hook is told.
type Booted struct {
	VMID           int
	Node, Name     string
	UUID           string
	UserData       string
	MetaData       string
	Notes          string
	CardsByBridges []string
}

// Options of a cluster.
type Options struct {
	// Name of the cluster. Default "lab".
	Name string
	// Nodes of the cluster. Default pve1 and pve2.
	Nodes []string
	// Step is how long a task takes, and CloneTakes how long one that copies disks does. Default 0.
	Step, CloneTakes time.Duration
	// AgentAfter is how long after its start the guest agent of a VM answers.
	AgentAfter time.Duration
	// StatusEvery is how old the states in /cluster/resources may be: pvestatd sends them around.
	StatusEvery time.Duration
	// RateLimit of all calls: as many at once, of which one comes back every Refill. Proxmox VE has
	// none; a proxy before it may. Default 0: none.
	RateLimit int
	Refill    time.Duration
	// Boot is called when a VM begins to run, with the lock of the cluster free, and returns the
	// address that its guest has; Stop when it ends.
	Boot func(Booted) (address string)
	Stop func(Booted)
}

// A Token is one of the API.
type Token struct {
	Secret string
	// Pools are those whose VMs the token may see and change. Nil is all.
	Pools []string
	// ReadOnly tokens have the privilege VM.Audit and no other.
	ReadOnly bool
}

// A Cluster of Proxmox VE.
type Cluster struct {
	fakes.Faults
	fakes.Count
	opts Options

	mu       sync.Mutex
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
	// unavailable until then: all calls are answered with 503, as by a proxy.
	unavailable time.Time
	// after is done when the lock is free.
	after []func()
	// failTask is asked for the text that a task fails with, "": none.
	failTask func(kind, vmName string) string
}

type node struct {
	name   string
	online bool
	memory int64
}

// A storage is on the nodes that it names, or on all. What is on one that is not shared is on one node.
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
	// hidden means that the configuration has only its lock: a clone in progress.
	hidden    bool
	running   bool
	startedAt time.Time
	// reported is what pvestatd sent around, and when.
	reported   string
	reportedAt time.Time
	address    string
	booted     bool
	memory     int64
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

// A task runs until endsAt; then done is called, and what it returns is its exit status.
type task struct {
	upid, node, kind, id, user string
	startedAt, endsAt          time.Time
	done                       func(now time.Time) string
	vm                         int
	exit                       string
}

// New makes a cluster with the storages local (directory, iso, on each node its own), local-lvm
// (images, on each node its own), and ceph (images and iso, shared), the pool k8s, the bridges vmbr0
// and vmbr1, and the template ubuntu-24.04, VMID 9000, on the first node with its disk on ceph.
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
	c.AddTemplate(9000, "ubuntu-24.04", o.Nodes[0], "ceph")
	return c
}

// AddTemplate of a name, with a disk of 4 GiB and a network card.
func (c *Cluster) AddTemplate(id int, name, node, storage string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.vms[id] = &machine{id: id, node: node, template: true, memory: 2 * gib, config: map[string]string{
		"name": name, "template": "1", "cores": "2", "memory": "2048", "scsihw": "virtio-scsi-single", "boot": "order=scsi0",
		"scsi0": fmt.Sprintf("%s:base-%d-disk-0,size=4G", storage, id), "net0": "virtio=BC:24:11:00:00:01,bridge=vmbr0",
		"description": "A template.\n", "smbios1": "uuid=3f1d4c1e-0000-4000-8000-000000009000", "ostype": "l26",
	}}
}

// AddPool and AddStorage add what a class may name. A storage without nodes is on all.
func (c *Cluster) AddPool(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pools[name] = true
}

// AddStorage that is not shared.
func (c *Cluster) AddStorage(name string, content []string, nodes ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.storages[name] = &storage{name: name, content: content, nodes: nodes, images: map[string]map[string]image{}}
}

// SetToken gives a user a token, like drover@pve!drover.
func (c *Cluster) SetToken(id string, t Token) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens[id] = t
}

// SetOnline says whether a node answers.
func (c *Cluster) SetOnline(name string, online bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[name].online = online
}

// FailTasks asks fail for the exit status of each task that would succeed. It is given the type of
// the task, such as qmclone, and the name of the VM. "" lets the task succeed.
func (c *Cluster) FailTasks(fail func(kind, vmName string) string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failTask = fail
}

// Unavailable answers all calls with 503 for some time.
func (c *Cluster) Unavailable(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unavailable = time.Now().Add(d)
}

// A VM that exists.
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

// VMs that exist, without templates.
func (c *Cluster) VMs() []VM {
	c.mu.Lock()
	c.settle(time.Now())
	defer c.release()
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

// Images are the volumes of type iso, as node/storage:iso/name.
func (c *Cluster) Images() []string {
	c.mu.Lock()
	c.settle(time.Now())
	defer c.release()
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

// Lose a VM, as a user destroys it. Its image stays.
func (c *Cluster) Lose(id int) {
	c.mu.Lock()
	c.settle(time.Now())
	defer c.release()
	if m := c.vms[id]; m != nil {
		c.halt(m)
		delete(c.vms, id)
	}
}

// PowerOff a VM.
func (c *Cluster) PowerOff(id int) {
	c.mu.Lock()
	c.settle(time.Now())
	defer c.release()
	if m := c.vms[id]; m != nil {
		c.halt(m)
	}
}

// Migrate a VM to another node.
func (c *Cluster) Migrate(id int, to string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.vms[id].node = to
}

// Set a key of a VM's configuration, as a user does.
func (c *Cluster) Set(id int, key, value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.vms[id].config[key] = value
}

// Occupy a VMID with a VM of another owner.
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

// Create a VM that runs, as an earlier process of Drover did.
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

// settle what is due: tasks that end, in the order in which they do.
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

// release the lock, and do what must be done without it.
func (c *Cluster) release() {
	after := c.after
	c.after = nil
	c.mu.Unlock()
	for _, do := range after {
		do()
	}
}

// begin a task. Its done may return the text of a failure.
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
			name := ""
			if m := c.vms[vm]; m != nil {
				name = m.config["name"]
			}
			if text := c.failTask(kind, name); text != "" {
				return text
			}
		}
		return done(at)
	}
	c.tasks[t.upid] = t
	return t.upid
}

// boot and halt a VM.
func (c *Cluster) boot(m *machine, now time.Time) {
	m.running, m.startedAt = true, now
	c.addrs++
	m.address = fmt.Sprintf("10.20.%d.%d", c.addrs/250, c.addrs%250+1)
	if c.opts.Boot == nil {
		return
	}
	m.booted = true
	b := c.told(m)
	c.after = append(c.after, func() {
		if address := c.opts.Boot(b); address != "" {
			c.mu.Lock()
			defer c.mu.Unlock()
			m.address = address
		}
	})
}

func (c *Cluster) halt(m *machine) {
	m.running = false
	if !m.booted || c.opts.Stop == nil {
		return
	}
	m.booted = false
	b := c.told(m)
	c.after = append(c.after, func() { c.opts.Stop(b) })
}

func (c *Cluster) told(m *machine) Booted {
	files := c.cloudInit(m)
	b := Booted{
		VMID: m.id, Node: m.node, Name: m.config["name"], UUID: smbiosUUID(m.config["smbios1"]),
		UserData: files["user-data"], MetaData: files["meta-data"], Notes: m.config["description"],
	}
	for i := range 32 {
		if net := m.config["net"+strconv.Itoa(i)]; net != "" {
			b.CardsByBridges = append(b.CardsByBridges, option(net, "bridge"))
		}
	}
	return b
}

// option of a property string, such as size of "ceph:vm-100-disk-0,size=4G".
func option(property, key string) string {
	for _, part := range strings.Split(property, ",") {
		if k, v, ok := strings.Cut(part, "="); ok && k == key {
			return v
		}
	}
	return ""
}

func smbiosUUID(property string) string { return option(property, "uuid") }
