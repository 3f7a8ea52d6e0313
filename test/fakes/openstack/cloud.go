package openstack

import (
	"slices"
	"sync"
	"time"

	"github.com/drover-dev/drover/test/fakes"
)

// A Fault makes calls fail.
type Fault = fakes.Fault

// A Booted server is passed to the hooks.
type Booted struct {
	ID, Name string
	UserData string
	Metadata map[string]string
}

// Options of a cloud.
type Options struct {
	// URL of the cloud, for the catalog of services.
	URL string
	// Projects by the IDs of application credentials. The secret of a credential is "secret-of-"
	// and its ID.
	Projects map[string]string
	// Step is the time to build a server, and to delete one. Default 0.
	Step time.Duration
	// Accept is the time from the request for a server until Nova accepts it. The server is then created, whether or not its
	// client waits for the response. Default 0.
	Accept time.Duration
	// ServerLimit is the maximum number of servers per project. Servers that were accepted beyond it, because those before
	// them were not built yet, fail. Default 0: no limit.
	ServerLimit int
	// PortLimit and FloatingIPLimit are the maximum numbers of ports and floating IPs per project. Default 0: no
	// limit.
	PortLimit, FloatingIPLimit int
	// PortAddresses and FloatingIPs are the numbers of addresses that the networks of the nodes and the external
	// network have for a project. Default 0: enough.
	PortAddresses, FloatingIPs int
	// RateLimit is the number of calls that a project may make at once. It regains one per Refill.
	// Default 0: no limit.
	RateLimit int
	Refill    time.Duration
	// TokenLife is the lifetime of a token. Default 0: tokens do not expire.
	TokenLife time.Duration
	// Boot is called when a server is built, before the call that requested the server is
	// answered. Stop is called when it is deleted. Reboot is called when its reboot is requested.
	Boot   func(Booted)
	Stop   func(Booted)
	Reboot func(Booted)
}

// Names and IDs of the cloud's resources.
const (
	Flavor    = "m1.large"
	FlavorID  = "11111111-0000-4000-8000-000000000001"
	Image     = "ubuntu-24.04"
	ImageID   = "22222222-0000-4000-8000-000000000001"
	Network   = "nodes"
	NetworkID = "33333333-0000-4000-8000-000000000001"
	Zone      = "nova"
)

// A Cloud is an OpenStack.
type Cloud struct {
	fakes.Faults
	fakes.Count
	opts Options

	mu          sync.Mutex
	credentials map[string]string // project by application credential
	tokens      map[string]token
	projects    map[string]*project
	last        int
	full        bool
}

type token struct {
	project string
	ends    time.Time
}

type project struct {
	servers     map[string]*server
	ports       map[string]*port
	floatingIPs map[string]*floatingIP
	// torn describes what was deleted while a server had it.
	torn   []string
	bucket fakes.Bucket
	// full means that no host has room for more servers of the project.
	full bool
}

type server struct {
	id, name, flavor, image, zone, key string
	userData                           string
	metadata                           map[string]string
	groups                             []string
	fault, console                     string
	nics                               []*port
	consoleReads                       int
	made                               time.Time
	builtAt, goneAt                    time.Time
	off, booted                        bool
	reboots                            []string
	// set is the status that SetStatus set.
	set string
	// rebooting is the status until rebootedAt.
	rebooting  string
	rebootedAt time.Time
}

// New makes a cloud with a flavor, an image, a network and a zone.
func New(o Options) *Cloud {
	c := &Cloud{opts: o, credentials: map[string]string{}, tokens: map[string]token{}, projects: map[string]*project{}}
	for id, p := range o.Projects {
		c.SetCredential(id, p)
	}
	return c
}

// SetCredential gives a project an application credential.
func (c *Cloud) SetCredential(id, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.credentials[id] = name
	if c.projects[name] == nil {
		c.projects[name] = &project{servers: map[string]*server{}, ports: map[string]*port{}, floatingIPs: map[string]*floatingIP{}}
	}
}

// Revoke an application credential, with its tokens.
func (c *Cloud) Revoke(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.credentials, id)
	c.tokens = map[string]token{}
}

// SetFull sets whether all hosts are full: requested servers then fail.
func (c *Cloud) SetFull(full bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.full = full
}

// SetProjectFull sets whether all hosts are full for the servers of a project.
func (c *Cloud) SetProjectFull(name string, full bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.projects[name].full = full
}

// A Server as the cloud has it.
type Server struct {
	ID, Name, Status, Zone, IP, UserData string
	Metadata                             map[string]string
	// Reboots are the accepted requests, each of them SOFT or HARD.
	Reboots []string
	// Deleting means that its deletion was requested.
	Deleting bool
}

