package alibaba

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-dev/drover/test/fakes"
)

// A Fault makes calls fail. Its Call is the action, such as RunInstances. The project that its Match gets is the
// ID of the account, and the body is a form.
type Fault = fakes.Fault

// A Booted is an instance that starts or stops, for a hook.
type Booted struct {
	ID, Name, Region, Zone string
	UserData               string
}

// Options of a cloud.
type Options struct {
	// Region of the endpoint. Default cn-hangzhou.
	Region string
	// ListedAfter is the time from the creation of an instance until it is listed.
	ListedAfter time.Duration
	// Step is the time of an instance in the states Pending and Starting, and the time until a deleted instance
	// is removed.
	Step time.Duration
	// RateLimit is the number of calls that an account may make at once. One more is allowed after each Refill.
	// Default 0: no limit.
	RateLimit int
	Refill    time.Duration
	// Boot is called when an instance starts, and returns its private address. Stop is called when an instance
	// stops, and Reboot when one has restarted. All are called without the lock of the cloud.
	Boot   func(Booted) (address string)
	Stop   func(Booted)
	Reboot func(Booted)
}

// A Key is an AccessKey pair.
type Key struct {
	Secret string
	// Account is the ID of the account.
	Account string
	// Token is the security token of a temporary key, or "".
	Token string
	// Denied are the actions that the RAM user may not call.
	Denied []string
	// Roles are the ARNs of the roles that the RAM user may assume.
	Roles []string
}

type key struct {
	Key
	expires time.Time
}

// A Cloud is Alibaba Cloud in one region.
type Cloud struct {
	fakes.Face
	fakes.Limit
	opts Options

	mu        fakes.Lock
	keys      map[string]*key
	nonces    map[string]time.Time
	instances map[string]*instance
	disks     map[string]*disk
	// tokens are the ClientTokens of accepted creations, by account and token.
	tokens    map[string]request
	vSwitches map[string]string // zones by ID
	images    map[string]map[string]any
	types     map[string]map[string]any
	buckets   map[string]*fakes.Bucket
	ids       int
	addrs     int
	sessions  int
}

// A request is an accepted creation.
type request struct {
	params string
	id     string
}

// An instance is an instance of an account.
type instance struct {
	id, account, status string
	params              map[string]string
	tags                map[string]string
	userData            string
	createdAt, nextAt   time.Time
	// deleted means that the instance is removed at nextAt.
	deleted  bool
	locks    []string
	ips      []string
	publicIP string
	ipv6     []string
	console  string
	reads    int
	number   int
	// ran means that it was running once. restarts means that it was running before it became Starting.
	ran, restarts bool
	reboots       []string
}

// Kinds of reboots.
const (
	// Soft means that the guest was asked to restart.
	Soft = "Soft"
	// Hard means that the instance was reset or started.
	Hard = "Hard"
)

type disk struct {
	id, account, instance string
	tags                  map[string]string
	createdAt             time.Time
	keep                  bool
	number                int
}

// New returns a cloud with the vSwitches vsw-h (zone h) and vsw-i (zone i), the security groups sg-nodes and
// sg-other, the key pair ops, the instance types ecs.g7.xlarge and ecs.g8y.xlarge (Arm), and images of Ubuntu.
func New(o Options) *Cloud {
	o.Region = cmp.Or(o.Region, "cn-hangzhou")
	c := &Cloud{
		opts: o, keys: map[string]*key{}, nonces: map[string]time.Time{}, instances: map[string]*instance{}, disks: map[string]*disk{},
		tokens: map[string]request{}, buckets: map[string]*fakes.Bucket{}, images: map[string]map[string]any{}, types: map[string]map[string]any{},
		vSwitches: map[string]string{"vsw-h": o.Region + "-h", "vsw-i": o.Region + "-i"},
	}
	for _, t := range []struct {
		id, arch string
		cpu      int
		memory   float64
	}{{"ecs.g7.xlarge", "X86", 4, 16}, {"ecs.c7.large", "X86", 2, 4}, {"ecs.g8y.xlarge", "ARM", 4, 16}} {
		c.types[t.id] = map[string]any{"InstanceTypeId": t.id, "CpuArchitecture": t.arch, "CpuCoreCount": t.cpu, "MemorySize": t.memory}
	}
	for _, i := range []struct {
		id, family, arch string
		cloudInit        bool
	}{
		{"ubuntu_24_04_x64_20G_alibase_20250722.vhd", "acs:ubuntu_24_04_x64", "x86_64", true},
		{"ubuntu_24_04_arm64_20G_alibase_20250722.vhd", "acs:ubuntu_24_04_arm64", "arm64", true},
		{"m-without-cloud-init", "", "x86_64", false},
	} {
		c.images[i.id] = map[string]any{
			"ImageId": i.id, "ImageFamily": i.family, "Architecture": i.arch, "OSType": "linux", "Status": "Available", "Size": 20,
			"IsSupportCloudinit": i.cloudInit,
		}
	}
	return c
}

