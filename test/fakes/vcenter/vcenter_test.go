package vcenter_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"testing"

	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/fault"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/drover-dev/drover/internal/gzipb64"
	"github.com/drover-dev/drover/test/fakes/vcenter"
	"github.com/drover-dev/drover/test/patience"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A lab is a vCenter with a folder and a client.
type lab struct {
	*vcenter.VCenter
	client          *govmomi.Client
	folder          string
	booted, stopped chan vcenter.Booted
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{booted: make(chan vcenter.Booted, 10), stopped: make(chan vcenter.Booted, 10)}
	var err error
	l.VCenter, err = vcenter.New(t.Context(), vcenter.Options{
		Boot:   func(b vcenter.Booted) string { l.booted <- b; return "10.0.0.7" },
		Stop:   func(b vcenter.Booted) { l.stopped <- b },
		Failed: func(err error) { t.Error(err) },
	})
	must(t, err)
	t.Cleanup(l.Close)
	l.folder, err = l.CreateFolder(t.Context(), "lab")
	must(t, err)
	l.SetPassword("someone", "right")
	l.client, err = govmomi.NewClient(t.Context(), &url.URL{Scheme: "https", Host: l.Server(), Path: "/sdk", User: url.UserPassword("someone", "right")}, true)
	must(t, err)
	return l
}

// clone of the template.
func (l *lab) clone(ctx context.Context, name string, config types.VirtualMachineConfigSpec) (*object.VirtualMachine, error) {
	f := find.NewFinder(l.client.Client)
	template, err := f.VirtualMachine(ctx, "/DC0/vm/ubuntu-24.04")
	if err != nil {
		return nil, err
	}
	folder, err := f.Folder(ctx, l.folder)
	if err != nil {
		return nil, err
	}
	pool, err := f.ResourcePool(ctx, "/DC0/host/cluster-a/Resources/kubernetes")
	if err != nil {
		return nil, err
	}
	ref := pool.Reference()
	task, err := template.Clone(ctx, folder, name, types.VirtualMachineCloneSpec{Location: types.VirtualMachineRelocateSpec{Pool: &ref}, Config: &config})
	if err != nil {
		return nil, err
	}
	info, err := task.WaitForResultEx(ctx)
	if err != nil {
		return nil, err
	}
	return object.NewVirtualMachine(l.client.Client, info.Result.(types.ManagedObjectReference)), nil
}

func reported(t *testing.T, by chan vcenter.Booted) vcenter.Booted {
	t.Helper()
	select {
	case b := <-by:
		return b
	case <-patience.Over():
		t.Fatal("the hook is never called")
		return vcenter.Booted{}
	}
}

func TestAVMBootsWithItsUserDataAndReportsItsAddressUntilItIsLost(t *testing.T) {
	l := newLab(t)
	packed, err := gzipb64.Encode([]byte("#cloud-config\n"))
	must(t, err)
	const id = "0b0e7d2c-6a52-4a0b-9b53-1f6f6c8c9d11"
	vm, err := l.clone(t.Context(), "workers-1", types.VirtualMachineConfigSpec{InstanceUuid: id, ExtraConfig: []types.BaseOptionValue{
		&types.OptionValue{Key: "guestinfo.userdata", Value: packed},
		&types.OptionValue{Key: "guestinfo.userdata.encoding", Value: "gzip+base64"},
	}})
	must(t, err)
	on, err := vm.PowerOn(t.Context())
	must(t, err)
	must(t, vcenter.Wait(t.Context(), on))

	b := reported(t, l.booted)
	if b.Name != "workers-1" || string(b.UserData) != "#cloud-config\n" || b.BIOSUUID == "" {
		t.Errorf("booted %+v", b)
	}
	var seen mo.VirtualMachine
	has := func(nic types.GuestNicInfo) bool { return slices.Contains(nic.IpAddress, "10.0.0.7") }
	patience.Eventually(t, func(ctx context.Context) string {
		must(t, property.DefaultCollector(l.client.Client).RetrieveOne(ctx, vm.Reference(), []string{"guest", "config.uuid"}, &seen))
		if !slices.ContainsFunc(netOf(seen), has) {
			return fmt.Sprintf("the guest has the cards %+v", netOf(seen))
		}
		return ""
	})
	if seen.Config.Uuid != b.BIOSUUID || seen.Guest.HostName != "workers-1" {
		t.Errorf("BIOS UUID %s, host name %s", seen.Config.Uuid, seen.Guest.HostName)
	}

	lost, err := l.Lose(t.Context(), id)
	must(t, err)
	if s := reported(t, l.stopped); s.ID != b.ID || lost.ID != b.ID || len(l.VMs("lab")) != 0 {
		t.Errorf("stopped %s, lost %s, want %s; left are %+v", s.ID, lost.ID, b.ID, l.VMs("lab"))
	}
}

