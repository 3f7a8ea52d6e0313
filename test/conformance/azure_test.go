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

	"github.com/google/uuid"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/fakes/azure"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/kit/guest"
)

// microsoft is Azure: the provider from its package, and a fake of a subscription for each fleet. Microsoft's fake servers and
// model judge each request of the provider.
type microsoft struct {
	entry
	guests

	mu      sync.Mutex
	servers []*httptest.Server
}

func init() { register(&microsoft{entry: "azure"}) }

// Backing returns judgedAPI: see the package azuremodel.
func (*microsoft) Backing() Backing { return judgedAPI }

// ShowsInterruption returns true: a spot VM that Azure takes back is deallocated, if its eviction policy is that.
func (*microsoft) ShowsInterruption() bool { return true }

func (m *microsoft) Install(ctx context.Context, p *kit.Plane) error {
	m.host = newHost(p)
	return installLifted(ctx, p, "azure")
}

func (m *microsoft) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.servers {
		s.Close()
	}
}

func (m *microsoft) boot(b azure.Booted) string {
	return m.start(guest.Request{
		ID: "azure/" + b.ID, Name: b.Name, UserData: b.UserData, Metadata: azureMetadata(b),
		ProviderID: "azure:///subscriptions/" + b.Subscription + "/resourceGroups/" + strings.ToLower(b.Group) + "/providers/Microsoft.Compute/virtualMachines/" + b.Name,
	})
}

func (m *microsoft) stop(b azure.Booted) { m.end("azure/" + b.ID) }

func (m *microsoft) reboot(b azure.Booted) { m.restart("azure/" + b.ID) }

// azureMetadata is the instance metadata service of a VM.
func azureMetadata(b azure.Booted) http.Handler {
	texts := map[string]string{"subscriptionId": strings.ToUpper(b.Subscription), "resourceGroupName": strings.ToUpper(b.Group), "name": b.Name}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := texts[strings.TrimPrefix(r.URL.Path, "/metadata/instance/compute/")]
		switch {
		case r.Header.Get("Metadata") != "true" || r.URL.Query().Get("api-version") == "":
			http.Error(w, "Bad request. Required metadata header not specified", http.StatusBadRequest)
		case !ok:
			http.NotFound(w, r)
		default:
			_, _ = fmt.Fprint(w, text)
		}
	})
}

// Account returns a subscription, and a service principal with the rights of examples/azure/role.json. A request that differs
// from Microsoft's model fails the test.
func (m *microsoft) Account(t *testing.T, f kit.Fleet) Account {
	t.Helper()
	out := &azureAccount{microsoft: m, subscription: uuid.NewString()}
	out.cloud = azure.New(azure.Options{
		Subscription: out.subscription, Step: 500 * time.Millisecond, NetworkStep: 100 * time.Millisecond, ListedAfter: 200 * time.Millisecond,
		Boot: m.boot, Stop: m.stop, Reboot: m.reboot,
		Report: func(err error) { t.Errorf("not as Microsoft describes it: %v", err) },
	})
	out.server = httptest.NewTLSServer(out.cloud)
	m.mu.Lock()
	m.servers = append(m.servers, out.server)
	m.mu.Unlock()
	out.liftedAccount = newLiftedAccount(t, f, "azure", map[string]any{"subscriptionID": out.subscription, "endpoint": out.server.URL, "caBundle": caBundle(out.server)})
	out.SetCredentials(t, CredentialsRight)
	return out
}

type azureAccount struct {
	*microsoft
	*liftedAccount
	subscription string
	cloud        *azure.Cloud
	server       *httptest.Server
}

var (
	_ OrphanAccount  = &azureAccount{}
	_ ConsoleAccount = &azureAccount{}
	_ SpotAccount    = &azureAccount{}
	_ RebootAccount  = &azureAccount{}

	_ AllocationAccount = &azureAccount{}
	_ LeftAccount       = &azureAccount{}
)

// Class returns the class of the example, for VMs with public, IPv6 and several private addresses.
func (a *azureAccount) Class(t *testing.T) *machinev1alpha1.MachineClass {
	t.Helper()
	c := classOf(t, a.fleet, "examples/azure/machineclass.yaml", a.ProviderConfig())
	setForProvider(t, c, "networkInterfaces", []any{map[string]any{"subnetID": a.cloud.Subnet("nodes"), "publicIP": map[string]any{}, "ipv6": true, "privateAddresses": 2}})
	// A VM that is deleted is the case Lost.
	setForProvider(t, c, "spot", map[string]any{"evictionPolicy": "Deallocate"})
	return c
}

func (a *azureAccount) VMs(context.Context) ([]VM, error) {
	var out []VM
	for _, v := range a.cloud.Existing() {
		out = append(out, VM{ID: v.Tags[labelOfVM], Tags: v.Tags, UserData: v.UserData})
	}
	return out, nil
}