// SetKey adds or replaces an AccessKey pair.
func (c *Cloud) SetKey(id string, k Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys[id] = &key{Key: k}
}

// RemoveKey removes an AccessKey pair.
func (c *Cloud) RemoveKey(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.keys, id)
}

// An Instance is an existing instance.
type Instance struct {
	ID, Account, Name, Status, UserData string
	Tags, Params                        map[string]string
	// Reboots since the instance was running first: each is Soft or Hard.
	Reboots []string
}

// Instances returns the existing instances, without those that are being removed.
func (c *Cloud) Instances() []Instance {
	c.mu.Lock()
	defer c.mu.Release()
	c.settle(time.Now())
	var out []Instance
	for _, i := range c.sorted() {
		if !i.deleted {
			out = append(out, Instance{
				ID: i.id, Account: i.account, Name: i.params["HostName"], Status: i.status, UserData: i.userData,
				Tags: maps.Clone(i.tags), Params: maps.Clone(i.params), Reboots: slices.Clone(i.reboots),
			})
		}
	}
	return out
}

// Disks returns the IDs of the existing disks.
func (c *Cloud) Disks() []string {
	c.mu.Lock()
	defer c.mu.Release()
	c.settle(time.Now())
	return slices.Sorted(maps.Keys(c.disks))
}

// Lose deletes an instance at once, as a user does it in the console.
func (c *Cloud) Lose(id string) {
	c.mu.Lock()
	defer c.mu.Release()
	if i := c.instances[id]; i != nil {
		c.remove(i)
	}
}

// PowerOff stops an instance, as a user does it in the console.
func (c *Cloud) PowerOff(id string) {
	c.mu.Lock()
	defer c.mu.Release()
	if i := c.instances[id]; i != nil {
		c.stop(i)
		i.status, i.restarts = "Stopped", false
	}
}

// Lock locks an instance for a reason, such as Recycling for a spot instance that is taken back.
func (c *Cloud) Lock(id, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := c.instances[id]; i != nil {
		i.locks = append(i.locks, reason)
	}
}

// SetConsole sets the output of the console of an instance.
func (c *Cloud) SetConsole(id, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := c.instances[id]; i != nil {
		i.console = text
	}
}

// ConsoleReads returns how often the console of an instance was read.
func (c *Cloud) ConsoleReads(id string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := c.instances[id]; i != nil {
		return i.reads
	}
	return 0
}

// Create creates a running instance with tags, as a user does it in the console.
func (c *Cloud) Create(account, name string, tags map[string]string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.add(account, map[string]string{"HostName": name, "VSwitchId": "vsw-h"}, tags, "", time.Now().Add(-time.Hour))
	i.status, i.nextAt, i.ran = "Running", time.Time{}, true
	return i.id
}

// add adds an instance with its disks.
func (c *Cloud) add(account string, params, tags map[string]string, userData string, now time.Time) *instance {
	c.ids++
	c.addrs++
	i := &instance{
		id: fmt.Sprintf("i-bp1%017x", c.ids), account: account, status: "Pending", params: params, tags: tags, userData: userData,
		createdAt: now, nextAt: now.Add(c.opts.Step), ips: []string{fmt.Sprintf("192.168.%d.%d", c.addrs/250, c.addrs%250+2)}, number: c.ids,
	}
	if params["PrivateIpAddress"] != "" {
		i.ips = []string{params["PrivateIpAddress"]}
	}
	if out := params["InternetMaxBandwidthOut"]; out != "" && out != "0" {
		i.publicIP = fmt.Sprintf("47.96.%d.%d", c.addrs/250, c.addrs%250+2)
	}
	if n := params["Ipv6AddressCount"]; n != "" && n != "0" {
		i.ipv6 = []string{fmt.Sprintf("2408:4005:3b2:5a00::%x", c.addrs+1)}
	}
	c.instances[i.id] = i
	c.addDisk(i, false)
	for n := 1; params[fmt.Sprintf("DataDisk.%d.Size", n)] != "" || params[fmt.Sprintf("DataDisk.%d.SnapshotId", n)] != ""; n++ {
		c.addDisk(i, params[fmt.Sprintf("DataDisk.%d.DeleteWithInstance", n)] == "false")
	}
	return i
}

