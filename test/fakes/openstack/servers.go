package openstack

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// maxUserData is the maximum size of a server's user data, in bytes of base64, and maxMetadata
// the maximum length of a key or value of metadata, in characters.
const (
	maxUserData = 65535
	maxMetadata = 255
)

// pageSize is the number of servers per page.
const pageSize = 20

func (c *call) view(s *server) map[string]any {
	status, made, key := s.status(c.now), s.made.UTC().Format(time.RFC3339), any(nil)
	if s.key != "" {
		key = s.key
	}
	out := map[string]any{
		"id": s.id, "name": s.name, "status": status, "tenant_id": "p", "user_id": "u", "hostId": "", "metadata": s.metadata,
		"created": made, "updated": made, "key_name": key, "config_drive": "", "os-extended-volumes:volumes_attached": []any{},
		"flavor": map[string]any{"id": s.flavor}, "image": map[string]any{"id": s.image}, "OS-EXT-AZ:availability_zone": s.zone,
		"accessIPv4": "", "accessIPv6": "", "addresses": map[string]any{}, "OS-DCF:diskConfig": "MANUAL",
		"OS-EXT-STS:task_state": nil, "OS-EXT-STS:vm_state": stateOf(status), "OS-EXT-STS:power_state": 0,
		"OS-SRV-USG:launched_at": nil, "OS-SRV-USG:terminated_at": nil,
	}
	if status == "ERROR" {
		out["fault"] = map[string]any{"code": http.StatusInternalServerError, "message": s.fault, "created": made}
		return out
	}
	out["security_groups"], out["progress"] = groupsOf(s), 0
	if status != "BUILD" {
		out["addresses"], out["OS-SRV-USG:launched_at"] = c.addresses(s), s.builtAt.UTC().Format("2006-01-02T15:04:05.000000")
	}
	if status == "ACTIVE" {
		out["OS-EXT-STS:power_state"] = 1
	}
	return out
}

func groupsOf(s *server) []any {
	groups := []any{}
	for _, g := range s.groups {
		groups = append(groups, map[string]any{"name": g})
	}
	return groups
}

// stateOf returns the vm_state of a server with a status.
func stateOf(status string) string {
	switch state := statesOf[status]; {
	case state != "":
		return state
	case status == "BUILD":
		return "building"
	case status == "ERROR":
		return "error"
	case status == "SHUTOFF":
		return "stopped"
	}
	return "active"
}

// addresses of a server by network: those of its ports, and the floating IPs that lead to them.
func (c *call) addresses(s *server) map[string][]any {
	out := map[string][]any{}
	for _, nic := range s.nics {
		name := netOf(nic.network).name
		add := func(address, kind string) {
			version := 4
			if strings.Contains(address, ":") {
				version = 6
			}
			out[name] = append(out[name], map[string]any{"addr": address, "version": version, "OS-EXT-IPS:type": kind, "OS-EXT-IPS-MAC:mac_addr": nic.mac})
		}
		for _, f := range nic.fixed {
			add(f.Address, "fixed")
		}
		for _, f := range c.project.floatingIPs {
			if f.port == nic.id {
				add(f.address, "floating")
			}
		}
	}
	return out
}

func (c *call) server() (*server, *failure) {
	s := c.project.servers[c.id]
	if s == nil || !s.there(c.now) {
		return nil, fail(http.StatusNotFound, "itemNotFound", "Instance %s could not be found.", c.id)
	}
	return s, nil
}

func (c *call) getServer() (int, any, *failure) {
	s, problem := c.server()
	if problem != nil {
		return 0, nil, problem
	}
	return http.StatusOK, map[string]any{"server": c.view(s)}, nil
}

// listServers by pages: the next page begins after the marker. The name is a regular expression, as in Nova.
func (c *call) listServers() (int, any, *failure) {
	name, err := regexp.Compile(c.query.Get("name"))
	if err != nil {
		return 0, nil, fail(http.StatusBadRequest, "badRequest", "Invalid input for query parameters name. Value: %[1]s. '%[1]s' is not a 'regex'", c.query.Get("name"))
	}
	found := []any{}
	var last string
	for _, id := range slices.Sorted(maps.Keys(c.project.servers)) {
		s := c.project.servers[id]
		if !s.there(c.now) || id <= c.query.Get("marker") || !name.MatchString(s.name) {
			continue
		}
		if len(found) == pageSize {
			next := c.opts.URL + "/compute/v2.1/servers/detail?" + url.Values{"marker": {last}, "name": {name.String()}}.Encode()
			return http.StatusOK, map[string]any{"servers": found, "servers_links": []any{map[string]any{"rel": "next", "href": next}}}, nil
		}
		found, last = append(found, c.view(s)), id
	}
	return http.StatusOK, map[string]any{"servers": found}, nil
}

