package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/fakes/gcp"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/kit/guest"
)

// googleCloud is Google Cloud: the provider from its package, and a fake of Compute Engine for each project.
type googleCloud struct {
	entry
	guests

	mu      sync.Mutex
	servers []*httptest.Server
}

func init() { register(&googleCloud{entry: "gcp"}) }

// ShowsInterruption returns true: Compute Engine has an operation for an instance that it takes back.
func (*googleCloud) ShowsInterruption() bool { return true }

func (g *googleCloud) Install(ctx context.Context, p *kit.Plane) error {
	g.host = newHost(p)
	return installLifted(ctx, p, "gcp")
}

func (g *googleCloud) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.servers {
		s.Close()
	}
}

func (g *googleCloud) boot(b gcp.Booted) string {
	return g.start(guest.Request{
		ID: "gcp/" + b.ID, Name: b.Name, UserData: []byte(b.UserData), ProviderID: "gce://" + b.Project + "/" + b.Zone + "/" + b.Name, Metadata: googleMetadata(b),
	})
}

func (g *googleCloud) stop(b gcp.Booted) { g.end("gcp/" + b.ID) }

func (g *googleCloud) reboot(b gcp.Booted) { g.restart("gcp/" + b.ID) }

// googleMetadata is the metadata server of an instance.
func googleMetadata(b gcp.Booted) http.Handler {
	texts := map[string]string{"project/project-id": b.Project, "instance/zone": "projects/1/zones/" + b.Zone, "instance/name": b.Name}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := texts[strings.TrimPrefix(r.URL.Path, "/computeMetadata/v1/")]
		switch {
		case r.Header.Get("Metadata-Flavor") != "Google":
			http.Error(w, "Missing Metadata-Flavor:Google header.", http.StatusForbidden)
		case !ok:
			http.NotFound(w, r)
		default:
			_, _ = fmt.Fprint(w, text)
		}
	})
}

// Account returns a project with the name of the fleet, and a service account with the permissions of examples/gcp/role.json.
// A request or an answer that differs from Google's description fails the test.
func (g *googleCloud) Account(t *testing.T, f kit.Fleet) Account {
	t.Helper()
	out := &googleAccount{googleCloud: g}
	out.cloud = gcp.New(gcp.Options{
		Project: f.Namespace, Step: 500 * time.Millisecond, ListedAfter: 200 * time.Millisecond, Boot: g.boot, Stop: g.stop, Reboot: g.reboot,
		Report: func(err error) { t.Errorf("not as Google describes it: %v", err) },
	})
	out.server = httptest.NewServer(out.cloud)
	g.mu.Lock()
	g.servers = append(g.servers, out.server)
	g.mu.Unlock()
	out.liftedAccount = newLiftedAccount(t, f, "gcp", map[string]any{"projectID": f.Namespace, "endpoint": out.server.URL})
	out.SetCredentials(t, CredentialsRight)
	return out
}

type googleAccount struct {
	*googleCloud
	*liftedAccount
	cloud  *gcp.Cloud
	server *httptest.Server
}

var (
	_ OrphanAccount  = &googleAccount{}
	_ ConsoleAccount = &googleAccount{}
	_ SpotAccount    = &googleAccount{}
	_ RebootAccount  = &googleAccount{}

	_ AllocationAccount = &googleAccount{}
	_ LeftAccount       = &googleAccount{}
)

// Class returns the class of the example, for VMs in the project of the fleet, with external and IPv6 addresses.
func (a *googleAccount) Class(t *testing.T) *machinev1alpha1.MachineClass {
	t.Helper()
	c := classOf(t, a.fleet, "examples/gcp/machineclass.yaml", a.ProviderConfig())
	setForProvider(t, c, "networkInterfaces", []any{map[string]any{"subnetwork": "nodes", "externalAddress": map[string]any{}, "stackType": "IPV4_IPV6", "externalIPv6": true}})
	return c
}

func (a *googleAccount) VMs(context.Context) ([]VM, error) {
	var out []VM
	for _, i := range a.cloud.Instances() {
		out = append(out, VM{ID: i.Labels[labelOfVM], Tags: i.Labels, UserData: []byte(i.UserData)})
	}
	return out, nil
}

// googleRefusals are the error responses of Compute Engine, by class.
var googleRefusals = map[fn.ErrorCode]gcp.Fault{
	fn.ErrorQuotaExceeded:    {Status: http.StatusForbidden, Code: "quotaExceeded", Message: "Quota 'CPUS' exceeded.  Limit: 24.0 in region europe-west4."},
	fn.ErrorInvalidRequest:   {Status: http.StatusBadRequest, Code: "invalid", Message: "Invalid value for field 'resource.networkInterfaces[0].network': 'x'. The referenced network resource cannot be found."},
	fn.ErrorPermissionDenied: {Status: http.StatusForbidden, Code: "forbidden", Message: "Required 'compute.instances.create' permission for 'projects/my-project/zones/europe-west4-a/instances/vm'"},
	fn.ErrorThrottled:        {Status: http.StatusForbidden, Code: "rateLimitExceeded", Message: "Quota exceeded for quota metric 'Queries' and limit 'Queries per minute' of service 'compute.googleapis.com'."},
}

