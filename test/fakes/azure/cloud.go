package azure

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v7"
	"github.com/google/uuid"

	"github.com/drover-dev/drover/test/fakes"
	"github.com/drover-dev/drover/test/fakes/azuremodel"
	"github.com/drover-dev/drover/test/fakes/azuretest"
)

// A Fault makes calls fail. Its Call is one of the names of calls, such as [CreateVM].
type Fault = fakes.Fault

// Names of calls.
const (
	CreateVM      = "VirtualMachines.CreateOrUpdate"
	DeleteVM      = "VirtualMachines.Delete"
	GetVM         = "VirtualMachines.Get"
	ListVMs       = "VirtualMachines.ListAll"
	CreateNIC     = "Interfaces.CreateOrUpdate"
	ReadBlob      = "Blobs.Get"
	RestartVM     = "VirtualMachines.Restart"
	ListNICs      = "Interfaces.ListAll"
	CreateAddress = "PublicIPAddresses.CreateOrUpdate"
)

// A Booted is a VM that starts, stops or restarts, for a hook.
type Booted struct {
	// ID is the unique ID of the VM.
	ID, Subscription, Group, Name string
	// UserData is the custom data, decoded from base64.
	UserData []byte
}

// Options of a cloud.
type Options struct {
	// Tenant and Subscription, both UUIDs. The default is one of each.
	Tenant, Subscription string
	// Report is called with each request that differs from Microsoft's model. It is required.
	Report func(error)
	// ListedAfter is the time from the creation of a resource until it is listed, and from its deletion until it is not.
	ListedAfter time.Duration
	// Step is the time until a VM that is created runs, from then on until its creation ends, and of each other operation of
	// a VM.
	Step time.Duration
	// NetworkStep is the time until a network interface or a public IP address is ready. Default 0: at once.
	NetworkStep time.Duration
	// RateLimit is the number of calls that the subscription may make at once. One more is allowed after each Refill.
	// Default 0: no limit.
	RateLimit int
	Refill    time.Duration
	// PageSize is the maximum number of resources in a page of a list. Default: 100.
	PageSize int
	// Boot is called when a VM starts, and returns its private address. Stop is called when a VM stops, and Reboot when its
	// operating system restarted or it was reset. All are called without the lock of the cloud.
	Boot   func(Booted) (address string)
	Stop   func(Booted)
	Reboot func(Booted)
}

// A Failure is the failure of a creation that was accepted.
type Failure struct {
	// Code of the error, such as AllocationFailed.
	Code, Message string
	// Match selects creations by their body. Default: all.
	Match func(body []byte) bool
	// Times is the number of creations that fail. Default 0: all.
	Times int

	done int
}

// A Cloud is a subscription.
type Cloud struct {
	*identities
	opts             Options
	compute, network *azuremodel.Model
	limit            fakes.Limit

	mu       fakes.Lock
	vms      map[string]*vm
	others   map[string]*other
	failures []*Failure
	addrs    int
	// sessions are lists of which further pages exist.
	sessions map[string]*session
}

// identities are the service principals of the tenant, and Resource Graph.
type identities = azuretest.Cloud

// A vm is a VM, or one that was removed and is still listed.
type vm struct {
	group, name, id string
	model           armcompute.VirtualMachine
	body            []byte
	createdAt       time.Time
	removedAt       time.Time
	provisioning    string
	power           string
	// nextAt is when the next change is due.
	nextAt time.Time
	// failing is the failure of its creation. deleting means that it is removed at nextAt.
	failing       *Failure
	deleting      bool
	code, message string
	// ran means that it was running once.
	ran     bool
	reboots []string
	console string
	reads   int
}

// Types of the resources beside VMs.
const (
	typeInterface = "Microsoft.Network/networkInterfaces"
	typeAddress   = "Microsoft.Network/publicIPAddresses"
	typeDisk      = "Microsoft.Compute/disks"
	typeVM        = "Microsoft.Compute/virtualMachines"
)

