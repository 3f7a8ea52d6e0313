package conformance

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/fakes/hcloud"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/kit/guest"
)

// hetzner is Hetzner Cloud: the real provider, from its package, against a fake of the
// API.
type hetzner struct {
	entry
	guests
	cloud  *hcloud.Cloud
	server *httptest.Server
}

func init() { register(&hetzner{entry: "hcloud"}) }

func (h *hetzner) Install(ctx context.Context, p *kit.Plane) error {
	h.serve(p)
	return installLifted(ctx, p, "hcloud")
}

// serve starts the fake of the API.
func (h *hetzner) serve(p *kit.Plane) {
	h.host = newHost(p)
	h.cloud = hcloud.New(hcloud.Options{Step: 500 * time.Millisecond, Boot: h.boot, Stop: h.stop, Reboot: h.reboot})
	h.server = httptest.NewServer(h.cloud)
}

func (h *hetzner) Close() {
	if h.server != nil {
		h.server.Close()
	}
}

func (h *hetzner) boot(b hcloud.Booted) {
	id := fmt.Sprint(b.ID)
	ip := h.start(guest.Request{
		ID: "hcloud/" + id, Name: b.Name, UserData: []byte(b.UserData), ProviderID: "hcloud://" + id,
		Metadata: answer("/hetzner/v1/metadata/instance-id", id),
	})
	h.cloud.SetPrivateIP(b.ID, ip)
}

func (h *hetzner) stop(b hcloud.Booted) { h.end("hcloud/" + fmt.Sprint(b.ID)) }

func (h *hetzner) reboot(b hcloud.Booted) { h.restart("hcloud/" + fmt.Sprint(b.ID)) }

// Account returns an account in a project with the name of the fleet.
func (h *hetzner) Account(t *testing.T, f kit.Fleet) Account {
	t.Helper()
	a := &hetznerAccount{hetzner: h}
	h.cloud.SetToken("token-of-"+f.Namespace, f.Namespace, false)
	a.liftedAccount = newLiftedAccount(t, f, "hcloud", map[string]any{"endpoint": h.server.URL + "/v1"})
	a.SetCredentials(t, CredentialsRight)
	return a
}

type hetznerAccount struct {
	*hetzner
	*liftedAccount
}

var (
	_ OrphanAccount = &hetznerAccount{}
	_ RebootAccount = &hetznerAccount{}
)

func (a *hetznerAccount) Class(t *testing.T) *machinev1alpha1.MachineClass {
	t.Helper()
	return classOf(t, a.fleet, "examples/hcloud/machineclass.yaml", a.ProviderConfig())
}

func (a *hetznerAccount) VMs(context.Context) ([]VM, error) {
	var out []VM
	for _, s := range a.cloud.Servers(a.fleet.Namespace) {
		if s.Status != "deleting" {
			out = append(out, VM{ID: fmt.Sprint(s.ID), Tags: s.Labels, UserData: []byte(a.cloud.UserData(s.ID))})
		}
	}
	return out, nil
}

// refusals of Hetzner's API, by error class.
var refusals = map[fn.ErrorCode]hcloud.Fault{
	fn.ErrorCapacityExhausted: {Status: http.StatusPreconditionFailed, Code: "resource_unavailable", Message: "error during placement"},
	fn.ErrorQuotaExceeded:     {Status: http.StatusForbidden, Code: "resource_limit_exceeded", Message: "server limit exceeded"},
	fn.ErrorInvalidRequest:    {Status: http.StatusUnprocessableEntity, Code: "invalid_input", Message: "invalid input in field 'image'"},
	fn.ErrorPermissionDenied:  {Status: http.StatusForbidden, Code: "forbidden", Message: "insufficient permissions for this request"},
	// The pause is longer than the provider waits.
	fn.ErrorThrottled: {Status: http.StatusTooManyRequests, Code: "rate_limit_exceeded", Message: "limit of 3600 requests per hour reached", RetryAfter: "35"},
}

func (a *hetznerAccount) Refuse(t *testing.T, machine string, code fn.ErrorCode) {
	t.Helper()
	fault := refusals[code]
	fault.Call, fault.Match = "POST /servers", a.asksFor(machine)
	a.mend[machine] = a.cloud.Break(fault)
}

// Lose deletes a server, and its Node as Hetzner's cloud-controller-manager would.
func (a *hetznerAccount) Lose(t *testing.T, id string) {
	t.Helper()
	var n int64
	_, err := fmt.Sscan(id, &n)
	must(t, err)
	a.cloud.Lose(n)
	a.deleteNode(t, "hcloud/"+id)
}

func (a *hetznerAccount) SetCredentials(t *testing.T, c Credentials) {
	t.Helper()
	token := "token-of-" + a.fleet.Namespace
	if c == CredentialsWrong {
		token = "not-the-token-of-any-project"
	}
	a.setSecret(t, c, map[string]string{"token": token})
}

func (a *hetznerAccount) CreateVM(_ *testing.T, name string, tags map[string]string) string {
	return fmt.Sprint(a.cloud.Create(a.fleet.Namespace, name, tags))
}

func (a *hetznerAccount) DieAtCreation(*testing.T) {
	a.cloud.Break(hcloud.Fault{
		Call: "POST /servers", Times: 1, Lost: true, Then: a.kill,
		Match: func(project string, _ []byte) bool { return project == a.fleet.Namespace },
	})
}

// Leaks returns 0: the provider finds a server by its tags.
func (*hetzner) Leaks() int { return 0 }

func (a *hetznerAccount) Throttle(*testing.T, string) (calls func() int, end func()) {
	n := &atomic.Int64{}
	end = a.cloud.Break(a.throttled(refusals[fn.ErrorThrottled], n))
	return func() int { return int(n.Load()) }, end
}

func (a *hetznerAccount) Reboots(_ context.Context, id string) ([]machinev1alpha1.RebootMode, error) {
	n, err := strconv.ParseInt(id, 10, 64)
	return modesOf(a.cloud.Reboots(n)), err
}
