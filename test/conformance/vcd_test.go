package conformance

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/fakes/vcd"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/kit/guest"
)

// cloudDirector is VMware Cloud Director: the provider from its package, and a fake of the API.
type cloudDirector struct {
	entry
	guests
	director *vcd.Director
	server   *httptest.Server

	tasks sync.Mutex
	// failing has the errors of failing tasks, by operation, organization and Machine.
	failing map[string]vcd.Message
}

func init() { register(&cloudDirector{entry: "vcd"}) }

func (d *cloudDirector) Install(ctx context.Context, p *kit.Plane) error {
	d.host, d.failing = newHost(p), map[string]vcd.Message{}
	d.director = vcd.New(vcd.Options{
		QueuedFor: 50 * time.Millisecond, Step: 150 * time.Millisecond, CreateTakes: time.Second, ListedAfter: 500 * time.Millisecond, SessionLasts: time.Minute,
		Boot: d.boot, Stop: d.stop, Reboot: d.reboot,
	})
	d.director.FailTasks(d.failureOf)
	d.server = httptest.NewTLSServer(d.director)
	return installLifted(ctx, p, "vcd")
}

func (d *cloudDirector) Close() {
	if d.server != nil {
		d.server.Close()
	}
}

// boot boots a guest, which reads its user data and its ID in the guest properties.
func (d *cloudDirector) boot(b vcd.Booted) []vcd.Addresses {
	userData, err := base64.StdEncoding.DecodeString(b.Properties["user-data"])
	if err != nil {
		d.host.Failed(err)
		return nil
	}
	ip := d.start(guest.Request{ID: "vcd/" + b.ID, Name: b.Name, UserData: userData, OVFEnvironment: ovfEnvironment(b.Properties)})
	return []vcd.Addresses{{V4: ip, V6: guest.IPv6Of(ip)}, {V4: guest.SecondOf(ip)}}
}

// ovfEnvironment is the document that Cloud Director passes to the guest.
func ovfEnvironment(properties map[string]string) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<Environment xmlns="http://schemas.dmtf.org/ovf/environment/1" xmlns:oe="http://schemas.dmtf.org/ovf/environment/1">` + "\n   <PropertySection>\n")
	for _, k := range slices.Sorted(maps.Keys(properties)) {
		b.WriteString(`         <Property oe:key="` + k + `" oe:value="`)
		_ = xml.EscapeText(&b, []byte(properties[k]))
		b.WriteString("\"/>\n")
	}
	b.WriteString("   </PropertySection>\n</Environment>\n")
	return b.String()
}

func (d *cloudDirector) stop(b vcd.Booted) { d.end("vcd/" + b.ID) }

func (d *cloudDirector) reboot(b vcd.Booted) { d.restart("vcd/" + b.ID) }

func (d *cloudDirector) failureOf(operation, org, vm string) *vcd.Message {
	d.tasks.Lock()
	defer d.tasks.Unlock()
	for machine, m := range d.failing {
		if strings.HasPrefix(operation+"/"+org+"/"+vm, machine+"-") {
			return &m
		}
	}
	return nil
}

// Account returns an organization with the name of the fleet, and its user drover.
func (d *cloudDirector) Account(t *testing.T, f kit.Fleet) Account {
	t.Helper()
	a := &cloudDirectorAccount{cloudDirector: d}
	d.director.AddOrganization(f.Namespace)
	d.director.SetUser(f.Namespace, "drover", vcd.User{Password: "password-of-" + f.Namespace})
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: d.server.Certificate().Raw})
	a.liftedAccount = newLiftedAccount(t, f, "vcd", map[string]any{
		"server": d.server.URL, "organization": f.Namespace, "caBundle": base64.StdEncoding.EncodeToString(ca),
	})
	a.SetCredentials(t, CredentialsRight)
	return a
}

type cloudDirectorAccount struct {
	*cloudDirector
	*liftedAccount
}

var (
	_ OrphanAccount     = &cloudDirectorAccount{}
	_ AllocationAccount = &cloudDirectorAccount{}
	_ RebootAccount     = &cloudDirectorAccount{}
)

// Class returns the class of the example with another network, in which Cloud Director assigns IPv4 and IPv6 addresses.
func (a *cloudDirectorAccount) Class(t *testing.T) *machinev1alpha1.MachineClass {
	t.Helper()
	c := classOf(t, a.fleet, "examples/vcd/machineclass.yaml", a.ProviderConfig())
	setForProvider(t, c, "networks", []any{
		map[string]any{"name": "workers", "ipAllocationMode": "POOL", "secondaryIPAllocationMode": "POOL"},
		map[string]any{"name": "storage", "ipAllocationMode": "POOL"},
	})
	return c
}

func (a *cloudDirectorAccount) VMs(context.Context) ([]VM, error) {
	var out []VM
	for _, vm := range a.director.VMs() {
		if vm.Organization == a.fleet.Namespace {
			userData, err := base64.StdEncoding.DecodeString(vm.Properties["user-data"])
			if err != nil {
				return nil, err
			}
			out = append(out, VM{ID: externalNameIn(vm.Description), Tags: vm.Metadata, UserData: userData})
		}
	}
	return out, nil
}

