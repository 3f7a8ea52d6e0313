package hcloud

import (
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"
)

var locations = []schema.Location{
	{ID: 1, Name: "fsn1", City: "Falkenstein", Country: "DE", NetworkZone: "eu-central"},
	{ID: 2, Name: "nbg1", City: "Nuremberg", Country: "DE", NetworkZone: "eu-central"},
	{ID: 3, Name: "hel1", City: "Helsinki", Country: "FI", NetworkZone: "eu-central"},
}

var serverTypes = []schema.ServerType{
	serverType(1, "cpx21", "x86", 3, 4, 80),
	serverType(2, "cpx31", "x86", 4, 8, 160),
	serverType(3, "cax21", "arm", 4, 8, 80),
}

func serverType(id int64, name, architecture string, cores int, memory float32, disk int) schema.ServerType {
	t := schema.ServerType{ID: id, Name: name, Architecture: architecture, Cores: cores, Memory: memory, Disk: disk, StorageType: "local", CPUType: "shared"}
	for _, l := range locations {
		t.Locations = append(t.Locations, schema.ServerTypeLocation{ID: l.ID, Name: l.Name, Available: true})
	}
	return t
}

const (
	networkID  = 4711
	network    = "10.0.0.0/16"
	firewallID = 38
)

var catalogued = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// images of the requested architecture.
func (c *call) images() []schema.Image {
	ubuntu := "ubuntu-24.04"
	all := []schema.Image{
		{ID: 101, Name: &ubuntu, Type: "system", Status: "available", OSFlavor: "ubuntu", Architecture: "x86", Created: &catalogued, Labels: map[string]string{}},
		{ID: 102, Name: &ubuntu, Type: "system", Status: "available", OSFlavor: "ubuntu", Architecture: "arm", Created: &catalogued, Labels: map[string]string{}},
		{ID: 103, Type: "snapshot", Status: "available", OSFlavor: "ubuntu", Architecture: "x86", Created: &catalogued, Labels: map[string]string{}},
	}
	want := c.query.Get("architecture")
	out := []schema.Image{}
	for _, i := range all {
		if want == "" || i.Architecture == want {
			out = append(out, i)
		}
	}
	return out
}
