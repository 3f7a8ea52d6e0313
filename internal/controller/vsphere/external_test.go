package vsphere

import (
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vapi/rest"
	"github.com/vmware/govmomi/vapi/tags"
	"github.com/vmware/govmomi/vim25/types"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/vsphere/v1alpha1"
)

const (
	on  = types.VirtualMachinePowerStatePoweredOn
	off = types.VirtualMachinePowerStatePoweredOff
)

// pin sets the management policies as the Machine's Composition does.
func pin(vm *v1alpha1.VirtualMachine) {
	vm.Spec.ManagementPolicies = xpv2.ManagementPolicies{xpv2.ManagementActionObserve, xpv2.ManagementActionDelete}
}

func wantCondition(t *testing.T, w *world, typ xpv2.ConditionType, want ...string) {
	t.Helper()
	got := w.says(typ)
	for _, s := range want {
		if !strings.Contains(got, s) {
			t.Errorf("condition %q, want it to have %q", got, s)
		}
	}
}

func TestAVMIsClonedMarkedAndPoweredOn(t *testing.T) {
	w := newWorld(t)
	w.create(func(p *v1alpha1.VirtualMachineParameters) {
		p.CustomAttributes = map[string]string{"drover.cluster": "prod", "drover.machine": "m"}
	})
	vm := w.untilReady()
	got := w.clone()
	if got.Config.InstanceUuid != vmUID || meta.GetExternalName(vm) != vmUID {
		t.Errorf("instance UUID %s, external name %s, want %s", got.Config.InstanceUuid, meta.GetExternalName(vm), vmUID)
	}
	if got.Runtime.PowerState != on {
		t.Errorf("the VM is %s", got.Runtime.PowerState)
	}
	at := vm.Status.AtProvider
	if want := "vsphere://" + strings.ToLower(got.Config.Uuid); at.ProviderID != want {
		t.Errorf("providerID %s, want %s", at.ProviderID, want)
	}
	if at.MoRef != got.Self.Value || at.VCenter == "" || len(at.Disks) == 0 {
		t.Errorf("observed %+v", at)
	}
	wantCondition(t, w, xpv2.TypeSynced, "Synced=True")

	m, err := object.GetCustomFieldsManager(w.admin.Client)
	w.must(err)
	fields, err := m.Field(t.Context())
	w.must(err)
	if missing := attributesMissing(vm.Spec.ForProvider.CustomAttributes, fields, got.CustomValue); len(missing) > 0 {
		t.Errorf("attributes %v are not set", missing)
	}
}

func TestAttributesFollowWhileTheVMRuns(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.untilReady()
	w.change(func(vm *v1alpha1.VirtualMachine) {
		vm.Spec.ForProvider.CustomAttributes = map[string]string{"owner": "a"}
	})
	w.until("marked", func(*v1alpha1.VirtualMachine) bool {
		wantCondition(t, w, xpv2.TypeReady, "Ready=True")
		return len(w.clone().CustomValue) == 1
	})
}

func TestAVMAtRestCostsOneCall(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.untilReady()
	w.change(pin)
	w.edit(func(vm *simulator.VirtualMachine) {
		vm.Guest.Net = []types.GuestNicInfo{{DeviceConfigId: 4000, IpAddress: []string{"10.0.0.7"}}}
	})
	w.reconcile()
	before := w.called("RetrievePropertiesEx") + w.called("RetrieveProperties")
	all := func() (n int) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, c := range w.calls {
			n += c
		}
		return n
	}
	sum := all()
	w.waits.last = 0
	w.reconcile()
	if n := w.called("RetrievePropertiesEx") + w.called("RetrieveProperties") - before; n != 1 || all()-sum != 1 {
		t.Errorf("%d reads and %d calls in all, want one", n, all()-sum)
	}
	if vm := w.get(); vm.Status.AtProvider.Addresses == nil || w.waits.last != 0 {
		t.Errorf("addresses %v, looked at again after %s", vm.Status.AtProvider.Addresses, w.waits.last)
	}
}

