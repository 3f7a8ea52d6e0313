package openstack

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// The calls are those of the Networking API v2.0,
// https://docs.openstack.org/api-ref/network/v2/index.html: "List ports", "Create port", "Show port
// details", "Delete port", "List floating IPs", "Create floating IP", "Show floating IP details",
// "Delete floating IP", "Replace all tags", "List networks". The errors have the types, statuses and
// messages of neutron_lib.exceptions (its modules __init__, address_scope, allowedaddresspairs, l3,
// port_security) and of neutron.db.

// Networks, subnets and security groups beside the network of the nodes.
const (
	StorageNetwork   = "storage"
	StorageNetworkID = "33333333-0000-4000-8000-000000000002"
	PublicNetwork    = "public"
	PublicNetworkID  = "33333333-0000-4000-8000-000000000003"

	SubnetID        = "55555555-0000-4000-8000-000000000001"
	OtherSubnetID   = "55555555-0000-4000-8000-000000000002"
	StorageSubnetID = "55555555-0000-4000-8000-000000000003"
	PublicSubnetID  = "55555555-0000-4000-8000-000000000004"

	// RouterID is that of the router between the network of the nodes and the external one.
	RouterID = "99999999-0000-4000-8000-000000000001"

	DefaultGroupID = "66666666-0000-4000-8000-000000000001"
	GroupID        = "66666666-0000-4000-8000-000000000002"
)

// A subnet of a network.
type subnet struct {
	id   string
	cidr netip.Prefix
}

type netw struct {
	id, name string
	external bool
	subnets  []subnet
}

// nets are the networks of all projects. A router connects the network of the nodes to the external one,
// and does not reach the network for storage.
var nets = []netw{
	{id: NetworkID, name: Network, subnets: []subnet{{SubnetID, netip.MustParsePrefix("10.1.0.0/16")}, {OtherSubnetID, netip.MustParsePrefix("10.3.0.0/16")}}},
	{id: StorageNetworkID, name: StorageNetwork, subnets: []subnet{{StorageSubnetID, netip.MustParsePrefix("10.2.0.0/16")}}},
	{id: PublicNetworkID, name: PublicNetwork, external: true, subnets: []subnet{{PublicSubnetID, netip.MustParsePrefix("203.0.113.0/24")}}},
}

func netOf(id string) *netw {
	for i := range nets {
		if nets[i].id == id {
			return &nets[i]
		}
	}
	return nil
}

func (n netw) view() map[string]any {
	ids := []string{}
	for _, s := range n.subnets {
		ids = append(ids, s.id)
	}
	return map[string]any{"id": n.id, "name": n.name, "status": "ACTIVE", "admin_state_up": true, "subnets": ids, "router:external": n.external, "port_security_enabled": true}
}

type fixedIP struct {
	Subnet  string `json:"subnet_id"`
	Address string `json:"ip_address"`
}

// An AddressPair is an address from which a port may send.
type AddressPair struct {
	IP  string `json:"ip_address"`
	MAC string `json:"mac_address,omitempty"`
}

type port struct {
	id, name, description, network, mac string
	// device is the server that uses the port, and owner who attached it.
	device, owner string
	fixed         []fixedIP
	groups        []string
	pairs         []AddressPair
	security, up  bool
	vnic          string
	tags          []string
	made          time.Time
	// byNova means that Nova created the port, and deletes it with its server.
	byNova bool
}

type floatingIP struct {
	id, description, address, network, port, fixed string
	tags                                           []string
	made                                           time.Time
}

func neutron(status int, kind, format string, args ...any) *failure {
	f := fail(status, "NeutronError", format, args...)
	f.kindOfError = kind
	return f
}

func (c *Cloud) id(prefix string) string {
	c.last++
	return fmt.Sprintf("%s-0000-4000-8000-%012d", prefix, c.last)
}

