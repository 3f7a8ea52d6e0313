package vsphere

import (
	"strings"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/vmware/govmomi/simulator"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/apis/vsphere/v1alpha1"
	"github.com/drover-dev/drover/internal/inventory"
)

func (w *world) list(installation string) ([]inventory.VM, bool, error) {
	w.t.Helper()
	i := &v1alpha1.VirtualMachineInventory{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "i"}}
	i.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: "default"})
	l, err := connectInventory(w.kube, w.control.pool)(w.t.Context(), i)
	w.must(err)
	return l.List(w.t.Context(), installation)
}

func TestVMsOfAnInstallationAreListed(t *testing.T) {
	w := newWorld(t)
	if vms, complete, err := w.list("me"); len(vms) != 0 || !complete || err != nil {
		t.Errorf("of a vCenter without our attributes: %v, %t, %v", vms, complete, err)
	}
	tags := map[string]string{machinev1alpha1.TagInstallation: "me", machinev1alpha1.TagMachineUID: "m"}
	w.create(func(p *v1alpha1.VirtualMachineParameters) { p.CustomAttributes = tags })
	vm := w.untilReady()
	vms, complete, err := w.list("me")
	w.must(err)
	if len(vms) != 1 || !complete {
		t.Fatalf("%v, complete %t", vms, complete)
	}
	vms[0].CreatedAt = vm.CreationTimestamp.Time
	want := inventory.VM{ExternalName: meta.GetExternalName(vm), ProviderID: vm.Status.AtProvider.ProviderID, Tags: tags, CreatedAt: vm.CreationTimestamp.Time}
	if d := cmp.Diff(want, vms[0]); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if vms, complete, err := w.list("another"); len(vms) != 0 || !complete || err != nil {
		t.Errorf("of another installation: %v, %t, %v", vms, complete, err)
	}
	w.edit(func(vm *simulator.VirtualMachine) { vm.Config.InstanceUuid = "" })
	if _, complete, err := w.list("me"); complete || err != nil {
		t.Errorf("with a VM that cannot be reported: complete %t, %v", complete, err)
	}
	w.rotate("wrong")
	if _, complete, err := w.list("me"); complete || err == nil || !strings.Contains(err.Error(), `ClusterProviderConfig "default": PermissionDenied`) {
		t.Errorf("with a wrong password: complete %t, %v", complete, err)
	}
}

// An orphan is adopted by its external name, and its own disks are determined carefully.
func TestAnOrphanIsAdoptedAndDeletedWithoutItsVolumes(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.untilReady()
	w.attach("[LocalDS_0] volumes/pv.vmdk", nothing)
	w.done(w.vm(vmName).PowerOff(t.Context()))
	vm := w.get()
	vm.SetFinalizers(nil)
	w.must(w.kube.Update(t.Context(), vm))
	w.delete()
	w.restart()
	orphan := &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: vmName, UID: "another"}}
	meta.SetExternalName(orphan, vmUID)
	orphan.SetProviderConfigReference(vm.GetProviderConfigReference())
	orphan.Spec.ManagementPolicies = xpv2.ManagementPolicies{xpv2.ManagementActionObserve}
	w.must(w.kube.Create(t.Context(), orphan))
	w.reconcile()
	wantCondition(t, w, xpv2.TypeSynced, "Synced=True")
	w.clone() // is only observed
	w.change(pin)
	w.reconcile()
	w.delete()
	w.untilGone()
	if n := len(w.clones()); n != 0 || !w.exists("[LocalDS_0] volumes/pv.vmdk") {
		t.Errorf("%d VMs are left; the volume is there: %t", n, w.exists("[LocalDS_0] volumes/pv.vmdk"))
	}
}