// An other is a resource beside VMs.
type other struct {
	typ, group, name string
	tags             map[string]*string
	createdAt        time.Time
	removedAt        time.Time
	// readyAt and goneAt are when its creation and its deletion end.
	readyAt, goneAt time.Time
	nic             *armnetwork.Interface
	address         *armnetwork.PublicIPAddress
	size            int32
	// ip is its address, which a guest may replace by its own, and own the one that the cloud gave it.
	ip, own string
	// user is the ID of the resource that uses it, in lower case.
	user string
	// deleted means that it is deleted with its user.
	deleted bool
}

const (
	defaultTenant       = "8f0f1c52-4a58-4f4c-a34f-5d7b9b1c0001"
	defaultSubscription = "0b1f6471-1bf0-4dda-aec3-cb9272f09590"
	// Client is the client ID of the provider.
	Client = "4c1d3f6a-0000-4000-8000-00000000c11e"
	// Group is a resource group.
	Group = "production-nodes"
	// Location is that of all resources.
	Location    = "westeurope"
	defaultPage = 100
)

// Actions are those of the provider: examples/azure/role.json has them.
var Actions = []string{
	"Microsoft.Authorization/permissions/read",
	"Microsoft.Compute/disks/delete", "Microsoft.Compute/disks/read", "Microsoft.Compute/disks/write",
	"Microsoft.Compute/virtualMachines/delete", "Microsoft.Compute/virtualMachines/read", "Microsoft.Compute/virtualMachines/write",
	"Microsoft.Compute/virtualMachines/redeploy/action", "Microsoft.Compute/virtualMachines/restart/action",
	"Microsoft.Compute/virtualMachines/retrieveBootDiagnosticsData/action", "Microsoft.Compute/virtualMachines/start/action",
	"Microsoft.Network/networkInterfaces/delete", "Microsoft.Network/networkInterfaces/join/action",
	"Microsoft.Network/networkInterfaces/read", "Microsoft.Network/networkInterfaces/write",
	"Microsoft.Network/publicIPAddresses/delete", "Microsoft.Network/publicIPAddresses/join/action",
	"Microsoft.Network/publicIPAddresses/read", "Microsoft.Network/publicIPAddresses/write",
	"Microsoft.Network/virtualNetworks/subnets/join/action",
	"Microsoft.ResourceGraph/resources/read",
}

// Subnet returns the ID of a subnet. Those with the names nodes and other exist.
func (c *Cloud) Subnet(name string) string {
	return "/subscriptions/" + c.opts.Subscription + "/resourceGroups/production-network/providers/Microsoft.Network/virtualNetworks/production/subnets/" + name
}

// New returns a subscription with the service principal Client.
func New(o Options) *Cloud {
	o.Tenant, o.Subscription, o.PageSize = cmp.Or(o.Tenant, defaultTenant), cmp.Or(o.Subscription, defaultSubscription), cmp.Or(o.PageSize, defaultPage)
	compute, err := azuremodel.Compute()
	if err != nil {
		panic(err)
	}
	network, err := azuremodel.Network()
	if err != nil {
		panic(err)
	}
	c := &Cloud{opts: o, compute: compute, network: network, vms: map[string]*vm{}, others: map[string]*other{}, sessions: map[string]*session{}}
	c.identities = azuretest.New(azuretest.Options{State: state{c}, Tenant: o.Tenant, Subscription: o.Subscription})
	c.Assign(Client, azuretest.Assignment{Actions: Actions})
	return c
}

// Throttle refuses all calls for some time.
func (c *Cloud) Throttle(d time.Duration) { c.limit.Throttle(d) }

// Fail makes creations fail that were accepted. The returned function ends that.
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

// A VM is an existing VM.
type VM struct {
	ID, Group, Name, Provisioning, Power string
	UserData                             []byte
	Tags                                 map[string]string
	// Body is the request that created it.
	Body []byte
	// Reboots since the VM was running first.
	Reboots []string
}

