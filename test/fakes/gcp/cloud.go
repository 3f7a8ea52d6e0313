package gcp

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/drover-dev/drover/test/fakes"
	"github.com/drover-dev/drover/test/fakes/gcpmodel"
	"github.com/drover-dev/drover/test/fakes/gcptest"
)

// A Fault makes calls fail. Its Call is the ID of the method, such as compute.instances.insert, or "POST /token". The
// Code is the reason of the error.
type Fault = fakes.Fault

// A Booted is an instance that starts, stops or restarts, for a hook.
type Booted struct {
	ID, Name, Project, Zone string
	UserData                string
}

// Options of a cloud.
type Options struct {
	// Project ID. Default my-project.
	Project string
	// Report is called with each request and answer that differs from Google's description. It is required.
	Report func(error)
	// ListedAfter is the time from the creation of an instance until it is listed.
	ListedAfter time.Duration
	// Step is the time of an operation before it runs, of an instance in each of the statuses PROVISIONING, STAGING and
	// STOPPING, and of an operation that fails.
	Step time.Duration
	// RateLimit is the number of calls that the project may make at once. One more is allowed after each Refill.
	// Default 0: no limit.
	RateLimit int
	Refill    time.Duration
	// Boot is called when an instance starts, and returns its internal address. Stop is called when an instance stops, and
	// Reboot when one was reset. All are called without the lock of the cloud.
	Boot   func(Booted) (address string)
	Stop   func(Booted)
	Reboot func(Booted)
}

// A Failure is the failure of an operation that was accepted, such as that of a creation without capacity.
type Failure struct {
	// Code of the error, such as ZONE_RESOURCE_POOL_EXHAUSTED.
	Code, Message string
	// Match selects creations by their body. Default: all.
	Match func(body []byte) bool
	// Times is the number of operations that fail. Default 0: all.
	Times int

	done int
}

// A Cloud is a project.
type Cloud struct {
	fakes.Faults
	fakes.Count
	*tokens
	opts  Options
	model *gcpmodel.Model

	mu         fakes.Lock
	instances  map[uint64]*instance
	disks      map[string]*disk
	operations map[string]*operation
	// requests are the operations of request IDs.
	requests map[string]*operation
	failures []*Failure
	ids      uint64
	addrs    int
	// denies is the time until which all calls are throttled.
	denies time.Time
}

// tokens are the service accounts of the project, and its lists.
type tokens = gcptest.Cloud

type instance struct {
	id         uint64
	name, zone string
	status     string
	body       map[string]any
	labels     map[string]string
	userData   string
	createdAt  time.Time
	nextAt     time.Time
	addresses  [3]string // internal, external, IPv6
	console    string
	reads      int
	// ran means that it was running once. deleting means that it is removed at nextAt, failing that its creation fails then.
	ran, deleting, failing bool
	reboots                []string
	insert                 *operation
}

type disk struct {
	name, zone, user string
	labels           map[string]string
	createdAt        time.Time
	keep             bool
}

// An operation is a task of the cloud.
type operation struct {
	name, zone, kind string
	target           uint64
	link             string
	createdAt        time.Time
	// runsAt and endsAt are when it runs and ends. A zero endsAt means that its instance ends it.
	runsAt, endsAt time.Time
	code, message  string
}

// Hard is a reboot that resets an instance, or starts it.
const Hard = "Hard"

const (
	defaultProject = "my-project"
	// Account is the service account of the provider.
	Account = "drover@my-project.iam.gserviceaccount.com"
)

// Zones of the project.
var Zones = []string{"europe-west4-a", "europe-west4-b", "europe-west4-c"}

// Permissions are those of the provider: examples/gcp/role.json has them, and those that a creation needs for other resources.
var Permissions = []string{
	"compute.instances.create", "compute.instances.delete", "compute.instances.get", "compute.instances.list", "compute.instances.reset",
	"compute.instances.start", "compute.instances.getSerialPortOutput", "compute.zoneOperations.get", "compute.zoneOperations.list",
	"compute.machineTypes.get", "compute.images.get", "compute.images.getFromFamily", "compute.disks.list", "compute.addresses.list",
}

// New returns a project with the service account Account and the subnetworks nodes and other. It has the machine types and
// images of the catalog.
func New(o Options) *Cloud {
	o.Project = cmp.Or(o.Project, defaultProject)
	model, err := gcpmodel.Compute()
	if err != nil {
		panic(err)
	}
	c := &Cloud{
		opts: o, model: model, instances: map[uint64]*instance{}, disks: map[string]*disk{}, operations: map[string]*operation{},
		requests: map[string]*operation{}, ids: 4_000_000_000_000_000_000,
	}
	c.tokens = gcptest.New(gcptest.Options{State: state{c}, Project: o.Project, Zones: Zones, RateLimit: o.RateLimit, Refill: o.Refill})
	c.Grant(Account, Permissions...)
	return c
}

