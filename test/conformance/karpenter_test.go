package conformance

import (
	"context"
	"fmt"
	"testing"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/kit/karpenter"
	"github.com/drover-dev/drover/test/patience"
)

const (
	classOfTwoClouds = `
apiVersion: karpenter.drover.dev/v1alpha1
kind: DroverNodeClass
metadata: {name: two-clouds}
spec:
  version: %[1]s
  clusterRef: {kind: %[3]s, name: %[4]s}
  classes:
  - {name: %[2]s, price: "1", zones: [{name: fsn1}]}
  - {name: here, price: "2", zones: [{name: local-a}]}`

	poolOfTwoClouds = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: two-clouds}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.drover.dev, kind: DroverNodeClass, name: two-clouds}
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 0s, budgets: [{nodes: 100%}]}`
)

// TestKarpenterChoosesBetweenCloudsByPrice has a NodePool with a class of Hetzner Cloud and one of the local cloud in one
// cluster. A pod gets the cheaper Machine, and when the prices change, the next one gets one of the other cloud.
func TestKarpenterChoosesBetweenCloudsByPrice(t *testing.T) {
	kit.OnlyInLong(t, "TestOfTwoCloudsTheCheaperOneIsTaken in karpenter/internal/provider")
	w := newWorld(t, registered["hcloud"])
	w.Create(t, w.Fleet.Class("here", "local", `{"image":"ubuntu-24.04","size":"large"}`))
	p := karpenter.Install(t, w.Fleet)
	p.Start(t)
	t.Cleanup(func() { p.Kill(t) })
	ref := w.MachineSpec(kit.NewVersion).ClusterRef
	class := karpenter.Decode(t, fmt.Sprintf(classOfTwoClouds, kit.NewVersion, w.class.Name, ref.Kind, ref.Name))
	w.CreateIn(t, w.Cluster, class)
	p.AwaitReady(t, class, "True", "Ready")
	w.CreateIn(t, w.Cluster, karpenter.Decode(t, poolOfTwoClouds))

	// The guests of the fake have one CPU each.
	p.MakeWorkload(t, "cheap-there", 1, "900m")
	p.AwaitWorkload(t, "cheap-there", 1)
	w.machinesBy(t, map[string]int{w.class.Name: 1})
	w.PatchIn(t, w.Cluster, class, fmt.Sprintf(`{"spec":{"classes":[{"name":%q,"price":"3","zones":[{"name":"fsn1"}]},{"name":"here","price":"2","zones":[{"name":"local-a"}]}]}}`, w.class.Name))
	p.AwaitReady(t, class, "True", "Ready")
	// It has no room beside the other one.
	p.MakeWorkload(t, "cheap-here", 1, "3500m")
	p.AwaitWorkload(t, "cheap-here", 1)
	w.machinesBy(t, map[string]int{w.class.Name: 1, "here": 1})
	if vms, err := w.account.VMs(t.Context()); err != nil || len(vms) != 1 {
		t.Errorf("%d VMs at Hetzner: %v", len(vms), err)
	}

	p.DeleteWorkload(t, "cheap-there")
	p.DeleteWorkload(t, "cheap-here")
	patience.Eventually(t, func(ctx context.Context) string {
		machines, err := w.Machines(ctx)
		vms, verr := w.account.VMs(ctx)
		if err != nil || verr != nil || len(machines)+len(vms) > 0 {
			return fmt.Sprintf("%d Machines and %d VMs at Hetzner are left: %v %v", len(machines), len(vms), err, verr)
		}
		return ""
	}, w.Describe, p.Tail)
	for _, o := range []string{"NodePool", "DroverNodeClass"} {
		group := map[string]string{"NodePool": "karpenter.sh/v1", "DroverNodeClass": "karpenter.drover.dev/v1alpha1"}[o]
		must(t, w.Cluster.Client.Delete(t.Context(), karpenter.Object(group, o, "two-clouds")))
	}
	p.Control.Revoke(t)
}

// machinesBy checks how many Machines there are of each class.
func (w *world) machinesBy(t *testing.T, want map[string]int) {
	t.Helper()
	machines, err := w.Machines(t.Context())
	must(t, err)
	got := map[string]int{}
	for _, m := range machines {
		if m.DeletionTimestamp == nil && m.Status.Phase == machinev1alpha1.MachineRunning {
			got[m.Spec.ClassRef.Name]++
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("Machines by class: %v, want %v", got, want)
	}
}
