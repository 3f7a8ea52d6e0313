package nutanix

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

const typePrefix = "vmm.v4.ahv.config."

// fields of a VM that the caller may set.
var fields = []string{
	"$objectType", "name", "description", "cluster", "numSockets", "numCoresPerSocket", "memorySizeBytes", "disks", "nics", "categories", "project", "gpus",
	"bootConfig", "$bootConfigItemDiscriminator", "machineType", "guestCustomization",
}

// create validates a VM as far as the schema goes, and starts the task that creates it.
func (c *call) create() (string, *failure) {
	spec := c.body
	for k := range spec {
		if !slices.Contains(fields, k) {
			return "", badField(k, "is not a property of the schema")
		}
	}
	switch {
	case text(spec["name"]) == "":
		return "", badField("name", "is required")
	case len(text(spec["description"])) > 1000:
		return "", badField("description", "must have at most 1000 characters")
	case extID(spec["cluster"]) == "":
		return "", badField("cluster", "is required")
	case number(spec["numSockets"]) < 1 || number(spec["numCoresPerSocket"]) < 1:
		return "", badField("numSockets", "must be at least 1")
	case number(spec["memorySizeBytes"]) < 64<<20:
		return "", badField("memorySizeBytes", "must be at least 67108864")
	}
	for i, d := range list(spec["disks"]) {
		backing, _ := d["backingInfo"].(object)
		if text(backing["$objectType"]) != typePrefix+"VmDisk" {
			return "", badField(fmt.Sprintf("disks[%d].backingInfo", i), "has no $objectType")
		}
	}
	m := &machine{uuid: uuid.NewString(), spec: spec, project: extID(spec["project"]), power: "OFF", version: 1, owner: c.name}
	var problem *failure
	if m.userData, m.metaData, problem = customization(spec["guestCustomization"]); problem != nil {
		return "", problem
	}
	return c.begin(c.now, "VmCreate", c.name, m, c.opts.Step+c.opts.CreateTakes, func(now time.Time) *Message {
		if problem := c.check(m); problem != nil {
			return problem
		}
		m.created = now
		c.complete(m)
		c.vms[m.uuid] = m
		return nil
	}), nil
}

// customization returns the user data and the metadata of a guest customization.
func customization(v any) (userData, metaData string, problem *failure) {
	o, _ := v.(object)
	if o == nil {
		return "", "", nil
	}
	config, _ := o["config"].(object)
	script, _ := config["cloudInitScript"].(object)
	switch {
	case text(config["$objectType"]) != typePrefix+"CloudInit" || text(config["datasourceType"]) != "CONFIG_DRIVE_V2":
		return "", "", badField("guestCustomization.config", "is not valid")
	case text(script["$objectType"]) != typePrefix+"Userdata":
		return "", "", badField("guestCustomization.config.cloudInitScript", "is not valid")
	case len(text(script["value"])) > 32<<10:
		return "", "", badField("guestCustomization.config.cloudInitScript.value", "must have at most 32768 characters")
	}
	data, err1 := base64.StdEncoding.DecodeString(text(script["value"]))
	meta, err2 := base64.StdEncoding.DecodeString(text(config["metadata"]))
	if err1 != nil || err2 != nil {
		return "", "", badField("guestCustomization.config", "must be base64 encoded")
	}
	return string(data), string(meta), nil
}

func list(v any) []object {
	var out []object
	items, _ := v.([]any)
	for _, i := range items {
		o, _ := i.(object)
		out = append(out, o)
	}
	return out
}

// check returns the error of a creation that refers to a missing object.
func (c *call) check(m *machine) *Message {
	cluster := extID(m.spec["cluster"])
	if o := c.objects[pathClusters][cluster]; o == nil || cluster == PrismCentral {
		return invalidArgument("cluster", cluster)
	}
	for _, n := range list(m.spec["nics"]) {
		info, _ := n["networkInfo"].(object)
		id := extID(info["subnet"])
		s := c.objects[pathSubnets][id]
		if s == nil || text(s["subnetType"]) != "OVERLAY" && text(s["clusterReference"]) != cluster {
			return invalidArgument("subnet", id)
		}
	}
	for _, d := range list(m.spec["disks"]) {
		backing, _ := d["backingInfo"].(object)
		source, _ := backing["dataSource"].(object)
		reference, _ := source["reference"].(object)
		image := text(reference["imageExtId"])
		switch o := c.objects[pathImages][image]; {
		case image == "" && number(backing["diskSizeBytes"]) == 0:
			return invalidArgument("diskSizeBytes", "0")
		case image != "" && o == nil:
			return invalidArgument("imageExtId", image)
		case image != "" && backing["storageContainer"] != nil:
			return invalidArgument("storageContainer", extID(backing["storageContainer"]))
		}
		if id := extID(backing["storageContainer"]); id != "" && c.objects[pathContainers][id] == nil {
			return invalidArgument("storageContainer", id)
		}
	}
	for _, k := range list(m.spec["categories"]) {
		if c.objects[pathCategories][text(k["extId"])] == nil {
			return invalidArgument("categories", text(k["extId"]))
		}
	}
	if m.project != "" && c.projects[m.project] == "" {
		return invalidArgument("project", m.project)
	}
	boot, _ := m.spec["bootConfig"].(object)
	if secure, _ := boot["isSecureBootEnabled"].(bool); secure && text(m.spec["machineType"]) != "Q35" {
		return invalidArgument("machineType", text(m.spec["machineType"]))
	}
	return nil
}