// newPort returns a port of a network with an address of its first subnet.
func (c *Cloud) newPort(now time.Time, n *netw) *port {
	id := c.id("77777777")
	return &port{
		id: id, network: n.id, mac: fmt.Sprintf("fa:16:3e:%02x:%02x:%02x", c.last>>16&255, c.last>>8&255, c.last&255), up: true, security: true,
		groups: []string{DefaultGroupID}, vnic: "normal", made: now, fixed: []fixedIP{{n.subnets[0].id, c.addressOf(n.subnets[0])}},
	}
}

// addressOf returns an address of a subnet that no port had.
func (c *Cloud) addressOf(s subnet) string {
	a := s.cidr.Addr().As4()
	a[3] = byte(c.last)
	if s.cidr.Bits() <= 16 {
		a[2] = byte(c.last >> 8)
	}
	return netip.AddrFrom4(a).String()
}

// ip returns the first address of a version, "" if the port has none.
func (p *port) ip(v6 bool) string {
	for _, f := range p.fixed {
		if a, err := netip.ParseAddr(f.Address); err == nil && a.Is6() == v6 {
			return f.Address
		}
	}
	return ""
}

func (p *port) setIP(address string, v6 bool) {
	for i, f := range p.fixed {
		if a, err := netip.ParseAddr(f.Address); err != nil || a.Is6() == v6 {
			p.fixed[i].Address = address
			return
		}
	}
	p.fixed = append(p.fixed, fixedIP{SubnetID, address})
}

// view of a port as its project sees it: host and profile of the binding are shown to administrators
// only, by Neutron's default policy.
func (p *port) view() map[string]any {
	status := "DOWN"
	if p.device != "" {
		status = "ACTIVE"
	}
	pairs := []AddressPair{}
	for _, a := range p.pairs {
		if a.MAC == "" {
			a.MAC = p.mac
		}
		pairs = append(pairs, a)
	}
	at := p.made.UTC().Format("2006-01-02T15:04:05Z")
	return map[string]any{
		"id": p.id, "name": p.name, "description": p.description, "network_id": p.network, "mac_address": p.mac, "device_id": p.device,
		"device_owner": p.owner, "fixed_ips": orEmpty(p.fixed), "security_groups": orEmpty(p.groups), "allowed_address_pairs": pairs,
		"port_security_enabled": p.security, "admin_state_up": p.up, "binding:vnic_type": p.vnic, "status": status, "tags": orEmpty(p.tags),
		"tenant_id": "p", "project_id": "p", "created_at": at, "updated_at": at, "extra_dhcp_opts": []any{},
	}
}

func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func (f *floatingIP) view(p *project) map[string]any {
	status, portID, fixed, router := "DOWN", any(nil), any(nil), any(nil)
	if f.port != "" {
		portID, fixed, router = f.port, f.fixed, RouterID
		if p.ports[f.port].device != "" {
			status = "ACTIVE"
		}
	}
	at := f.made.UTC().Format("2006-01-02T15:04:05Z")
	return map[string]any{
		"id": f.id, "description": f.description, "floating_network_id": f.network, "floating_ip_address": f.address, "port_id": portID,
		"fixed_ip_address": fixed, "router_id": router, "status": status, "tags": orEmpty(f.tags), "tenant_id": "p", "project_id": "p",
		"created_at": at, "updated_at": at,
	}
}

// attach a port to a server.
func (s *server) attach(p *port) {
	p.device, p.owner = s.id, "compute:"+s.zone
	s.nics = append(s.nics, p)
}

// reap detaches the ports of servers that are gone, and deletes those that Nova created.
func (c *Cloud) reap(now time.Time) {
	for _, p := range c.projects {
		for id, s := range p.servers {
			if s.there(now) {
				continue
			}
			p.release(s)
			delete(p.servers, id)
		}
	}
}

func (p *project) release(s *server) {
	for _, nic := range s.nics {
		nic.device, nic.owner = "", ""
		if nic.byNova {
			p.deletePort(nic)
		}
	}
	s.nics = nil
}

