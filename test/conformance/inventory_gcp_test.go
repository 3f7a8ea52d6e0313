package conformance

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/drover-dev/drover/test/conformance/simulator"
	"github.com/drover-dev/drover/test/fakes/gcptest"
)

const (
	gcpProject = "my-project"
	gcpZone    = "europe-west4-a"
	// VMs that no provider created are in a zone that no collector has in its spec.forProvider.
	otherZone = "europe-west4-c"
)

// startGoogleCloud starts a fake of the API, with a service account that is allowed the lists of
// the project.
func startGoogleCloud(t *testing.T, s *simulated, fleet string) fakeAPI {
	t.Helper()
	state := &gcpState{cloud: s, fleet: fleet}
	cloud := gcptest.New(gcptest.Options{State: state, Project: gcpProject, RateLimit: 100, Refill: 50 * time.Millisecond})
	const account = "inventory@" + gcpProject + ".iam.gserviceaccount.com"
	cloud.Grant(account, gcptest.Viewer...)
	server := httptest.NewServer(cloud)
	t.Cleanup(server.Close)
	secret, _, err := cloud.NewKey(account, server.URL)
	must(t, err)
	in := func(zone string) map[string]any { return map[string]any{"zone": zone} }
	return fakeAPI{
		secret:      secret,
		spec:        map[string]any{"projectID": gcpProject, "endpoint": server.URL},
		place:       in(gcpZone),
		forProvider: func(string) map[string]any { return in(otherZone) },
		leave:       state.leave,
	}
}

// gcpState provides the content of the project.
type gcpState struct {
	cloud *simulated
	fleet string

	mu sync.Mutex
	// left are the disks that no VM uses.
	left []gcptest.Resource
}

var gcpStatuses = map[simulator.State]string{
	simulator.Starting: "STAGING", simulator.Running: "RUNNING", simulator.Interrupted: "TERMINATED",
}

func (g *gcpState) VMs() []gcptest.VM {
	var out []gcptest.VM
	for _, vm := range g.cloud.simulator.VMs(g.fleet) {
		zone, _ := vm.ForProvider["zone"].(string)
		i := gcptest.VM{
			Name: vm.ID, Zone: zone, Labels: vm.Tags, Status: gcpStatuses[vm.State], CreatedAt: vm.CreatedAt,
			Metadata: map[string]string{"user-data": string(vm.UserData)},
		}
		if vm.State == simulator.Interrupted {
			i.StatusMessage = "Instance was preempted."
		}
		out = append(out, i)
	}
	return out
}

// Resources returns the data disks. The cloud has no other resources beside the VMs.
func (g *gcpState) Resources() []gcptest.Resource {
	g.mu.Lock()
	out := slices.Clone(g.left)
	g.mu.Unlock()
	for _, c := range g.cloud.simulator.Companions(g.fleet) {
		zone, _ := c.ForProvider["zone"].(string)
		r := gcptest.Resource{Type: gcptest.Disk, Name: c.Name, Location: zone, Labels: map[string]string{}}
		labels, _ := c.ForProvider["labels"].(map[string]any)
		for k, v := range labels {
			r.Labels[k] = fmt.Sprint(v)
		}
		if c.UsedBy != "" {
			r.User = gcptest.Link(gcpProject, zone, c.UsedBy)
		}
		out = append(out, r)
	}
	return out
}

// leave creates a data disk that no VM uses.
func (g *gcpState) leave(name string, labels map[string]string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left = append(g.left, gcptest.Resource{Type: gcptest.Disk, Name: name, Location: otherZone, Labels: labels})
	return "projects/" + gcpProject + "/zones/" + otherZone + "/disks/" + name
}
