package vsphere

import (
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
	corev1 "k8s.io/api/core/v1"
	k8stypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/drover-dev/drover/apis/vsphere/v1alpha1"
)

// extra returns the value of a key of the VM's configuration, decoded by its encoding key.
func extra(t *testing.T, vm mo.VirtualMachine, key string) string {
	t.Helper()
	kv := map[string]string{}
	for _, o := range vm.Config.ExtraConfig {
		v := o.GetOptionValue()
		kv[v.Key], _ = v.Value.(string)
	}
	if kv[key+suffixEncoding] != encoding {
		return kv[key]
	}
	b, err := base64.StdEncoding.DecodeString(kv[key])
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(strings.NewReader(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestWhatIsMade(t *testing.T) {
	cases := map[string]struct {
		model  func(*simulator.Model)
		before func(*world)
		change func(*v1alpha1.VirtualMachineParameters)
		check  func(*testing.T, *world, mo.VirtualMachine)
	}{
		"CloudInitReadsUserDataAndMetadata": {check: func(t *testing.T, _ *world, vm mo.VirtualMachine) {
			if got := extra(t, vm, "guestinfo.userdata"); got != "#cloud-config" {
				t.Errorf("user data %q", got)
			}
			if got, want := extra(t, vm, "guestinfo.metadata"), `{"instance-id":"`+vmUID+`","local-hostname":"`+vmName+`"}`; got != want {
				t.Errorf("metadata %s, want %s", got, want)
			}
		}},
		"InlineUserDataAndMetadata": {
			change: func(p *v1alpha1.VirtualMachineParameters) {
				p.GuestInfo = &v1alpha1.GuestInfo{UserData: ptr.To("#!/bin/sh"), Metadata: ptr.To("network: {}")}
			},
			check: func(t *testing.T, _ *world, vm mo.VirtualMachine) {
				if u, m := extra(t, vm, "guestinfo.userdata"), extra(t, vm, "guestinfo.metadata"); u != "#!/bin/sh" || m != "network: {}" {
					t.Errorf("user data %q, metadata %q", u, m)
				}
			},
		},
		"IgnitionReadsItsOwnKey": {
			change: func(p *v1alpha1.VirtualMachineParameters) { p.GuestInfo.Format = v1alpha1.FormatIgnition },
			check: func(t *testing.T, _ *world, vm mo.VirtualMachine) {
				if i, u := extra(t, vm, "guestinfo.ignition.config.data"), extra(t, vm, "guestinfo.userdata"); i != "#cloud-config" || u != "" {
					t.Errorf("ignition %q, user data %q", i, u)
				}
			},
		},
		"Sizes": {
			change: func(p *v1alpha1.VirtualMachineParameters) {
				p.CPUs, p.MemoryMiB, p.DiskSizeGiB = ptr.To(int32(6)), ptr.To(int64(12288)), ptr.To(int64(40))
				p.ExtraConfig = map[string]string{"sched.mem.pin": "TRUE"}
			},
			check: func(t *testing.T, _ *world, vm mo.VirtualMachine) {
				h := vm.Config.Hardware
				if h.NumCPU != 6 || h.MemoryMB != 12288 {
					t.Errorf("%d CPUs, %d MiB", h.NumCPU, h.MemoryMB)
				}
				if disks := disksOf(h.Device); len(disks) != 1 || disks[0].CapacityInBytes != 40<<30 {
					t.Errorf("%d disks, the first of %d bytes", len(disks), disks[0].CapacityInBytes)
				}
				if got := extra(t, vm, "sched.mem.pin"); got != "TRUE" {
					t.Errorf("extra config %q", got)
				}
			},
		},
		"Places": {
			before: func(w *world) {
				folders, err := w.finder.DefaultFolder(t.Context())
				w.must(err)
				_, err = folders.CreateFolder(w.t.Context(), "k8s")
				w.must(err)
				pool, err := w.finder.ResourcePool(w.t.Context(), "DC0_C0/Resources")
				w.must(err)
				_, err = pool.Create(w.t.Context(), "prod", types.DefaultResourceConfigSpec())
				w.must(err)
			},
			model: func(m *simulator.Model) { m.Datastore = 2 },
			change: func(p *v1alpha1.VirtualMachineParameters) {
				p.Folder, p.ResourcePool, p.Datastore = ptr.To("/DC0/vm/k8s"), ptr.To("prod"), ptr.To("LocalDS_1")
			},
			check: func(t *testing.T, w *world, vm mo.VirtualMachine) {
				for _, o := range []struct {
					ref  types.ManagedObjectReference
					want string
				}{{*vm.Parent, "/DC0/vm/k8s"}, {*vm.ResourcePool, "/DC0/host/DC0_C0/Resources/prod"}, {vm.Datastore[0], "/DC0/datastore/LocalDS_1"}} {
					e, err := w.finder.Element(t.Context(), o.ref)
					w.must(err)
					if e.Path != o.want {
						t.Errorf("%s, want %s", e.Path, o.want)
					}
				}
			},
		},
		"DataDisks": {
			model: func(m *simulator.Model) { m.Datastore = 2 },
			change: func(p *v1alpha1.VirtualMachineParameters) {
				p.DiskSizeGiB = ptr.To(int64(40))
				p.DataDisks = []v1alpha1.DataDisk{
					{SizeGiB: 20, ProvisioningMode: ptr.To(v1alpha1.ProvisionThin)},
					{SizeGiB: 30, ProvisioningMode: ptr.To(v1alpha1.ProvisionEagerlyZeroed), Datastore: ptr.To("LocalDS_1")},
					{SizeGiB: 50, ProvisioningMode: ptr.To(v1alpha1.ProvisionThick)},
				}
			},
			check: wantDataDisks,
		},
		"ADatastoreClusterChoosesADatastore": {
			model: func(m *simulator.Model) { m.Pod = 1; m.Datastore = 2 },
			before: func(w *world) {
				pod, err := w.finder.DatastoreCluster(w.t.Context(), "DC0_POD0")
				w.must(err)
				ds, err := w.finder.Datastore(w.t.Context(), "LocalDS_1")
				w.must(err)
				w.done(object.NewFolder(w.admin.Client, pod.Reference()).MoveInto(w.t.Context(), []types.ManagedObjectReference{ds.Reference()}))
				w.done(object.NewStorageResourceManager(w.admin.Client).ConfigureStorageDrsForPod(w.t.Context(), pod, types.StorageDrsConfigSpec{
					PodConfigSpec: &types.StorageDrsPodConfigSpec{Enabled: ptr.To(true)},
				}, true))
			},
			change: func(p *v1alpha1.VirtualMachineParameters) { p.DatastoreCluster = ptr.To("DC0_POD0") },
			check: func(t *testing.T, w *world, vm mo.VirtualMachine) {
				if got := vm.Config.Files.VmPathName; !strings.HasPrefix(got, "[LocalDS_1] ") {
					t.Errorf("the VM is at %s", got)
				}
			},
		},
		"Networks": {
			change: func(p *v1alpha1.VirtualMachineParameters) {
				p.Networks = []v1alpha1.Network{{Name: "VM Network", Adapter: "e1000e"}, {Name: "/DC0/network/DC0_DVPG0", Adapter: "vmxnet3"}}
			},
			check: func(t *testing.T, _ *world, vm mo.VirtualMachine) {
				cards := object.VirtualDeviceList(vm.Config.Hardware.Device).SelectByType((*types.VirtualEthernetCard)(nil))
				if len(cards) != 2 {
					t.Fatalf("%d network cards, want 2", len(cards))
				}
				if _, ok := cards[0].(*types.VirtualE1000e); !ok {
					t.Errorf("the first card is a %T", cards[0])
				}
				if _, ok := cards[1].GetVirtualDevice().Backing.(*types.VirtualEthernetCardDistributedVirtualPortBackingInfo); !ok {
					t.Errorf("the second card is in a %T", cards[1].GetVirtualDevice().Backing)
				}
			},
		},
		"ALinkedClone": {
			before: func(w *world) {
				w.must(w.vm(template).MarkAsVirtualMachine(w.t.Context(), *w.pool(), nil))
				w.done(w.vm(template).CreateSnapshot(w.t.Context(), "v1", "", false, false))
			},
			change: func(p *v1alpha1.VirtualMachineParameters) {
				p.CloneMode, p.Snapshot = v1alpha1.CloneLinked, ptr.To("v1")
			},
			check: func(*testing.T, *world, mo.VirtualMachine) {},
		},
		"ATemplateByPath": {
			change: func(p *v1alpha1.VirtualMachineParameters) {
				p.Datacenter, p.Template, p.Cluster = ptr.To("/DC0"), ptr.To("/DC0/vm/"+template), ptr.To("/DC0/host/DC0_C0")
			},
			check: func(*testing.T, *world, mo.VirtualMachine) {},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			model := tc.model
			if model == nil {
				model = func(*simulator.Model) {}
			}
			w := newWorld(t, model)
			if tc.before != nil {
				tc.before(w)
			}
			change := tc.change
			if change == nil {
				change = func(*v1alpha1.VirtualMachineParameters) {}
			}
			w.create(change)
			w.untilReady()
			tc.check(t, w, w.clone())
		})
	}
}

func (w *world) pool() *object.ResourcePool {
	w.t.Helper()
	pool, err := w.finder.ResourcePool(w.t.Context(), "DC0_C0/Resources")
	w.must(err)
	return pool
}

func TestWhatIsNotInTheInventoryIsNamed(t *testing.T) {
	cases := map[string]struct {
		change func(*v1alpha1.VirtualMachineParameters)
		want   string
	}{
		"Datacenter":   {func(p *v1alpha1.VirtualMachineParameters) { p.Datacenter = ptr.To("x") }, `forProvider.datacenter: "x"`},
		"Template":     {func(p *v1alpha1.VirtualMachineParameters) { p.Template = ptr.To("x") }, `forProvider.template: "x"`},
		"Templates":    {func(p *v1alpha1.VirtualMachineParameters) { p.Template = ptr.To("*") }, `forProvider.template: "*"`},
		"Snapshot":     {func(p *v1alpha1.VirtualMachineParameters) { p.CloneMode = v1alpha1.CloneLinked }, `forProvider.template: "golden" has no snapshot`},
		"Folder":       {func(p *v1alpha1.VirtualMachineParameters) { p.Folder = ptr.To("x") }, `forProvider.folder: "x"`},
		"Cluster":      {func(p *v1alpha1.VirtualMachineParameters) { p.Cluster = ptr.To("x") }, `forProvider.cluster: "x"`},
		"ResourcePool": {func(p *v1alpha1.VirtualMachineParameters) { p.ResourcePool = ptr.To("x") }, `forProvider.resourcePool: "/DC0/host/DC0_C0/Resources/x"`},
		"Datastore":    {func(p *v1alpha1.VirtualMachineParameters) { p.Datastore = ptr.To("x") }, `forProvider.datastore: "x"`},
		"DiskDatastore": {func(p *v1alpha1.VirtualMachineParameters) {
			p.DataDisks = []v1alpha1.DataDisk{{SizeGiB: 1}, {SizeGiB: 1, Datastore: ptr.To("x")}}
		}, `forProvider.dataDisks[1].datastore: "x"`},
		"DatastoreCluster": {func(p *v1alpha1.VirtualMachineParameters) { p.DatastoreCluster = ptr.To("x") }, `forProvider.datastoreCluster: "x"`},
		"Network":          {func(p *v1alpha1.VirtualMachineParameters) { p.Networks = []v1alpha1.Network{{Name: "x"}} }, `forProvider.networks: "x"`},
		"DiskSize":         {func(p *v1alpha1.VirtualMachineParameters) { p.DiskSizeGiB = ptr.To(int64(1)) }, `forProvider.diskSizeGiB: invalid value 1: the disk of template "golden" has 10 GiB`},
		"Name":             {func(p *v1alpha1.VirtualMachineParameters) { p.Name = ptr.To("DC0_C0_RP0_VM1") }, `forProvider.name: "DC0_C0_RP0_VM1": the folder has another VirtualMachine`},
	}
	w := newWorld(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w.create(tc.change)
			w.reconcile()
			wantCondition(t, w, xpv2.TypeSynced, "Synced=False", `ClusterProviderConfig "default": InvalidRequest: `, tc.want)
			w.delete()
			w.untilGone()
		})
	}
	if n := w.called("CloneVM_Task"); n != 0 {
		t.Errorf("%d clones were asked for", n)
	}
}