// Throttle refuses all calls for some time.
func (c *Cloud) Throttle(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.denies = time.Now().Add(d)
}

// Fail makes the operations of creations fail. The returned function ends that.
func (c *Cloud) Fail(f Failure) (mend func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures = append(c.failures, &f)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.failures = slices.DeleteFunc(c.failures, func(other *Failure) bool { return other == &f })
	}
}

// failureOf returns the failure of a creation, or nil.
func (c *Cloud) failureOf(body []byte) *Failure {
	for _, f := range c.failures {
		if (f.Match == nil || f.Match(body)) && (f.Times == 0 || f.done < f.Times) {
			f.done++
			return f
		}
	}
	return nil
}

// An Instance is an existing instance.
type Instance struct {
	ID                           string
	Name, Zone, Status, UserData string
	Labels                       map[string]string
	// Body is the request that created it.
	Body map[string]any
	// Reboots since the instance was running first.
	Reboots []string
}

// Instances returns the existing instances, without those that are being removed.
func (c *Cloud) Instances() []Instance {
	c.mu.Lock()
	defer c.mu.Release()
	c.settle(time.Now())
	var out []Instance
	for _, i := range c.sorted() {
		if !i.deleting && !i.failing {
			out = append(out, Instance{
				ID: i.number(), Name: i.name, Zone: i.zone, Status: i.status, UserData: i.userData, Labels: maps.Clone(i.labels), Body: i.body,
				Reboots: slices.Clone(i.reboots),
			})
		}
	}
	return out
}

// Disks returns the names of the existing disks.
func (c *Cloud) Disks() []string {
	c.mu.Lock()
	defer c.mu.Release()
	c.settle(time.Now())
	return slices.Sorted(maps.Keys(c.disks))
}

// named returns the instance with a name, in the first zone that has one.
func (c *Cloud) named(name string) *instance {
	for _, i := range c.sorted() {
		if i.name == name {
			return i
		}
	}
	return nil
}

// Lose deletes an instance at once, as a user does it.
func (c *Cloud) Lose(name string) {
	c.mu.Lock()
	defer c.mu.Release()
	if i := c.named(name); i != nil {
		c.remove(i)
	}
}

// PowerOff stops an instance, as a user does it.
func (c *Cloud) PowerOff(name string) {
	c.mu.Lock()
	defer c.mu.Release()
	if i := c.named(name); i != nil {
		c.stop(i)
		i.status, i.nextAt = "TERMINATED", time.Time{}
	}
}

// Preempt takes a spot VM back: it stops, or is deleted if its class asks for that.
func (c *Cloud) Preempt(name string) {
	c.mu.Lock()
	defer c.mu.Release()
	i, now := c.named(name), time.Now()
	if i == nil {
		return
	}
	o := c.newOperation(i, "compute.instances.preempted", now)
	o.endsAt = now
	c.stop(i)
	scheduling, _ := i.body["scheduling"].(map[string]any)
	i.status, i.nextAt, i.deleting = "STOPPING", now.Add(c.opts.Step), scheduling["instanceTerminationAction"] == "DELETE"
}

// Unlabel removes a label of an instance, as a user does it.
func (c *Cloud) Unlabel(name, label string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := c.named(name); i != nil {
		delete(i.labels, label)
	}
}

// SetConsole sets the output of the first serial port of an instance.
func (c *Cloud) SetConsole(name, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := c.named(name); i != nil {
		i.console = text
	}
}

// ConsoleReads returns how often the console of an instance was read.
func (c *Cloud) ConsoleReads(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := c.named(name); i != nil {
		return i.reads
	}
	return 0
}

// Create creates a running instance with labels, as a user does it.
func (c *Cloud) Create(name, zone string, labels map[string]string) (id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.add(name, zone, map[string]any{}, maps.Clone(labels), time.Now().Add(-time.Hour))
	i.status, i.nextAt, i.ran = "RUNNING", time.Time{}, true
	return i.number()
}

// AddDisk adds a disk that nothing uses.
func (c *Cloud) AddDisk(name, zone string, labels map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.disks[name] = &disk{name: name, zone: zone, labels: labels, createdAt: time.Now().Add(-time.Hour)}
}

func (i *instance) number() string { return strconv.FormatUint(i.id, 10) }

// add adds an instance with its disks.
func (c *Cloud) add(name, zone string, body map[string]any, labels map[string]string, now time.Time) *instance {
	c.ids++
	c.addrs++
	i := &instance{id: c.ids, name: name, zone: zone, status: "PROVISIONING", body: body, labels: labels, createdAt: now, nextAt: now.Add(2 * c.opts.Step)}
	i.addresses[0] = fmt.Sprintf("10.164.%d.%d", c.addrs/250, c.addrs%250+2)
	c.instances[i.id] = i
	list, _ := body["disks"].([]any)
	for n, d := range list {
		d, _ := d.(map[string]any)
		if d["type"] == "SCRATCH" {
			continue
		}
		parameters, _ := d["initializeParams"].(map[string]any)
		diskName := name
		if n > 0 {
			diskName = fmt.Sprintf("%s-%d", name, n)
		}
		c.disks[diskName] = &disk{name: diskName, zone: zone, user: gcptest.Link(c.opts.Project, zone, name), labels: texts(parameters["labels"]), createdAt: now, keep: d["autoDelete"] != true}
	}
	return i
}

