package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan/aging"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

func TestAnUpdateInPlaceKeepsTheMachines(t *testing.T) {
	onEachBreaker(t, func(t *testing.T, f kit.Fleet) {
		md := f.Deployment("inplace", 3, 1, 0)
		md.Spec.Strategy.Type = machinev1alpha1.InPlaceUpdate
		md.Spec.Strategy.InPlaceUpdate = machinev1alpha1.InPlaceUpdateBounds{
			MaxSurge: ptr.To(intstr.FromInt32(0)), MaxUnavailable: ptr.To(intstr.FromInt32(1)),
		}
		f.Create(t, md)
		f.AwaitDeployment(t, md.Name)
		before, ids := machineNames(t, f), providerIDs(t, f)

		// The agent fails the first requested update.
		agent := startAgent(t, f, 1)
		guard := f.Guard(t, kit.Bounds{MaxMachines: 3, MinAvailable: 2})
		roll(t, f, md, kit.NewVersion)
		failed := awaitFailedUpdate(t, f)
		if n := cordoned(t, f); n != 1 {
			t.Errorf("%d Nodes are cordoned while an update has failed, want 1: it holds up the others", n)
		}
		kubectl(t, f, "annotate", "machine", failed, machinev1alpha1.AnnotationUpdateRetry+"=1")
		f.AwaitDeployment(t, md.Name)
		guard.Done(t, 10)
		if after := machineNames(t, f); !isSubset(before, after) || !isSubset(after, before) {
			t.Errorf("Machines %v became %v", before, after)
		}
		if after := providerIDs(t, f); fmt.Sprint(after) != fmt.Sprint(ids) {
			t.Errorf("VMs %v became %v", ids, after)
		}
		if n := agent(); n != 4 {
			t.Errorf("the agent was asked for %d updates, want 4: one for each Machine, and one again", n)
		}
		patience.Eventually(t, func(ctx context.Context) string {
			nodes, err := f.Nodes(ctx)
			if err != nil {
				return err.Error()
			}
			for _, n := range nodes {
				if _, left := n.Labels[machinev1alpha1.LabelUpdate]; left || n.Spec.Unschedulable || isOutdated(n) {
					return fmt.Sprintf("Node %s has labels %v, taints %v and is unschedulable %t", n.Name, n.Labels, n.Spec.Taints, n.Spec.Unschedulable)
				}
			}
			return ""
		})

		kubectl(t, f, "scale", "md", md.Name, "--replicas=5")
		f.AwaitDeployment(t, md.Name)
		if n := ordered(t, f); n != 5 {
			t.Errorf("%d Machines were ordered, want 3, and 2 of the new template", n)
		}

		names := machineNames(t, f)
		wantRefusedInPlace(t, f, md)
		wantNextByAge(t, f, md)
		if after := machineNames(t, f); !isSubset(names, after) || !isSubset(after, names) {
			t.Errorf("Machines %v became %v", names, after)
		}
		f.DeleteDeployment(t, md.Name)
	})
}

// ordered is the total number of Machines that the sets of a fleet ever requested.
func ordered(t *testing.T, f kit.Fleet) int64 {
	t.Helper()
	sets := &machinev1alpha1.MachineSetList{}
	if err := f.Client.List(t.Context(), sets, client.InNamespace(f.Namespace)); err != nil {
		t.Fatal(err)
	}
	n := int64(0)
	for _, s := range sets.Items {
		n += s.Status.Created
	}
	return n
}

func TestAManualUpdateInPlaceAwaitsItsSelection(t *testing.T) {
	t.Parallel()
	f := raisedFleet(t)
	md := f.Deployment("manual", 2, 1, 0)
	md.Spec.Strategy.Type = machinev1alpha1.InPlaceUpdate
	md.Spec.Strategy.InPlaceUpdate.Orchestration = machinev1alpha1.OrchestrationManual
	md.Spec.Strategy.InPlaceUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(1))
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)
	startAgent(t, f, 0)

	roll(t, f, md, kit.NewVersion)
	var candidates []corev1.Node
	patience.Eventually(t, func(ctx context.Context) string {
		candidates = nil
		nodes, err := f.Nodes(ctx)
		if err != nil {
			return err.Error()
		}
		for _, n := range nodes {
			if n.Labels[machinev1alpha1.LabelUpdate] == machinev1alpha1.UpdateLabelCandidate && isOutdated(n) {
				candidates = append(candidates, n)
			}
		}
		if len(candidates) != 2 {
			return fmt.Sprintf("%d Nodes are candidates, want 2\n%s", len(candidates), f.Describe(ctx))
		}
		return ""
	})
	kubectl(t, f, "label", "node", candidates[0].Name, machinev1alpha1.LabelUpdateSelected+"=true")
	awaitVersions(t, f, map[string]int{kit.OldVersion: 1, kit.NewVersion: 1})
	machine := candidates[1].Annotations[machinev1alpha1.AnnotationMachine]
	kubectl(t, f, "annotate", "machine", machine, machinev1alpha1.LabelUpdateSelected+"=true")
	f.AwaitDeployment(t, md.Name)
	f.DeleteDeployment(t, md.Name)
}