func netOf(vm mo.VirtualMachine) []types.GuestNicInfo {
	if vm.Guest == nil {
		return nil
	}
	return vm.Guest.Net
}

func TestAVMThatIsPoweredOffAndOnBootsAgain(t *testing.T) {
	l := newLab(t)
	vm, err := l.clone(t.Context(), "workers-1", types.VirtualMachineConfigSpec{})
	must(t, err)
	for range 2 {
		on, err := vm.PowerOn(t.Context())
		must(t, err)
		must(t, vcenter.Wait(t.Context(), on))
		reported(t, l.booted)
		off, err := vm.PowerOff(t.Context())
		must(t, err)
		must(t, vcenter.Wait(t.Context(), off))
		reported(t, l.stopped)
	}
}

func TestAVMThatIsMadePastTheProviderHasItsAttributesAndIsOff(t *testing.T) {
	l := newLab(t)
	id, err := l.Create(t.Context(), l.folder, "orphan", map[string]string{"a": "1", "b": "2"})
	must(t, err)
	vms := l.VMs("lab")
	if len(vms) != 1 || vms[0].InstanceUUID != id || vms[0].Attributes["a"] != "1" || vms[0].Attributes["b"] != "2" {
		t.Errorf("VMs %+v", vms)
	}
	if len(l.VMs("kubernetes")) != 0 {
		t.Error("the VM is in another folder too")
	}
}

func TestClonesAreRefusedUntilTheyAreNot(t *testing.T) {
	for name, byTask := range map[string]bool{"AtOnce": false, "ByTheirTask": true} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			mend := l.Refuse(vcenter.Refusal{
				Match: func(folder, name string) bool { return folder == "lab" && name == "refused" },
				Fault: &types.NoDiskSpace{Datastore: "ssd"}, ByTask: byTask,
			})
			_, err := l.clone(t.Context(), "refused", types.VirtualMachineConfigSpec{})
			var full *types.NoDiskSpace
			if _, ok := fault.As(err, &full); !ok {
				t.Errorf("refused with %v", err)
			}
			_, err = l.clone(t.Context(), "other", types.VirtualMachineConfigSpec{})
			must(t, err)
			mend()
			_, err = l.clone(t.Context(), "refused", types.VirtualMachineConfigSpec{})
			must(t, err)
			if n := len(l.VMs("lab")); n != 2 {
				t.Errorf("%d VMs, want 2", n)
			}
		})
	}
}

func TestOnlyThePasswordOfAnAccountIsTaken(t *testing.T) {
	l := newLab(t)
	for user, password := range map[string]string{"someone": "wrong", "nobody": ""} {
		_, err := govmomi.NewClient(t.Context(), &url.URL{Scheme: "https", Host: l.Server(), Path: "/sdk", User: url.UserPassword(user, password)}, true)
		var denied *types.InvalidLogin
		if _, ok := fault.As(err, &denied); !ok {
			t.Errorf("%s: %v", user, err)
		}
	}
}