func TestAMissingSecretOfUserDataIsNamed(t *testing.T) {
	w := newWorld(t)
	w.create(func(p *v1alpha1.VirtualMachineParameters) { p.GuestInfo.UserDataSecretRef.Name = "none" })
	w.reconcile()
	wantCondition(t, w, xpv2.TypeSynced, `forProvider.guestInfo.userDataSecretRef: cannot get Secret "none"`)
	if vm := w.get(); !meta.GetExternalCreatePending(vm).IsZero() || w.waits.last > 5*time.Second {
		t.Errorf("the creation began, or is tried again as late as after %s", w.waits.last)
	}
	s := &corev1.Secret{}
	w.must(w.kube.Get(t.Context(), k8stypes.NamespacedName{Namespace: "ns", Name: "user-data"}, s))
	s.Name, s.ResourceVersion = "none", ""
	w.must(w.kube.Create(t.Context(), s))
	w.patiently("ready", func(vm *v1alpha1.VirtualMachine) bool { return vm.GetCondition(xpv2.TypeReady).Status == "True" })
	if got := extra(t, w.clone(), "guestinfo.userdata"); got != "#cloud-config" {
		t.Errorf("user data %q", got)
	}
}

// The process is killed after it requested the clone from the vCenter, and before it recorded that.
func TestACrashBetweenCloneAndRecordMakesOneVM(t *testing.T) {
	for name, tc := range map[string]struct {
		ms     int
		delete bool
	}{
		"WhenTheCloneIsDone":      {ms: 0},
		"WhileTheCloneRuns":       {ms: 400},
		"AndTheVMIsDeleted":       {ms: 400, delete: true},
		"AndTheVMIsDeletedAtOnce": {ms: 50, delete: true},
	} {
		t.Run(name, func(t *testing.T) {
			slowClones(t, tc.ms)
			w := newWorld(t)
			dying := true
			inner := w.kube
			w.kube = interceptor.NewClient(inner.(client.WithWatch), interceptor.Funcs{
				Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
					if !meta.GetExternalCreateSucceeded(obj).IsZero() && dying {
						return errors.New("the process died")
					}
					return c.Update(ctx, obj, opts...)
				},
				Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
					if !meta.GetExternalCreateSucceeded(obj).IsZero() && dying {
						return errors.New("the process died")
					}
					return c.Patch(ctx, obj, p, opts...)
				},
			})
			w.restart()
			w.create()
			for w.called("CloneVM_Task") == 0 {
				_, _ = w.control.reconciler.Reconcile(t.Context(), requestOf(key))
			}
			if vm := w.get(); !meta.ExternalCreateIncomplete(vm) || vm.Annotations[v1alpha1.AnnotationCloneTask] != "" {
				t.Fatalf("annotations %v: the creation is recorded", vm.Annotations)
			}
			dying = false
			w.restart()
			if tc.delete {
				w.delete()
				w.untilGone()
				time.Sleep(time.Duration(tc.ms) * time.Millisecond)
				if n := len(w.clones()); n != 0 {
					t.Errorf("%d VMs are left", n)
				}
				return
			}
			w.patiently("ready", func(vm *v1alpha1.VirtualMachine) bool { return vm.GetCondition(xpv2.TypeReady).Status == "True" })
			time.Sleep(time.Duration(tc.ms) * time.Millisecond)
			w.clone()
		})
	}
}

