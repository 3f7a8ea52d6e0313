package hcloud

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"

	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"
	"k8s.io/utils/ptr"
)

// maxUserData is the maximum size of a server's user data, in bytes.
const maxUserData = 32 << 10

var (
	hostname   = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9.-]{0,61}[a-zA-Z0-9])?$`)
	labelValue = regexp.MustCompile(`^([a-zA-Z0-9]([a-zA-Z0-9_.-]{0,61}[a-zA-Z0-9])?)?$`)
)

func (c *call) server(id int64) (*server, *failure) {
	s := c.project.servers[id]
	if s == nil || !s.there(c.now) {
		return nil, fail(http.StatusNotFound, "not_found", "server with ID '%d' not found", id)
	}
	return s, nil
}

func (c *call) createServer() (int, any, *failure) {
	var r schema.ServerCreateRequest
	if problem := c.body(&r); problem != nil {
		return 0, nil, problem
	}
	if problem := c.check(r); problem != nil {
		return 0, nil, problem
	}
	s := c.made(r)
	c.project.servers[s.ID] = s
	created := c.begin(c.project, c.now, "create_server", 1, s)
	out := schema.ServerCreateResponse{Action: created, NextActions: []schema.Action{}}
	if r.StartAfterCreate == nil || *r.StartAfterCreate {
		s.startsAt, s.runsAt = c.now.Add(c.opts.Step), c.now.Add(2*c.opts.Step)
		out.NextActions = append(out.NextActions, c.begin(c.project, c.now, startServer, 2, s))
		c.after = append(c.after, func() { c.boot(s) })
	} else {
		s.startsAt, s.off = c.now.Add(c.opts.Step), true
	}
	out.Server = s.view(c.now)
	return http.StatusCreated, out, nil
}

// check a request like the API.
func (c *call) check(r schema.ServerCreateRequest) *failure {
	there := 0
	for _, s := range c.project.servers {
		if !s.there(c.now) {
			continue
		}
		if there++; s.Name == r.Name {
			return fail(http.StatusConflict, "uniqueness_error", "server name is already used")
		}
	}
	location := r.Location
	if location == "" {
		location = locations[0].Name
	}
	switch {
	case !hostname.MatchString(r.Name):
		return invalid("name", "must be a valid hostname")
	case typeOf(r.ServerType) == nil:
		return invalid("server_type", "server type not found")
	case !slices.ContainsFunc(c.images(), func(i schema.Image) bool {
		return i.ID == r.Image.ID || ptr.Deref(i.Name, "") == r.Image.Name && r.Image.Name != ""
	}):
		return invalid("image", "image not found")
	case !slices.ContainsFunc(locations, func(l schema.Location) bool { return l.Name == location }):
		return invalid("location", "location not found")
	case len(r.UserData) > maxUserData:
		return invalid("user_data", fmt.Sprintf("must be at most %d bytes", maxUserData))
	case c.opts.ServerLimit > 0 && there >= c.opts.ServerLimit:
		return fail(http.StatusForbidden, "resource_limit_exceeded", "server limit exceeded")
	case c.soldOut[typeOf(r.ServerType).Name+"@"+location]:
		return fail(http.StatusPreconditionFailed, "resource_unavailable", "error during placement")
	}
	if r.Labels != nil {
		for k, v := range *r.Labels {
			if !labelValue.MatchString(v) {
				return invalid("labels", fmt.Sprintf("value of label %q is invalid", k))
			}
		}
	}
	if problem := c.checkGroup(r.PlacementGroup); problem != nil {
		return problem
	}
	for _, f := range r.Firewalls {
		if f.Firewall != firewallID {
			return fail(http.StatusNotFound, "firewall_resource_not_found", "firewall with ID '%d' not found", f.Firewall)
		}
	}
	return nil
}

func typeOf(ref schema.IDOrName) *schema.ServerType {
	for i, t := range serverTypes {
		if t.ID == ref.ID || t.Name == ref.Name && ref.Name != "" {
			return &serverTypes[i]
		}
	}
	return nil
}

func (c *call) made(r schema.ServerCreateRequest) *server {
	id := c.id()
	s := &server{userData: r.UserData, Server: schema.Server{
		ID: id, Name: r.Name, Created: c.now, ServerType: *typeOf(r.ServerType), Location: locations[0],
		Labels: map[string]string{}, Volumes: []int64{}, LoadBalancers: []int64{}, PrivateNet: []schema.ServerPrivateNet{},
	}}
	s.PrimaryDiskSize = s.ServerType.Disk
	if r.Labels != nil {
		s.Labels = *r.Labels
	}
	for _, l := range locations {
		if l.Name == r.Location {
			s.Location = l
		}
	}
	for _, i := range c.images() {
		if i.ID == r.Image.ID {
			s.Image = &i
		}
	}
	s.PublicNet.FloatingIPs, s.PublicNet.Firewalls = []int64{}, []schema.ServerFirewall{}
	for _, f := range r.Firewalls {
		s.PublicNet.Firewalls = append(s.PublicNet.Firewalls, schema.ServerFirewall{ID: f.Firewall, Status: "applied"})
	}
	if r.PublicNet == nil || r.PublicNet.EnableIPv4 {
		s.PublicNet.IPv4 = schema.ServerPublicNetIPv4{ID: id + 1_000_000, IP: address("198.18.0.0/15", id)}
	}
	if r.PublicNet == nil || r.PublicNet.EnableIPv6 {
		s.PublicNet.IPv6 = schema.ServerPublicNetIPv6{ID: id + 2_000_000, IP: fmt.Sprintf("2001:db8:%x::/64", id), DNSPtr: []schema.ServerPublicNetIPv6DNSPtr{}}
	}
	if g := c.project.groups[r.PlacementGroup]; g != nil {
		s.PlacementGroup = &g.PlacementGroup
	}
	return s
}

func (c *call) deleteServer(id int64) (int, any, *failure) {
	s, problem := c.server(id)
	if problem != nil {
		return 0, nil, problem
	}
	if s.Protection.Delete {
		return 0, nil, fail(http.StatusLocked, "protected", "server deletion is protected")
	}
	if s.goneAt.IsZero() {
		s.goneAt = c.now.Add(c.opts.Step)
		c.project.leaveGroup(s)
		c.after = append(c.after, func() { c.stop(s) })
	}
	return http.StatusOK, schema.ServerDeleteResponse{Action: c.begin(c.project, c.now, "delete_server", 1, s)}, nil
}

func (c *call) attach(id int64) (int, any, *failure) {
	s, problem := c.server(id)
	if problem != nil {
		return 0, nil, problem
	}
	var r schema.ServerActionAttachToNetworkRequest
	if problem := c.body(&r); problem != nil {
		return 0, nil, problem
	}
	if r.Network != networkID {
		return 0, nil, fail(http.StatusNotFound, "not_found", "network with ID '%d' not found", r.Network)
	}
	if slices.ContainsFunc(s.PrivateNet, func(n schema.ServerPrivateNet) bool { return n.Network == r.Network }) {
		return 0, nil, fail(http.StatusConflict, "server_already_attached", "server is already attached to network")
	}
	ip := address(network, id)
	if s.privateIP != "" {
		ip = s.privateIP
	}
	if r.IP != nil {
		ip = *r.IP
	}
	s.PrivateNet = append(s.PrivateNet, schema.ServerPrivateNet{Network: r.Network, IP: ip, AliasIPs: []string{}, MACAddress: "86:00:00:2a:7d:e0"})
	return http.StatusCreated, map[string]any{"action": c.begin(c.project, c.now, "attach_to_network", 1, s)}, nil
}

func (c *call) powerOn(id int64) (int, any, *failure) {
	s, problem := c.idle(id)
	if problem != nil {
		return 0, nil, problem
	}
	if s.booted && s.off {
		s.reboots = append(s.reboots, Hard)
	}
	s.off, s.runsAt = false, c.now.Add(c.opts.Step)
	c.after = append(c.after, func() { c.boot(s) })
	return http.StatusCreated, map[string]any{"action": c.begin(c.project, c.now, startServer, 1, s)}, nil
}

// reboot asks the guest to restart. A server that is off does not receive the request: Hetzner documents no error for it.
func (c *call) reboot(id int64) (int, any, *failure) {
	s, problem := c.idle(id)
	if problem != nil {
		return 0, nil, problem
	}
	if !s.off {
		c.restart(s, Soft)
	}
	return http.StatusCreated, map[string]any{"action": c.begin(c.project, c.now, rebootServer, 1, s)}, nil
}

// reset cuts the power and starts the server again.
func (c *call) reset(id int64) (int, any, *failure) {
	s, problem := c.idle(id)
	if problem != nil {
		return 0, nil, problem
	}
	s.off, s.runsAt = false, c.now.Add(c.opts.Step)
	c.restart(s, Hard)
	return http.StatusCreated, map[string]any{"action": c.begin(c.project, c.now, resetServer, 1, s)}, nil
}

func (c *call) restart(s *server, mode string) {
	s.reboots = append(s.reboots, mode)
	if c.opts.Reboot != nil {
		c.after = append(c.after, func() { c.opts.Reboot(s.asBooted()) })
	}
}

// Commands of actions that lock a server.
const startServer, rebootServer, resetServer = "start_server", "reboot_server", "reset_server"

// idle returns a server that no action locks.
func (c *call) idle(id int64) (*server, *failure) {
	s, problem := c.server(id)
	if problem != nil {
		return nil, problem
	}
	for _, a := range c.project.actions {
		if a.Resources[0].ID == id && c.now.Before(a.endsAt) && slices.Contains([]string{startServer, rebootServer, resetServer}, a.Command) {
			return nil, fail(http.StatusLocked, "locked", "server is locked")
		}
	}
	return s, nil
}
