package conformance

import (
	"context"
	"encoding/base64"
	"encoding/pem"
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
	"github.com/drover-dev/drover/test/fakes/nutanix"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/kit/guest"
)

// nutanixAHV is a Prism Central: the provider from its package, and a fake of the API.
type nutanixAHV struct {
	entry
	guests
	prism  *nutanix.Prism
	server *httptest.Server

	tasks sync.Mutex
	// failing has the errors of failing tasks, by operation, project and Machine.
	failing map[string]nutanix.Message
}

func init() { register(&nutanixAHV{entry: "nutanix"}) }

func (n *nutanixAHV) Install(ctx context.Context, p *kit.Plane) error {
	n.host, n.failing = newHost(p), map[string]nutanix.Message{}
	n.prism = nutanix.New(nutanix.Options{
		QueuedFor: 100 * time.Millisecond, Step: 200 * time.Millisecond, CreateTakes: time.Second, ReadableAfter: 300 * time.Millisecond, ListedAfter: 500 * time.Millisecond,
		Boot: n.boot, Stop: n.stop, Reboot: n.reboot,
	})
	n.prism.FailTasks(n.failureOf)
	n.server = httptest.NewTLSServer(n.prism)
	return installLifted(ctx, p, "nutanix")
}

func (n *nutanixAHV) Close() {
	if n.server != nil {
		n.server.Close()
	}
}

// boot boots a guest, whose kubelet reads the UUID in its SMBIOS.
func (n *nutanixAHV) boot(b nutanix.Booted) string {
	return n.start(guest.Request{ID: "nutanix/" + b.UUID, Name: b.Name, UserData: []byte(b.UserData), SystemUUID: strings.ToUpper(b.UUID)})
}

func (n *nutanixAHV) stop(b nutanix.Booted) { n.end("nutanix/" + b.UUID) }

func (n *nutanixAHV) reboot(b nutanix.Booted) { n.restart("nutanix/" + b.UUID) }

func (n *nutanixAHV) failureOf(operation, project, vm string) *nutanix.Message {
	n.tasks.Lock()
	defer n.tasks.Unlock()
	for machine, m := range n.failing {
		if strings.HasPrefix(operation+"/"+project+"/"+vm, machine+"-") {
			return &m
		}
	}
	return nil
}

// Account returns a user and a project with the name of the fleet. The user sees the VMs of the project only.
func (n *nutanixAHV) Account(t *testing.T, f kit.Fleet) Account {
	t.Helper()
	a := &nutanixAccount{nutanixAHV: n, project: uuid.NewString()}
	n.prism.AddProject(a.project, f.Namespace)
	n.prism.SetUser(f.Namespace, nutanix.User{Password: "password-of-" + f.Namespace, Projects: []string{a.project}})
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: n.server.Certificate().Raw})
	a.liftedAccount = newLiftedAccount(t, f, "nutanix", map[string]any{"server": n.server.URL, "caBundle": base64.StdEncoding.EncodeToString(ca)})
	a.SetCredentials(t, CredentialsRight)
	return a
}

type nutanixAccount struct {
	*nutanixAHV
	*liftedAccount
	// project is the UUID of the project.
	project string
}

var (
	_ OrphanAccount     = &nutanixAccount{}
	_ AllocationAccount = &nutanixAccount{}
	_ RebootAccount     = &nutanixAccount{}
)

// Class returns the class of the example, with the project of the account.
func (a *nutanixAccount) Class(t *testing.T) *machinev1alpha1.MachineClass {
	t.Helper()
	c := classOf(t, a.fleet, "examples/nutanix/machineclass.yaml", a.ProviderConfig())
	setForProvider(t, c, "project", a.fleet.Namespace)
	return c
}

func (a *nutanixAccount) VMs(context.Context) ([]VM, error) {
	var out []VM
	for _, vm := range a.prism.VMs() {
		if vm.Project == a.project {
			tags := attributesOfNotes(vm.Description)
			out = append(out, VM{ID: externalNameOf(vm.Description), Tags: tags, UserData: []byte(vm.UserData)})
		}
	}
	return out, nil
}

// externalNameOf returns the external name in a description.
func externalNameOf(description string) string {
	for _, line := range strings.Split(description, "\n") {
		if id, ok := strings.CutPrefix(line, "drover-vm: "); ok {
			return id
		}
	}
	return ""
}