// deletePort deletes a port. Its floating IPs stay, and lead to nothing.
func (p *project) deletePort(gone *port) {
	delete(p.ports, gone.id)
	for _, f := range p.floatingIPs {
		if f.port == gone.id {
			f.port, f.fixed = "", ""
		}
	}
}

func (c *call) listNetworks() (int, any, *failure) {
	found := []any{}
	for _, n := range nets {
		if matches(c, n.view(), "name", "id", "status") {
			found = append(found, n.view())
		}
	}
	return http.StatusOK, map[string]any{"networks": found}, nil
}

// matches reports whether an object has the values that the query requests of fields. Neutron compares whole
// values.
func matches(c *call, view map[string]any, fields ...string) bool {
	for _, f := range fields {
		if want := c.query.Get(f); want != "" && fmt.Sprint(view[f]) != want {
			return false
		}
	}
	return true
}

// list answers by pages, like Neutron with pagination_max_limit: the next page begins after the marker.
func (c *call) list(collection string, views map[string]map[string]any, fields ...string) (int, any, *failure) {
	found := []any{}
	var last string
	for _, id := range slices.Sorted(maps.Keys(views)) {
		if id <= c.query.Get("marker") || !matches(c, views[id], fields...) {
			continue
		}
		if len(found) == pageSize {
			next := maps.Clone(c.query)
			next.Set("marker", last)
			return http.StatusOK, map[string]any{collection: found, collection + "_links": []any{
				map[string]any{"rel": "next", "href": c.opts.URL + "/network/v2.0/" + collection + "?" + next.Encode()},
			}}, nil
		}
		found, last = append(found, views[id]), id
	}
	return http.StatusOK, map[string]any{collection: found}, nil
}

func (c *call) listPorts() (int, any, *failure) {
	views := map[string]map[string]any{}
	for id, p := range c.project.ports {
		views[id] = p.view()
	}
	return c.list("ports", views, "id", "name", "description", "device_id", "network_id", "status")
}

func (c *call) listFloatingIPs() (int, any, *failure) {
	views := map[string]map[string]any{}
	for id, f := range c.project.floatingIPs {
		views[id] = f.view(c.project)
	}
	return c.list("floatingips", views, "id", "description", "port_id", "floating_ip_address", "status")
}

func (c *call) getPort() (int, any, *failure) {
	if p := c.project.ports[c.id]; p != nil {
		return http.StatusOK, map[string]any{"port": p.view()}, nil
	}
	return 0, nil, neutron(http.StatusNotFound, "PortNotFound", "Port %s could not be found.", c.id)
}

func (c *call) getFloatingIP() (int, any, *failure) {
	if f := c.project.floatingIPs[c.id]; f != nil {
		return http.StatusOK, map[string]any{"floatingip": f.view(c.project)}, nil
	}
	return 0, nil, neutron(http.StatusNotFound, "FloatingIPNotFound", "Floating IP %s could not be found", c.id)
}

type portRequest struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Network     string         `json:"network_id"`
	MAC         string         `json:"mac_address"`
	Up          *bool          `json:"admin_state_up"`
	Fixed       *[]fixedIP     `json:"fixed_ips"`
	Groups      *[]string      `json:"security_groups"`
	Pairs       []AddressPair  `json:"allowed_address_pairs"`
	Security    *bool          `json:"port_security_enabled"`
	VNIC        string         `json:"binding:vnic_type"`
	Host        string         `json:"binding:host_id"`
	Profile     map[string]any `json:"binding:profile"`
}

// reserved returns the rules that let only administrators set the fields of the request.
func (r portRequest) reserved() string {
	switch {
	case r.Host == "":
		return "rule:create_port:binding:profile"
	case len(r.Profile) == 0:
		return "rule:create_port:binding:host_id"
	}
	return "(rule:create_port:binding:host_id and rule:create_port:binding:profile)"
}

// maxDescription is the maximum length of a description, in characters.
const maxDescription = 255