// Servers of a project that exist, by name.
func (c *Cloud) Servers(name string) map[string]Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	out, now := map[string]Server{}, time.Now()
	c.reap(now)
	for _, s := range c.projects[name].servers {
		if s.there(now) {
			out[s.name] = Server{ID: s.id, Name: s.name, Status: s.status(now), Zone: s.zone, IP: s.ip(), UserData: s.userData, Metadata: s.metadata, Reboots: slices.Clone(s.reboots), Deleting: !s.goneAt.IsZero()}
		}
	}
	return out
}

func (c *Cloud) find(id string) *server {
	for _, p := range c.projects {
		if s := p.servers[id]; s != nil {
			return s
		}
	}
	return nil
}

// Lose deletes a server behind the provider's back.
func (c *Cloud) Lose(id string) {
	c.mu.Lock()
	s := c.find(id)
	for _, p := range c.projects {
		if lost := p.servers[id]; lost != nil {
			p.release(lost)
			delete(p.servers, id)
		}
	}
	c.mu.Unlock()
	if s != nil {
		c.stop(s)
	}
}

// PowerOff a server.
func (c *Cloud) PowerOff(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.find(id); s != nil {
		s.off, s.rebootedAt = true, time.Time{}
	}
}

// SetStatus gives a server a status that ends with an action of a user, such as SUSPENDED. "" ends it.
func (c *Cloud) SetStatus(id, status string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.find(id); s != nil {
		s.set = status
	}
}

// Hang makes the reboot of a server in progress take forever, as that of a guest that does not react.
func (c *Cloud) Hang(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.find(id); s != nil {
		s.rebootedAt = time.Now().Add(24 * time.Hour)
	}
}

// SetConsole sets the console output of a server.
func (c *Cloud) SetConsole(id, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.find(id); s != nil {
		s.console = text
	}
}

// ConsoleReads is the number of requests for a server's console.
func (c *Cloud) ConsoleReads(id string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.find(id); s != nil {
		return s.consoleReads
	}
	return 0
}

// SetIP of a server.
func (c *Cloud) SetIP(id, ip string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.find(id); s != nil && len(s.nics) > 0 {
		s.nics[0].setIP(ip, false)
	}
}

// SetIPv6 of a server.
func (c *Cloud) SetIPv6(id, ip string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.find(id); s != nil && len(s.nics) > 0 {
		s.nics[0].setIP(ip, true)
	}
}

// Create a server like the owner of its project, and return its ID.
func (c *Cloud) Create(name, called string, metadata map[string]string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.made(time.Now(), called)
	s.metadata = metadata
	c.projects[name].servers[s.id] = s
	c.addPort(c.projects[name], s, netOf(NetworkID))
	return s.id
}

func (c *Cloud) made(now time.Time, name string) *server {
	return &server{
		id: c.id("44444444"), name: name, flavor: FlavorID, image: ImageID, zone: Zone,
		metadata: map[string]string{}, groups: []string{"default"}, made: now, builtAt: now.Add(c.opts.Step),
	}
}

// addPort attaches a port to a server that Nova creates for it.
func (c *Cloud) addPort(p *project, s *server, n *netw) {
	nic := c.newPort(s.made, n)
	nic.byNova = true
	p.ports[nic.id] = nic
	s.attach(nic)
}

// ip returns the first address of a server.
func (s *server) ip() string {
	if len(s.nics) == 0 {
		return ""
	}
	return s.nics[0].ip(false)
}

func (s *server) there(now time.Time) bool { return s.goneAt.IsZero() || now.Before(s.goneAt) }

func (s *server) status(now time.Time) string {
	switch {
	case now.Before(s.builtAt):
		return "BUILD"
	case s.fault != "":
		return "ERROR"
	case now.Before(s.rebootedAt):
		return s.rebooting
	case s.set != "":
		return s.set
	case s.off:
		return "SHUTOFF"
	}
	return "ACTIVE"
}

func (s *server) asBooted() Booted {
	return Booted{ID: s.id, Name: s.name, UserData: s.userData, Metadata: s.metadata}
}

func (c *Cloud) boot(s *server) {
	c.mu.Lock()
	s.booted = true
	c.mu.Unlock()
	if c.opts.Boot != nil {
		c.opts.Boot(s.asBooted())
	}
}

func (c *Cloud) stop(s *server) {
	c.mu.Lock()
	was := s.booted
	s.booted = false
	c.mu.Unlock()
	if was && c.opts.Stop != nil {
		c.opts.Stop(s.asBooted())
	}
}
