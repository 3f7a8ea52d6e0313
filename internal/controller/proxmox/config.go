package proxmox

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/proxmox/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

const gib = int64(1) << 30

// A config is the configuration of a VM, in the format of the API.
type config map[string]string

func (c *config) UnmarshalJSON(b []byte) error {
	raw := map[string]json.RawMessage{}
	if err := json.Unmarshal(b, &raw); err != nil {
		return err
	}
	*c = config{}
	for k, v := range raw {
		var s string
		if json.Unmarshal(v, &s) != nil {
			s = string(v) // A number.
		}
		(*c)[k] = s
	}
	return nil
}

// option returns an option of a property, such as size of "ceph:vm-100-disk-0,size=4G".
func option(property, key string) string {
	for _, part := range strings.Split(property, ",") {
		if k, v, ok := strings.Cut(part, "="); ok && k == key {
			return v
		}
	}
	return ""
}

// uuid returns the UUID in the SMBIOS.
func (c config) uuid() string { return strings.ToLower(option(c["smbios1"], "uuid")) }

// isOf reports whether the configuration is that of the VM with the UUID.
func (c config) isOf(uuid string) bool {
	noted, _ := readNotes(c["description"])
	uuid = strings.ToLower(uuid)
	return uuid != "" && (c.uuid() == uuid || noted == uuid)
}

// isHidden reports whether the VM is a clone in progress, whose configuration has only its lock.
func (c config) isHidden() bool {
	return c["lock"] != "" && c["smbios1"] == "" && c["description"] == "" && c["name"] == ""
}

var (
	disk     = regexp.MustCompile(`^(scsi|virtio|sata|ide)[0-9]+$`)
	card     = regexp.MustCompile(`^net([0-9]+)$`)
	mac      = regexp.MustCompile(`(?i)([0-9a-f]{2}:){5}[0-9a-f]{2}`)
	diskSize = regexp.MustCompile(`^([0-9]+)([KMGT]?)$`)
)

// bootDisk returns the key of the boot disk, or "" if there is none.
func (c config) bootDisk() string {
	isDisk := func(k string) bool {
		return disk.MatchString(k) && c[k] != "" && option(c[k], "media") != "cdrom"
	}
	for _, k := range strings.Split(option(c["boot"], "order"), ";") {
		if isDisk(k) {
			return k
		}
	}
	for _, k := range []string{c["bootdisk"], "scsi0", "virtio0", "sata0", "ide0"} {
		if isDisk(k) {
			return k
		}
	}
	return ""
}