func TestAVMWithoutAddressesIsLookedAtSoon(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.untilReady()
	w.edit(func(vm *simulator.VirtualMachine) { vm.Guest.Net = nil })
	w.reconcile()
	if w.waits.last != untilAddresses {
		t.Errorf("looked at again after %s", w.waits.last)
	}
	w.clock.pass(patienceForAddresses)
	w.waits.last = 0
	w.reconcile()
	if w.waits.last != 0 {
		t.Errorf("looked at again after %s, although its tools never say anything", w.waits.last)
	}
}

func TestTagsAreAttached(t *testing.T) {
	w := newWorld(t)
	rc := rest.NewClient(w.admin.Client)
	w.must(rc.Login(t.Context(), w.server.URL.User))
	m := tags.NewManager(rc)
	category, err := m.CreateCategory(t.Context(), &tags.Category{Name: "team", Cardinality: "MULTIPLE"})
	w.must(err)
	a, err := m.CreateTag(t.Context(), &tags.Tag{Name: "a", CategoryID: category})
	w.must(err)
	b, err := m.CreateTag(t.Context(), &tags.Tag{Name: "b", CategoryID: category})
	w.must(err)

	w.create(func(p *v1alpha1.VirtualMachineParameters) {
		p.Tags = []v1alpha1.Tag{{Category: ptr.To("team"), Name: ptr.To("a")}, {ID: ptr.To(b)}}
	})
	w.untilReady()
	has, err := m.ListAttachedTags(t.Context(), w.clone().Self)
	w.must(err)
	if len(has) != 2 || !strings.Contains(strings.Join(has, " "), a) {
		t.Errorf("tags %v, want %s and %s", has, a, b)
	}
}

func TestAnUnknownTagIsNamedAndTheVMDoesNotRun(t *testing.T) {
	w := newWorld(t)
	w.create(func(p *v1alpha1.VirtualMachineParameters) {
		p.Tags = []v1alpha1.Tag{{Category: ptr.To("team"), Name: ptr.To("a")}}
	})
	w.until("refused", func(*v1alpha1.VirtualMachine) bool {
		return strings.Contains(w.says(xpv2.TypeSynced), "InvalidRequest")
	})
	wantCondition(t, w, xpv2.TypeSynced, `InvalidRequest: forProvider.tags[0]: there is no category "team"`)
	if got := w.clone(); got.Runtime.PowerState != off || w.get().Status.AtProvider.ProviderID != "" {
		t.Errorf("the VM is %s, and has a providerID", got.Runtime.PowerState)
	}
}

func TestPowerStates(t *testing.T) {
	t.Run("AVMThatShallBeOffIsNotStarted", func(t *testing.T) {
		w := newWorld(t)
		w.create(func(p *v1alpha1.VirtualMachineParameters) { p.PowerState = v1alpha1.PowerOff })
		w.untilReady()
		if s := w.clone().Runtime.PowerState; s != off {
			t.Errorf("the VM is %s", s)
		}
		w.change(func(vm *v1alpha1.VirtualMachine) { vm.Spec.ForProvider.PowerState = v1alpha1.PowerOn })
		w.until("on", func(vm *v1alpha1.VirtualMachine) bool { return vm.Status.AtProvider.State == string(on) })
		w.change(func(vm *v1alpha1.VirtualMachine) { vm.Spec.ForProvider.PowerState = v1alpha1.PowerOff })
		w.until("off", func(vm *v1alpha1.VirtualMachine) bool { return vm.Status.AtProvider.State == string(off) })
	})
	t.Run("APinnedVMThatIsSwitchedOffIsNotReady", func(t *testing.T) {
		w := newWorld(t)
		w.create()
		vm := w.untilReady()
		w.change(pin)
		w.done(w.vm(vmName).PowerOff(t.Context()))
		w.reconcile()
		wantCondition(t, w, xpv2.TypeReady, "Ready=False", "the VM is poweredOff")
		if got := w.get().Status.AtProvider.ProviderID; got != vm.Status.AtProvider.ProviderID || w.clone().Runtime.PowerState != off {
			t.Errorf("providerID %s, want it as it was; the VM is %s", got, w.clone().Runtime.PowerState)
		}
	})
	t.Run("AVMThatTheVCenterCannotReachIsNotReady", func(t *testing.T) {
		w := newWorld(t)
		w.create()
		w.untilReady()
		w.edit(func(vm *simulator.VirtualMachine) {
			vm.Runtime.ConnectionState = types.VirtualMachineConnectionStateDisconnected
		})
		w.reconcile()
		wantCondition(t, w, xpv2.TypeReady, "Ready=False", "for the vCenter disconnected")
	})
}

