package karpenter

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/kit/karpenter"
	"github.com/drover-dev/drover/test/patience"
)

const (
	nodeClasses = `
apiVersion: karpenter.drover.dev/v1alpha1
kind: DroverNodeClass
metadata: {name: %[1]s}
spec:
  version: %[2]s
  clusterRef: {kind: ProviderConfig, name: target}
  classes:
  - {name: %[3]s, price: %[4]q, zones: [{name: local-a}]}
  - {name: medium, price: "2.1", zones: [{name: local-a}]}
  - {name: large, price: "4.2", zones: [{name: local-b}]}`

	nodePool = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: pool}
spec:
  template:
    metadata: {labels: {example.org/team: a}}
    spec:
      nodeClassRef: {group: karpenter.drover.dev, kind: DroverNodeClass, name: pool}
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]
      startupTaints: [{key: example.org/agent, effect: NoSchedule}]
      taints: [{key: example.org/soft, value: a, effect: PreferNoSchedule}]
  disruption: {consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: Never, budgets: [{nodes: 100%}]}`
)

func TestPodsGetMachines(t *testing.T) {
	f := plane.NewTargetFleet(t)
	for _, size := range []string{"medium", "large"} {
		f.Create(t, f.Class(size, "local", fmt.Sprintf(`{"image":"ubuntu-24.04","size":%q}`, size)))
	}
	p := karpenter.Install(t, f)
	p.Start(t)
	t.Cleanup(func() { p.Kill(t) })
	agent := watchStartupTaints(t, f)
	t.Cleanup(agent)

	step(t, "ANodeClassThatIsWrongMakesNoNodeClaim", func(t *testing.T) {
		for reason, spec := range map[string]string{
			"ClassNotFound": fmt.Sprintf(nodeClasses, "no-such-class", kit.NewVersion, "tiny", "1"),
			"PriceInvalid":  fmt.Sprintf(nodeClasses, "no-number", kit.NewVersion, "small", "cheap"),
		} {
			class := karpenter.Decode(t, spec)
			f.CreateIn(t, f.Cluster, class)
			p.AwaitReady(t, class, "False", reason)
			must(t, f.Cluster.Client.Delete(t.Context(), class))
		}
	})
	step(t, "TheExampleIsAccepted", func(t *testing.T) {
		for file, c := range map[string]*kit.Cluster{"classes.yaml": f.Control, "nodepool.yaml": f.Cluster} {
			b, err := os.ReadFile(karpenter.Example(t, f, t.TempDir(), file))
			must(t, err)
			for doc := range strings.SplitSeq(string(b), "\n---\n") {
				o := karpenter.Decode(t, doc)
				// Each fleet has a class of this name.
				o.SetName("example-" + o.GetName())
				if err := c.Client.Create(t.Context(), o, client.DryRunAll); err != nil {
					t.Errorf("%s: %v", file, err)
				}
			}
		}
	})
	step(t, "PendingPodsGetTheCheapestMachinesThatFit", func(t *testing.T) {
		class := karpenter.Decode(t, fmt.Sprintf(nodeClasses, "pool", kit.NewVersion, "small", "1"))
		f.CreateIn(t, f.Cluster, class)
		p.AwaitReady(t, class, "True", "Ready")
		f.CreateIn(t, f.Cluster, karpenter.Decode(t, nodePool))
		p.MakeWorkload(t, "web", 2, "300m")
		p.AwaitWorkload(t, "web", 2)
		p.MakeWorkload(t, "db", 1, "1500m")
		p.AwaitWorkload(t, "db", 1)
		if got := classes(t, f); got["small"] == 0 || got["medium"] != 1 || got["large"] != 0 {
			t.Errorf("Machines by class: %v", got)
		}
	})
	step(t, "TheNodesHaveWhatTheirNodeClaimsSay", func(t *testing.T) {
		patience.Eventually(t, func(ctx context.Context) string { return nodesProblem(ctx, f, p) }, f.Describe, p.Tail)
	})
	step(t, "WhereTheCloudHasNoRoomTheNextClassIsTaken", func(t *testing.T) {
		fault, err := f.Cloud.CreateFault(t.Context(), localcloud.Fault{
			Kind: localcloud.FaultCreateFails, Code: localcloud.CodeCapacityExhausted, Message: "no room", Count: 1,
			Match: localcloud.FaultMatch{Tags: map[string]string{machinev1alpha1.TagNamespace: f.Namespace}},
		})
		must(t, err)
		before := classes(t, f)
		p.MakeWorkload(t, "more", 1, "900m")
		p.AwaitWorkload(t, "more", 1)
		_ = f.Cloud.DeleteFault(t.Context(), fault.ID)
		now := classes(t, f)
		if now["small"] > before["small"] || now["medium"]+now["large"] != before["medium"]+before["large"]+1 {
			t.Errorf("Machines by class: %v, before that %v", now, before)
		}
	})
	step(t, "KilledInTheMiddleOfACreationItMakesNoSecondVM", func(t *testing.T) {
		before := names(t, f)
		p.MakeWorkload(t, "killed", 1, "3500m")
		patience.Eventually(t, func(ctx context.Context) string {
			machines, err := f.Machines(ctx)
			if err != nil || len(machines) == len(before) {
				return fmt.Sprintf("no Machine is created: %v", err)
			}
			return ""
		}, f.Describe, p.Tail)
		p.Kill(t)
		p.Start(t)
		p.AwaitWorkload(t, "killed", 1)
		eachNodeClaimHasOneVM(t, f, p)
		if now := names(t, f); len(now) != len(before)+1 {
			t.Errorf("Machines %v, before that %v", now, before)
		}
	})
	step(t, "AMachineThatAUserDeletesIsDrainedByKarpenterAndReplaced", func(t *testing.T) {
		m := machineOf(t, f, "large")
		must(t, f.Client.Delete(t.Context(), &m))
		awaitGone(t, f, p, m)
		p.AwaitWorkload(t, "killed", 1)
	})
	if !kit.IsShort() {
		// The provider takes a minute to miss the VM.
		step(t, "ALostVMIsReplacedWithoutADrain", func(t *testing.T) {
			m := machineOf(t, f, "large")
			hit, err := f.Cloud.CreateFault(t.Context(), localcloud.Fault{Kind: localcloud.FaultVanish, Match: localcloud.FaultMatch{Tags: map[string]string{
				machinev1alpha1.TagNamespace: f.Namespace, machinev1alpha1.TagMachine: m.Name,
			}}})
			must(t, err)
			if hit.Count != 1 {
				t.Fatalf("%d VMs vanish", hit.Count)
			}
			awaitGone(t, f, p, m)
			p.AwaitWorkload(t, "killed", 1)
		})
	}
	step(t, "MachinesThatAreNotNeededAreConsolidated", func(t *testing.T) {
		for _, name := range []string{"db", "more", "killed"} {
			p.DeleteWorkload(t, name)
		}
		f.PatchIn(t, f.Cluster, karpenter.Object("karpenter.sh/v1", "NodePool", "pool"), `{"spec":{"disruption":{"consolidateAfter":"0s"}}}`)
		patience.Eventually(t, func(ctx context.Context) string {
			machines, err := f.Machines(ctx)
			if err != nil || len(machines) != 1 {
				return fmt.Sprintf("%d Machines are left: %v", len(machines), err)
			}
			return ""
		}, f.Describe, p.Tail)
		p.AwaitWorkload(t, "web", 2)
		if got := classes(t, f); got["small"] != 1 {
			t.Errorf("Machines by class: %v", got)
		}
	})
	step(t, "DroverDrainsNothingThatKarpenterDrains", func(t *testing.T) {
		l := &corev1.EventList{}
		must(t, f.Client.List(t.Context(), l, client.InNamespace(f.Namespace)))
		for _, e := range l.Items {
			if e.Reason == string(machinev1alpha1.EventDraining) || e.Reason == string(machinev1alpha1.EventDetachingVolumes) {
				t.Errorf("%s %s: %s: %s", e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Message)
			}
		}
	})
	step(t, "WithItsNodePoolTheLastMachineGoes", func(t *testing.T) {
		p.DeleteWorkload(t, "web")
		must(t, f.Cluster.Client.Delete(t.Context(), karpenter.Object("karpenter.sh/v1", "NodePool", "pool")))
		patience.Eventually(t, func(ctx context.Context) string {
			claims, err := p.List(ctx, "karpenter.sh/v1", "NodeClaim")
			if err != nil || len(claims) > 0 {
				return fmt.Sprintf("%d NodeClaims are left: %v", len(claims), err)
			}
			return ""
		}, f.Describe, p.Tail)
		p.Control.Revoke(t) // They are a Secret in the namespace of the Machines.
		f.AwaitNothing(t)
	})
}

// nodesProblem describes a Node that differs from its NodeClaim, "" if there is none.
func nodesProblem(ctx context.Context, f kit.Fleet, p *karpenter.Process) string {
	claims, err := p.List(ctx, "karpenter.sh/v1", "NodeClaim")
	if err != nil {
		return err.Error()
	}
	nodes, err := f.Nodes(ctx)
	if err != nil || len(nodes) != len(claims) {
		return fmt.Sprintf("%d Nodes of %d NodeClaims: %v", len(nodes), len(claims), err)
	}
	byID := map[string]corev1.Node{}
	for _, n := range nodes {
		byID[n.Spec.ProviderID] = n
	}
	for _, c := range claims {
		id, _, _ := unstructured.NestedString(c.Object, "status", "providerID")
		n, ok := byID[id]
		if !ok {
			return fmt.Sprintf("NodeClaim %s has no Node with the providerID %q", c.GetName(), id)
		}
		if status, reason := karpenter.Condition(&c, "Initialized"); status != "True" {
			return fmt.Sprintf("NodeClaim %s is not initialized: %s", c.GetName(), reason)
		}
		for k, v := range map[string]string{
			"karpenter.sh/nodepool": "pool", "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true", "karpenter.sh/capacity-type": "on-demand",
			"example.org/team": "a", corev1.LabelInstanceTypeStable: c.GetLabels()[corev1.LabelInstanceTypeStable], corev1.LabelTopologyZone: c.GetLabels()[corev1.LabelTopologyZone],
		} {
			if n.Labels[k] != v || v == "" {
				return fmt.Sprintf("label %s of Node %s is %q, want %q", k, n.Name, n.Labels[k], v)
			}
		}
		if len(n.Spec.Taints) != 1 || n.Spec.Taints[0].Key != "example.org/soft" || n.Spec.Taints[0].Value != "a" {
			return fmt.Sprintf("Node %s has the taints %v", n.Name, n.Spec.Taints)
		}
	}
	return ""
}

// watchStartupTaints acts as the agent that the startup taint of the NodePool waits for, until stop is called.
func watchStartupTaints(t *testing.T, f kit.Fleet) (stop func()) {
	t.Helper()
	w, err := f.Cluster.Client.Watch(context.WithoutCancel(t.Context()), &corev1.NodeList{})
	must(t, err)
	go func() {
		for e := range w.ResultChan() {
			n, ok := e.Object.(*corev1.Node)
			if !ok || n.DeletionTimestamp != nil {
				continue
			}
			taints := slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(t corev1.Taint) bool { return t.Key == "example.org/agent" })
			if len(taints) == len(n.Spec.Taints) || n.Labels["karpenter.sh/registered"] == "" {
				continue
			}
			n.Spec.Taints = taints
			_ = f.Cluster.Client.Update(context.Background(), n) // A conflict is another event.
		}
	}()
	return w.Stop
}

func eachNodeClaimHasOneVM(t *testing.T, f kit.Fleet, p *karpenter.Process) {
	t.Helper()
	vms, err := f.VMs(t.Context())
	must(t, err)
	of := map[string]int{}
	for _, vm := range vms {
		of[vm.Tags[machinev1alpha1.TagMachine]]++
	}
	for m, n := range of {
		if n != 1 {
			t.Errorf("Machine %s has %d VMs", m, n)
		}
	}
	claims, err := p.List(t.Context(), "karpenter.sh/v1", "NodeClaim")
	must(t, err)
	for _, c := range claims {
		if name := "karpenter-" + string(c.GetUID()); of[name] != 1 {
			t.Errorf("NodeClaim %s has %d VMs", c.GetName(), of[name])
		}
	}
}

// classes returns the number of Machines by class.
func classes(t *testing.T, f kit.Fleet) map[string]int {
	t.Helper()
	machines, err := f.Machines(t.Context())
	must(t, err)
	out := map[string]int{}
	for _, m := range machines {
		if m.DeletionTimestamp == nil {
			out[m.Spec.ClassRef.Name]++
		}
	}
	return out
}

// machineOf returns a Machine of a class that is not being deleted.
func machineOf(t *testing.T, f kit.Fleet, class string) machinev1alpha1.Machine {
	t.Helper()
	machines, err := f.Machines(t.Context())
	must(t, err)
	i := slices.IndexFunc(machines, func(m machinev1alpha1.Machine) bool {
		return m.Spec.ClassRef.Name == class && m.DeletionTimestamp == nil
	})
	if i < 0 {
		t.Fatalf("Machines by class: %v", classes(t, f))
	}
	return machines[i]
}

func awaitGone(t *testing.T, f kit.Fleet, p *karpenter.Process, m machinev1alpha1.Machine) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		if err := f.Client.Get(ctx, client.ObjectKeyFromObject(&m), &m); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Sprintf("the Machine is there still: %v", err)
		}
		return ""
	}, f.Describe, p.Tail)
}

func names(t *testing.T, f kit.Fleet) []string {
	t.Helper()
	machines, err := f.Machines(t.Context())
	must(t, err)
	out := map[string]bool{}
	for _, m := range machines {
		out[m.Name] = true
	}
	return slices.Sorted(maps.Keys(out))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func step(t *testing.T, name string, do func(t *testing.T)) {
	t.Helper()
	if !t.Run(name, do) {
		t.FailNow()
	}
}