// texts returns a map of texts.
func texts(value any) map[string]string {
	out := map[string]string{}
	all, _ := value.(map[string]any)
	for k, v := range all {
		out[k], _ = v.(string)
	}
	return out
}

// settle carries out each operation that is due.
func (c *Cloud) settle(now time.Time) {
	for _, i := range c.sorted() {
		for !i.nextAt.IsZero() && !now.Before(i.nextAt) {
			due := i.nextAt
			switch {
			case i.deleting, i.failing:
				c.remove(i)
				i.nextAt = time.Time{}
			case i.status == "PROVISIONING":
				i.status, i.nextAt = "STAGING", due.Add(c.opts.Step)
			case i.status == "STAGING":
				i.status, i.nextAt = "RUNNING", time.Time{}
				if i.insert != nil && i.insert.endsAt.IsZero() {
					i.insert.endsAt = due
				}
				c.boot(i)
			case i.status == "STOPPING":
				i.status, i.nextAt = "TERMINATED", time.Time{}
			default:
				i.nextAt = time.Time{}
			}
		}
	}
}

func (c *Cloud) booted(i *instance) Booted {
	return Booted{ID: i.number(), Name: i.name, Project: c.opts.Project, Zone: i.zone, UserData: i.userData}
}

// boot calls the hook of an instance that starts.
func (c *Cloud) boot(i *instance) {
	if i.ran {
		i.reboots = append(i.reboots, Hard)
	}
	i.ran = true
	if c.opts.Boot == nil {
		return
	}
	b := c.booted(i)
	c.mu.Later(func() {
		address := c.opts.Boot(b)
		c.mu.Lock()
		defer c.mu.Unlock()
		if address != "" {
			i.addresses[0] = address
		}
	})
}

// stop calls the hook of an instance that stops.
func (c *Cloud) stop(i *instance) {
	if c.opts.Stop != nil && i.status == "RUNNING" {
		b := c.booted(i)
		c.mu.Later(func() { c.opts.Stop(b) })
	}
}

// remove removes an instance and its disks.
func (c *Cloud) remove(i *instance) {
	c.stop(i)
	delete(c.instances, i.id)
	link := gcptest.Link(c.opts.Project, i.zone, i.name)
	for name, d := range c.disks {
		switch {
		case d.user != link:
		case d.keep:
			d.user = ""
		default:
			delete(c.disks, name)
		}
	}
	if i.insert != nil && i.insert.endsAt.IsZero() {
		i.insert.endsAt = time.Now()
	}
}

// sorted returns all instances in the order of their numbers.
func (c *Cloud) sorted() []*instance {
	return slices.SortedFunc(maps.Values(c.instances), func(a, b *instance) int { return cmp.Compare(a.id, b.id) })
}

// newOperation adds an operation about an instance.
func (c *Cloud) newOperation(i *instance, kind string, now time.Time) *operation {
	c.ids++
	o := &operation{
		name: fmt.Sprintf("operation-%d", c.ids), zone: i.zone, kind: kind, target: i.id, link: gcptest.Link(c.opts.Project, i.zone, i.name),
		createdAt: now, runsAt: now.Add(c.opts.Step),
	}
	c.operations[o.name] = o
	return o
}

// state shows gcptest what exists.
type state struct{ *Cloud }

// VMs that are listed.
func (s state) VMs() []gcptest.VM {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []gcptest.VM
	for _, i := range s.sorted() {
		if time.Since(i.createdAt) >= s.opts.ListedAfter {
			out = append(out, gcptest.VM{Name: i.name, Zone: i.zone, Labels: i.labels, Status: i.status, CreatedAt: i.createdAt, Fields: s.view(i)})
		}
	}
	return out
}

// Resources that are listed.
func (s state) Resources() []gcptest.Resource {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []gcptest.Resource
	for _, name := range slices.Sorted(maps.Keys(s.disks)) {
		d := s.disks[name]
		out = append(out, gcptest.Resource{Type: gcptest.Disk, Name: d.name, Location: d.zone, Labels: d.labels, CreatedAt: d.createdAt, User: d.user})
	}
	return out
}

// hasText reports whether a body has a text, for the matches of faults.
func hasText(body []byte, text string) bool { return bytes.Contains(body, []byte(text)) }

// OfLabel returns a match of creations that give a label a value.
func OfLabel(key, value string) func([]byte) bool {
	return func(body []byte) bool { return hasText(body, fmt.Sprintf("%q:%q", key, value)) }
}
