package clusterapi

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/clusterapi/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
	"github.com/drover-dev/drover/internal/native/nativetest"
)

// share makes the Cluster one that Cluster API's own controllers keep, and holds their Lease.
func (l *lab) share(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	infra := l.object(l.kind("LabCluster"), clusterName)
	cluster := newObject(l.core.coreKind("Cluster"), nativetest.Namespace, clusterName)
	cluster.SetUID("uid-of-cluster")
	cluster.SetLabels(map[string]string{v1alpha1.LabelShared: "true"})
	cluster.Object["spec"] = map[string]any{"infrastructureRef": referenceOf(l.core, kind{GroupVersionKind: infra.GroupVersionKind()}, nativetest.Namespace, infra.GetName())}
	cluster.Object["status"] = clusterStatus(l.core, time.Now())
	l.must(l.inner.Create(t.Context(), cluster))
	infra.SetOwnerReferences([]metav1.OwnerReference{belongsTo(cluster)})
	l.must(l.inner.Update(t.Context(), infra))
	l.must(l.inner.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "capi-system", Name: v1alpha1.LeaseOfClusterAPI}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To("capi-controller-manager-0"), LeaseDurationSeconds: ptr.To[int32](15), RenewTime: &metav1.MicroTime{Time: time.Now().Add(time.Hour)},
	}}))
	return cluster
}

// finalize adds the finalizer that Cluster API's own controller adds to each Machine that is not being deleted.
func (l *lab) finalize(name string) {
	m := l.object(l.core.coreKind("Machine"), name)
	if m != nil && m.GetDeletionTimestamp() == nil && !slices.Contains(m.GetFinalizers(), finalizerCore) {
		m.SetFinalizers(append(m.GetFinalizers(), finalizerCore))
		l.must(l.inner.Update(context.Background(), m))
	}
}

// leave deletes a VM step by step beside Cluster API's controllers, and returns when it is gone.
func (l *lab) leave(t *testing.T, vm *v1alpha1.VirtualMachine, name string) {
	t.Helper()
	a, err := l.cloud().Provider.Open(l.cloud().Config, l.credentials())
	if err != nil {
		t.Fatal(err)
	}
	vm.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
	for range 20 {
		got, err := a.Get(t.Context(), vm, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		if got.State == native.StateNone {
			break
		}
		if got.State != native.StateDeleting {
			if err := a.Delete(t.Context(), vm); err != nil {
				t.Fatal(err)
			}
		}
		l.do(func() {
			l.finalize(name)
			if l.object(l.kind("LabMachine"), name) != nil && l.object(l.core.coreKind("Machine"), name) == nil {
				t.Error("the Machine is gone before its InfraMachine")
			}
		})
		time.Sleep(time.Second)
	}
	if left := l.cloud().Leftovers(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestASharedClusterIsUsedBesideClusterAPI makes and deletes a VM while Cluster API's own controllers hold their Lease.
func TestASharedClusterIsUsedBesideClusterAPI(t *testing.T) {
	each(t, func(t *testing.T, c release) {
		l, vm := newLab(c), newVM("vm-1", nil)
		before := l.share(t)
		nativetest.Until(t, l.cloud(), vm, isRunning, func(vm *v1alpha1.VirtualMachine) {
			l.do(func() {
				m := l.object(c.core.coreKind("Machine"), "vm-1")
				if _, paused := m.GetAnnotations()[annotationPaused]; !paused {
					t.Errorf("the Machine is not paused for Cluster API's controllers: annotations %v", m.GetAnnotations())
				}
				if after := l.object(c.core.coreKind("Cluster"), clusterName); after.GetResourceVersion() != before.GetResourceVersion() {
					t.Errorf("the Cluster was written: %v", after.Object)
				}
				l.finalize("vm-1")
			})
			l.leave(t, vm, "vm-1")
		})
	})
}

// TestAnInfraMachineThatClusterAPIMadeIsAdopted has a VirtualMachine that was imported, with the objects as the import leaves
// them: it runs, nothing is written, and its deletion ends with all of them gone, the InfraMachine first.
func TestAnInfraMachineThatClusterAPIMadeIsAdopted(t *testing.T) {
	each(t, func(t *testing.T, c release) {
		l, vm := newLab(c), newVM("md-abcde-1", nil)
		cluster := l.share(t)
		labels := map[string]string{v1alpha1.LabelVirtualMachine: "uid-of-infra", labelCluster: clusterName}
		machine := newObject(c.core.coreKind("Machine"), nativetest.Namespace, "md-abcde-1")
		machine.SetUID("uid-of-machine")
		machine.SetLabels(labels)
		machine.SetFinalizers([]string{finalizerCore, v1alpha1.FinalizerMachine})
		machine.SetOwnerReferences([]metav1.OwnerReference{belongsTo(cluster)})
		l.must(l.inner.Create(t.Context(), machine))
		infra := newObject(l.kind("LabMachine"), nativetest.Namespace, "md-abcde-1")
		infra.SetUID("uid-of-infra")
		infra.SetLabels(labels)
		infra.SetFinalizers([]string{finalizerProvider})
		infra.SetOwnerReferences([]metav1.OwnerReference{ownedBy(machine)})
		infra.Object["spec"] = map[string]any{"providerID": "lab://1"}
		l.must(l.inner.Create(t.Context(), infra))
		l.provision(infra)
		l.vms["uid-of-infra"] = nativetest.Existing{Name: "md-abcde-1"}
		before := l.object(l.kind("LabMachine"), "md-abcde-1").GetResourceVersion()

		meta.SetExternalName(vm, "uid-of-infra")
		vm.SetManagementPolicies(xpv2.ManagementPolicies{xpv2.ManagementActionObserve, xpv2.ManagementActionDelete})
		nativetest.Until(t, l.cloud(), vm, isRunning, func(vm *v1alpha1.VirtualMachine) {
			if at := vm.Status.AtProvider; at.ProviderID != "lab://1" || at.InfraMachine == nil || at.InfraMachine.Name != "md-abcde-1" {
				t.Errorf("status %+v", at)
			}
			l.do(func() {
				if after := l.object(l.kind("LabMachine"), "md-abcde-1").GetResourceVersion(); after != before {
					t.Errorf("the InfraMachine was written: version %s, before %s", after, before)
				}
			})
			l.leave(t, vm, "md-abcde-1")
		})
	})
}