// Kinds of reboots.
const (
	// Soft is a reboot by the operating system.
	Soft = "Soft"
	// Hard is a reboot that resets a VM, or starts it.
	Hard = "Hard"
)

// Existing returns the existing VMs, without those that are being removed.
func (c *Cloud) Existing() []VM {
	c.mu.Lock()
	defer c.mu.Release()
	c.settle(time.Now())
	var out []VM
	for _, v := range c.sorted() {
		if v.removedAt.IsZero() && !v.deleting && v.failing == nil && v.provisioning != "Failed" {
			out = append(out, VM{
				ID: v.id, Group: v.group, Name: v.name, Provisioning: v.provisioning, Power: v.power, UserData: v.userData(), Tags: texts(v.model.Tags), Body: v.body,
				Reboots: slices.Clone(v.reboots),
			})
		}
	}
	return out
}

// Left returns the IDs of the existing resources beside VMs, and of VMs whose creation failed.
func (c *Cloud) Left() []string {
	c.mu.Lock()
	defer c.mu.Release()
	c.settle(time.Now())
	var out []string
	for id, o := range c.others {
		if o.removedAt.IsZero() {
			out = append(out, id)
		}
	}
	for id, v := range c.vms {
		if v.removedAt.IsZero() && v.provisioning == "Failed" {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// BodyOf returns the request that created a network interface or a public IP address whose name ends with a suffix.
func (c *Cloud) BodyOf(suffix string) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.others {
		if strings.HasSuffix(o.name, suffix) && o.nic != nil {
			return o.nic
		}
		if strings.HasSuffix(o.name, suffix) && o.address != nil {
			return o.address
		}
	}
	return nil
}

// named returns the VM with a name, or nil.
func (c *Cloud) named(name string) *vm {
	c.settle(time.Now())
	for _, v := range c.sorted() {
		if v.name == name && v.removedAt.IsZero() {
			return v
		}
	}
	return nil
}

// Lose deletes a VM at once with all that is deleted with it, as a user does it, or as Azure takes back a spot VM.
func (c *Cloud) Lose(name string) {
	c.mu.Lock()
	defer c.mu.Release()
	if v := c.named(name); v != nil {
		c.remove(v, time.Now())
	}
}

// Evict takes a spot VM back: it is deleted or deallocated, as its eviction policy requires.
func (c *Cloud) Evict(name string) {
	c.mu.Lock()
	defer c.mu.Release()
	v := c.named(name)
	switch {
	case v == nil:
	case deref(v.model.Properties.EvictionPolicy) == armcompute.VirtualMachineEvictionPolicyTypesDelete:
		c.remove(v, time.Now())
	default:
		c.stop(v)
		v.power = "deallocated"
	}
}

// PowerOff stops a VM, as a user does it.
func (c *Cloud) PowerOff(name string) {
	c.mu.Lock()
	defer c.mu.Release()
	if v := c.named(name); v != nil {
		c.stop(v)
		v.power, v.nextAt = "stopped", time.Time{}
		if v.provisioning != "Failed" {
			v.provisioning = "Succeeded"
		}
	}
}

// FailUpdate sets the provisioning state of a VM to Failed, as that of an extension does.
func (c *Cloud) FailUpdate(name string) {
	c.mu.Lock()
	defer c.mu.Release()
	if v := c.named(name); v != nil {
		v.provisioning = "Failed"
	}
}

// Untag removes a tag of a VM, as a user does it.
func (c *Cloud) Untag(name, tag string) {
	c.mu.Lock()
	defer c.mu.Release()
	if v := c.named(name); v != nil {
		v.model.Tags = maps.Clone(v.model.Tags)
		delete(v.model.Tags, tag)
	}
}

// SetConsole sets the output of the serial port of a VM.
func (c *Cloud) SetConsole(name, text string) {
	c.mu.Lock()
	defer c.mu.Release()
	if v := c.named(name); v != nil {
		v.console = text
	}
}

// ConsoleReads returns how often the console of a VM was read.
func (c *Cloud) ConsoleReads(name string) int {
	c.mu.Lock()
	defer c.mu.Release()
	if v := c.named(name); v != nil {
		return v.reads
	}
	return 0
}

// Create creates a running VM with tags, without resources beside it, as a user does it.
func (c *Cloud) Create(name string, tags map[string]string) (id string) {
	c.mu.Lock()
	defer c.mu.Release()
	v := &vm{
		group: Group, name: name, id: uuid.NewString(), createdAt: time.Now().Add(-time.Hour), provisioning: "Succeeded", power: "running", ran: true,
		model: armcompute.VirtualMachine{Location: ptrTo(Location), Tags: tagsOf(tags), Properties: &armcompute.VirtualMachineProperties{}},
	}
	c.vms[c.idOf(typeVM, Group, name)] = v
	return v.id
}

// AddDisk adds a disk that nothing uses.
func (c *Cloud) AddDisk(name string, tags map[string]string) (id string) {
	c.mu.Lock()
	defer c.mu.Release()
	c.others[c.idOf(typeDisk, Group, name)] = &other{typ: typeDisk, group: Group, name: name, tags: tagsOf(tags), createdAt: time.Now().Add(-time.Hour)}
	return azuretest.ID(c.opts.Subscription, Group, azuretest.Disk, name)
}

func ptrTo[T any](v T) *T { return &v }

func tagsOf(tags map[string]string) map[string]*string {
	out := map[string]*string{}
	for k, v := range tags {
		out[k] = &v
	}
	return out
}

func texts(tags map[string]*string) map[string]string {
	out := map[string]string{}
	for k, v := range tags {
		out[k] = deref(v)
	}
	return out
}

func deref[T any](p *T) T {
	if p == nil {
		var none T
		return none
	}
	return *p
}

// fullID returns the ID of a resource as Azure writes it.
func (c *Cloud) fullID(typ, group, name string) string {
	return "/subscriptions/" + c.opts.Subscription + "/resourceGroups/" + group + "/providers/" + typ + "/" + name
}

// idOf returns the ID of a resource in lower case.
func (c *Cloud) idOf(typ, group, name string) string {
	return strings.ToLower(c.fullID(typ, group, name))
}

// settle carries out each operation that is due.
func (c *Cloud) settle(now time.Time) {
	for _, v := range c.sorted() {
		for !v.nextAt.IsZero() && !now.Before(v.nextAt) && v.removedAt.IsZero() {
			due := v.nextAt
			v.nextAt = time.Time{}
			switch {
			case v.deleting:
				c.remove(v, due)
			case v.failing != nil:
				v.provisioning, v.code, v.message, v.failing = "Failed", v.failing.Code, v.failing.Message, nil
			case v.provisioning == "Creating" && v.power == "":
				v.power, v.nextAt = "running", due.Add(c.opts.Step)
				c.boot(v)
			case v.power == "starting":
				v.power = "running"
				v.reboots = append(v.reboots, Hard)
				c.boot(v)
			case v.provisioning == "Creating", v.provisioning == "Updating":
				v.provisioning = "Succeeded"
			}
		}
		if !v.removedAt.IsZero() && now.Sub(v.removedAt) > c.opts.ListedAfter {
			c.forget(v)
		}
	}
	for id, o := range c.others {
		if !o.goneAt.IsZero() && o.removedAt.IsZero() && !now.Before(o.goneAt) {
			o.removedAt = o.goneAt
			c.release(id)
		}
		if !o.removedAt.IsZero() && now.Sub(o.removedAt) > c.opts.ListedAfter {
			delete(c.others, id)
		}
	}
}

func (c *Cloud) forget(v *vm) {
	for id, other := range c.vms {
		if other == v {
			delete(c.vms, id)
		}
	}
}

func (c *Cloud) booted(v *vm) Booted {
	return Booted{ID: v.id, Subscription: c.opts.Subscription, Group: v.group, Name: v.name, UserData: v.userData()}
}

// boot calls the hook of a VM that starts.
func (c *Cloud) boot(v *vm) {
	v.ran = true
	if c.opts.Boot == nil {
		return
	}
	b := c.booted(v)
	c.mu.Later(func() {
		address := c.opts.Boot(b)
		c.mu.Lock()
		defer c.mu.Release()
		for _, o := range c.others {
			if address != "" && o.typ == typeInterface && o.user == c.idOf(typeVM, v.group, v.name) && strings.HasSuffix(o.name, "nic0") {
				o.ip = address
			}
		}
	})
}

// stop calls the hook of a VM that stops.
func (c *Cloud) stop(v *vm) {
	if c.opts.Stop != nil && v.power == "running" {
		b := c.booted(v)
		c.mu.Later(func() { c.opts.Stop(b) })
	}
}

// restarted calls the hook of a VM that restarted.
func (c *Cloud) restarted(v *vm, kind string) {
	v.reboots = append(v.reboots, kind)
	if c.opts.Reboot != nil {
		b := c.booted(v)
		c.mu.Later(func() { c.opts.Reboot(b) })
	}
}

// remove removes a VM, and begins to remove the resources that are deleted with it.
func (c *Cloud) remove(v *vm, now time.Time) {
	c.stop(v)
	v.removedAt, v.nextAt = now, time.Time{}
	c.release(c.idOf(typeVM, v.group, v.name))
	// The name is free.
	c.vms[c.idOf(typeVM, v.group, v.name)+"#"+v.id] = v
	delete(c.vms, c.idOf(typeVM, v.group, v.name))
}

// release frees the resources that a resource used, and begins to remove those that are deleted with it.
func (c *Cloud) release(user string) {
	for _, o := range c.others {
		if o.user != user {
			continue
		}
		o.user = ""
		if o.deleted && o.goneAt.IsZero() {
			o.goneAt = time.Now().Add(c.opts.Step / 2)
		}
	}
}

// sorted returns all VMs in the order of their creation.
func (c *Cloud) sorted() []*vm {
	return slices.SortedFunc(maps.Values(c.vms), func(a, b *vm) int {
		return cmp.Or(a.createdAt.Compare(b.createdAt), cmp.Compare(a.id, b.id))
	})
}

// isListed reports whether a list has a resource.
func (c *Cloud) isListed(createdAt time.Time) bool {
	return time.Since(createdAt) >= c.opts.ListedAfter
}

// state shows azuretest the existing VMs and resources.
type state struct{ *Cloud }

// VMs that are listed.
func (s state) VMs() []azuretest.VM {
	s.mu.Lock()
	defer s.mu.Release()
	s.settle(time.Now())
	var out []azuretest.VM
	for _, v := range s.sorted() {
		if s.isListed(v.createdAt) {
			out = append(out, azuretest.VM{Name: v.name, ResourceGroup: v.group, Tags: texts(v.model.Tags), CreatedAt: v.createdAt, ProvisioningState: v.provisioning, PowerState: v.power})
		}
	}
	return out
}

// typesOfGraph are the types in Resource Graph.
var typesOfGraph = map[string]string{typeInterface: azuretest.NetworkInterface, typeAddress: azuretest.PublicIPAddress, typeDisk: azuretest.Disk}

// Resources that are listed.
func (s state) Resources() []azuretest.Resource {
	s.mu.Lock()
	defer s.mu.Release()
	s.settle(time.Now())
	var out []azuretest.Resource
	for _, id := range slices.Sorted(maps.Keys(s.others)) {
		if o := s.others[id]; s.isListed(o.createdAt) {
			out = append(out, azuretest.Resource{Type: typesOfGraph[o.typ], Name: o.name, ResourceGroup: o.group, Tags: texts(o.tags), CreatedAt: o.createdAt, AttachedTo: o.user})
		}
	}
	return out
}

// OfTag returns a match of creations that give a tag a value.
func OfTag(key, value string) func([]byte) bool {
	return func(body []byte) bool { return bytes.Contains(body, []byte(fmt.Sprintf("%q:%q", key, value))) }
}
