package proxmox

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// qemu carries out calls for VMs.
func (c *call) qemu(n *node, parts []string, name string) (any, *failure) {
	if len(parts) < 1 {
		return nil, fail(http.StatusNotImplemented, "Method '%s' not implemented", name)
	}
	id, err := strconv.Atoi(parts[0])
	if err != nil {
		return nil, badParameter("vmid", "type check ('integer') failed - got '%s'", parts[0])
	}
	m := c.vms[id]
	privilege := "VM.Audit"
	if c.method != http.MethodGet {
		privilege = map[string]string{"clone": "VM.Clone", "config": "VM.Config.Options", "resize": "VM.Config.Disk", "status": "VM.PowerMgmt"}[strings.Join(parts[1:min(2, len(parts))], "")]
		privilege = cmp.Or(privilege, "VM.Allocate")
	}
	if problem := c.permit(id, m, privilege); problem != nil {
		return nil, problem
	}
	if m == nil || m.node != n.name {
		return nil, dies("Configuration file 'nodes/%s/qemu-server/%d.conf' does not exist", n.name, id)
	}
	switch name {
	case "GET /nodes/{node}/qemu/{id}/config":
		return c.readConfig(m)
	case "GET /nodes/{node}/qemu/{id}/status/current":
		return c.current(m)
	case "GET /nodes/{node}/qemu/{id}/agent/network-get-interfaces":
		return c.interfaces(m)
	case "POST /nodes/{node}/qemu/{id}/clone":
		return c.clone(n, m)
	case "POST /nodes/{node}/qemu/{id}/config":
		return c.configure(m)
	case "PUT /nodes/{node}/qemu/{id}/resize":
		return c.resize(m)
	case "POST /nodes/{node}/qemu/{id}/status/start":
		return c.start(m)
	case "POST /nodes/{node}/qemu/{id}/status/stop":
		return c.stop(m)
	case "POST /nodes/{node}/qemu/{id}/status/reboot":
		return c.reboot(m)
	case "POST /nodes/{node}/qemu/{id}/status/reset":
		return c.reset(m)
	case "DELETE /nodes/{node}/qemu/{id}":
		return c.destroy(m)
	}
	return nil, fail(http.StatusNotImplemented, "Method '%s' not implemented", name)
}

// permit checks a privilege on /vms/{id}. The API does so before it checks whether the VM exists.
func (c *call) permit(id int, m *machine, privilege string) *failure {
	denied := fail(http.StatusForbidden, "Permission check failed (/vms/%d, %s)", id, privilege)
	if c.token.ReadOnly && privilege != "VM.Audit" {
		return denied
	}
	switch {
	case privilege == "VM.Audit" && c.token.Audit:
		return nil
	case m != nil && !c.owns(m):
		return denied
	case m == nil && c.token.Pools != nil: // A VM that does not exist is in no pool.
		return denied
	}
	return nil
}

func (c *call) readConfig(m *machine) (any, *failure) {
	if m.hidden {
		return map[string]any{"lock": m.config["lock"], "digest": "0"}, nil
	}
	out := map[string]any{"digest": fmt.Sprintf("%x", len(m.config))}
	for k, v := range m.config {
		if n, err := strconv.ParseInt(v, 10, 64); err == nil && k != "name" && k != "description" && k != "memory" {
			out[k] = n
			continue
		}
		out[k] = v // The memory is text since Proxmox VE 8.
	}
	return out, nil
}

func (c *call) current(m *machine) (any, *failure) {
	out := map[string]any{
		"vmid": m.id, "name": m.name(), "status": m.status(), "qmpstatus": m.status(), "cpus": 2, "maxmem": m.memory, "mem": 0,
		"uptime": 0, "ha": map[string]any{"managed": 0},
	}
	if m.config["lock"] != "" {
		out["lock"] = m.config["lock"]
	}
	return out, nil
}