func TestAVMThatIsRebootedBootsAgain(t *testing.T) {
	l := newLab(t)
	const id = "0b0e7d2c-6a52-4a0b-9b53-1f6f6c8c9d11"
	vm, err := l.clone(t.Context(), "workers-1", types.VirtualMachineConfigSpec{InstanceUuid: id})
	must(t, err)
	if err := vm.RebootGuest(t.Context()); !fault.Is(err, &types.InvalidPowerState{}) {
		t.Errorf("a reboot of a VM that is powered off: %v", err)
	}
	if task, err := vm.Reset(t.Context()); !fault.Is(err, &types.InvalidPowerState{}) {
		t.Errorf("a reset of a VM that is powered off: %v, %v", task, err)
	}
	on, err := vm.PowerOn(t.Context())
	must(t, err)
	must(t, vcenter.Wait(t.Context(), on))
	reported(t, l.booted)
	patience.Eventually(t, func(ctx context.Context) string {
		// The tools run a moment after the guest has booted.
		if err := vm.RebootGuest(ctx); err != nil {
			return err.Error()
		}
		return ""
	})
	for _, reset := range []bool{false, true} {
		if reset {
			patience.Eventually(t, func(ctx context.Context) string {
				// The guest that has booted reports its address by a task, and a reset waits for the end of that.
				task, err := vm.Reset(ctx)
				if err != nil {
					return err.Error()
				}
				must(t, vcenter.Wait(ctx, task))
				return ""
			})
		}
		if stopped, booted := reported(t, l.stopped), reported(t, l.booted); stopped.ID != booted.ID {
			t.Errorf("stopped %s, booted %s", stopped.ID, booted.ID)
		}
	}
	if got := l.Reboots(id); !slices.Equal(got, []string{"Soft", "Hard"}) {
		t.Errorf("reboots %q", got)
	}
}

func TestRulesOfDRSAreThoseOfAVCenter(t *testing.T) {
	l := newLab(t)
	var vms []types.ManagedObjectReference
	for _, name := range []string{"a", "b", "c"} {
		vm, err := l.clone(t.Context(), name, types.VirtualMachineConfigSpec{InstanceUuid: "0b0e7d2c-6a52-4a0b-9b53-00000000000" + name})
		must(t, err)
		vms = append(vms, vm.Reference())
	}
	cluster, err := find.NewFinder(l.client.Client).ClusterComputeResource(t.Context(), "/DC0/host/cluster-a")
	must(t, err)
	change := func(operation types.ArrayUpdateOperation, name string, key int32, vms ...types.ManagedObjectReference) error {
		spec := types.ClusterRuleSpec{ArrayUpdateSpec: types.ArrayUpdateSpec{Operation: operation}}
		if operation == types.ArrayUpdateOperationRemove {
			spec.RemoveKey = key
		} else {
			spec.Info = &types.ClusterAntiAffinityRuleSpec{ClusterRuleInfo: types.ClusterRuleInfo{Name: name, Key: key}, Vm: vms}
		}
		task, err := cluster.Reconfigure(t.Context(), &types.ClusterConfigSpecEx{RulesSpec: []types.ClusterRuleSpec{spec}}, true)
		if err != nil {
			return err
		}
		return vcenter.Wait(t.Context(), task)
	}
	const add, edit, remove = types.ArrayUpdateOperationAdd, types.ArrayUpdateOperationEdit, types.ArrayUpdateOperationRemove
	refused := func(what string, err error) {
		t.Helper()
		if err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
	refused("a rule with one VM", change(add, "r", 0, vms[0]))
	must(t, change(add, "r", 0, vms[0], vms[1]))
	config, err := cluster.Configuration(t.Context())
	must(t, err)
	key := config.Rule[0].GetClusterRuleInfo().Key
	refused("a second rule of the name", change(add, "r", 0, vms[0], vms[1]))
	refused("a rule with a VM that does not exist", change(edit, "r", key, vms[0], types.ManagedObjectReference{Type: "VirtualMachine", Value: "vm-0"}))
	refused("a change of a rule that does not exist", change(edit, "r", key+1, vms[0], vms[1]))
	must(t, change(edit, "another name", key, vms...))
	if got := l.Rules(); len(got) != 1 || !slices.Equal(got["r"], []string{"a", "b", "c"}) {
		t.Errorf("rules %v", got)
	}
	for _, name := range []string{"a", "b", "c"} {
		_, err := l.Lose(t.Context(), "0b0e7d2c-6a52-4a0b-9b53-00000000000"+name)
		must(t, err)
	}
	if got := l.Rules(); len(got) != 1 || len(got["r"]) != 0 {
		t.Errorf("rules %v after their VMs are deleted, want an empty one", got)
	}
	must(t, change(remove, "", key))
	if got := l.Rules(); len(got) != 0 {
		t.Errorf("rules %v", got)
	}
}