// The vCenter starts the clone, and its response is lost.
func TestALostAnswerMakesOneVM(t *testing.T) {
	slowClones(t, 200)
	w := newWorld(t)
	clones := w.loseFirstClone()
	w.create()
	w.patiently("ready", func(vm *v1alpha1.VirtualMachine) bool { return vm.GetCondition(xpv2.TypeReady).Status == "True" })
	w.clone()
	if *clones < 1 {
		t.Error("no answer was lost")
	}
}

// The recorded task is that of a second clone: it found its name in use by the first one, whose response was
// lost. A provider that restarts all the time has no memory of that.
func TestASecondCloneWhoseNameIsInUseHoldsNothing(t *testing.T) {
	w := newWorld(t)
	w.whenCloned(func(ctx *simulator.Context, req *types.CloneVM_Task, original func() soap.HasFault) soap.HasFault {
		original()
		task := simulator.CreateTask(ctx.Map.Get(req.This), "cloneVm", func(*simulator.Task) (types.AnyType, types.BaseMethodFault) {
			return nil, &types.DuplicateName{Name: req.Name}
		})
		return &methods.CloneVM_TaskBody{Res: &types.CloneVM_TaskResponse{Returnval: task.Run(ctx)}}
	})
	w.create()
	w.patiently("ready", func(vm *v1alpha1.VirtualMachine) bool {
		w.restart()
		return vm.GetCondition(xpv2.TypeReady).Status == "True"
	})
	w.clone()
}