// azureRefusals are the error responses of Azure, by class.
var azureRefusals = map[fn.ErrorCode]azure.Fault{
	fn.ErrorCapacityExhausted: {Status: http.StatusConflict, Code: "SkuNotAvailable", Message: "The requested VM size for resource 'Following SKUs have failed for Capacity Restrictions: Standard_D4s_v5' is currently not available in location 'westeurope'."},
	fn.ErrorQuotaExceeded:     {Status: http.StatusConflict, Code: "OperationNotAllowed", Message: "Operation could not be completed as it results in exceeding approved standardDSv5Family Cores quota. Additional details - Deployment Model: Resource Manager, Location: westeurope, Current Limit: 10."},
	fn.ErrorInvalidRequest:    {Status: http.StatusNotFound, Code: "PlatformImageNotFound", Message: "The platform image 'Canonical:ubuntu-24_04-lts:x:latest' is not available. Verify that all fields in the storage profile are correct."},
	fn.ErrorPermissionDenied:  {Status: http.StatusForbidden, Code: "AuthorizationFailed", Message: "The client does not have authorization to perform action 'Microsoft.Compute/virtualMachines/write' over scope '/subscriptions/x/resourceGroups/production-nodes' or the scope is invalid."},
	fn.ErrorThrottled:         {Status: http.StatusTooManyRequests, Code: "TooManyRequests", Message: "The server rejected the request because too many requests have been received for this subscription."},
}

// Refuse refuses creations of VMs.
func (a *azureAccount) Refuse(_ *testing.T, machine string, code fn.ErrorCode) {
	match := azure.OfTag(machinev1alpha1.TagMachine, machine)
	fault := azureRefusals[code]
	fault.Call, fault.Match = azure.CreateVM, func(_ string, body []byte) bool { return match(body) }
	a.mend[machine] = a.cloud.Break(fault)
}

// FailAllocation lets Azure accept a VM, and then have no room for it: the VM stays, in the state Failed.
func (a *azureAccount) FailAllocation(_ *testing.T, machine string) {
	a.mend[machine] = a.cloud.Fail(azure.Failure{
		Code: "ZonalAllocationFailed", Match: azure.OfTag(machinev1alpha1.TagMachine, machine),
		Message: "Allocation failed. We do not have sufficient capacity for the requested VM size in this zone.",
	})
}

// ShowsFailure returns true: the provider reads the states of a VM that failed.
func (*azureAccount) ShowsFailure() bool { return true }

// Lose deletes a VM, and its Node as the cloud-controller-manager of Azure does it.
func (a *azureAccount) Lose(t *testing.T, id string) {
	t.Helper()
	v := a.vm(id)
	a.cloud.Lose(v.Name)
	a.deleteNode(t, "azure/"+v.ID)
}

// vm returns the VM with an external name.
func (a *azureAccount) vm(id string) azure.VM {
	for _, v := range a.cloud.Existing() {
		if v.Tags[labelOfVM] == id {
			return v
		}
	}
	return azure.VM{}
}

func (a *azureAccount) SetCredentials(t *testing.T, c Credentials) {
	t.Helper()
	secret := a.cloud.NewSecret(azure.Client)
	if c == CredentialsWrong {
		a.cloud.Revoke(azure.Client, secret)
	}
	credentials := map[string]string{}
	must(t, json.Unmarshal(a.cloud.Credentials(azure.Client, secret, a.server.URL), &credentials))
	a.setSecret(t, c, credentials)
}

func (a *azureAccount) CreateVM(_ *testing.T, name string, tags map[string]string) string {
	all := map[string]string{labelOfVM: "vm-of-" + name}
	maps.Copy(all, tags)
	a.cloud.Create(name, all)
	return all[labelOfVM]
}

// Leave creates a disk that no VM uses.
func (a *azureAccount) Leave(_ *testing.T, name string, tags map[string]string) string {
	return a.cloud.AddDisk(name, tags)
}

// DieAtCreation kills the provider when Azure has accepted the VM.
func (a *azureAccount) DieAtCreation(*testing.T) {
	a.cloud.Break(azure.Fault{Call: azure.CreateVM, Times: 1, Lost: true, Then: a.kill})
}

// Leaks returns 0: the provider finds the VM by its tag.
func (*microsoft) Leaks() int { return 0 }

func (a *azureAccount) Throttle(*testing.T, string) (calls func() int, end func()) {
	n := &atomic.Int64{}
	fault := azureRefusals[fn.ErrorThrottled]
	fault.Match = func(string, []byte) bool { n.Add(1); return true }
	end = a.cloud.Break(fault)
	return func() int { return int(n.Load()) }, end
}

func (a *azureAccount) Write(id, line string) { a.cloud.SetConsole(a.vm(id).Name, line+"\n") }

func (a *azureAccount) ConsoleReads(_ context.Context, id string) (int, error) {
	return a.cloud.ConsoleReads(a.vm(id).Name), nil
}

func (*azureAccount) CanInterrupt() bool { return true }

// Interrupt takes a spot VM back.
func (a *azureAccount) Interrupt(_ *testing.T, id string) { a.cloud.Evict(a.vm(id).Name) }

func (a *azureAccount) Reboots(_ context.Context, id string) ([]machinev1alpha1.RebootMode, error) {
	v := a.vm(id)
	if v.ID == "" {
		return nil, errors.New("there is no VM " + id)
	}
	return modesOf(v.Reboots), nil
}