// nutanixRefusals are the errors of responses, or of tasks that create VMs, by class.
var nutanixRefusals = map[fn.ErrorCode]struct {
	fault nutanix.Fault
	task  nutanix.Message
}{
	fn.ErrorCapacityExhausted: {task: nutanix.Message{Code: "VMM-30128", Group: "INSUFFICIENT_RESOURCES_ERROR", Text: "Failed to perform the operation 'VmPowerOn', as no host has enough resources."}},
	fn.ErrorQuotaExceeded:     {task: nutanix.Message{Code: "VMM-30102", Group: "PROJECT_QUOTA_EXCEEDED", Text: "The quota of the project is exceeded."}},
	fn.ErrorInvalidRequest:    {fault: nutanix.Fault{Status: http.StatusBadRequest, Code: "VMM-30102 VM_INVALID_ARGUMENT", Message: "Failed to perform the operation on the VM with UUID 'EMPTY', due to an invalid argument with key 'subnet' and value 'x'."}},
	fn.ErrorPermissionDenied:  {fault: nutanix.Fault{Status: http.StatusForbidden, Code: "VMM-30000 ACCESS_DENIED", Message: "No permission to access the resource."}},
	fn.ErrorThrottled:         {fault: nutanix.Fault{Status: http.StatusTooManyRequests, Message: "Too Many Requests"}},
}

func (a *nutanixAccount) Refuse(_ *testing.T, machine string, code fn.ErrorCode) {
	r := nutanixRefusals[code]
	if r.task.Text != "" {
		a.failTask("VmCreate", machine, r.task)
		return
	}
	r.fault.Call, r.fault.Match = nutanix.CreateCall, func(project string, body []byte) bool {
		return project == a.fleet.Namespace && strings.Contains(string(body), machinev1alpha1.TagMachine+": "+machine+`\n`)
	}
	a.mend[machine] = a.prism.Break(r.fault)
}

// failTask makes an operation fail for the VM of a Machine, until Accept.
func (a *nutanixAccount) failTask(operation, machine string, m nutanix.Message) {
	a.tasks.Lock()
	defer a.tasks.Unlock()
	key := operation + "/" + a.project + "/" + machine
	a.failing[key] = m
	a.mend[machine] = func() {
		a.tasks.Lock()
		defer a.tasks.Unlock()
		delete(a.failing, key)
	}
}

// FailAllocation lets the VM be created, and fails to power it on: a VM that is powered off needs no host.
func (a *nutanixAccount) FailAllocation(_ *testing.T, machine string) {
	a.failTask("VmPowerOn", machine, nutanixRefusals[fn.ErrorCapacityExhausted].task)
}

func (*nutanixAccount) ShowsFailure() bool { return true }

// Lose deletes a VM. Its Node remains: there is no cloud-controller-manager that deletes it.
func (a *nutanixAccount) Lose(t *testing.T, id string) {
	t.Helper()
	for _, vm := range a.prism.VMs() {
		if externalNameOf(vm.Description) == id {
			a.prism.Lose(vm.UUID)
			return
		}
	}
	t.Fatalf("there is no VM %s", id)
}

func (a *nutanixAccount) SetCredentials(t *testing.T, c Credentials) {
	t.Helper()
	password := "password-of-" + a.fleet.Namespace
	if c == CredentialsWrong {
		password = "not-the-password-of-any"
	}
	a.setSecret(t, c, map[string]string{"username": a.fleet.Namespace, "password": password})
}

func (a *nutanixAccount) CreateVM(_ *testing.T, name string, tags map[string]string) string {
	id := uuid.NewString()
	lines := []string{"drover-vm: " + id}
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		lines = append(lines, k+": "+tags[k])
	}
	a.prism.Create(name, a.project, strings.Join(lines, "\n"))
	return id
}

// DieAtCreation kills the provider when the task that creates the VM has started.
func (a *nutanixAccount) DieAtCreation(*testing.T) {
	a.prism.Break(nutanix.Fault{Call: nutanix.CreateCall, Times: 1, Lost: true, Then: a.kill, Match: func(project string, _ []byte) bool {
		return project == a.fleet.Namespace
	}})
}

// Leaks returns 0: the provider finds the VM by its description, and repeats a creation with the same request ID.
func (*nutanixAHV) Leaks() int { return 0 }

// Throttle refuses all calls of the account.
func (a *nutanixAccount) Throttle(*testing.T, string) (calls func() int, end func()) {
	n := &atomic.Int64{}
	end = a.prism.Break(a.throttled(nutanixRefusals[fn.ErrorThrottled].fault, n))
	return func() int { return int(n.Load()) }, end
}

func (a *nutanixAccount) Reboots(_ context.Context, id string) ([]machinev1alpha1.RebootMode, error) {
	for _, vm := range a.prism.VMs() {
		if externalNameOf(vm.Description) == id {
			return modesOf(a.prism.Reboots(vm.UUID)), nil
		}
	}
	return nil, fmt.Errorf("there is no VM %s", id)
}
