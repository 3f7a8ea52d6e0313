package conformance

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/fakes/metalstack"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/kit/guest"
)

// metalStack is metal-stack: the provider from its package, and a fake of the metal-api.
type metalStack struct {
	entry
	guests
	api    *metalstack.API
	server *httptest.Server
}

func init() { register(&metalStack{entry: "metalstack"}) }

func (m *metalStack) Install(ctx context.Context, p *kit.Plane) error {
	m.host = newHost(p)
	m.api = metalstack.New(metalstack.Options{InstallTakes: 1500 * time.Millisecond, WipeTakes: 2 * time.Second, Boot: m.boot, Stop: m.stop, Reboot: m.reboot})
	m.server = httptest.NewTLSServer(m.api)
	return installLifted(ctx, p, "metalstack")
}

func (m *metalStack) Close() {
	if m.server != nil {
		m.server.Close()
	}
}

// boot boots a guest. The cloud-controller-manager metal-ccm writes the providerID of its Node.
func (m *metalStack) boot(b metalstack.Booted) string {
	return m.start(guest.Request{ID: idOfGuest(b), Name: b.Hostname, UserData: []byte(b.Data), ProviderID: "metal://" + b.Partition + "/" + b.ID})
}

func (m *metalStack) stop(b metalstack.Booted) { m.end(idOfGuest(b)) }

func (m *metalStack) reboot(b metalstack.Booted) { m.restart(idOfGuest(b)) }

func idOfGuest(b metalstack.Booted) string { return "metalstack/" + b.ID + "/" + b.Allocation }

// Account returns a user and a project with the name of the fleet. The user has a token of OpenID Connect: the HMAC
// keys of a metal-api are the same for all of its callers.
func (m *metalStack) Account(t *testing.T, f kit.Fleet) Account {
	t.Helper()
	a := &metalStackAccount{metalStack: m, project: uuid.NewString(), network: "nodes-of-" + f.Namespace}
	m.api.AddProject(a.project, f.Namespace, a.network)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: m.server.Certificate().Raw})
	a.liftedAccount = newLiftedAccount(t, f, "metalstack", map[string]any{
		"server": m.server.URL + "/metal", "project": a.project, "caBundle": base64.StdEncoding.EncodeToString(ca),
	})
	a.SetCredentials(t, CredentialsRight)
	return a
}

type metalStackAccount struct {
	*metalStack
	*liftedAccount
	// project is the ID of the project, and network its private network.
	project, network string
}

var (
	_ OrphanAccount = &metalStackAccount{}
	_ RebootAccount = &metalStackAccount{}
)

// Class returns the class of the example, with the private network of the account.
func (a *metalStackAccount) Class(t *testing.T) *machinev1alpha1.MachineClass {
	t.Helper()
	c := classOf(t, a.fleet, "examples/metalstack/machineclass.yaml", a.ProviderConfig())
	setForProvider(t, c, "networks", []any{a.network, metalstack.NetworkInternet})
	return c
}

func (a *metalStackAccount) VMs(context.Context) ([]VM, error) {
	var out []VM
	for _, m := range a.api.Machines() {
		if m.Project != a.project {
			continue
		}
		tags := map[string]string{}
		for _, t := range m.Tags {
			k, v, _ := strings.Cut(t, "=")
			tags[k] = v
		}
		out = append(out, VM{ID: m.ID + "/" + m.Allocation, Tags: tags, UserData: []byte(m.UserData)})
	}
	return out, nil
}

// metalStackRefusals are the error responses of the metal-api, and that of a proxy, by class.
var metalStackRefusals = map[fn.ErrorCode]metalstack.Fault{
	fn.ErrorCapacityExhausted: {Status: http.StatusUnprocessableEntity, Message: "no machine available"},
	fn.ErrorQuotaExceeded:     {Status: http.StatusUnprocessableEntity, Message: "project quota for machines reached max:3"},
	fn.ErrorInvalidRequest:    {Status: http.StatusUnprocessableEntity, Message: "invalid public SSH key: ssh-ed25519 x"},
	fn.ErrorPermissionDenied:  {Status: http.StatusForbidden, Message: "you are not member in one of [kaas-edit]"},
	fn.ErrorThrottled:         {Status: http.StatusTooManyRequests, Code: "proxy", Message: "Too Many Requests"},
}

func (a *metalStackAccount) Refuse(_ *testing.T, machine string, code fn.ErrorCode) {
	fault := metalStackRefusals[code]
	fault.Call, fault.Match = metalstack.CreateCall, func(project string, body []byte) bool {
		return project == a.fleet.Namespace && strings.Contains(string(body), `"`+machinev1alpha1.TagMachine+"="+machine+`"`)
	}
	a.mend[machine] = a.api.Break(fault)
}

// Lose frees a machine, and deletes its Node as metal-ccm does it.
func (a *metalStackAccount) Lose(t *testing.T, id string) {
	t.Helper()
	machine, _, _ := strings.Cut(id, "/")
	a.api.Free(machine)
	a.deleteNode(t, "metalstack/"+id)
}

func (a *metalStackAccount) SetCredentials(t *testing.T, c Credentials) {
	t.Helper()
	token := a.api.Token(a.fleet.Namespace, 24*time.Hour, metalstack.GroupEdit)
	if c == CredentialsWrong {
		// The key of the signature is that of another issuer.
		token = metalstack.New(metalstack.Options{Machines: 1}).Token(a.fleet.Namespace, 24*time.Hour, metalstack.GroupEdit)
	}
	a.setSecret(t, c, map[string]string{"token": token})
}

func (a *metalStackAccount) CreateVM(_ *testing.T, name string, tags map[string]string) string {
	var list []string
	for k, v := range tags {
		list = append(list, k+"="+v)
	}
	id, allocation := a.api.TakeAny(a.project, name, list...)
	return id + "/" + allocation
}

// DieAtCreation kills the provider when the metal-api has allocated the machine.
func (a *metalStackAccount) DieAtCreation(*testing.T) {
	a.api.Break(metalstack.Fault{Call: metalstack.CreateCall, Times: 1, Lost: true, Then: a.kill, Match: func(project string, _ []byte) bool {
		return project == a.fleet.Namespace
	}})
}

// Leaks returns 0: the provider finds the machine by its tag.
func (*metalStack) Leaks() int { return 0 }

func (a *metalStackAccount) Throttle(*testing.T, string) (calls func() int, end func()) {
	n := &atomic.Int64{}
	end = a.api.Break(a.throttled(metalStackRefusals[fn.ErrorThrottled], n))
	return func() int { return int(n.Load()) }, end
}

func (a *metalStackAccount) Reboots(_ context.Context, id string) ([]machinev1alpha1.RebootMode, error) {
	for _, m := range a.api.Machines() {
		if m.ID+"/"+m.Allocation == id {
			return slices.Repeat([]machinev1alpha1.RebootMode{machinev1alpha1.RebootHard}, m.Resets), nil
		}
	}
	return nil, fmt.Errorf("there is no machine %s", id)
}