var vnicTypes = []string{"normal", "direct", "direct-physical", "macvtap", "baremetal", "virtio-forwarder", "remote-managed", "accelerator-direct", "smart-nic", "vdpa"}

func (c *call) createPort() (int, any, *failure) {
	var in struct {
		Port portRequest `json:"port"`
	}
	if err := json.Unmarshal(c.body, &in); err != nil {
		return 0, nil, neutron(http.StatusBadRequest, "HTTPBadRequest", "Unable to parse request body: %v", err)
	}
	r := in.Port
	n := netOf(r.Network)
	switch {
	case n == nil:
		return 0, nil, neutron(http.StatusNotFound, "NetworkNotFound", "Network %s could not be found.", r.Network)
	case len(r.Description) > maxDescription:
		return 0, nil, neutron(http.StatusBadRequest, "HTTPBadRequest", "Invalid input for description. Reason: '%s' exceeds maximum length of %d.", r.Description, maxDescription)
	case r.Host != "" || len(r.Profile) > 0:
		return 0, nil, neutron(http.StatusForbidden, "PolicyNotAuthorized", "(rule:create_port and %s) is disallowed by policy", r.reserved())
	case c.opts.PortLimit > 0 && len(c.project.ports) >= c.opts.PortLimit:
		return 0, nil, neutron(http.StatusConflict, "OverQuota", "Quota exceeded for resources: ['port'].")
	case c.opts.PortAddresses > 0 && len(c.project.ports) >= c.opts.PortAddresses:
		return 0, nil, neutron(http.StatusConflict, "IpAddressGenerationFailure", "No more IP addresses available on network %s.", n.id)
	}
	p := c.newPort(c.now, n)
	p.name, p.description = r.Name, r.Description
	for _, set := range []func(portRequest, *netw, *port) *failure{c.setFixed, c.setSecurity, c.setKind} {
		if problem := set(r, n, p); problem != nil {
			return 0, nil, problem
		}
	}
	c.project.ports[p.id] = p
	return http.StatusCreated, map[string]any{"port": p.view()}, nil
}

// setFixed sets the addresses that a request has.
func (c *call) setFixed(r portRequest, n *netw, p *port) *failure {
	if r.Fixed == nil {
		return nil
	}
	p.fixed = nil
	for _, f := range *r.Fixed {
		i := slices.IndexFunc(n.subnets, func(s subnet) bool {
			if f.Subnet != "" {
				return s.id == f.Subnet
			}
			a, err := netip.ParseAddr(f.Address)
			return err == nil && s.cidr.Contains(a)
		})
		if i < 0 && f.Subnet != "" {
			return neutron(http.StatusNotFound, "SubnetNotFound", "Subnet %s could not be found.", f.Subnet)
		}
		if i < 0 {
			return neutron(http.StatusBadRequest, "InvalidIpForNetwork", "IP address %s is not a valid IP for any of the subnets on the specified network.", f.Address)
		}
		s := n.subnets[i]
		if f.Address == "" {
			f.Address = c.addressOf(s)
		} else if a, err := netip.ParseAddr(f.Address); err != nil || !s.cidr.Contains(a) {
			return neutron(http.StatusBadRequest, "InvalidIpForSubnet", "IP address %s is not a valid IP for the specified subnet.", f.Address)
		}
		for _, other := range c.project.ports {
			if other.ip(false) == f.Address {
				return neutron(http.StatusConflict, "IpAddressAlreadyAllocated", "IP address %s already allocated in subnet %s", f.Address, s.id)
			}
		}
		p.fixed = append(p.fixed, fixedIP{s.id, f.Address})
	}
	return nil
}

