package karpenter

import (
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/kit"
)

// many Machines are made, each for three pods.
const many = 100

// TestThreeHundredPodsBringAHundredMachines prints how long it takes, beside a MachineDeployment of as many Machines of the same
// class on the same control planes: alone, and while as many pods wait for its Nodes. The pods cost as much as the Machines.
func TestThreeHundredPodsBringAHundredMachines(t *testing.T) {
	kit.OnlyInLong(t, "TestPodsGetMachines/PendingPodsGetTheCheapestMachinesThatFit")
	w := newLongWorld(t, "on-demand")
	// As in "make load", VMs boot at once.
	before, err := w.Cloud.GetSettings(t.Context())
	must(t, err)
	_, err = w.Cloud.SetSettings(t.Context(), localcloud.Settings{})
	must(t, err)

	alone := w.timeDeployment(t, 0)
	karpenter := w.timeWorkload(t)
	if got := classes(t, w.Fleet); got["two"] != many || len(got) != 1 {
		t.Errorf("Machines by class: %v", got)
	}
	eachNodeClaimHasOneVM(t, w.Fleet, w.p)
	w.p.DeleteWorkload(t, "web")
	w.awaitMachines(t, 0)
	w.end(t)
	withPods := w.timeDeployment(t, 3*many)

	_, err = w.Cloud.SetSettings(t.Context(), *before)
	must(t, err)
	t.Logf("%d Machines of a MachineDeployment run after %.1f s, and %d pods on them after %.1f s; on as many Machines of Karpenter's after %.1f s: %.2f and %.2f times",
		many, alone.Seconds(), 3*many, withPods.Seconds(), karpenter.Seconds(), karpenter.Seconds()/alone.Seconds(), karpenter.Seconds()/withPods.Seconds())
}

// timeWorkload returns when all pods are ready.
func (w longWorld) timeWorkload(t *testing.T) time.Duration {
	t.Helper()
	began := time.Now()
	w.p.MakeWorkload(t, "web", 3*many, "600m")
	w.p.AwaitWorkload(t, "web", 3*many)
	return time.Since(began)
}

// timeDeployment returns when a MachineDeployment is complete, and the pods that waited for its Nodes are ready.
func (w longWorld) timeDeployment(t *testing.T, pods int32) time.Duration {
	t.Helper()
	md := w.Deployment("plain", many, 10, 0)
	md.Spec.Template.Spec.ClassRef.Name = "two"
	began := time.Now()
	w.Create(t, md)
	if pods > 0 {
		w.p.MakeWorkload(t, "waiting", pods, "600m")
		w.p.AwaitWorkload(t, "waiting", int(pods))
	}
	w.AwaitDeployment(t, md.Name)
	took := time.Since(began)
	if pods > 0 {
		w.p.DeleteWorkload(t, "waiting")
	}
	must(t, w.Client.Delete(t.Context(), md))
	w.awaitMachines(t, 0)
	return took
}