func TestALostAnswerLeavesNoVMBehind(t *testing.T) {
	slowClones(t, 300)
	w := newWorld(t)
	w.whenCloned(func(_ *simulator.Context, _ *types.CloneVM_Task, original func() soap.HasFault) soap.HasFault {
		original()
		return &methods.CloneVM_TaskBody{Fault_: simulator.Fault("the connection broke", &types.HostCommunication{})}
	})
	w.create()
	w.reconcile()
	w.delete()
	w.untilGone()
	time.Sleep(400 * time.Millisecond)
	if n := len(w.clones()); n != 0 {
		t.Errorf("%d VMs are left", n)
	}
}

// patiently is until, with a clock that advances by a second in each reconcile, so that delays after
// failures pass quickly.
func (w *world) patiently(what string, is func(*v1alpha1.VirtualMachine) bool) {
	w.t.Helper()
	w.until(what, func(vm *v1alpha1.VirtualMachine) bool {
		w.clock.pass(time.Second)
		return is(vm)
	})
}

func TestACloneThatFailsIsTriedAgainWithPatience(t *testing.T) {
	w := newWorld(t)
	var fail types.BaseMethodFault = &types.InsufficientMemoryResourcesFault{}
	w.whenCloned(func(ctx *simulator.Context, req *types.CloneVM_Task, original func() soap.HasFault) soap.HasFault {
		if fail == nil {
			return original()
		}
		f := fail
		vm := ctx.Map.Get(req.This)
		task := simulator.CreateTask(vm, "cloneVm", func(*simulator.Task) (types.AnyType, types.BaseMethodFault) { return nil, f })
		return &methods.CloneVM_TaskBody{Res: &types.CloneVM_TaskResponse{Returnval: task.Run(ctx)}}
	})
	w.create()
	w.until("refused", func(*v1alpha1.VirtualMachine) bool { return strings.Contains(w.says(xpv2.TypeSynced), "Capacity") })
	wantCondition(t, w, xpv2.TypeSynced, "Synced=False", `ClusterProviderConfig "default": CapacityExhausted: cannot clone the template golden`)
	if w.waits.last < 20*time.Second {
		t.Errorf("looked at again after %s", w.waits.last)
	}
	for range 10 {
		w.reconcile()
	}
	if n := w.called("CloneVM_Task"); n != 1 {
		t.Errorf("%d clones were asked for at once, want 1", n)
	}
	w.clock.pass(30 * time.Second)
	w.reconcile()
	if n := w.called("CloneVM_Task"); n != 2 {
		t.Errorf("%d clones were asked for after the wait, want 2", n)
	}
	w.until("refused again", func(*v1alpha1.VirtualMachine) bool { return strings.Contains(w.says(xpv2.TypeSynced), "Capacity") })
	if w.waits.last < 45*time.Second {
		t.Errorf("looked at again after %s, although it failed twice", w.waits.last)
	}
	fail = nil
	w.clock.pass(time.Hour)
	w.untilReady()
	w.clone()
}

func TestAVMThatCannotBeStartedSaysWhy(t *testing.T) {
	w := newWorld(t)
	w.fault("PowerOnVM_Task", &types.NotEnoughLicenses{}, 1)
	w.create()
	w.until("refused", func(*v1alpha1.VirtualMachine) bool { return strings.Contains(w.says(xpv2.TypeSynced), "QuotaExceeded") })
	for range 5 {
		w.reconcile()
	}
	if n := w.called("PowerOnVM_Task"); n != 1 {
		t.Errorf("it was tried %d times at once", n)
	}
	if id := w.get().Status.AtProvider.ProviderID; id != "" {
		t.Errorf("providerID %s of a VM that never ran", id)
	}
	w.clock.pass(time.Minute)
	w.untilReady()
}