func TestAVMThatIsLostIsNotMadeAgain(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.VirtualMachine){
		"WhenItIsPinned":          pin,
		"BeforeItIsPinned":        func(*v1alpha1.VirtualMachine) {},
		"WhenItsNameWasForgotten": func(vm *v1alpha1.VirtualMachine) { pin(vm); vm.Status.AtProvider.MoRef = "" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create()
			w.untilReady()
			w.change(change)
			w.done(w.vm(vmName).PowerOff(t.Context()))
			w.done(w.vm(vmName).Destroy(t.Context()))
			for range 3 {
				w.reconcile()
			}
			wantCondition(t, w, xpv2.TypeReady, "Ready=False Missing: vm-", vmUID+" is no longer there")
			if n := len(w.clones()); n != 0 {
				t.Errorf("%d VMs, want none", n)
			}
			w.delete()
			w.untilGone()
		})
	}
}

// A VM that moved to another host, or was registered again, is the same VM.
func TestAVMThatWasRegisteredAnewIsFound(t *testing.T) {
	w := newWorld(t)
	w.create()
	vm := w.untilReady()
	w.edit(func(*simulator.VirtualMachine) {})
	vm.Status.AtProvider.MoRef = "vm-999999"
	w.must(w.kube.Status().Update(t.Context(), vm))
	w.reconcile()
	if got := w.get().Status.AtProvider.MoRef; got != w.clone().Self.Value {
		t.Errorf("managed object %s", got)
	}
	wantCondition(t, w, xpv2.TypeReady, "Ready=True")
}

func TestAManagedObjectIDOfAnotherVMIsNotTaken(t *testing.T) {
	w := newWorld(t)
	w.create()
	vm := w.untilReady()
	other := w.vm("DC0_C0_RP0_VM1").Reference().Value
	vm.Status.AtProvider.MoRef = other
	w.must(w.kube.Status().Update(t.Context(), vm))
	w.delete()
	w.untilGone()
	if n := len(w.clones()); n != 0 {
		t.Errorf("%d VMs, want none", n)
	}
	w.vm("DC0_C0_RP0_VM1") // is still there
}

func TestNothingIsSaidOfAVMInAnotherVCenter(t *testing.T) {
	w := newWorld(t)
	w.create()
	vm := w.untilReady()
	vm.Status.AtProvider.VCenter = "another"
	w.must(w.kube.Status().Update(t.Context(), vm))
	w.change(pin)
	w.delete()
	w.reconcile()
	wantCondition(t, w, xpv2.TypeSynced, "Synced=False", `ClusterProviderConfig "default"`, "the VM is in the vCenter with the instance UUID another")
	w.clone() // is still there
}

func TestDeletion(t *testing.T) {
	t.Run("ARunningVMGoesWithItsDisks", func(t *testing.T) {
		w := newWorld(t)
		w.create()
		w.untilReady()
		file := backingOf(disksOf(w.clone().Config.Hardware.Device)[0]).file
		w.delete()
		w.untilGone()
		if n := len(w.clones()); n != 0 {
			t.Errorf("%d VMs, want none", n)
		}
		if w.exists(file) {
			t.Errorf("%s is still there", file)
		}
	})
	t.Run("OneThatIsBeingClonedIsWaitedFor", func(t *testing.T) {
		slowClones(t, 300)
		w := newWorld(t)
		w.create()
		w.until("cloning", func(vm *v1alpha1.VirtualMachine) bool { return vm.Annotations[v1alpha1.AnnotationCloneTask] != "" })
		w.delete()
		w.reconcile()
		if w.get() == nil {
			t.Fatal("gone before its clone is done")
		}
		w.untilGone()
		if n := len(w.clones()); n != 0 {
			t.Errorf("%d VMs, want none", n)
		}
	})
	t.Run("OneThatWasNeverMadeGoesAtOnce", func(t *testing.T) {
		w := newWorld(t)
		w.create(func(p *v1alpha1.VirtualMachineParameters) { p.Template = ptr.To("none") })
		w.reconcile()
		w.delete()
		w.untilGone()
	})
	t.Run("AnErrorIsSaidAndTriedAgain", func(t *testing.T) {
		w := newWorld(t)
		w.create()
		w.untilReady()
		w.fault("Destroy_Task", &types.NoPermission{PrivilegeId: "VirtualMachine.Inventory.Delete"}, 1)
		w.delete()
		w.until("refused", func(*v1alpha1.VirtualMachine) bool {
			return strings.Contains(w.says(xpv2.TypeSynced), "PermissionDenied")
		})
		wantCondition(t, w, xpv2.TypeSynced, `ClusterProviderConfig "default"`, "needs the privilege VirtualMachine.Inventory.Delete")
		w.clone() // is still there
		w.clock.pass(time.Hour)
		w.untilGone()
	})
}

