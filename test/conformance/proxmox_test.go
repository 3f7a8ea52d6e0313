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
	"github.com/drover-dev/drover/test/fakes/proxmox"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/kit/guest"
)

// proxmoxVE is a cluster of Proxmox VE: the provider from its package, and a fake of the API.
type proxmoxVE struct {
	entry
	guests
	cluster *proxmox.Cluster
	server  *httptest.Server

	tasks sync.Mutex
	// failing has the exit statuses of failing clones, by pool and Machine.
	failing map[string]string
}

func init() { register(&proxmoxVE{entry: "proxmox"}) }

func (v *proxmoxVE) Install(ctx context.Context, p *kit.Plane) error {
	v.host, v.failing = newHost(p), map[string]string{}
	v.cluster = proxmox.New(proxmox.Options{Step: 200 * time.Millisecond, CloneTakes: time.Second, Boot: v.boot, Stop: v.stop, Reboot: v.reboot})
	v.cluster.FailTasks(v.exitStatus)
	v.server = httptest.NewTLSServer(v.cluster)
	if err := installLifted(ctx, p, "proxmox"); err != nil {
		return err
	}
	return acceptGuestAddresses(ctx, p)
}

func (v *proxmoxVE) Close() {
	if v.server != nil {
		v.server.Close()
	}
}

// boot boots a guest, whose kubelet reads the UUID in its SMBIOS.
func (v *proxmoxVE) boot(b proxmox.Booted) string {
	return v.start(guest.Request{ID: "proxmox/" + b.UUID, Name: b.Name, UserData: []byte(b.UserData), SystemUUID: strings.ToUpper(b.UUID)})
}

func (v *proxmoxVE) stop(b proxmox.Booted) { v.end("proxmox/" + b.UUID) }

func (v *proxmoxVE) reboot(b proxmox.Booted) { v.restart("proxmox/" + b.UUID) }

func (v *proxmoxVE) exitStatus(kind, pool, vm string) string {
	v.tasks.Lock()
	defer v.tasks.Unlock()
	for machine, text := range v.failing {
		if kind == "qmclone" && strings.HasPrefix(pool+"/"+vm, machine+"-") {
			return text
		}
	}
	return ""
}

// Account returns a token and a pool with the name of the fleet. The token has the rights that
// docs/providers/proxmox.md lists.
func (v *proxmoxVE) Account(t *testing.T, f kit.Fleet) Account {
	t.Helper()
	a := &proxmoxAccount{proxmoxVE: v}
	v.cluster.AddPool(f.Namespace)
	v.cluster.SetToken(tokenOf(f.Namespace), proxmox.Token{Secret: "secret-of-" + f.Namespace, Pools: []string{f.Namespace}, Audit: true})
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: v.server.Certificate().Raw})
	a.liftedAccount = newLiftedAccount(t, f, "proxmox", map[string]any{"server": v.server.URL, "caBundle": base64.StdEncoding.EncodeToString(ca)})
	a.SetCredentials(t, CredentialsRight)
	return a
}

func tokenOf(fleet string) string { return fleet + "@pve!drover" }

type proxmoxAccount struct {
	*proxmoxVE
	*liftedAccount
}

var (
	_ OrphanAccount = &proxmoxAccount{}
	_ RebootAccount = &proxmoxAccount{}
)

// Class returns the class of the example, with the pool of the account.
func (a *proxmoxAccount) Class(t *testing.T) *machinev1alpha1.MachineClass {
	t.Helper()
	c := classOf(t, a.fleet, "examples/proxmox/machineclass.yaml", a.ProviderConfig())
	setForProvider(t, c, "pool", a.fleet.Namespace)
	return c
}

func (a *proxmoxAccount) VMs(context.Context) ([]VM, error) {
	var out []VM
	for _, vm := range a.cluster.VMs() {
		if vm.Pool == a.fleet.Namespace {
			out = append(out, VM{ID: vm.UUID, Tags: attributesOfNotes(vm.Notes), UserData: []byte(vm.UserData)})
		}
	}
	return out, nil
}

// attributesOfNotes returns the attributes in lines such as "drover-machine: workers-0".
func attributesOfNotes(notes string) map[string]string {
	out := map[string]string{}
	for _, line := range strings.Split(notes, "\n") {
		if k, v, ok := strings.Cut(line, ": "); ok && strings.HasPrefix(k, "drover-") && k != "drover-vm" {
			out[k] = v
		}
	}
	return out
}