// sizeOf returns the size of the disk with the key in bytes, or 0 if it is unknown.
func (c config) sizeOf(key string) int64 {
	m := diskSize.FindStringSubmatch(option(c[key], "size"))
	if m == nil {
		return 0
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	shift := map[string]uint{"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[m[2]]
	if err != nil || n > math.MaxInt64>>shift {
		return 0
	}
	return n << shift
}

// macs returns the MAC addresses of the network cards.
func (c config) macs() []string {
	var out []string
	for k, v := range c {
		if card.MatchString(k) {
			if m := mac.FindString(v); m != "" {
				out = append(out, strings.ToLower(m))
			}
		}
	}
	slices.Sort(out)
	return out
}

// image returns the volume of Drover's image with the user data, or "" if there is none.
func (c config) image() string {
	for k, v := range c {
		volume, _, _ := strings.Cut(v, ",")
		if _, file, ok := strings.Cut(volume, ":iso/"); ok && disk.MatchString(k) {
			if _, _, ours := readImageName(file); ours {
				return volume
			}
		}
	}
	return ""
}

// A move is the next step of the creation of a VM whose clone is complete.
type move string

const (
	// moveConfigure sets everything that differs from the template, together with the UUID, in one write.
	moveConfigure move = "Configure"
	moveResize    move = "Resize"
	moveAttach    move = "Attach"
	moveStart     move = "Start"
	moveNone      move = "None"
)

// nextMove returns the next step for a VM with the configuration c.
func nextMove(c config, p v1alpha1.VirtualMachineParameters, uuid, image string, running bool) move {
	switch {
	case c.uuid() != strings.ToLower(uuid):
		return moveConfigure
	case p.DiskSizeGiB != nil && c.bootDisk() != "" && c.sizeOf(c.bootDisk()) < *p.DiskSizeGiB*gib:
		return moveResize
	case p.CloudInit != nil && c.image() != image:
		return moveAttach
	case !running:
		return moveStart
	}
	return moveNone
}

// configure returns the changes of the configuration of a clone, which is a copy of the template's.
func configure(c config, p v1alpha1.VirtualMachineParameters, uuid string) map[string]any {
	out := map[string]any{
		"smbios1":     "uuid=" + strings.ToLower(uuid),
		"tags":        tagsOf(uuid, p.Tags, p.Attributes),
		"description": notesOf(uuid, p.Attributes),
		"onboot":      flag(ptr.Deref(p.StartOnBoot, true)),
		"agent":       "enabled=" + flag(ptr.Deref(p.Agent, true)),
	}
	if p.Name != nil {
		out["name"] = *p.Name
	}
	if p.Cores != nil {
		out["cores"], out["sockets"] = strconv.Itoa(int(*p.Cores)), "1"
	}
	if p.MemoryMiB != nil {
		out["memory"] = strconv.FormatInt(*p.MemoryMiB, 10)
	}
	if p.CPUType != nil {
		out["cpu"] = *p.CPUType
	}
	next := freeSCSI(c, p.CloudInit)
	for _, d := range p.Disks {
		out[next()] = fmt.Sprintf("%s:%d", d.Storage, d.SizeGiB)
	}
	if len(p.Networks) == 0 {
		return out
	}
	for i, n := range p.Networks {
		out["net"+strconv.Itoa(i)] = networkCard(n)
	}
	var unused []string
	for k := range c {
		if m := card.FindStringSubmatch(k); m != nil {
			if i, err := strconv.Atoi(m[1]); err == nil && i >= len(p.Networks) {
				unused = append(unused, k)
			}
		}
	}
	if slices.Sort(unused); len(unused) > 0 {
		out["delete"] = strings.Join(unused, ",")
	}
	return out
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// freeSCSI returns a function that returns the next scsi device that neither the template nor the image
// uses.
func freeSCSI(c config, ci *v1alpha1.CloudInit) func() string {
	i := 0
	return func() string {
		for ; ; i++ {
			k := "scsi" + strconv.Itoa(i)
			if c[k] == "" && (ci == nil || device(ci) != k) {
				i++
				return k
			}
		}
	}
}

func device(ci *v1alpha1.CloudInit) string { return cmp.Or(ci.Device, "ide2") }

func networkCard(n v1alpha1.Network) string {
	out := cmp.Or(string(n.Model), "virtio") + ",bridge=" + n.Bridge
	if n.VLAN != nil {
		out += ",tag=" + strconv.Itoa(int(*n.VLAN))
	}
	if n.MTU != nil {
		out += ",mtu=" + strconv.Itoa(int(*n.MTU))
	}
	if ptr.Deref(n.Firewall, false) {
		out += ",firewall=1"
	}
	return out
}

// validate validates everything that the schema cannot validate.
func validate(p v1alpha1.VirtualMachineParameters, uuid string) error {
	if n := len(notesOf(uuid, p.Attributes)); n > maxNotes {
		return native.Invalid("attributes", "they have %d characters as notes, at most %d are allowed", n, maxNotes)
	}
	for _, k := range slices.Sorted(maps.Keys(p.Attributes)) {
		if !native.IsAttributeName(k) {
			return native.Invalid("attributes", "invalid name %q: must have at most 128 letters, digits and ._/-", k)
		}
		if v := p.Attributes[k]; !native.IsAttributeValue(v) || strings.Contains(v, "`") {
			return native.Invalid("attributes", "invalid value of %s: must be one line of at most 256 characters without a backquote", k)
		}
	}
	for i, n := range p.Networks {
		if n.MTU != nil && n.Model != "" && n.Model != "virtio" {
			return native.Invalid(fmt.Sprintf("networks[%d].mtu", i), "must not be set with model %s: only virtio has one", n.Model)
		}
	}
	return nil
}
