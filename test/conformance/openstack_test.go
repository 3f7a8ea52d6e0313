package conformance

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/fakes/openstack"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/kit/guest"
)

// openStack is an OpenStack: the real provider, from its package, against a fake of the
// APIs, whose answers are compared with recorded ones of a real OpenStack.
type openStack struct {
	entry
	guests
	cloud  *openstack.Cloud
	server *httptest.Server
}

func init() { register(&openStack{entry: "openstack"}) }

func (*openStack) Backing() Backing { return recordedAPI }

func (o *openStack) Install(ctx context.Context, p *kit.Plane) error {
	o.serve(p)
	return installOpenStack(ctx, p)
}

// installOpenStack installs provider-openstack, for the fake and for the real OpenStack.
func installOpenStack(ctx context.Context, p *kit.Plane) error {
	return installProvider(ctx, p, "openstack", "VirtualMachine", "Port", "FloatingIP", "VirtualMachineInventory", "ClusterProviderConfig")
}

// serve starts the fake of the APIs.
func (o *openStack) serve(p *kit.Plane) {
	o.host = newHost(p)
	o.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { o.cloud.ServeHTTP(w, r) }))
	o.cloud = openstack.New(openstack.Options{
		URL: "http://" + o.server.Listener.Addr().String(), Step: 500 * time.Millisecond, Boot: o.boot, Stop: o.stop, Reboot: o.reboot,
	})
	o.server.Start()
}

func (o *openStack) Close() {
	if o.server != nil {
		o.server.Close()
	}
}

func (o *openStack) boot(b openstack.Booted) {
	ip := o.start(guest.Request{
		ID: "openstack/" + b.ID, Name: b.Name, UserData: []byte(b.UserData), ProviderID: "openstack:///" + b.ID,
		Metadata: answer("/openstack/latest/meta_data.json", fmt.Sprintf(`{"random_seed": "c2VlZA==", "uuid": %q, "name": %q, "launch_index": 0}`, b.ID, b.Name)),
	})
	o.cloud.SetIP(b.ID, ip)
	o.cloud.SetIPv6(b.ID, guest.IPv6Of(ip))
}

func (o *openStack) stop(b openstack.Booted) { o.end("openstack/" + b.ID) }

func (o *openStack) reboot(b openstack.Booted) { o.restart("openstack/" + b.ID) }

// Account returns an account in a project whose application credential has the name of the fleet.
func (o *openStack) Account(t *testing.T, f kit.Fleet) Account {
	t.Helper()
	a := &openStackAccount{openStack: o}
	o.cloud.SetCredential(f.Namespace, f.Namespace)
	a.liftedAccount = newLiftedAccount(t, f, "openstack", map[string]any{"authURL": o.server.URL + "/identity/v3"})
	a.SetCredentials(t, CredentialsRight)
	return a
}

type openStackAccount struct {
	*openStack
	*liftedAccount
}

var (
	_ OrphanAccount    = &openStackAccount{}
	_ ConsoleAccount   = &openStackAccount{}
	_ CompanionAccount = &openStackAccount{}
	_ RebootAccount    = &openStackAccount{}
)

func (a *openStackAccount) Write(id, line string) { a.cloud.SetConsole(id, line+"\n") }

func (a *openStackAccount) ConsoleReads(_ context.Context, id string) (int, error) {
	return a.cloud.ConsoleReads(id), nil
}

// plainCases have VMs whose ports Nova creates. The VMs of all other cases have a port and a floating IP of
// their own. In the case Restart the VM that is left would have the port of a Machine that is deleted.
var plainCases = []string{CaseWrongField, CaseOrphan, CaseRestart, CaseCredentials}

func (a *openStackAccount) Class(t *testing.T) *machinev1alpha1.MachineClass {
	t.Helper()
	return classOf(t, a.fleet, exampleOf(t), a.ProviderConfig())
}

// exampleOf returns the file of the class of a case.
func exampleOf(t *testing.T) string {
	t.Helper()
	if slices.ContainsFunc(plainCases, func(name string) bool { return strings.HasSuffix(t.Name(), "/"+name) }) {
		return "examples/openstack/machineclass.yaml"
	}
	return "examples/openstack/machineclass-ports.yaml"
}

// Beside returns the ports and floating IPs that Nova did not create.
func (a *openStackAccount) Beside(context.Context) (things, torn []string) {
	for _, p := range a.cloud.Ports(a.fleet.Namespace) {
		if !p.ByNova {
			things = append(things, "port "+p.Name)
		}
	}
	for _, f := range a.cloud.FloatingIPs(a.fleet.Namespace) {
		things = append(things, "floating IP "+f.Address)
	}
	return things, a.cloud.Torn(a.fleet.Namespace)
}