// wantRefusedInPlace changes the failure domain, which only another Machine can have, and forbids to replace any. Until the
// change is reverted, it is reported.
func wantRefusedInPlace(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment) {
	t.Helper()
	f.Patch(t, md, `{"spec":{"strategy":{"inPlaceUpdate":{"fallback":"Never"}},"template":{"spec":{"failureDomain":"zone-b"}}}}`)
	awaitReason(t, f, md, machinev1alpha1.ConditionStalled, machinev1alpha1.ReasonCannotUpdateInPlace)
	c := meta.FindStatusCondition(md.Status.Conditions, machinev1alpha1.ConditionValid)
	if c == nil || c.Status != "False" || !strings.HasPrefix(c.Message, `spec.template.spec.failureDomain: "zone-b" cannot be reached in place from ""; no Machine is replaced`) {
		t.Errorf("Valid does not name the field: %+v", c)
	}
	f.Patch(t, md, `{"spec":{"strategy":{"inPlaceUpdate":{"fallback":"Replace"}},"template":{"spec":{"failureDomain":null}}}}`)
	awaitReason(t, f, md, machinev1alpha1.ConditionValid, machinev1alpha1.ReasonValid)
	f.AwaitDeployment(t, md.Name)
}

// wantNextByAge checks that the status has the Machine that is due first by an age.
func wantNextByAge(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment) {
	t.Helper()
	const maxAge = 24 * time.Hour
	f.Patch(t, md, fmt.Sprintf(`{"spec":{"rollout":{"maxAge":%q}}}`, maxAge))
	awaitStatus(t, f, md, "the next Machine by age", func(s machinev1alpha1.MachineDeploymentStatus) bool { return s.Aging != nil })
	machines, err := f.Machines(t.Context())
	must(t, err)
	next := &machines[0]
	for i := range machines {
		if aging.Due(&machines[i], maxAge).Before(aging.Due(next, maxAge)) {
			next = &machines[i]
		}
	}
	if a, due := md.Status.Aging, aging.Due(next, maxAge); a.Machine != next.Name || !a.DueTime.Time.Equal(due) {
		t.Errorf("the next Machine is %+v, want %s at %s", a, next.Name, due)
	}
}

// isOutdated reports whether a Node has the taint of outdated Nodes, which pods avoid if
// possible.
func isOutdated(n corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == machinev1alpha1.TaintOutdated && t.Effect == corev1.TaintEffectPreferNoSchedule
	})
}

// startAgent acts as the update agent on all Nodes of a fleet, and fails the first updates. The
// returned function reports the number of requested updates.
func startAgent(t *testing.T, f kit.Fleet, failing int) func() int {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var mu sync.Mutex
	answered := map[string]bool{}
	answer := func(n corev1.Node) {
		id := n.Labels[machinev1alpha1.LabelUpdateTo]
		mu.Lock()
		defer mu.Unlock()
		if n.Labels[machinev1alpha1.LabelUpdate] != machinev1alpha1.UpdateLabelReady || answered[n.Name+"/"+id] {
			return
		}
		label, message := machinev1alpha1.LabelUpdatedTo, ""
		if failing > 0 {
			label, message = machinev1alpha1.LabelUpdateFailed, "the image is broken"
		}
		patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q},"annotations":{%q:%q}}}`, label, id, machinev1alpha1.AnnotationUpdateMessage, message)
		if f.Cluster.Client.Patch(ctx, &n, client.RawPatch("application/merge-patch+json", []byte(patch))) == nil {
			answered[n.Name+"/"+id] = true
			failing--
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			nodes, _ := f.Nodes(ctx)
			for _, n := range nodes {
				answer(n)
			}
			select {
			case <-ctx.Done():
			case <-time.After(500 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(answered)
	}
}

func awaitFailedUpdate(t *testing.T, f kit.Fleet) string {
	t.Helper()
	name := ""
	patience.Eventually(t, func(ctx context.Context) string {
		machines, err := f.Machines(ctx)
		if err != nil {
			return err.Error()
		}
		for _, m := range machines {
			if u := m.Status.Update; u != nil && u.State == machinev1alpha1.UpdateFailed && u.Message == "the image is broken" {
				name = m.Name
				return ""
			}
		}
		return "no update has failed\n" + f.Describe(ctx)
	})
	return name
}

func cordoned(t *testing.T, f kit.Fleet) int {
	t.Helper()
	nodes, err := f.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, node := range nodes {
		if node.Spec.Unschedulable {
			n++
		}
	}
	return n
}

// providerIDs of the VMs of a fleet by Machine.
func providerIDs(t *testing.T, f kit.Fleet) map[string]string {
	t.Helper()
	machines, err := f.Machines(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, m := range machines {
		out[m.Name] = m.Status.ProviderID
	}
	return out
}