// request for a server. Networks are a list or a keyword.
type request struct {
	Name           string            `json:"name"`
	ImageRef       string            `json:"imageRef"`
	FlavorRef      string            `json:"flavorRef"`
	Zone           string            `json:"availability_zone"`
	KeyName        string            `json:"key_name"`
	UserData       string            `json:"user_data"`
	Metadata       map[string]string `json:"metadata"`
	Networks       json.RawMessage   `json:"networks"`
	SecurityGroups []struct {
		Name string `json:"name"`
	} `json:"security_groups"`
}

func (c *call) createServer() (int, any, *failure) {
	var in struct {
		Server request `json:"server"`
	}
	if err := json.Unmarshal(c.body, &in); err != nil {
		return 0, nil, fail(http.StatusBadRequest, "badRequest", "Malformed request body")
	}
	r := in.Server
	if problem := c.check(r); problem != nil {
		return 0, nil, problem
	}
	userData, err := base64.StdEncoding.DecodeString(r.UserData)
	if err != nil {
		return 0, nil, fail(http.StatusBadRequest, "badRequest", "Invalid input for field/attribute user_data. Value: %[1]s. '%[1]s' is not a 'base64'", r.UserData)
	}
	s := c.made(c.now, r.Name)
	s.userData, s.key = string(userData), r.KeyName
	if r.Zone != "" {
		s.zone = r.Zone
	}
	if r.Metadata != nil {
		s.metadata = r.Metadata
	}
	if len(r.SecurityGroups) > 0 {
		s.groups = nil
		for _, g := range r.SecurityGroups {
			s.groups = append(s.groups, g.Name)
		}
	}
	nics, problem := c.interfaces(r.Networks)
	if problem != nil {
		return 0, nil, problem
	}
	used := c.used(func(*server) bool { return true })
	c.project.servers[s.id] = s
	switch {
	// A server that no host has is not attached to anything.
	case c.full || c.project.full:
		s.fault = "No valid host was found. "
	case c.opts.ServerLimit > 0 && used >= c.opts.ServerLimit:
		s.fault = fmt.Sprintf(overQuota, used, c.opts.ServerLimit)
	default:
		for _, nic := range nics {
			if nic.port != nil {
				s.attach(nic.port)
			} else {
				c.addPort(c.project, s, nic.network)
			}
		}
		c.after = append(c.after, func() { c.boot(s) })
	}
	return http.StatusAccepted, map[string]any{"server": map[string]any{"id": s.id, "OS-DCF:diskConfig": "MANUAL", "adminPass": "password", "security_groups": groupsOf(s)}}, nil
}

// A nic is a port that exists, or the network of one that Nova creates.
type nic struct {
	port    *port
	network *netw
}

// interfaces of a requested server, in their order. The errors are those of Nova's "Create server", in
// nova.exception: PortNotFound, PortInUse and NetworkNotFound.
func (c *call) interfaces(raw json.RawMessage) ([]nic, *failure) {
	var requested []struct {
		Network string `json:"uuid"`
		Port    string `json:"port"`
	}
	if len(raw) == 0 || raw[0] == '"' {
		return []nic{{network: netOf(NetworkID)}}, nil
	}
	if err := json.Unmarshal(raw, &requested); err != nil {
		return nil, fail(http.StatusBadRequest, "badRequest", "Invalid input for field/attribute networks.")
	}
	var out []nic
	for _, r := range requested {
		if r.Port == "" {
			n := netOf(r.Network)
			if n == nil {
				return nil, fail(http.StatusBadRequest, "badRequest", "Network %s could not be found.", r.Network)
			}
			out = append(out, nic{network: n})
			continue
		}
		p := c.project.ports[r.Port]
		switch {
		case p == nil:
			return nil, fail(http.StatusBadRequest, "badRequest", "Port id %s could not be found.", r.Port)
		case p.device != "":
			return nil, fail(http.StatusConflict, "conflictingRequest", "Port %s is still in use.", r.Port)
		case len(p.fixed) == 0:
			return nil, fail(http.StatusBadRequest, "badRequest", "Port %s requires a FixedIP in order to be used.", r.Port)
		}
		out = append(out, nic{port: p})
	}
	return out, nil
}

const overQuota = "Quota exceeded for instances: Requested 1, but already used %d of %d instances"

// used returns how many servers of the project exist and are selected.
func (c *call) used(isCounted func(*server) bool) int {
	n := 0
	for _, s := range c.project.servers {
		if s.there(c.now) && isCounted(s) {
			n++
		}
	}
	return n
}

// check a request like Nova. Nova does not count a server that it has accepted and not built yet: see recheck_quota in its
// configuration.
func (c *call) check(r request) *failure {
	used := c.used(func(s *server) bool { return s.status(c.now) != "BUILD" })
	switch {
	case r.FlavorRef != FlavorID:
		return fail(http.StatusBadRequest, "badRequest", "Flavor %s could not be found.", r.FlavorRef)
	case r.ImageRef != ImageID:
		return fail(http.StatusBadRequest, "badRequest", "Can not find requested image")
	case r.Zone != "" && r.Zone != Zone && !strings.HasPrefix(r.Zone, "zone-"):
		return fail(http.StatusBadRequest, "badRequest", "The requested availability zone is not available")
	case len(r.UserData) > maxUserData:
		return fail(http.StatusBadRequest, "badRequest", "Invalid input for field/attribute user_data. '...' is too long")
	case c.opts.ServerLimit > 0 && used >= c.opts.ServerLimit:
		return fail(http.StatusForbidden, "forbidden", overQuota, used, c.opts.ServerLimit)
	}
	for k, v := range r.Metadata {
		if len(k) > maxMetadata || len(v) > maxMetadata {
			return fail(http.StatusBadRequest, "badRequest", "Invalid input for field/attribute %s. Value: %[2]s. '%[2]s' is too long", k, v)
		}
	}
	return nil
}