func (a *openStackAccount) VMs(context.Context) ([]VM, error) {
	var out []VM
	for _, s := range a.cloud.Servers(a.fleet.Namespace) {
		if !s.Deleting {
			out = append(out, VM{ID: s.ID, Tags: s.Metadata, UserData: []byte(s.UserData)})
		}
	}
	return out, nil
}

// openstackRefusals are the errors of Nova, by error class.
var openstackRefusals = map[fn.ErrorCode]openstack.Fault{
	fn.ErrorQuotaExceeded:    {Status: http.StatusForbidden, Code: "forbidden", Message: "Quota exceeded for instances: Requested 1, but already used 10 of 10 instances"},
	fn.ErrorInvalidRequest:   {Status: http.StatusBadRequest, Code: "badRequest", Message: "Can not find requested image"},
	fn.ErrorPermissionDenied: {Status: http.StatusForbidden, Code: "forbidden", Message: "Policy doesn't allow os_compute_api:servers:create to be performed."},
	// The pause is longer than the provider waits.
	fn.ErrorThrottled: {Status: http.StatusTooManyRequests, Code: "overLimit", Message: "This request was rate-limited.", RetryAfter: "35"},
}

func (a *openStackAccount) Refuse(_ *testing.T, machine string, code fn.ErrorCode) {
	fault := openstackRefusals[code]
	fault.Call, fault.Match = "POST /compute/v2.1/servers", a.asksFor(machine)
	a.mend[machine] = a.cloud.Break(fault)
}

// Lose deletes a server, and its Node as OpenStack's cloud-controller-manager would.
func (a *openStackAccount) Lose(t *testing.T, id string) {
	t.Helper()
	a.cloud.Lose(id)
	a.deleteNode(t, "openstack/"+id)
}

func (a *openStackAccount) SetCredentials(t *testing.T, c Credentials) {
	t.Helper()
	secret := "secret-of-" + a.fleet.Namespace
	if c == CredentialsWrong {
		secret = "not-the-secret-of-any"
	}
	a.setSecret(t, c, map[string]string{"applicationCredentialID": a.fleet.Namespace, "applicationCredentialSecret": secret})
}

func (a *openStackAccount) CreateVM(_ *testing.T, name string, tags map[string]string) string {
	return a.cloud.Create(a.fleet.Namespace, name, tags)
}

func (a *openStackAccount) DieAtCreation(*testing.T) {
	a.cloud.Break(a.lostCreation())
}

// lostCreation is a fault of the next creation of a server: Nova accepts it, and the provider is killed before it gets the response.
func (a *liftedAccount) lostCreation() openstack.Fault {
	return openstack.Fault{
		Call: "POST /compute/v2.1/servers", Times: 1, Lost: true, Then: a.kill,
		Match: func(project string, _ []byte) bool { return project == a.fleet.Namespace },
	}
}

// Leaks returns 0: the provider finds a server that it did not record by its name and metadata.
func (*openStack) Leaks() int { return 0 }

func (a *openStackAccount) Throttle(*testing.T, string) (calls func() int, end func()) {
	n := &atomic.Int64{}
	end = a.cloud.Break(a.throttled(openstackRefusals[fn.ErrorThrottled], n))
	return func() int { return int(n.Load()) }, end
}

// FailAllocation fails all servers of the project: Nova accepts them, and its scheduler finds no
// host.
func (a *openStackAccount) FailAllocation(_ *testing.T, machine string) {
	a.cloud.SetProjectFull(a.fleet.Namespace, true)
	a.mend[machine] = func() { a.cloud.SetProjectFull(a.fleet.Namespace, false) }
}

func (a *openStackAccount) ShowsFailure() bool { return true }

func (a *openStackAccount) Reboots(_ context.Context, id string) ([]machinev1alpha1.RebootMode, error) {
	for _, s := range a.cloud.Servers(a.fleet.Namespace) {
		if s.ID == id {
			return rebootModes(s.Reboots), nil
		}
	}
	return nil, nil
}

// rebootModes returns the modes of reboots in the notation of Nova.
func rebootModes(kinds []string) []machinev1alpha1.RebootMode {
	var out []machinev1alpha1.RebootMode
	for _, kind := range kinds {
		out = append(out, map[string]machinev1alpha1.RebootMode{"SOFT": machinev1alpha1.RebootSoft, "HARD": machinev1alpha1.RebootHard}[kind])
	}
	return out
}