// setSecurity sets the security groups, the port security and the address pairs that a request has.
func (c *call) setSecurity(r portRequest, _ *netw, p *port) *failure {
	if r.Security != nil {
		p.security = *r.Security
	}
	if !p.security {
		p.groups = nil
	}
	if r.Groups != nil {
		p.groups = *r.Groups
		for _, g := range p.groups {
			if g != DefaultGroupID && g != GroupID {
				return neutron(http.StatusNotFound, "SecurityGroupNotFound", "Security group %s does not exist", g)
			}
		}
	}
	if !p.security && len(p.groups) > 0 {
		return neutron(http.StatusBadRequest, "PortSecurityAndIPRequiredForSecurityGroups", "Port security must be enabled and port must have an IP address in order to use security groups.")
	}
	if !p.security && len(r.Pairs) > 0 {
		return neutron(http.StatusConflict, "AddressPairAndPortSecurityRequired", "Port Security must be enabled in order to have allowed address pairs on a port.")
	}
	for _, a := range r.Pairs {
		if _, err := netip.ParsePrefix(a.IP); err != nil {
			if _, err := netip.ParseAddr(a.IP); err != nil {
				return neutron(http.StatusBadRequest, "HTTPBadRequest", "'%s' is not a valid IP address", a.IP)
			}
		}
	}
	p.pairs = r.Pairs
	return nil
}

// setKind sets the kind and the MAC address that a request has.
func (c *call) setKind(r portRequest, n *netw, p *port) *failure {
	if r.VNIC != "" {
		if !slices.Contains(vnicTypes, r.VNIC) {
			return neutron(http.StatusBadRequest, "HTTPBadRequest", "Invalid input for binding:vnic_type. Reason: '%s' is not in %v.", r.VNIC, vnicTypes)
		}
		p.vnic = r.VNIC
	}
	if r.MAC != "" {
		for _, other := range c.project.ports {
			if strings.EqualFold(other.mac, r.MAC) && other.network == n.id {
				return neutron(http.StatusConflict, "MacAddressInUse", "Unable to complete operation for network %s. The mac address %s is in use.", n.id, r.MAC)
			}
		}
		p.mac = r.MAC
	}
	if r.Up != nil {
		p.up = *r.Up
	}
	return nil
}

// deletePort deletes a port, also of a server that runs: the server loses its interface.
func (c *call) deletePort() (int, any, *failure) {
	p := c.project.ports[c.id]
	if p == nil {
		return 0, nil, neutron(http.StatusNotFound, "PortNotFound", "Port %s could not be found.", c.id)
	}
	if s := c.project.servers[p.device]; s != nil {
		c.project.torn = append(c.project.torn, fmt.Sprintf("port %s was deleted while server %s had it", p.name, s.name))
		s.nics = slices.DeleteFunc(s.nics, func(nic *port) bool { return nic == p })
	}
	c.project.deletePort(p)
	return http.StatusNoContent, nil, nil
}

func (c *call) createFloatingIP() (int, any, *failure) {
	var in struct {
		FloatingIP struct {
			Description string `json:"description"`
			Network     string `json:"floating_network_id"`
			Address     string `json:"floating_ip_address"`
			Port        string `json:"port_id"`
			Fixed       string `json:"fixed_ip_address"`
			Subnet      string `json:"subnet_id"`
		} `json:"floatingip"`
	}
	if err := json.Unmarshal(c.body, &in); err != nil {
		return 0, nil, neutron(http.StatusBadRequest, "HTTPBadRequest", "Unable to parse request body: %v", err)
	}
	r := in.FloatingIP
	n := netOf(r.Network)
	switch {
	case n == nil:
		return 0, nil, neutron(http.StatusNotFound, "NetworkNotFound", "Network %s could not be found.", r.Network)
	case !n.external:
		return 0, nil, neutron(http.StatusBadRequest, "BadRequest", "Bad floatingip request: Network %s is not a valid external network.", n.id)
	case len(r.Description) > maxDescription:
		return 0, nil, neutron(http.StatusBadRequest, "HTTPBadRequest", "Invalid input for description. Reason: '%s' exceeds maximum length of %d.", r.Description, maxDescription)
	case r.Subnet != "" && r.Subnet != PublicSubnetID:
		return 0, nil, neutron(http.StatusNotFound, "SubnetNotFound", "Subnet %s could not be found.", r.Subnet)
	case c.opts.FloatingIPLimit > 0 && len(c.project.floatingIPs) >= c.opts.FloatingIPLimit:
		return 0, nil, neutron(http.StatusConflict, "OverQuota", "Quota exceeded for resources: ['floatingip'].")
	case c.opts.FloatingIPs > 0 && len(c.project.floatingIPs) >= c.opts.FloatingIPs:
		return 0, nil, neutron(http.StatusBadRequest, "ExternalIpAddressExhausted", "Unable to find any IP address on external network %s.", n.id)
	}
	f := &floatingIP{id: c.Cloud.id("88888888"), description: r.Description, network: n.id, port: r.Port, made: c.now}
	f.address = c.addressOf(n.subnets[0])
	if r.Address != "" {
		f.address = r.Address
	}
	if problem := c.lead(f, r.Fixed); problem != nil {
		return 0, nil, problem
	}
	c.project.floatingIPs[f.id] = f
	return http.StatusCreated, map[string]any{"floatingip": f.view(c.project)}, nil
}