func (c *call) interfaces(m *machine) (any, *failure) {
	switch {
	case !m.running:
		return nil, dies("VM %d is not running", m.id)
	case !strings.HasPrefix(m.config["agent"], "1") && option(m.config["agent"], "enabled") != "1":
		return nil, dies("No QEMU guest agent configured")
	case c.now.Sub(m.startedAt) < c.opts.AgentAfter:
		return nil, dies("QEMU guest agent is not running")
	}
	address := func(kind, ip string, prefix int) map[string]any {
		return map[string]any{"ip-address-type": kind, "ip-address": ip, "prefix": prefix}
	}
	a := netip.MustParseAddr(m.address)
	kind, prefix := "ipv4", 16
	if a.Is6() {
		kind, prefix = "ipv6", 64
	}
	return map[string]any{"result": []map[string]any{
		{"name": "lo", "hardware-address": "00:00:00:00:00:00", "ip-addresses": []map[string]any{address("ipv4", "127.0.0.1", 8), address("ipv6", "::1", 128)}},
		{"name": "eth0", "hardware-address": strings.ToLower(macOf(m.config["net0"])), "ip-addresses": []map[string]any{
			address(kind, m.address, prefix), address("ipv6", "fe80::be24:11ff:fe00:1", 64),
		}},
		{"name": "cni0", "hardware-address": "5e:00:00:00:00:01", "ip-addresses": []map[string]any{address("ipv4", "10.244.3.1", 24)}},
		{"name": "sit0", "hardware-address": "00:00:00:00"},
	}}, nil
}

var mac = regexp.MustCompile(`(?i)([0-9a-f]{2}:){5}[0-9a-f]{2}`)

func macOf(net string) string { return mac.FindString(net) }

func (c *call) locked(m *machine) *failure {
	if lock := m.config["lock"]; lock != "" {
		return dies("VM is locked (%s)", lock)
	}
	return nil
}

func (c *call) clone(n *node, m *machine) (any, *failure) {
	newid, err := strconv.Atoi(c.params["newid"])
	if err != nil {
		return nil, badParameter("newid", "property is missing and it is not optional")
	}
	target := cmp.Or(c.params["target"], n.name)
	full := c.params["full"] == "1" || c.params["full"] == "" && !m.template
	storage := c.params["storage"]
	switch {
	case c.nodes[target] == nil:
		return nil, badParameter("target", "no such cluster node '%s'", target)
	case !c.nodes[target].online:
		return nil, dies("target node '%s' is offline", target)
	case c.params["pool"] != "" && !c.pools[c.params["pool"]]:
		return nil, dies("pool '%s' does not exist", c.params["pool"])
	case c.vms[newid] != nil:
		return nil, dies("VM %d already exists on node '%s'", newid, c.vms[newid].node)
	case storage != "" && !full:
		return nil, badParameter("storage", "Linked clones can't use 'storage'. Use a full clone.")
	}
	if problem := c.locked(m); problem != nil {
		return nil, problem
	}
	from, _, _ := strings.Cut(m.config["scsi0"], ":")
	for _, s := range []string{from, cmp.Or(storage, from)} {
		if problem := c.storageOn(s, target, "images"); problem != nil {
			return nil, problem
		}
	}
	if target != n.name && (!c.storages[from].shared || storage != "" && !c.storages[storage].shared) {
		return nil, dies("can't clone VM to node '%s' (VM uses local storage)", target)
	}
	config := maps.Clone(m.config)
	delete(config, "template")
	config["name"] = cmp.Or(c.params["name"], "Copy-of-VM-"+m.config["name"])
	if d := c.params["description"]; d != "" {
		config["description"] = d
	}
	config["smbios1"] = fmt.Sprintf("uuid=bbbbbbbb-0000-4000-8000-%012d", newid)
	config["scsi0"] = fmt.Sprintf("%s:vm-%d-disk-0,size=%s", cmp.Or(storage, from), newid, cmp.Or(option(m.config["scsi0"], "size"), "4G"))
	if config["net0"] != "" {
		config["net0"] = mac.ReplaceAllString(config["net0"], newMAC(newid, 0))
	}
	clone := &machine{id: newid, node: n.name, pool: c.params["pool"], hidden: true, memory: m.memory, config: map[string]string{"lock": "clone"}}
	c.vms[newid] = clone
	takes := c.opts.Step
	if full {
		takes += c.opts.CloneTakes
	}
	upid := c.begin(c.now, n.name, "qmclone", m.id, c.user, takes, func(time.Time) string {
		clone.config, clone.hidden, clone.node = config, false, target
		return ""
	})
	t := c.tasks[upid]
	done := t.done
	t.done = func(at time.Time) string {
		text := ""
		if c.failTask != nil {
			// The task has the ID of the template, but failTask gets the name of the clone.
			text = c.failTask("qmclone", clone.pool, config["name"])
		}
		if text == "" {
			return done(at)
		}
		delete(c.vms, newid)
		return "clone failed: " + text
	}
	t.vm = newid
	return upid, nil
}

