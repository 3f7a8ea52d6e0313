package aws

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/drover-dev/drover/test/fakes"
	"github.com/drover-dev/drover/test/fakes/awstest"
)

// A Fault makes calls fail. Its Call is the action, such as RunInstances. The project that its Match gets is the
// ID of the account, and the body is a form.
type Fault = fakes.Fault

// A Booted is an instance that starts or stops, for a hook.
type Booted struct {
	ID, Name, Region, Zone string
	UserData               []byte
}

// Options of a cloud.
type Options struct {
	// Region of the endpoint. Default eu-west-1.
	Region string
	// ShownAfter is the time from the creation of an instance until it is shown.
	ShownAfter time.Duration
	// Step is the time of an instance in the states pending, stopping and shutting-down.
	Step time.Duration
	// Limited means that each action has the rate limit that EC2 documents.
	Limited bool
	// Others means that calls are served that Drover's provider does not make, for other controllers.
	Others bool
	// Boot is called when an instance starts, and returns its private address. Stop is called when an instance
	// stops, and Reboot when one restarts. All are called without the lock of the cloud.
	Boot   func(Booted) (address string)
	Stop   func(Booted)
	Reboot func(Booted)
}

// A Key is an access key.
type Key struct {
	Secret string
	// Account is the ID of the account.
	Account string
	// Token is the token of the session of a temporary key, or "".
	Token string
	// Denied are the actions that the identity may not call.
	Denied []string
	// Roles are the ARNs of the roles that the identity may assume, and the external ID that each requires.
	Roles map[string]string
}

type key struct {
	Key
	expires time.Time
}

// A Cloud is AWS in one region.
type Cloud struct {
	fakes.Faults
	fakes.Count
	opts Options

	mu        fakes.Lock
	keys      map[string]*key
	instances map[string]*instance
	volumes   map[string]*volume
	// tokens are the ClientTokens of accepted creations, by account and token.
	tokens  map[string]request
	subnets map[string]string // zones by ID
	images  map[string]image
	buckets map[string]*fakes.Bucket
	// webTokens are the roles by the web identity token that may assume them.
	webTokens map[string]string
	ids       int
	sessions  int
	// denies is the time until which all calls are throttled.
	denies time.Time
	// hidden is the time until which no instance is shown.
	hidden time.Time
	// ends are the reasons for which the next instances are terminated before they run.
	ends  []reason
	fails []*failing
}

// A request is an accepted creation.
type request struct {
	form string
	id   string
	at   time.Time
}

type image struct {
	arch, rootDevice string
	size             int
	state            string
}

// A reason is the reason for a state.
type reason struct{ code, message string }

// An instance is an instance of an account.
type instance struct {
	id, account, state  string
	form                url.Values
	tags                map[string]string
	userData            []byte
	createdAt, nextAt   time.Time
	zone                string
	reason              reason
	interfaces          []networkInterface
	spot                bool
	spotStatus          string
	console             string
	reads, number       int
	ran, failing, boots bool
	reboots             []string
}

type networkInterface struct {
	id, subnet, publicIP string
	ips, ipv6, groups    []string
	tags                 map[string]string
	check                bool
}

type volume struct {
	id, account, instance, device string
	tags                          map[string]string
	createdAt                     time.Time
	keep                          bool
	number                        int
}

// Kinds of reboots.
const (
	// Soft means that the operating system was asked to restart.
	Soft = "Soft"
	// Hard means that the instance was started.
	Hard = "Hard"
)

// shownFor is the time for which EC2 shows an instance that was terminated.
const shownFor = time.Hour

// tokenFor is the time after which EC2 forgets a ClientToken.
const tokenFor = 24 * time.Hour

// New returns a cloud with the subnets subnet-a and subnet-b (in the zones a and b), the security groups sg-nodes and
// sg-other, the key pair ops, the instance profile nodes, and the images ami-ubuntu and ami-arm, which boot from /dev/sda1.
func New(o Options) *Cloud {
	o.Region = cmp.Or(o.Region, "eu-west-1")
	return &Cloud{
		opts: o, keys: map[string]*key{}, instances: map[string]*instance{}, volumes: map[string]*volume{}, tokens: map[string]request{},
		buckets: map[string]*fakes.Bucket{}, webTokens: map[string]string{},
		subnets: map[string]string{"subnet-a": o.Region + "a", "subnet-b": o.Region + "b"},
		images: map[string]image{
			"ami-ubuntu": {"x86_64", "/dev/sda1", 8, "available"}, "ami-arm": {"arm64", "/dev/sda1", 8, "available"},
			"ami-pending": {"x86_64", "/dev/sda1", 8, "pending"},
		},
	}
}

