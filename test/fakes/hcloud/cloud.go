package hcloud

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"

	"github.com/drover-dev/drover/test/fakes"
)

// A Booted server is passed to the hooks.
type Booted struct {
	ID       int64
	Name     string
	UserData string
	Labels   map[string]string
	IPv4     string
}

// Options of a cloud. The zero value has only the catalog.
type Options struct {
	// Projects by their tokens that may read and write.
	Projects map[string]string
	// ReadOnly are projects by tokens that may only read.
	ReadOnly map[string]string
	// Step is the duration of an action: a server runs after two. Default 0.
	Step time.Duration
	// ServerLimit is the maximum number of servers per project. Default 0: no limit.
	ServerLimit int
	// GroupLimit is the maximum number of placement groups per project. Default 0: 50, as Hetzner has.
	GroupLimit int
	// DeletesGroupsInUse means that a placement group is deleted although it has servers. By default that is refused.
	// Hetzner does not document which it does.
	DeletesGroupsInUse bool
	// GroupsKeep is how long a placement group shows and counts a server that is deleted already.
	GroupsKeep time.Duration
	// Latency is the duration of each call, before its effect. Default 0.
	Latency time.Duration
	// RateLimit is the number of calls that a project may make at once. It regains one per Refill.
	// Default 0: no limit.
	RateLimit int
	Refill    time.Duration
	// Boot is called when a server starts to run, before the call that requested the server is
	// answered. Stop is called when it is deleted. Reboot is called when its reboot is requested. The
	// hooks may run at the same time, for different servers.
	Boot   func(Booted)
	Stop   func(Booted)
	Reboot func(Booted)
}

// A Cloud is a Hetzner Cloud.
type Cloud struct {
	fakes.Faults
	fakes.Count
	opts Options

	mu       sync.Mutex
	tokens   map[string]token
	projects map[string]*project
	lastID   int64
	soldOut  map[string]bool
}

type token struct {
	project  string
	readOnly bool
}

type project struct {
	servers map[int64]*server
	actions map[int64]*action
	sshKeys []schema.SSHKey
	groups  map[int64]*group
	bucket  fakes.Bucket
}

type server struct {
	schema.Server
	userData  string
	privateIP string
	booted    bool
	// startsAt and runsAt are the end of its creation and of its start. goneAt is the end of its
	// deletion, zero if no deletion was requested.
	startsAt, runsAt, goneAt time.Time
	off                      bool
	// reboots are those after it ran first.
	reboots []string
}

// Kinds of reboots.
const (
	// Soft means that the guest was asked to restart by ACPI.
	Soft = "Soft"
	// Hard means that the server was reset or started.
	Hard = "Hard"
)

type action struct {
	schema.Action
	endsAt time.Time
}

// New makes a cloud with a catalog: server types cpx21, cpx31 (x86) and cax21 (Arm),
// images ubuntu-24.04 and a snapshot, locations fsn1, nbg1, hel1, and in each project
// an SSH key "admin", the network 4711 (10.0.0.0/16), the firewall 38 and the placement
// group 7.
func New(o Options) *Cloud {
	c := &Cloud{opts: o, tokens: map[string]token{}, projects: map[string]*project{}, soldOut: map[string]bool{}, lastID: 1000}
	for t, p := range o.Projects {
		c.SetToken(t, p, false)
	}
	for t, p := range o.ReadOnly {
		c.SetToken(t, p, true)
	}
	return c
}

// SetToken gives a project a token.
func (c *Cloud) SetToken(value, name string, readOnly bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens[value] = token{project: name, readOnly: readOnly}
	if c.projects[name] == nil {
		c.projects[name] = &project{
			servers: map[int64]*server{}, actions: map[int64]*action{},
			groups:  map[int64]*group{7: {PlacementGroup: schema.PlacementGroup{ID: 7, Name: "workers", Type: spread, Labels: map[string]string{}}}},
			sshKeys: []schema.SSHKey{{ID: 1, Name: "admin", PublicKey: "ssh-ed25519 AAAA", Labels: map[string]string{}}},
		}
	}
}

// Revoke a token.
func (c *Cloud) Revoke(value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.tokens, value)
}