// Refuse refuses creations. Compute Engine reports missing capacity in the operation of a creation that it accepted.
func (a *googleAccount) Refuse(_ *testing.T, machine string, code fn.ErrorCode) {
	match := gcp.OfLabel(machinev1alpha1.TagMachine, machine)
	if code == fn.ErrorCapacityExhausted {
		a.mend[machine] = a.failAllocation(machine)
		return
	}
	fault := googleRefusals[code]
	fault.Call, fault.Match = "compute.instances.insert", func(_ string, body []byte) bool { return match(body) }
	a.mend[machine] = a.cloud.Break(fault)
}

// FailAllocation lets Compute Engine accept an instance, and then have no capacity for it.
func (a *googleAccount) FailAllocation(_ *testing.T, machine string) {
	a.mend[machine] = a.failAllocation(machine)
}

// ShowsFailure returns true: the provider follows the operation.
func (*googleAccount) ShowsFailure() bool { return true }

func (a *googleAccount) failAllocation(machine string) (mend func()) {
	return a.cloud.Fail(gcp.Failure{
		Code: "ZONE_RESOURCE_POOL_EXHAUSTED", Match: gcp.OfLabel(machinev1alpha1.TagMachine, machine),
		Message: "The zone 'projects/my-project/zones/europe-west4-a' does not have enough resources available to fulfill the request.  Try a different zone, or try again later.",
	})
}

// Lose deletes an instance, and its Node as the cloud-controller-manager of Google Cloud does it.
func (a *googleAccount) Lose(t *testing.T, id string) {
	t.Helper()
	i := a.instance(id)
	a.cloud.Lose(i.Name)
	a.deleteNode(t, "gcp/"+i.ID)
}

// labelOfVM has the external name of a VM.
const labelOfVM = "drover-vm"

// instance returns the instance with an external name.
func (a *googleAccount) instance(id string) gcp.Instance {
	for _, i := range a.cloud.Instances() {
		if i.Labels[labelOfVM] == id {
			return i
		}
	}
	return gcp.Instance{}
}

func (a *googleAccount) SetCredentials(t *testing.T, c Credentials) {
	t.Helper()
	key, id, err := a.cloud.NewKey(gcp.Account, a.server.URL)
	must(t, err)
	if c == CredentialsWrong {
		a.cloud.DeleteKey(gcp.Account, id)
	}
	credentials := map[string]string{}
	must(t, json.Unmarshal(key, &credentials))
	a.setSecret(t, c, credentials)
}

func (a *googleAccount) CreateVM(_ *testing.T, name string, tags map[string]string) string {
	labels := map[string]string{labelOfVM: "vm-of-" + name}
	maps.Copy(labels, tags)
	a.cloud.Create(name, gcp.Zones[0], labels)
	return labels[labelOfVM]
}

// Leave creates a disk that no instance uses.
func (a *googleAccount) Leave(_ *testing.T, name string, tags map[string]string) string {
	a.cloud.AddDisk(name, gcp.Zones[0], tags)
	return "projects/" + a.fleet.Namespace + "/zones/" + gcp.Zones[0] + "/disks/" + name
}

// DieAtCreation kills the provider when Compute Engine has accepted the instance.
func (a *googleAccount) DieAtCreation(*testing.T) {
	a.cloud.Break(gcp.Fault{Call: "compute.instances.insert", Times: 1, Lost: true, Then: a.kill})
}

// Leaks returns 0: the provider finds the instance by its label.
func (*googleCloud) Leaks() int { return 0 }

func (a *googleAccount) Throttle(*testing.T, string) (calls func() int, end func()) {
	n := &atomic.Int64{}
	fault := googleRefusals[fn.ErrorThrottled]
	fault.Match = func(string, []byte) bool { n.Add(1); return true }
	end = a.cloud.Break(fault)
	return func() int { return int(n.Load()) }, end
}

func (a *googleAccount) Write(id, line string) { a.cloud.SetConsole(a.instance(id).Name, line+"\n") }

func (a *googleAccount) ConsoleReads(_ context.Context, id string) (int, error) {
	return a.cloud.ConsoleReads(a.instance(id).Name), nil
}

func (*googleAccount) CanInterrupt() bool { return true }

// Interrupt takes a spot VM back.
func (a *googleAccount) Interrupt(_ *testing.T, id string) { a.cloud.Preempt(a.instance(id).Name) }

func (a *googleAccount) Reboots(_ context.Context, id string) ([]machinev1alpha1.RebootMode, error) {
	i := a.instance(id)
	if i.ID == "" {
		return nil, errors.New("there is no instance " + id)
	}
	return modesOf(i.Reboots), nil
}