// lead checks that a floating IP can lead to its port.
func (c *call) lead(f *floatingIP, fixed string) *failure {
	if f.port == "" {
		return nil
	}
	p := c.project.ports[f.port]
	if p == nil {
		return neutron(http.StatusNotFound, "PortNotFound", "Port %s could not be found.", f.port)
	}
	if f.fixed = p.ip(false); f.fixed == "" {
		return neutron(http.StatusBadRequest, "BadRequest", "Bad floatingip request: Cannot add floating IP to port %s that has no fixed IPv4 addresses.", p.id)
	}
	if fixed != "" {
		f.fixed = fixed
	}
	if p.network != NetworkID {
		return neutron(http.StatusNotFound, "ExternalGatewayForFloatingIPNotFound",
			"External network %s is not reachable from subnet %s.  Therefore, cannot associate Port %s with a Floating IP.", f.network, p.fixed[0].Subnet, p.id)
	}
	for _, other := range c.project.floatingIPs {
		if other.port == p.id && other.fixed == f.fixed {
			return neutron(http.StatusConflict, "FloatingIPPortAlreadyAssociated",
				"Cannot associate floating IP %s (%s) with port %s using fixed IP %s, as that fixed IP already has a floating IP on external network %s.", f.address, f.id, p.id, f.fixed, f.network)
		}
	}
	return nil
}

func (c *call) deleteFloatingIP() (int, any, *failure) {
	f := c.project.floatingIPs[c.id]
	if f == nil {
		return 0, nil, neutron(http.StatusNotFound, "FloatingIPNotFound", "Floating IP %s could not be found", c.id)
	}
	if p := c.project.ports[f.port]; p != nil {
		if s := c.project.servers[p.device]; s != nil {
			c.project.torn = append(c.project.torn, fmt.Sprintf("floating IP %s was deleted while server %s had it", f.address, s.name))
		}
	}
	delete(c.project.floatingIPs, f.id)
	return http.StatusNoContent, nil, nil
}

// replaceTags of a port or a floating IP.
func (c *call) replaceTags(tags func([]string) bool, kind string) (int, any, *failure) {
	var in struct {
		Tags []string `json:"tags"`
	}
	if err := json.Unmarshal(c.body, &in); err != nil {
		return 0, nil, neutron(http.StatusBadRequest, "HTTPBadRequest", "Unable to parse request body: %v", err)
	}
	for _, t := range in.Tags {
		if len(t) > maxDescription {
			return 0, nil, neutron(http.StatusBadRequest, "HTTPBadRequest", "Invalid input for tags. Reason: '%s' exceeds maximum length of %d.", t, maxDescription)
		}
	}
	if !tags(in.Tags) {
		return 0, nil, neutron(http.StatusNotFound, "TagResourceNotFound", "Resource %s %s could not be found.", kind, c.id)
	}
	return http.StatusOK, map[string]any{"tags": in.Tags}, nil
}

