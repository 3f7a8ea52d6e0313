package conformance

import (
	"context"
	"encoding/base64"
	"strings"
	"sync"
	"testing"

	"github.com/vmware/govmomi/vim25/types"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/fakes/vcenter"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/kit/guest"
)

// vSphere is a vCenter: the real provider, from its package, against govmomi's simulator.
type vSphere struct {
	entry
	guests
	vcenter *vcenter.VCenter
}

func init() { register(&vSphere{entry: "vsphere"}) }

func (v *vSphere) Install(ctx context.Context, p *kit.Plane) error {
	v.host = newHost(p)
	var err error
	if v.vcenter, err = vcenter.New(ctx, vcenter.Options{Boot: v.boot, Stop: v.stop, Reboot: v.reboot, Failed: v.host.Failed}); err != nil {
		return err
	}
	if err := installLifted(ctx, p, "vsphere"); err != nil {
		return err
	}
	return acceptGuestAddresses(ctx, p)
}

func (v *vSphere) Close() {
	if v.vcenter != nil {
		v.vcenter.Close()
	}
}

// boot starts a guest. The cloud-controller-manager finds its Node by the UUID of its BIOS.
func (v *vSphere) boot(b vcenter.Booted) string {
	return v.start(guest.Request{
		ID: "vsphere/" + b.ID, Name: b.Name, UserData: b.UserData, ProviderID: "vsphere://" + strings.ToLower(b.BIOSUUID),
	})
}

func (v *vSphere) stop(b vcenter.Booted) { v.end("vsphere/" + b.ID) }

func (v *vSphere) reboot(b vcenter.Booted) { v.restart("vsphere/" + b.ID) }

// Account returns the account of a user with a folder for its VMs. Both have the name of the fleet.
func (v *vSphere) Account(t *testing.T, f kit.Fleet) Account {
	t.Helper()
	a := &vSphereAccount{vSphere: v}
	v.vcenter.SetPassword(f.Namespace, "password-of-"+f.Namespace)
	var err error
	a.folder, err = v.vcenter.CreateFolder(t.Context(), f.Namespace)
	must(t, err)
	a.liftedAccount = newLiftedAccount(t, f, "vsphere", map[string]any{"server": v.vcenter.Server(), "caBundle": base64.StdEncoding.EncodeToString(v.vcenter.CA())})
	a.SetCredentials(t, CredentialsRight)
	return a
}

type vSphereAccount struct {
	*vSphere
	*liftedAccount
	// folder is an inventory path.
	folder string
}

var (
	_ OrphanAccount = &vSphereAccount{}
	_ RebootAccount = &vSphereAccount{}
)

// Class returns the class of the example, with the folder of the account, a data disk and an
// anti-affinity group.
func (a *vSphereAccount) Class(t *testing.T) *machinev1alpha1.MachineClass {
	t.Helper()
	c := classOf(t, a.fleet, "examples/vsphere/machineclass.yaml", a.ProviderConfig())
	setForProvider(t, c, "folder", a.folder)
	setForProvider(t, c, "dataDisks", []map[string]any{{"sizeGiB": 20, "provisioningMode": "Thin"}})
	setForProvider(t, c, "antiAffinityGroup", "workers")
	return c
}

func (a *vSphereAccount) VMs(context.Context) ([]VM, error) {
	var out []VM
	for _, vm := range a.vcenter.VMs(a.fleet.Namespace) {
		out = append(out, VM{ID: vm.InstanceUUID, Tags: vm.Attributes, UserData: vm.UserData})
	}
	return out, nil
}

// vsphereRefusals are the faults of a vCenter or of its tasks, by error class.
var vsphereRefusals = map[fn.ErrorCode]vcenter.Refusal{
	fn.ErrorCapacityExhausted: {Fault: &types.NoDiskSpace{Datastore: "LocalDS_1"}, ByTask: true},
	fn.ErrorQuotaExceeded:     {Fault: &types.NotEnoughLicenses{}},
	fn.ErrorInvalidRequest:    {Fault: &types.NotEnoughCpus{NumCpuDest: 2, NumCpuVm: 4}, ByTask: true},
	fn.ErrorPermissionDenied:  {Fault: &types.NoPermission{PrivilegeId: "VirtualMachine.Inventory.CreateFromExisting"}},
	fn.ErrorThrottled:         {Fault: &types.TooManyConcurrentNativeClones{}, ByTask: true},
}

// Refuse makes the vCenter refuse to clone. The vCenter knows a Machine only by the name of the VM,
// which begins with the name of the Machine.
func (a *vSphereAccount) Refuse(_ *testing.T, machine string, code fn.ErrorCode) {
	r := vsphereRefusals[code]
	r.Match = func(folder, name string) bool {
		return folder == a.fleet.Namespace && strings.HasPrefix(name, machine+"-")
	}
	a.mend[machine] = a.vcenter.Refuse(r)
}

// Lose deletes a VM, and its Node as vSphere's cloud-controller-manager would.
func (a *vSphereAccount) Lose(t *testing.T, id string) {
	t.Helper()
	vm, err := a.vcenter.Lose(t.Context(), id)
	must(t, err)
	a.deleteNode(t, "vsphere/"+vm.ID)
}

func (a *vSphereAccount) SetCredentials(t *testing.T, c Credentials) {
	t.Helper()
	password := "password-of-" + a.fleet.Namespace
	if c == CredentialsWrong {
		password = "not-the-password-of-any"
	}
	a.setSecret(t, c, map[string]string{"username": a.fleet.Namespace, "password": password})
}

func (a *vSphereAccount) CreateVM(t *testing.T, name string, tags map[string]string) string {
	t.Helper()
	id, err := a.vcenter.Create(t.Context(), a.folder, name, tags)
	must(t, err)
	return id
}

// DieAtCreation kills the provider when the vCenter receives its request.
func (a *vSphereAccount) DieAtCreation(*testing.T) {
	var once sync.Once
	a.vcenter.Refuse(vcenter.Refusal{Match: func(folder, _ string) bool {
		if folder == a.fleet.Namespace {
			once.Do(a.kill)
		}
		return false // The vCenter makes the clone, although no provider waits for the task.
	}})
}

// Leaks returns 0: the provider chooses the instance UUID of a clone, and finds the clone by it.
func (*vSphere) Leaks() int { return 0 }

func (a *vSphereAccount) Reboots(_ context.Context, id string) ([]machinev1alpha1.RebootMode, error) {
	return modesOf(a.vcenter.Reboots(id)), nil
}