func (c *Cloud) addDisk(i *instance, keep bool) {
	c.ids++
	d := &disk{id: fmt.Sprintf("d-bp1%017x", c.ids), account: i.account, instance: i.id, tags: i.tags, createdAt: i.createdAt, keep: keep, number: c.ids}
	c.disks[d.id] = d
}

// settle carries out what is due.
func (c *Cloud) settle(now time.Time) {
	for _, i := range c.sorted() {
		for !i.nextAt.IsZero() && !now.Before(i.nextAt) {
			switch {
			case i.deleted:
				c.remove(i)
				i.nextAt = time.Time{}
			case i.status == "Pending":
				i.status, i.nextAt = "Starting", i.nextAt.Add(c.opts.Step)
			case i.status == "Starting":
				i.status, i.nextAt, i.ran = "Running", time.Time{}, true
				c.boot(i)
			default:
				i.nextAt = time.Time{}
			}
		}
	}
	for n, at := range c.nonces {
		if now.Sub(at) > validFor {
			delete(c.nonces, n)
		}
	}
}

func (c *Cloud) booted(i *instance) Booted {
	return Booted{ID: i.id, Name: i.params["HostName"], Region: c.opts.Region, Zone: c.vSwitches[i.params["VSwitchId"]], UserData: i.userData}
}

// boot calls the hook of an instance that starts or has restarted.
func (c *Cloud) boot(i *instance) {
	b := c.booted(i)
	if i.restarts {
		i.restarts = false
		if c.opts.Reboot != nil {
			c.mu.Later(func() { c.opts.Reboot(b) })
		}
		return
	}
	if c.opts.Boot == nil {
		return
	}
	c.mu.Later(func() {
		address := c.opts.Boot(b)
		c.mu.Lock()
		defer c.mu.Unlock()
		if address != "" {
			i.ips = []string{address}
		}
	})
}

// stop calls the hook.
func (c *Cloud) stop(i *instance) {
	if c.opts.Stop != nil && i.status == "Running" {
		b := c.booted(i)
		c.mu.Later(func() { c.opts.Stop(b) })
	}
}

// remove removes an instance and its disks.
func (c *Cloud) remove(i *instance) {
	c.stop(i)
	delete(c.instances, i.id)
	for _, d := range c.disks {
		switch {
		case d.instance != i.id:
		case d.keep:
			d.instance = ""
		default:
			delete(c.disks, d.id)
		}
	}
}

// sorted returns all instances, the newest first, as the API does it.
func (c *Cloud) sorted() []*instance {
	return slices.SortedFunc(maps.Values(c.instances), func(a, b *instance) int { return cmp.Compare(b.number, a.number) })
}

// indexed returns the values of a parameter such as Tag.N.Key.
func indexed(params map[string]string, prefix, suffix string) []string {
	var out []string
	for n := 1; ; n++ {
		v, ok := params[fmt.Sprintf("%s.%d%s", prefix, n, suffix)]
		if !ok {
			return out
		}
		out = append(out, v)
	}
}

// tagsOf returns the tags in the parameters.
func tagsOf(params map[string]string) map[string]string {
	out := map[string]string{}
	values := indexed(params, "Tag", ".Value")
	for n, k := range indexed(params, "Tag", ".Key") {
		if n < len(values) {
			out[k] = values[n]
		} else {
			out[k] = ""
		}
	}
	return out
}

// matches reports whether tags include those that are wanted.
func matches(tags, wanted map[string]string) bool {
	for k, v := range wanted {
		if got, ok := tags[k]; !ok || v != "" && got != v {
			return false
		}
	}
	return true
}

// canonical returns the parameters of a creation as a text, without its token.
func canonical(params map[string]string) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(params)) {
		if k != "ClientToken" {
			out = append(out, k+"="+params[k])
		}
	}
	return strings.Join(out, "\n")
}