// proxmoxRefusals are the error responses, or the exit statuses of tasks, by class.
var proxmoxRefusals = map[fn.ErrorCode]struct {
	fault proxmox.Fault
	exit  string
}{
	fn.ErrorCapacityExhausted: {exit: "lvcreate 'pve/vm-100-disk-0' error:   Insufficient free space: 10240 extents needed, but only 12 available"},
	fn.ErrorQuotaExceeded:     {exit: "unable to create image: Disk quota exceeded"},
	fn.ErrorInvalidRequest:    {fault: proxmox.Fault{Status: http.StatusInternalServerError, Message: "storage 'ssd' is not available on node 'pve2'"}},
	fn.ErrorPermissionDenied:  {fault: proxmox.Fault{Status: http.StatusForbidden, Message: "Permission check failed (/vms/9000, VM.Clone)"}},
	fn.ErrorThrottled:         {fault: proxmox.Fault{Status: http.StatusServiceUnavailable, Message: "Service Unavailable"}},
}

func (a *proxmoxAccount) Refuse(_ *testing.T, machine string, code fn.ErrorCode) {
	r := proxmoxRefusals[code]
	if r.exit != "" {
		a.tasks.Lock()
		defer a.tasks.Unlock()
		key := a.fleet.Namespace + "/" + machine
		a.failing[key] = r.exit
		a.mend[machine] = func() {
			a.tasks.Lock()
			defer a.tasks.Unlock()
			delete(a.failing, key)
		}
		return
	}
	r.fault.Call, r.fault.Match = cloneCall, func(project string, body []byte) bool {
		return project == a.fleet.Namespace && strings.Contains(string(body), machinev1alpha1.TagMachine+": "+machine+`\n`)
	}
	a.mend[machine] = a.cluster.Break(r.fault)
}

const cloneCall = "POST /nodes/{node}/qemu/{id}/clone"

// Lose deletes a VM. Its Node remains: there is no cloud-controller-manager that deletes it.
func (a *proxmoxAccount) Lose(t *testing.T, id string) {
	t.Helper()
	for _, vm := range a.cluster.VMs() {
		if vm.UUID == id {
			a.cluster.Lose(vm.VMID)
			return
		}
	}
	t.Fatalf("there is no VM %s", id)
}

func (a *proxmoxAccount) SetCredentials(t *testing.T, c Credentials) {
	t.Helper()
	secret := "secret-of-" + a.fleet.Namespace
	if c == CredentialsWrong {
		secret = "not-the-secret-of-any"
	}
	a.setSecret(t, c, map[string]string{"tokenID": tokenOf(a.fleet.Namespace), "secret": secret})
}

func (a *proxmoxAccount) CreateVM(_ *testing.T, name string, tags map[string]string) string {
	id := uuid.NewString()
	lines := []string{"```", "drover-vm: " + id}
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		lines = append(lines, k+": "+tags[k])
	}
	a.cluster.Create(name, "pve1", a.fleet.Namespace, id, fmt.Sprintf("drover-vm-%s;drover-in-%s", id, tags[machinev1alpha1.TagInstallation]), strings.Join(append(lines, "```", ""), "\n"))
	return id
}

// DieAtCreation kills the provider when the clone has started.
func (a *proxmoxAccount) DieAtCreation(*testing.T) {
	a.cluster.Break(proxmox.Fault{Call: cloneCall, Times: 1, Lost: true, Then: a.kill, Match: func(project string, _ []byte) bool {
		return project == a.fleet.Namespace
	}})
}

// Leaks returns 0: the VMID is recorded before the clone starts, and the provider finds the VM by it.
func (*proxmoxVE) Leaks() int { return 0 }

// Throttle makes all calls fail, as an overloaded proxy does it.
func (a *proxmoxAccount) Throttle(*testing.T, string) (calls func() int, end func()) {
	n := &atomic.Int64{}
	end = a.cluster.Break(a.throttled(proxmoxRefusals[fn.ErrorThrottled].fault, n))
	return func() int { return int(n.Load()) }, end
}

func (a *proxmoxAccount) Reboots(_ context.Context, id string) ([]machinev1alpha1.RebootMode, error) {
	for _, vm := range a.cluster.VMs() {
		if vm.UUID == id {
			return modesOf(a.cluster.Reboots(vm.VMID)), nil
		}
	}
	return nil, fmt.Errorf("there is no VM %s", id)
}
