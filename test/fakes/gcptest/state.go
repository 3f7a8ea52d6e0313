package gcptest

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// A VM that exists.
type VM struct {
	Name   string
	Zone   string
	Labels map[string]string
	// Status, such as PROVISIONING, RUNNING or TERMINATED. Default: RUNNING.
	Status        string
	StatusMessage string
	CreatedAt     time.Time
	// Metadata of the instance, such as its user-data.
	Metadata map[string]string
	// Fields of the instance beside these, as the API has them. They replace those of the same name.
	Fields map[string]any
}

// Types of a [Resource].
const (
	Disk    = "disks"
	Address = "addresses"

	instance = "instances"
)

// A Resource that exists beside the VMs.
type Resource struct {
	Type string
	Name string
	// Zone of a disk, or region of an address.
	Location string
	Labels   map[string]string
	// Status. Default: READY of a disk, RESERVED or IN_USE of an address.
	Status    string
	CreatedAt time.Time
	// User is the link of the VM or other resource that uses it: see [Link].
	User string
}

// A State provides what exists at the moment. Its methods may be called concurrently.
type State interface {
	VMs() []VM
	Resources() []Resource
}

// Memory is a State that a test sets.
type Memory struct {
	mu        sync.Mutex
	vms       []VM
	resources []Resource
}

// Set replaces the VMs and resources.
func (m *Memory) Set(vms []VM, resources ...Resource) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.vms, m.resources = slices.Clone(vms), slices.Clone(resources)
}

// VMs that exist.
func (m *Memory) VMs() []VM {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.vms)
}

// Resources that exist.
func (m *Memory) Resources() []Resource {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.resources)
}

const root = "https://www.googleapis.com/compute/v1/projects/"

// Link returns the link of a VM, which its disks have as their user.
func Link(project, zone, name string) string {
	return root + project + "/zones/" + zone + "/instances/" + name
}

// entry of an aggregated list, in its scope: zones/x or regions/x.
type entry struct {
	scope string
	value map[string]any
}

// entries of a collection, in the order of their scopes and names.
func (c *Cloud) entries(collection string) []entry {
	var out []entry
	if collection == instance {
		for _, vm := range c.opts.State.VMs() {
			out = append(out, c.instance(vm))
		}
	}
	for _, r := range c.opts.State.Resources() {
		if r.Type == collection {
			out = append(out, c.resource(r))
		}
	}
	slices.SortStableFunc(out, func(a, b entry) int {
		return strings.Compare(a.scope+"/"+a.value["name"].(string), b.scope+"/"+b.value["name"].(string))
	})
	return out
}

// instance: https://cloud.google.com/compute/docs/reference/rest/v1/instances.
func (c *Cloud) instance(vm VM) entry {
	var metadata []any
	for k, v := range vm.Metadata {
		metadata = append(metadata, map[string]any{"key": k, "value": v})
	}
	value := c.base("compute#instance", "zones/"+vm.Zone, instance, vm.Name, vm.Labels, vm.CreatedAt)
	value["zone"] = root + c.opts.Project + "/zones/" + vm.Zone
	value["status"] = vm.Status
	if vm.Status == "" {
		value["status"] = "RUNNING"
	}
	if vm.StatusMessage != "" {
		value["statusMessage"] = vm.StatusMessage
	}
	value["machineType"] = root + c.opts.Project + "/zones/" + vm.Zone + "/machineTypes/e2-standard-4"
	value["metadata"] = map[string]any{"kind": "compute#metadata", "items": metadata}
	maps.Copy(value, vm.Fields)
	return entry{"zones/" + vm.Zone, value}
}

// resource: https://cloud.google.com/compute/docs/reference/rest/v1/disks and
// https://cloud.google.com/compute/docs/reference/rest/v1/addresses.
func (c *Cloud) resource(r Resource) entry {
	kind, scope, status := "compute#disk", "zones/"+r.Location, "READY"
	if r.Type == Address {
		kind, scope, status = "compute#address", "regions/"+r.Location, "RESERVED"
	}
	value := c.base(kind, scope, r.Type, r.Name, r.Labels, r.CreatedAt)
	if r.User != "" {
		value["users"] = []any{r.User}
		if r.Type == Address {
			status = "IN_USE"
		}
	}
	if r.Status != "" {
		status = r.Status
	}
	value["status"] = status
	return entry{scope, value}
}

func (c *Cloud) base(kind, scope, collection, name string, labels map[string]string, createdAt time.Time) map[string]any {
	id := fnv.New64()
	_, _ = id.Write([]byte(scope + name))
	value := map[string]any{
		"kind": kind, "id": fmt.Sprint(id.Sum64()), "name": name, "creationTimestamp": createdAt.Format("2006-01-02T15:04:05.000-07:00"),
		"selfLink": root + c.opts.Project + "/" + scope + "/" + collection + "/" + name, "labelFingerprint": "42WmSpB8rSM=",
	}
	if len(labels) > 0 {
		all := map[string]any{}
		for k, v := range labels {
			all[k] = v
		}
		value["labels"] = all
	}
	return value
}