func (c *call) deleteServer() (int, any, *failure) {
	s, problem := c.server()
	if problem != nil {
		return 0, nil, problem
	}
	if s.goneAt.IsZero() {
		s.goneAt = c.now.Add(c.opts.Step)
		c.after = append(c.after, func() { c.stop(s) })
	}
	return http.StatusNoContent, nil, nil
}

// act on a server: the supported actions show its console and reboot it.
func (c *call) act() (int, any, *failure) {
	var in struct {
		Console *struct {
			Length *int `json:"length"`
		} `json:"os-getConsoleOutput"`
		Reboot *struct {
			Type string `json:"type"`
		} `json:"reboot"`
	}
	if err := json.Unmarshal(c.body, &in); err != nil {
		return 0, nil, fail(http.StatusBadRequest, "badRequest", "Malformed request body")
	}
	if in.Console == nil && in.Reboot == nil {
		names := map[string]any{}
		_ = json.Unmarshal(c.body, &names)
		return 0, nil, fail(http.StatusBadRequest, "badRequest", "There is no such action: %s", strings.Join(slices.Sorted(maps.Keys(names)), " "))
	}
	s, problem := c.server()
	switch {
	case problem != nil:
		return 0, nil, problem
	case in.Reboot != nil:
		if !slices.Contains(rebootTypes, in.Reboot.Type) {
			return 0, nil, fail(http.StatusBadRequest, "badRequest", "Invalid input for field/attribute type. Value: %[1]s. '%[1]s' is not one of ['%[2]s']", in.Reboot.Type, strings.Join(rebootTypes, "', '"))
		}
		return c.reboot(s, strings.ToUpper(in.Reboot.Type))
	case s.status(c.now) != "ACTIVE":
		return 0, nil, fail(http.StatusConflict, "conflictingRequest", "Instance %s is not ready", s.id)
	}
	s.consoleReads++
	lines := strings.SplitAfter(s.console, "\n")
	if n := in.Console.Length; n != nil {
		lines = lines[max(0, len(lines)-*n):]
	}
	return http.StatusOK, map[string]any{"output": strings.Join(lines, "")}, nil
}

// statesOf are the vm_states of statuses that a user causes.
var statesOf = map[string]string{"SUSPENDED": "suspended", "RESCUE": "rescued", "VERIFY_RESIZE": "resized"}

// rebootTypes are those that Nova accepts.
var rebootTypes = []string{"HARD", "Hard", "hard", "SOFT", "Soft", "soft"}

// reboot a server. The states in which it is allowed are those of nova.compute.api: a soft reboot needs an active server
// without a task, and a hard reboot is also allowed for a stopped or suspended server and during a soft reboot.
func (c *call) reboot(s *server, kind string) (int, any, *failure) {
	refused := func(state string) (int, any, *failure) {
		return 0, nil, fail(http.StatusConflict, "conflictingRequest", "Cannot 'reboot' instance %s while it is in %s", s.id, state)
	}
	status := s.status(c.now)
	switch {
	case status == "BUILD":
		return refused("vm_state building")
	case status == "ERROR" && kind == "SOFT":
		return refused("vm_state error")
	case status == "ERROR":
		// No host has it.
		return 0, nil, fail(http.StatusConflict, "conflictingRequest", "Instance %s is in an invalid state for 'reboot'", s.id)
	case status == "PASSWORD":
		return refused("task_state updating_password")
	case statesOf[status] != "" && (kind == "SOFT" || status != "SUSPENDED"):
		return refused("vm_state " + statesOf[status])
	case status == "SUSPENDED":
		s.rebooting, s.set = "HARD_REBOOT", ""
	case kind == "SOFT" && c.now.Before(s.rebootedAt):
		return refused("task_state reboot_started")
	case kind == "SOFT" && status == "SHUTOFF":
		return refused("vm_state stopped")
	case kind == "SOFT":
		s.rebooting = "REBOOT"
	case s.off:
		s.rebooting, s.off = "SHUTOFF", false
	default:
		s.rebooting = "HARD_REBOOT"
	}
	s.reboots, s.rebootedAt = append(s.reboots, kind), c.now.Add(c.opts.Step)
	if c.opts.Reboot != nil {
		c.after = append(c.after, func() { c.opts.Reboot(s.asBooted()) })
	}
	return http.StatusAccepted, nil, nil
}