// externalNameIn returns the external name in a description of Cloud Director.
func externalNameIn(description string) string {
	words := strings.Fields(description)
	if len(words) < 3 || words[0] != "Drover" || words[1] != "VM" {
		return ""
	}
	return words[2]
}

// vcdRefusals are the errors of responses, or of tasks that create VMs, by class.
var vcdRefusals = map[fn.ErrorCode]struct {
	fault vcd.Fault
	task  vcd.Message
}{
	fn.ErrorCapacityExhausted: {task: vcd.Message{Code: "NO_FEASIBLE_PLACEMENT_SOLUTION", Text: "The operation failed because no suitable resource was found."}},
	fn.ErrorQuotaExceeded:     {fault: vcd.Fault{Status: http.StatusBadRequest, Code: "BAD_REQUEST", Message: "The requested operation will exceed the VDC's storage quota: storage policy \"gold\" has 12 MB remaining, requested 40,960 MB"}},
	fn.ErrorInvalidRequest:    {fault: vcd.Fault{Status: http.StatusBadRequest, Code: "BAD_REQUEST", Message: "The network \"x\" does not exist in the virtual data center."}},
	fn.ErrorPermissionDenied:  {fault: vcd.Fault{Status: http.StatusForbidden, Code: "ACCESS_TO_RESOURCE_IS_FORBIDDEN", Message: "Either you need some or all of the following rights [Base] to perform operations [VAPP_CREATE] or the target entity is invalid."}},
	fn.ErrorThrottled:         {fault: vcd.Fault{Status: http.StatusBadRequest, Code: "OPERATION_LIMITS_EXCEEDED", Message: "The maximum number of simultaneous operations for user \"drover\" has been reached."}},
}

func (a *cloudDirectorAccount) Refuse(_ *testing.T, machine string, code fn.ErrorCode) {
	r := vcdRefusals[code]
	if r.task.Text != "" {
		a.failTask(vcd.OperationCreate, machine, r.task)
		return
	}
	r.fault.Call, r.fault.Match = vcd.CreateCall, func(org string, body []byte) bool {
		return org == a.fleet.Namespace && strings.Contains(string(body), `name="`+machine+`-`)
	}
	a.mend[machine] = a.director.Break(r.fault)
}

// failTask makes an operation fail for the VM of a Machine, until Accept.
func (a *cloudDirectorAccount) failTask(operation, machine string, m vcd.Message) {
	a.tasks.Lock()
	defer a.tasks.Unlock()
	key := operation + "/" + a.fleet.Namespace + "/" + machine
	a.failing[key] = m
	a.mend[machine] = func() {
		a.tasks.Lock()
		defer a.tasks.Unlock()
		delete(a.failing, key)
	}
}

// FailAllocation lets the VM be created, and fails to power it on: a VM that is powered off needs no host.
func (a *cloudDirectorAccount) FailAllocation(_ *testing.T, machine string) {
	a.failTask(vcd.OperationPowerOn, machine, vcd.Message{Code: "VC_OPERATION_ERROR", Text: "The available Memory resources in the parent resource pool are insufficient for the operation."})
}

func (*cloudDirectorAccount) ShowsFailure() bool { return true }

// Lose deletes a VM. Its Node remains: there is no cloud-controller-manager that deletes it.
func (a *cloudDirectorAccount) Lose(t *testing.T, id string) {
	t.Helper()
	for _, vm := range a.director.VMs() {
		if externalNameIn(vm.Description) == id {
			a.director.Lose(vm.ID)
			return
		}
	}
	t.Fatalf("there is no VM %s", id)
}

func (a *cloudDirectorAccount) SetCredentials(t *testing.T, c Credentials) {
	t.Helper()
	password := "password-of-" + a.fleet.Namespace
	if c == CredentialsWrong {
		password = "not-the-password-of-any"
	}
	a.setSecret(t, c, map[string]string{"username": "drover", "password": password})
}

func (a *cloudDirectorAccount) CreateVM(_ *testing.T, name string, tags map[string]string) string {
	id := uuid.NewString()
	a.director.Create(a.fleet.Namespace, "drover", name, "Drover VM "+id+" of installation "+tags[machinev1alpha1.TagInstallation], tags)
	return id
}

// DieAtCreation kills the provider when the task that creates the VM has started.
func (a *cloudDirectorAccount) DieAtCreation(*testing.T) {
	a.director.Break(vcd.Fault{Call: vcd.CreateCall, Times: 1, Lost: true, Then: a.kill, Match: func(org string, _ []byte) bool {
		return org == a.fleet.Namespace
	}})
}

// Leaks returns 0: the provider finds the VM by its name and its description.
func (*cloudDirector) Leaks() int { return 0 }

// Throttle refuses all calls of the account.
func (a *cloudDirectorAccount) Throttle(*testing.T, string) (calls func() int, end func()) {
	n := &atomic.Int64{}
	end = a.director.Break(a.throttled(vcd.Fault{Status: http.StatusTooManyRequests, Message: "Too Many Requests"}, n))
	return func() int { return int(n.Load()) }, end
}

func (a *cloudDirectorAccount) Reboots(_ context.Context, id string) ([]machinev1alpha1.RebootMode, error) {
	for _, vm := range a.director.VMs() {
		if externalNameIn(vm.Description) == id {
			return modesOf(vm.Reboots), nil
		}
	}
	return nil, fmt.Errorf("there is no VM %s", id)
}