// SetKey adds or replaces an access key.
func (c *Cloud) SetKey(id string, k Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys[id] = &key{Key: k}
}

// RemoveKey removes an access key.
func (c *Cloud) RemoveKey(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.keys, id)
}

// TrustWebToken has the role be assumed with a web identity token, as the trust policy of a role for a service account does.
func (c *Cloud) TrustWebToken(token, role string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.webTokens[token] = role
}

// Throttle refuses all calls for some time.
func (c *Cloud) Throttle(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.denies = time.Now().Add(d)
}

// FailNext terminates the next instance before it runs, for a reason such as Server.InsufficientInstanceCapacity.
func (c *Cloud) FailNext(code, message string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends = append(c.ends, reason{code, code + ": " + message})
}

// Fail terminates the instances of an account with a tag before they run, until the returned function is called.
func (c *Cloud) Fail(account, tag, value, code, message string) (mend func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := &failing{account: account, tag: tag, value: value, reason: reason{code, code + ": " + message}}
	c.fails = append(c.fails, f)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.fails = slices.DeleteFunc(c.fails, func(other *failing) bool { return other == f })
	}
}

// failing selects instances that are terminated before they run.
type failing struct {
	account, tag, value string
	reason              reason
}

// ForgetTokens forgets all ClientTokens, as EC2 does it after a day.
func (c *Cloud) ForgetTokens() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.tokens)
}

// ChangeToken has the request with a ClientToken differ from any other, as if the parameters changed since.
func (c *Cloud) ChangeToken(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, r := range c.tokens {
		if strings.HasSuffix(k, "/"+token) {
			r.form += " of another time"
			c.tokens[k] = r
		}
	}
}

// Hide has no list show an instance for some time.
func (c *Cloud) Hide(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hidden = time.Now().Add(d)
}

// An Instance is an existing instance.
type Instance struct {
	ID, Account, Name, State string
	UserData                 []byte
	Tags                     map[string]string
	// Form of the request that created it.
	Form url.Values
	// Reboots since the instance was running first: each is Soft or Hard.
	Reboots []string
	// Unchecked reports whether no network interface has the source/destination check.
	Unchecked bool
}

// exists reports whether an instance exists: one that is shutting down or terminated costs nothing.
func (i *instance) exists() bool { return i.state != "shutting-down" && i.state != "terminated" }

// Instances returns the existing instances.
func (c *Cloud) Instances() []Instance {
	c.mu.Lock()
	defer c.mu.Release()
	c.settle(time.Now())
	var out []Instance
	for _, i := range c.sorted() {
		if i.exists() {
			unchecked := !slices.ContainsFunc(i.interfaces, func(n networkInterface) bool { return n.check })
			out = append(out, Instance{
				ID: i.id, Account: i.account, Name: i.tags["Name"], State: i.state, UserData: i.userData,
				Tags: maps.Clone(i.tags), Form: i.form, Reboots: slices.Clone(i.reboots), Unchecked: unchecked,
			})
		}
	}
	return out
}

// A Resource is a volume or a network interface.
type Resource struct {
	ID   string
	Tags map[string]string
}