// SellOut makes a server type unavailable at a location.
func (c *Cloud) SellOut(serverType, location string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.soldOut[serverType+"@"+location] = true
}

// Servers of a project that exist, by name.
func (c *Cloud) Servers(name string) map[string]schema.Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]schema.Server{}
	for _, s := range c.projects[name].servers {
		if s.there(time.Now()) {
			out[s.Name] = s.view(time.Now())
		}
	}
	return out
}

// UserData returns the user data that a server was created with.
func (c *Cloud) UserData(id int64) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, s := c.find(id); s != nil {
		return s.userData
	}
	return ""
}

// find a server in any project.
func (c *Cloud) find(id int64) (*project, *server) {
	for _, p := range c.projects {
		if s := p.servers[id]; s != nil {
			return p, s
		}
	}
	return nil, nil
}

// SetPrivateIP sets the IP of a server in the network it is attached to.
func (c *Cloud) SetPrivateIP(id int64, ip string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, s := c.find(id); s != nil {
		s.privateIP = ip
		for i := range s.PrivateNet {
			s.PrivateNet[i].IP = ip
		}
	}
}

// Create a server like the owner of its project, and return its ID.
func (c *Cloud) Create(project, name string, labels map[string]string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	in := &call{Cloud: c, project: c.projects[project], now: time.Now()}
	s := in.made(schema.ServerCreateRequest{Name: name, ServerType: schema.IDOrName{Name: "cpx21"}, Labels: &labels})
	in.project.servers[s.ID] = s
	return s.ID
}

// Lose deletes a server behind the provider's back.
func (c *Cloud) Lose(id int64) {
	c.mu.Lock()
	p, gone := c.find(id)
	if gone != nil {
		gone.goneAt = time.Now()
		p.leaveGroup(gone)
		delete(p.servers, id)
	}
	c.mu.Unlock()
	if gone != nil {
		c.stop(gone)
	}
}

// PowerOff a server.
func (c *Cloud) PowerOff(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, s := c.find(id); s != nil {
		s.off = true
	}
}

// Reboots of a server since it ran first: each is Soft or Hard.
func (c *Cloud) Reboots(id int64) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, s := c.find(id); s != nil {
		return slices.Clone(s.reboots)
	}
	return nil
}

func (c *Cloud) id() int64 { c.lastID++; return c.lastID }

// there reports whether a server still exists.
func (s *server) there(now time.Time) bool { return s.goneAt.IsZero() || now.Before(s.goneAt) }

// view of a server as the API shows it now.
func (s *server) view(now time.Time) schema.Server {
	out := s.Server
	switch {
	case !s.goneAt.IsZero():
		out.Status = "deleting"
	case now.Before(s.startsAt):
		out.Status = "initializing"
	case s.off:
		out.Status = "off"
	case now.Before(s.runsAt):
		out.Status = "starting"
	default:
		out.Status = "running"
	}
	return out
}

func (s *server) asBooted() Booted {
	return Booted{ID: s.ID, Name: s.Name, UserData: s.userData, Labels: s.Labels, IPv4: s.PublicNet.IPv4.IP}
}

func (c *Cloud) boot(s *server) {
	c.mu.Lock()
	first := !s.booted
	s.booted = true
	c.mu.Unlock()
	if first && c.opts.Boot != nil {
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

// begin an action, which ends after a number of steps.
func (c *Cloud) begin(p *project, now time.Time, command string, steps int, on *server) schema.Action {
	a := &action{Action: schema.Action{
		ID: c.id(), Command: command, Started: now, Resources: []schema.ActionResourceReference{{ID: on.ID, Type: "server"}},
	}, endsAt: now.Add(time.Duration(steps) * c.opts.Step)}
	p.actions[a.ID] = a
	return a.view(now)
}

func (a *action) view(now time.Time) schema.Action {
	out := a.Action
	out.Status = "running"
	if !now.Before(a.endsAt) {
		out.Status, out.Progress, out.Finished = "success", 100, &a.endsAt
	}
	return out
}

// address is the nth address of a range.
func address(prefix string, n int64) string {
	a := netip.MustParsePrefix(prefix).Addr().As4()
	a[2], a[3] = byte(n>>8), byte(n)
	return netip.AddrFrom4(a).String()
}