// complete sets the UUIDs and the sizes of the disks.
func (c *call) complete(m *machine) {
	for _, d := range list(m.spec["disks"]) {
		d["extId"] = uuid.NewString()
		backing, _ := d["backingInfo"].(object)
		source, _ := backing["dataSource"].(object)
		reference, _ := source["reference"].(object)
		if image := c.objects[pathImages][text(reference["imageExtId"])]; image != nil && (c.opts.SkipsSizes || backing["diskSizeBytes"] == nil) {
			backing["diskSizeBytes"] = image["sizeBytes"]
		}
	}
}

// disk returns the disk at a path such as disks/{extId}, or nil.
func (m *machine) disk(path string) object {
	for _, d := range list(m.spec["disks"]) {
		if path == "disks/"+text(d["extId"]) {
			return d
		}
	}
	return nil
}

func (c *call) resize(m *machine, d object) (string, *failure) {
	backing, _ := c.body["backingInfo"].(object)
	was, _ := d["backingInfo"].(object)
	switch {
	case backing["dataSource"] != nil:
		return "", badField("backingInfo.dataSource", "must not be set in an update")
	case number(backing["diskSizeBytes"]) < number(was["diskSizeBytes"]):
		return "", badField("backingInfo.diskSizeBytes", "must not be less than the size of the disk")
	}
	return c.begin(c.now, "VmDiskUpdate", c.name, m, c.opts.Step, func(time.Time) *Message {
		was["diskSizeBytes"] = backing["diskSizeBytes"]
		m.version++
		return nil
	}), nil
}

func (c *call) powerOn(m *machine) string {
	return c.begin(c.now, "VmPowerOn", c.name, m, c.opts.Step, func(time.Time) *Message {
		switch {
		case c.vms[m.uuid] != m:
			return &noVM(m.uuid).Message
		case m.power != "ON":
			if m.ran {
				m.reboots = append(m.reboots, "Hard")
			}
			c.boot(m)
		}
		return nil
	})
}

// reboot starts the task of an action that reboots a VM: "reboot" asks the guest by ACPI, "reset" and "power-cycle" do not.
func (c *call) reboot(m *machine, action string) string {
	operation := map[string]string{"reboot": "VmRebootAcpi", "reset": "VmReset", "power-cycle": "VmPowerCycle"}[action]
	return c.begin(c.now, operation, c.name, m, c.opts.Step, func(time.Time) *Message {
		switch {
		case c.vms[m.uuid] != m:
			return &noVM(m.uuid).Message
		case m.power == "OFF" || m.power == "PAUSED" && action != "power-cycle":
			return &Message{"VMM-30102", "VM_INVALID_ARGUMENT", fmt.Sprintf("Failed to perform the operation on the VM with UUID '%s', because its power state is %s.", m.uuid, m.power)}
		case action == "reboot":
			m.reboots = append(m.reboots, "Soft")
		default:
			m.reboots = append(m.reboots, "Hard")
			m.hangs = false
		}
		if !m.hangs {
			c.restart(m)
		}
		return nil
	})
}

func (c *call) delete(m *machine) string {
	return c.begin(c.now, "VmDelete", c.name, m, c.opts.Step, func(time.Time) *Message {
		if c.vms[m.uuid] != m {
			return &noVM(m.uuid).Message
		}
		c.halt(m)
		delete(c.vms, m.uuid)
		return nil
	})
}

// view returns a VM as the API does. A guest customization is never returned.
func (c *call) view(m *machine) object {
	out := maps.Clone(m.spec)
	delete(out, "guestCustomization")
	out["extId"], out["biosUuid"], out["powerState"], out["createTime"] = m.uuid, m.uuid, m.power, m.created.UTC().Format(time.RFC3339Nano)
	if m.power == "ON" {
		out["host"] = object{"extId": "05000000-0000-4000-8000-000000000001"}
	}
	var nics []object
	for i, n := range list(m.spec["nics"]) {
		n = maps.Clone(n)
		info, _ := n["networkInfo"].(object)
		info = maps.Clone(info)
		switch {
		case i > 0 || m.address == "":
		case c.opts.Unmanaged || strings.Contains(m.address, ":"):
			info["ipv4Info"] = object{"learnedIpAddresses": []object{{"value": m.address, "prefixLength": 32}, {"value": "169.254.1.1", "prefixLength": 32}}}
		default:
			info["ipv4Config"] = object{"shouldAssignIp": true, "ipAddress": object{"value": m.address, "prefixLength": 32}}
			// The guest uses the address that it got.
			info["ipv4Info"] = object{"learnedIpAddresses": []object{{"value": m.address, "prefixLength": 32}}}
		}
		n["networkInfo"], n["backingInfo"] = info, object{"model": "VIRTIO", "macAddress": "50:6B:8D:" + strings.ToUpper(m.uuid[0:2]+":"+m.uuid[2:4]+":"+m.uuid[4:6])}
		nics = append(nics, n)
	}
	if nics != nil {
		out["nics"] = nics
	}
	return out
}