// interrupt undoes a task that a user stopped.
func (c *Cluster) interrupt(t *task) {
	if t.kind == "qmclone" {
		delete(c.vms, t.vm)
	}
}

func newMAC(id, card int) string {
	return fmt.Sprintf("BC:24:11:%02X:%02X:%02X", id>>8&0xff, id&0xff, card)
}

var (
	keys = regexp.MustCompile(`^(name|description|tags|cores|sockets|cpu|memory|onboot|agent|smbios1|boot|delete|digest|ostype|scsihw|((net|scsi|ide|sata|virtio|ipconfig|unused)[0-9]+))$`)
	tags = regexp.MustCompile(`^(?i)[a-z0-9_][a-z0-9_\-+.]*$`)
	name = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?$`)
	uuid = regexp.MustCompile(`^uuid=[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(,|$)`)
	slot = regexp.MustCompile(`^(scsi|ide|sata|virtio)[0-9]+$`)
	card = regexp.MustCompile(`^net[0-9]+$`)
	size = regexp.MustCompile(`^([a-zA-Z][\w.-]*):([0-9]+)$`)
)

// configure changes the configuration of a VM by a task. It validates all parameters first.
func (c *call) configure(m *machine) (any, *failure) {
	for k, v := range c.params {
		switch {
		case !keys.MatchString(k):
			return nil, badParameter(k, "property is not defined in schema and the schema does not allow additional properties")
		case k == "name" && !name.MatchString(v):
			return nil, badParameter(k, "invalid format - value does not look like a valid DNS name")
		case k == "smbios1" && !uuid.MatchString(v):
			return nil, badParameter(k, "invalid format - format error")
		case k == "tags":
			for _, t := range strings.FieldsFunc(v, func(r rune) bool { return strings.ContainsRune(";, ", r) }) {
				if !tags.MatchString(t) {
					return nil, badParameter(k, "invalid format - invalid characters in tag")
				}
			}
		case k == "description" && len(v) > 8192:
			return nil, badParameter(k, "value may only be 8192 characters long")
		}
	}
	if problem := c.locked(m); problem != nil {
		return nil, problem
	}
	for k, v := range c.params {
		if slot.MatchString(k) {
			if problem := c.checkDrive(m, k, v); problem != nil {
				return nil, problem
			}
		}
	}
	params := maps.Clone(c.params)
	return c.begin(c.now, m.node, "qmconfig", m.id, c.user, c.opts.Step, func(time.Time) string {
		c.apply(m, params)
		return ""
	}), nil
}

func (c *call) checkDrive(m *machine, key, value string) *failure {
	volume, _, _ := strings.Cut(value, ",")
	if alloc := size.FindStringSubmatch(volume); alloc != nil {
		return c.storageOn(alloc[1], m.node, "images")
	}
	storage, rest, ok := strings.Cut(volume, ":")
	if !ok {
		return badParameter(key, "unable to parse volume ID '%s'", volume)
	}
	if problem := c.storageOn(storage, m.node, ""); problem != nil {
		return problem
	}
	if file, ok := strings.CutPrefix(rest, "iso/"); ok {
		if _, there := c.storages[storage].at(m.node)[file]; !there {
			return dies("volume '%s' does not exist", volume)
		}
	}
	return nil
}

func (c *Cluster) apply(m *machine, params map[string]string) {
	for _, k := range slices.Sorted(maps.Keys(params)) {
		v := params[k]
		switch {
		case k == "delete":
			for _, d := range strings.Split(v, ",") {
				delete(m.config, d)
			}
			continue
		case k == "digest":
			continue
		case k == "description":
			v += "\n" // Notes are stored as lines of comments.
		case k == "memory":
			if mib, err := strconv.ParseInt(v, 10, 64); err == nil {
				m.memory = mib << 20
			}
		case card.MatchString(k) && macOf(v) == "":
			n, _ := strconv.Atoi(k[3:])
			model, rest, _ := strings.Cut(v, ",")
			v = model + "=" + newMAC(m.id, n) + "," + rest
		case slot.MatchString(k):
			volume, options, _ := strings.Cut(v, ",")
			if alloc := size.FindStringSubmatch(volume); alloc != nil {
				v = fmt.Sprintf("%s:vm-%d-%s,size=%sG", alloc[1], m.id, k, alloc[2])
				if options != "" {
					v += "," + options
				}
			}
		}
		m.config[k] = v
	}
}

func (c *call) resize(m *machine) (any, *failure) {
	disk, to := c.params["disk"], c.params["size"]
	if problem := c.locked(m); problem != nil {
		return nil, problem
	}
	if m.config[disk] == "" {
		return nil, dies("disk '%s' does not exist", disk)
	}
	was, err1 := sizeOf(option(m.config[disk], "size"))
	want, err2 := sizeOf(to)
	switch {
	case err1 != nil || err2 != nil:
		return nil, badParameter("size", "value does not match the regex pattern")
	case want < was:
		return nil, dies("shrinking disks is not supported")
	}
	return c.begin(c.now, m.node, "resize", m.id, c.user, c.opts.Step, func(time.Time) string {
		m.config[disk] = strings.Replace(m.config[disk], "size="+option(m.config[disk], "size"), "size="+to, 1)
		return ""
	}), nil
}

// sizeOf returns the size of a disk in bytes.
func sizeOf(text string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimRight(text, "KMGT"), 10, 64)
	if err != nil || text == "" {
		return 0, fmt.Errorf("no size: %q", text)
	}
	switch text[len(text)-1] {
	case 'K':
		return n << 10, nil
	case 'M':
		return n << 20, nil
	case 'G':
		return n << 30, nil
	case 'T':
		return n << 40, nil
	}
	return n, nil
}

func (c *call) start(m *machine) (any, *failure) {
	// A VM that is hibernated is resumed.
	if problem := c.locked(m); problem != nil && m.config["lock"] != "suspended" {
		return nil, problem
	}
	return c.beginStart(c.now, m, c.user), nil
}

// beginStart starts the task that starts a VM.
func (c *Cluster) beginStart(now time.Time, m *machine, user string) string {
	return c.begin(now, m.node, "qmstart", m.id, user, c.opts.Step, func(now time.Time) string {
		switch {
		case c.vms[m.id] != m:
			return fmt.Sprintf("Configuration file 'nodes/%s/qemu-server/%d.conf' does not exist", m.node, m.id)
		case m.running:
			return fmt.Sprintf("VM %d already running", m.id)
		case c.isHeld(m):
			return lockTimeout(m)
		}
		for i := range 8 {
			if net := m.config["net"+strconv.Itoa(i)]; net != "" && !c.bridges[option(net, "bridge")] {
				return fmt.Sprintf("bridge '%s' does not exist", option(net, "bridge"))
			}
		}
		for _, d := range m.config {
			volume, _, _ := strings.Cut(d, ",")
			storage, file, ok := strings.Cut(volume, ":iso/")
			if !ok {
				continue
			}
			if _, there := c.storages[storage].at(m.node)[file]; !there {
				return fmt.Sprintf("volume '%s' does not exist", volume)
			}
		}
		if !m.startedAt.IsZero() && user != qmeventd {
			m.reboots = append(m.reboots, "Hard")
		}
		delete(m.config, "lock")
		c.boot(m, now)
		return ""
	})
}

func (c *call) stop(m *machine) (any, *failure) {
	return c.begin(c.now, m.node, "qmstop", m.id, c.user, c.opts.Step, func(time.Time) string {
		if text := c.refusesTask(m); text != "" {
			return text
		}
		c.halt(m)
		return ""
	}), nil
}

func (c *call) destroy(m *machine) (any, *failure) {
	if problem := c.locked(m); problem != nil {
		return nil, problem
	}
	if m.running {
		return nil, dies("VM %d is running - destroy failed", m.id)
	}
	return c.begin(c.now, m.node, "qmdestroy", m.id, c.user, c.opts.Step, func(time.Time) string {
		switch {
		case c.vms[m.id] != m:
			return fmt.Sprintf("Configuration file 'nodes/%s/qemu-server/%d.conf' does not exist", m.node, m.id)
		case m.running:
			return fmt.Sprintf("VM %d is running - destroy failed", m.id)
		}
		c.halt(m) // It may have stopped for a reboot.
		delete(c.vms, m.id)
		return ""
	}), nil
}