func (c *call) tagPort() (int, any, *failure) {
	return c.replaceTags(func(tags []string) bool {
		p := c.project.ports[c.id]
		if p != nil {
			p.tags = tags
		}
		return p != nil
	}, "port")
}

func (c *call) tagFloatingIP() (int, any, *failure) {
	return c.replaceTags(func(tags []string) bool {
		f := c.project.floatingIPs[c.id]
		if f != nil {
			f.tags = tags
		}
		return f != nil
	}, "floatingip")
}

// A Port as the cloud has it.
type Port struct {
	ID, Name, Description, IP, Subnet, Network, VNIC, Device string
	Groups, Tags                                             []string
	Pairs                                                    []AddressPair
	Security                                                 bool
	// ByNova means that Nova created the port, and deletes it with its server.
	ByNova bool
}

// Ports of a project, by ID.
func (c *Cloud) Ports(name string) map[string]Port {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reap(time.Now())
	out := map[string]Port{}
	for id, p := range c.projects[name].ports {
		v := Port{ID: id, Name: p.name, Description: p.description, IP: p.ip(false), Network: p.network, VNIC: p.vnic, Device: p.device, Groups: p.groups, Tags: p.tags, Pairs: p.pairs, Security: p.security, ByNova: p.byNova}
		if len(p.fixed) > 0 {
			v.Subnet = p.fixed[0].Subnet
		}
		out[id] = v
	}
	return out
}

// A FloatingIP as the cloud has it.
type FloatingIP struct {
	ID, Description, Address, Port string
	Tags                           []string
}

// FloatingIPs of a project, by ID.
func (c *Cloud) FloatingIPs(name string) map[string]FloatingIP {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]FloatingIP{}
	for id, f := range c.projects[name].floatingIPs {
		out[id] = FloatingIP{ID: id, Description: f.description, Address: f.address, Port: f.port, Tags: f.tags}
	}
	return out
}

// Torn describes each port and floating IP of a project that was deleted while a server had it.
func (c *Cloud) Torn(name string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.projects[name].torn)
}

// LosePort deletes a port behind the provider's back.
func (c *Cloud) LosePort(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.projects {
		if gone := p.ports[id]; gone != nil {
			p.deletePort(gone)
		}
	}
}

// CreatePort creates a port of a project like a user, and returns its ID.
func (c *Cloud) CreatePort(name, description string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.newPort(time.Now(), netOf(NetworkID))
	p.description = description
	c.projects[name].ports[p.id] = p
	return p.id
}

// NamePort gives a port a name.
func (c *Cloud) NamePort(id, called string) { c.change(id, func(p *port) { p.name = called }) }

// Attach a port to a server, which need not exist.
func (c *Cloud) Attach(id, device string) { c.change(id, func(p *port) { p.device = device }) }

func (c *Cloud) change(id string, change func(*port)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.projects {
		if found := p.ports[id]; found != nil {
			change(found)
		}
	}
}

// CreateFloatingIP creates a floating IP of a project like a user, and returns its ID.
func (c *Cloud) CreateFloatingIP(name, description, portID string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.projects[name]
	f := &floatingIP{id: c.id("88888888"), description: description, network: PublicNetworkID, port: portID, fixed: p.ports[portID].ip(false), made: time.Now()}
	f.address = c.addressOf(netOf(PublicNetworkID).subnets[0])
	p.floatingIPs[f.id] = f
	return f.id
}

// CreateBeside creates a port of a project with a description, and a floating IP that leads to it, and returns
// their IDs.
func (c *Cloud) CreateBeside(name, description string) (portID, floatingIPID string) {
	portID = c.CreatePort(name, description)
	return portID, c.CreateFloatingIP(name, description, portID)
}