// Resources returns the volumes and the network interfaces.
func (c *Cloud) Resources() []Resource {
	c.mu.Lock()
	defer c.mu.Release()
	c.settle(time.Now())
	var out []Resource
	for _, v := range c.volumes {
		out = append(out, Resource{v.id, maps.Clone(v.tags)})
	}
	for _, i := range c.sorted() {
		for _, n := range i.interfaces {
			out = append(out, Resource{n.id, maps.Clone(n.tags)})
		}
	}
	slices.SortFunc(out, func(a, b Resource) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// ID returns the ID of the existing instance with a name, or "".
func (c *Cloud) ID(name string) string {
	for _, i := range c.Instances() {
		if i.Name == name {
			return i.ID
		}
	}
	return ""
}

// Lose terminates an instance, as a user does it in the console.
func (c *Cloud) Lose(id string) {
	c.end(id, "terminated", reason{"Client.UserInitiatedShutdown", "Client.UserInitiatedShutdown: User initiated shutdown"})
}

// Vanish removes an instance from all lists, as EC2 does it an hour after its end.
func (c *Cloud) Vanish(id string) {
	c.Lose(id)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.instances, id)
}

// PowerOff stops an instance, as a user does it in the console.
func (c *Cloud) PowerOff(id string) {
	c.end(id, "stopped", reason{"Client.UserInitiatedShutdown", "Client.UserInitiatedShutdown: User initiated shutdown"})
}

// Interrupt terminates a spot instance, as EC2 does it when it takes the instance back.
func (c *Cloud) Interrupt(id string) {
	c.end(id, "terminated", reason{"Server.SpotInstanceTermination", "Server.SpotInstanceTermination: Spot instance termination"})
}

func (c *Cloud) end(id, state string, why reason) {
	c.mu.Lock()
	defer c.mu.Release()
	c.settle(time.Now())
	if i := c.instances[id]; i != nil {
		c.stop(i)
		i.state, i.reason, i.nextAt, i.boots = state, why, time.Time{}, false
		if state == "terminated" {
			i.nextAt = time.Now().Add(shownFor)
			c.clear(i)
		}
	}
}

// Mark has EC2 announce that it takes back a spot instance, two minutes before it does.
func (c *Cloud) Mark(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := c.instances[id]; i != nil {
		i.spotStatus = "marked-for-termination"
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

// Untag removes all tags of an instance, as a user does it in the console.
func (c *Cloud) Untag(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := c.instances[id]; i != nil {
		i.tags = map[string]string{"Name": i.tags["Name"]}
	}
}

// Create creates a running instance with tags, as a user does it in the console.
func (c *Cloud) Create(account, name string, tags map[string]string) string {
	return c.CreateAt(account, name, tags, time.Now().Add(-shownFor))
}

// CreateAt creates a running instance that was created at a time.
func (c *Cloud) CreateAt(account, name string, tags map[string]string, at time.Time) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := maps.Clone(tags)
	if all == nil {
		all = map[string]string{}
	}
	all["Name"] = name
	form := url.Values{"NetworkInterface.1.DeviceIndex": {"0"}, "NetworkInterface.1.SubnetId": {"subnet-a"}, "InstanceType": {"m7i.large"}, "ImageId": {"ami-ubuntu"}}
	i := c.add(account, form, map[string]map[string]string{"instance": all, "volume": all, "network-interface": all}, nil, at)
	i.state, i.nextAt, i.ran, i.boots = "running", time.Time{}, true, false
	return i.id
}

// add adds an instance with its volumes and network interfaces.
func (c *Cloud) add(account string, form url.Values, tags map[string]map[string]string, userData []byte, now time.Time) *instance {
	c.ids++
	i := &instance{
		id: fmt.Sprintf("i-%017x", c.ids), account: account, state: "pending", form: form, tags: tags["instance"], userData: userData,
		createdAt: now, nextAt: now.Add(c.opts.Step), number: c.ids, boots: true,
		spot: form.Get("InstanceMarketOptions.MarketType") == "spot",
	}
	if i.tags == nil {
		i.tags = map[string]string{}
	}
	for n := 1; form.Has(fmt.Sprintf("NetworkInterface.%d.DeviceIndex", n)); n++ {
		prefix := fmt.Sprintf("NetworkInterface.%d.", n)
		c.ids++
		eni := networkInterface{id: fmt.Sprintf("eni-%017x", c.ids), subnet: form.Get(prefix + "SubnetId"), check: true, tags: tags["network-interface"]}
		eni.ips = []string{cmp.Or(form.Get(prefix+"PrivateIpAddress"), c.address("10.1"))}
		for range number(form.Get(prefix + "SecondaryPrivateIpAddressCount")) {
			eni.ips = append(eni.ips, c.address("10.2"))
		}
		for range number(form.Get(prefix + "Ipv6AddressCount")) {
			c.ids++
			eni.ipv6 = append(eni.ipv6, fmt.Sprintf("2a05:d018:1::%x", c.ids))
		}
		if form.Get(prefix+"AssociatePublicIpAddress") == "true" {
			eni.publicIP = c.address("54.78")
		}
		eni.groups = indexed(form, prefix+"SecurityGroupId", "")
		i.interfaces = append(i.interfaces, eni)
	}
	if len(i.interfaces) > 0 {
		i.zone = c.subnets[i.interfaces[0].subnet]
	}
	c.instances[i.id] = i
	root := true
	for n := 1; form.Has(fmt.Sprintf("BlockDeviceMapping.%d.DeviceName", n)); n++ {
		prefix := fmt.Sprintf("BlockDeviceMapping.%d.", n)
		device := form.Get(prefix + "DeviceName")
		root = root && device != "/dev/sda1"
		c.addVolume(i, device, tags["volume"], form.Get(prefix+"Ebs.DeleteOnTermination") == "false")
	}
	if root {
		c.addVolume(i, "/dev/sda1", tags["volume"], false)
	}
	if len(c.ends) > 0 {
		i.reason, i.failing, c.ends = c.ends[0], true, c.ends[1:]
	}
	for _, f := range c.fails {
		if f.account == account && i.tags[f.tag] == f.value {
			i.reason, i.failing = f.reason, true
		}
	}
	return i
}

func (c *Cloud) address(prefix string) string {
	c.ids++
	return fmt.Sprintf("%s.%d.%d", prefix, c.ids/250, c.ids%250+2)
}

func (c *Cloud) addVolume(i *instance, device string, tags map[string]string, keep bool) {
	c.ids++
	v := &volume{id: fmt.Sprintf("vol-%017x", c.ids), account: i.account, instance: i.id, device: device, tags: tags, createdAt: i.createdAt, keep: keep, number: c.ids}
	c.volumes[v.id] = v
}

// settle carries out what is due.
func (c *Cloud) settle(now time.Time) {
	for _, i := range c.sorted() {
		for !i.nextAt.IsZero() && !now.Before(i.nextAt) {
			at := i.nextAt
			i.nextAt = time.Time{}
			switch i.state {
			case "pending":
				if i.failing {
					i.state, i.nextAt = "shutting-down", at.Add(c.opts.Step)
					continue
				}
				i.state, i.ran = "running", true
				c.boot(i)
			case "stopping":
				i.state = "stopped"
			case "shutting-down":
				i.state, i.nextAt = "terminated", at.Add(shownFor)
				c.clear(i)
			case "terminated":
				delete(c.instances, i.id)
			}
		}
	}
	for token, r := range c.tokens {
		if now.Sub(r.at) >= tokenFor {
			delete(c.tokens, token)
		}
	}
}

func (c *Cloud) booted(i *instance) Booted {
	return Booted{ID: i.id, Name: i.tags["Name"], Region: c.opts.Region, Zone: i.zone, UserData: i.userData}
}

// boot calls the hook of an instance that starts.
func (c *Cloud) boot(i *instance) {
	if !i.boots || c.opts.Boot == nil {
		return
	}
	i.boots = false
	b := c.booted(i)
	c.mu.Later(func() {
		address := c.opts.Boot(b)
		c.mu.Lock()
		defer c.mu.Unlock()
		if address != "" && len(i.interfaces) > 0 {
			i.interfaces[0].ips[0] = address
		}
	})
}

// stop calls the hook.
func (c *Cloud) stop(i *instance) {
	if c.opts.Stop != nil && i.state == "running" {
		b := c.booted(i)
		c.mu.Later(func() { c.opts.Stop(b) })
	}
}

// clear deletes the volumes and the network interfaces of an instance that ended.
func (c *Cloud) clear(i *instance) {
	i.interfaces = nil
	for _, v := range c.volumes {
		switch {
		case v.instance != i.id:
		case v.keep:
			v.instance = ""
		default:
			delete(c.volumes, v.id)
		}
	}
}

// sorted returns all instances, the newest first.
func (c *Cloud) sorted() []*instance {
	return slices.SortedFunc(maps.Values(c.instances), func(a, b *instance) int { return cmp.Compare(b.number, a.number) })
}

// known returns the account of an access key, for its signature.
func (c *Cloud) known(now time.Time) func(string) (awstest.Account, bool) {
	return func(id string) (awstest.Account, bool) {
		k := c.keys[id]
		if k == nil || !k.expires.IsZero() && !now.Before(k.expires) {
			return awstest.Account{}, false
		}
		return awstest.Account{ID: k.Account, Secret: k.Secret, SessionToken: k.Token, Denied: k.Denied}, true
	}
}
