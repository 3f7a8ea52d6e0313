package karpenter

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/kit/karpenter"
	"github.com/drover-dev/drover/test/patience"
)

const (
	// Spot instances of four CPUs are cheaper than two on demand.
	longClass = `
apiVersion: karpenter.drover.dev/v1alpha1
kind: DroverNodeClass
metadata: {name: pool}
spec:
  version: %[1]s
  clusterRef: {kind: ProviderConfig, name: target}
  classes:
  - {name: two, price: "2", zones: [{name: local-a}]}
  - {name: four-spot, instanceType: four, capacityType: spot, price: "1", zones: [{name: local-a}]}`

	longPool = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: pool}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.drover.dev, kind: DroverNodeClass, name: pool}
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [%s]}]
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 0s, budgets: [{nodes: "1", reasons: [Drifted]}, {nodes: 100%%}]}`

	// kills of either process, each at most latestKill after the one before: Karpenter needs some seconds to start, and a
	// Machine some more.
	kills      = 20
	latestKill = 15 * time.Second
)

// A longWorld has a DroverNodeClass and a NodePool, both named pool.
type longWorld struct {
	kit.Fleet
	p *karpenter.Process
}

func newLongWorld(t *testing.T, capacityTypes string) longWorld {
	t.Helper()
	f := plane.NewTargetFleet(t)
	for name, size := range map[string]string{"two": "medium", "four-spot": "large"} {
		c := f.Class(name, "local", fmt.Sprintf(`{"image":"ubuntu-24.04","size":%q}`, size))
		c.Spec.Kubelet.Configuration = &runtime.RawExtension{Raw: []byte(`{"systemReserved":{"cpu":"100m"}}`)}
		f.Create(t, c)
	}
	p := karpenter.Install(t, f)
	p.Start(t)
	t.Cleanup(func() { p.Kill(t) })
	class := karpenter.Decode(t, fmt.Sprintf(longClass, kit.OldVersion))
	f.CreateIn(t, f.Cluster, class)
	p.AwaitReady(t, class, "True", "Ready")
	f.CreateIn(t, f.Cluster, karpenter.Decode(t, fmt.Sprintf(longPool, capacityTypes)))
	return longWorld{f, p}
}

// end the NodePool. Nothing may be left of it.
func (w longWorld) end(t *testing.T) {
	t.Helper()
	must(t, w.Cluster.Client.Delete(t.Context(), karpenter.Object("karpenter.sh/v1", "NodePool", "pool")))
	patience.Eventually(t, func(ctx context.Context) string {
		claims, err := w.p.List(ctx, "karpenter.sh/v1", "NodeClaim")
		if err != nil || len(claims) > 0 {
			return fmt.Sprintf("%d NodeClaims are left: %v", len(claims), err)
		}
		return ""
	}, w.Describe, w.p.Tail)
	must(t, w.Cluster.Client.Delete(t.Context(), karpenter.Object("karpenter.drover.dev/v1alpha1", "DroverNodeClass", "pool")))
	w.p.Control.Revoke(t)
	w.AwaitNothing(t)
}

func (w longWorld) awaitMachines(t *testing.T, n int) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		machines, err := w.Machines(ctx)
		if err != nil || len(machines) != n {
			return fmt.Sprintf("%d Machines, want %d: %v", len(machines), n, err)
		}
		return ""
	}, w.Describe, w.p.Tail)
}

func TestASpotOfferingWithoutCapacityFallsBack(t *testing.T) {
	kit.OnlyInLong(t, "TestWithoutRoomTheNextClassIsTaken in karpenter/internal/provider")
	w := newLongWorld(t, "spot, on-demand")
	fault, err := w.Cloud.CreateFault(t.Context(), localcloud.Fault{
		Kind: localcloud.FaultCreateFails, Code: localcloud.CodeCapacityExhausted, Message: "no spot instances", Count: 1000,
		Match: localcloud.FaultMatch{Size: localcloud.SizeLarge, Tags: map[string]string{machinev1alpha1.TagNamespace: w.Namespace}},
	})
	must(t, err)
	began := time.Now()
	w.p.MakeWorkload(t, "web", 3, "900m")
	w.p.AwaitWorkload(t, "web", 3)
	t.Logf("the pods are Ready after %s", time.Since(began).Round(100*time.Millisecond))
	must(t, w.Cloud.DeleteFault(t.Context(), fault.ID))
	if got := classes(t, w.Fleet); got["two"] != 2 || got["four-spot"] != 0 {
		t.Errorf("Machines by class: %v", got)
	}
	w.p.DeleteWorkload(t, "web")
	w.end(t)
}

func TestAClassThatChangesDriftsMachinesOneByOne(t *testing.T) {
	kit.OnlyInLong(t, "TestIsDriftedComparesWithTheNodeClass in karpenter/internal/provider")
	w := newLongWorld(t, "on-demand")
	w.p.MakeWorkload(t, "web", 4, "1500m")
	w.p.AwaitWorkload(t, "web", 4)
	w.PatchIn(t, w.Cluster, karpenter.Object("karpenter.drover.dev/v1alpha1", "DroverNodeClass", "pool"), fmt.Sprintf(`{"spec":{"version":%q}}`, kit.NewVersion))
	patience.Throughout(t, func(ctx context.Context) string {
		machines, err := w.Machines(ctx)
		if err != nil {
			return err.Error()
		}
		old := 0
		for _, m := range machines {
			if m.Spec.Version != kit.NewVersion {
				old++
			}
		}
		if old > 0 || len(machines) != 4 {
			return fmt.Sprintf("%d Machines, %d of the old version", len(machines), old)
		}
		return ""
	}, w.beyondBudget)
	w.p.AwaitWorkload(t, "web", 4)
	w.p.DeleteWorkload(t, "web")
	w.end(t)
}

// beyondBudget describes Nodes that are disrupted although the budget is one. A Node counts until its drain has ended, as in
// Karpenter's budgets.
func (w longWorld) beyondBudget(ctx context.Context) string {
	claims, err := w.p.List(ctx, "karpenter.sh/v1", "NodeClaim")
	if err != nil {
		return err.Error()
	}
	var disrupted []string
	for _, c := range claims {
		if terminating, _ := karpenter.Condition(&c, "InstanceTerminating"); c.GetDeletionTimestamp() != nil && terminating != "True" {
			disrupted = append(disrupted, c.GetName())
		}
	}
	if len(disrupted) > 1 {
		return fmt.Sprintf("%d NodeClaims are disrupted at once: %v", len(disrupted), disrupted)
	}
	return ""
}

func TestANodeWhoseKubeletDiesIsReplaced(t *testing.T) {
	kit.OnlyInLong(t, "Karpenter's specs of its node repair")
	w := newLongWorld(t, "on-demand")
	// Kubernetes evicts the pods after five minutes. The Node must not go because it is empty then.
	w.PatchIn(t, w.Cluster, karpenter.Object("karpenter.sh/v1", "NodePool", "pool"), `{"spec":{"disruption":{"consolidateAfter":"Never"}}}`)
	// Karpenter replaces a fifth of the Nodes of a NodePool at most.
	w.p.MakeWorkload(t, "web", 5, "1500m")
	w.p.AwaitWorkload(t, "web", 5)
	m := machineOf(t, w.Fleet, "two")
	hit, err := w.Cloud.CreateFault(t.Context(), localcloud.Fault{Kind: localcloud.FaultKubeletStops, Match: localcloud.FaultMatch{Tags: map[string]string{
		machinev1alpha1.TagNamespace: w.Namespace, machinev1alpha1.TagMachine: m.Name,
	}}})
	must(t, err)
	if hit.Count != 1 {
		t.Fatalf("the kubelets of %d VMs stop", hit.Count)
	}
	patience.Eventually(t, func(ctx context.Context) string {
		err := w.Client.Get(ctx, client.ObjectKeyFromObject(&m), &m)
		if client.IgnoreNotFound(err) != nil {
			return err.Error()
		}
		if err != nil {
			return ""
		}
		// Karpenter waits ten minutes, which is progress.
		return fmt.Sprintf("the Machine is there still, and its Node not Ready for %s", w.unready(ctx).Truncate(time.Minute))
	}, w.Describe, w.p.Tail)
	w.p.AwaitWorkload(t, "web", 5)
	log, err := os.ReadFile(w.p.Log)
	must(t, err)
	if !strings.Contains(string(log), "deleting unhealthy node") {
		t.Error("Karpenter's node repair did not replace the Node")
	}
	w.p.DeleteWorkload(t, "web")
	w.end(t)
}

// unready returns how long a Node is not Ready.
func (w longWorld) unready(ctx context.Context) time.Duration {
	nodes, err := w.Nodes(ctx)
	if err != nil {
		return 0
	}
	for _, n := range nodes {
		i := slices.IndexFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue
		})
		if i >= 0 {
			return time.Since(n.Status.Conditions[i].LastTransitionTime.Time)
		}
	}
	return 0
}

// TestKillsMakeNoSecondVMAndLeakNone kills Karpenter and Drover at random points, while Machines are created and deleted.
func TestKillsMakeNoSecondVMAndLeakNone(t *testing.T) {
	kit.OnlyInLong(t, "TestPodsGetMachines/KilledInTheMiddleOfACreationItMakesNoSecondVM")
	w := newLongWorld(t, "on-demand")
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	for i := range kills {
		// With each other kill, pods come or go.
		if name := "web"; i%4 == 0 {
			w.p.MakeWorkload(t, name, 4, "1500m")
		} else if i%4 == 2 {
			w.p.DeleteWorkload(t, name)
		}
		time.Sleep(time.Duration(dice.Int64N(int64(latestKill))))
		if dice.IntN(2) == 0 {
			w.p.Kill(t)
			w.p.Start(t)
			continue
		}
		pid, err := plane.PID(t.Context(), "provider-drover")
		must(t, err)
		must(t, syscall.Kill(pid, syscall.SIGKILL))
		// The supervisor would wait longer after each end.
		must(t, plane.Launcher(t.Context(), "stop", "provider-drover"))
		must(t, plane.Launcher(t.Context(), "start", "provider-drover"))
	}
	w.p.MakeWorkload(t, "last", 2, "1500m")
	w.p.AwaitWorkload(t, "last", 2)
	eachNodeClaimHasOneVM(t, w.Fleet, w.p)
	w.p.DeleteWorkload(t, "last")
	w.awaitMachines(t, 0)
	w.end(t)
	changes, err := w.History(t.Context())
	must(t, err)
	vms := map[string]int{}
	for _, c := range changes {
		if c.Kind == localcloud.ChangeCreated {
			vms[c.Tags[machinev1alpha1.TagMachineUID]]++
		}
	}
	for m, n := range vms {
		if n != 1 {
			t.Errorf("the Machine with UID %s had %d VMs", m, n)
		}
	}
	t.Logf("%d Machines had one VM each", len(vms))
}