// A disk that is attached to a VM and was not created with it is a user's volume.
func TestVolumesSurviveTheVM(t *testing.T) {
	for name, tc := range map[string]struct {
		edit   func(*types.VirtualDisk)
		forget bool
	}{
		"AFirstClassDisk":              {edit: func(d *types.VirtualDisk) { d.VDiskId = &types.ID{Id: "fcd-1"} }},
		"ADiskThatWasNotMadeWithTheVM": {edit: func(*types.VirtualDisk) {}},
		"AFirstClassDiskOfAVMUnknown":  {edit: func(d *types.VirtualDisk) { d.VDiskId = &types.ID{Id: "fcd-1"} }, forget: true},
		"ADiskElsewhereOfAVMUnknown":   {edit: func(*types.VirtualDisk) {}, forget: true},
		"AnIndependentDiskOfAVMThatIsKnown": {edit: func(d *types.VirtualDisk) {
			d.Backing.(*types.VirtualDiskFlatVer2BackingInfo).DiskMode = string(types.VirtualDiskModeIndependent_persistent)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create()
			vm := w.untilReady()
			w.attach("[LocalDS_0] volumes/pv.vmdk", tc.edit)
			if tc.forget {
				vm.Status.AtProvider.Disks = nil
				w.must(w.kube.Status().Update(t.Context(), vm))
			}
			var own string
			for _, d := range disksOf(w.clone().Config.Hardware.Device) {
				if f := backingOf(d).file; f != "[LocalDS_0] volumes/pv.vmdk" {
					own = f
				}
			}
			w.delete()
			w.untilGone()
			if !w.exists("[LocalDS_0] volumes/pv.vmdk") {
				t.Error("the volume went with the VM")
			}
			if own == "" || w.exists(own) {
				t.Errorf("the VM's own disk %q is still there", own)
			}
			if !w.isReported("DisksDetached") {
				t.Errorf("events %v", *w.reported)
			}
		})
	}
}

// attach attaches a disk to the VM, as CSI does.
func (w *world) attach(file string, edit func(*types.VirtualDisk)) {
	w.t.Helper()
	ctx := w.t.Context()
	ds, err := w.finder.Datastore(ctx, "LocalDS_0")
	w.must(err)
	dc, err := w.finder.DefaultDatacenter(ctx)
	w.must(err)
	w.must(object.NewFileManager(w.admin.Client).MakeDirectory(ctx, "[LocalDS_0] volumes", dc, true))
	vm := w.vm(vmName)
	devices, err := vm.Device(ctx)
	w.must(err)
	controller, err := devices.FindDiskController("")
	w.must(err)
	disk := devices.CreateDisk(controller, ds.Reference(), file)
	disk.CapacityInKB = 1024
	edit(disk)
	w.must(vm.AddDevice(ctx, disk))
	if !w.exists(file) {
		w.t.Fatalf("%s was not made", file)
	}
}

// exists reports whether a file is on its datastore.
func (w *world) exists(file string) bool {
	w.t.Helper()
	var p object.DatastorePath
	if !p.FromString(file) {
		w.t.Fatalf("%q is no datastore path", file)
	}
	ds, err := w.finder.Datastore(w.t.Context(), p.Datastore)
	w.must(err)
	_, err = ds.Stat(w.t.Context(), p.Path)
	return err == nil
}

func nothing(*types.VirtualDisk) {}

func (w *world) isReported(reason string) bool {
	for _, e := range *w.reported {
		if string(e.Reason) == reason {
			return true
		}
	}
	return false
}
