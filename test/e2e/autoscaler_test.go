package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// nodeGroup makes a MachineDeployment a node group of the cluster-autoscaler.
func nodeGroup(f kit.Fleet, md *machinev1alpha1.MachineDeployment) *kit.NodeGroup {
	md.Annotations = map[string]string{
		machinev1alpha1.AnnotationNodeGroupMinSize: "0", machinev1alpha1.AnnotationNodeGroupMaxSize: "10",
	}
	return &kit.NodeGroup{Fleet: f, Name: md.Name, ProvisionTime: patience.Limit()}
}

// TestTheAutoscalerDeletesNoHealthyMachineForAPreservedOne preserves a Failed Machine for
// analysis, and then deletes its Node, so that the autoscaler considers it unregistered.
func TestTheAutoscalerDeletesNoHealthyMachineForAPreservedOne(t *testing.T) {
	kit.OnlyInLong(t, "TestTheAutoscalerScalesFromZeroByClass")
	t.Parallel()
	f := plane.NewFleet(t)
	md := impatient(f, "kept", 3)
	group := nodeGroup(f, md)
	group.ProvisionTime = 5 * time.Second
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)
	machines, err := f.Machines(t.Context())
	must(t, err)
	broken, healthy := machines[0], machines[1:]

	// loops runs loops of the autoscaler, which must not delete healthy Machines.
	loops := func(t *testing.T, d time.Duration, size int32) {
		t.Helper()
		patience.Throughout(t, patience.After(d), func(ctx context.Context) string {
			if _, err := group.Loop(ctx); err != nil {
				return err.Error()
			}
			for _, m := range healthy {
				now := &machinev1alpha1.Machine{}
				if err := f.Client.Get(ctx, client.ObjectKeyFromObject(&m), now); err != nil || now.DeletionTimestamp != nil {
					return fmt.Sprintf("healthy Machine %s is deleted: %v", m.Name, err)
				}
			}
			if n, err := group.Size(ctx); err != nil || n < size {
				return fmt.Sprintf("replicas is %d, want %d: %v", n, size, err)
			}
			return ""
		})
	}
	step(t, "ItsFailureIsNotShownToTheAutoscaler", func(t *testing.T) {
		kubectl(t, f, "annotate", "machine", broken.Name, machinev1alpha1.AnnotationPreserve+"="+machinev1alpha1.PreserveWhenFailed)
		strike(t, f, localcloud.FaultKubeletStops, broken.Name)
		awaitPhase(t, f, broken.Name, machinev1alpha1.MachineFailed)
		must(t, f.Client.Get(t.Context(), client.ObjectKeyFromObject(&broken), &broken))
		if s := broken.Status; s.FailureMessage != "" || s.Preservation == nil || s.Preservation.FailureMessage == "" {
			t.Errorf("failureMessage %q, preservation %+v", s.FailureMessage, s.Preservation)
		}
		loops(t, 15*time.Second, 3)
	})
	step(t, "WithoutItsNodeItCountsAsGoneAndIsKept", func(t *testing.T) {
		must(t, f.Cluster.Client.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: broken.Status.NodeRef.Name}}))
		patience.Eventually(t, func(ctx context.Context) string {
			deleted, err := group.Loop(ctx)
			if err != nil || len(deleted) == 0 {
				return fmt.Sprintf("the autoscaler deletes nothing: %v", err)
			}
			if deleted[0] != broken.Name {
				t.Errorf("the autoscaler deletes %v", deleted)
			}
			return ""
		}, f.Describe)
		patience.Eventually(t, func(ctx context.Context) string {
			instances, err := group.Instances(ctx)
			if err != nil || len(instances) != 2 {
				return fmt.Sprintf("the autoscaler sees %v: %v", instances, err)
			}
			return ""
		}, f.Describe)
		loops(t, 20*time.Second, 2)
		must(t, f.Client.Get(t.Context(), client.ObjectKeyFromObject(&broken), &broken))
		if broken.DeletionTimestamp != nil {
			t.Error("the preserved Machine is deleted")
		}
	})
	step(t, "ItIsDeletedWhenItIsPreservedNoLonger", func(t *testing.T) {
		kubectl(t, f, "annotate", "machine", broken.Name, machinev1alpha1.AnnotationPreserve+"-")
		f.AwaitDeployment(t, md.Name)
		if names := machineNames(t, f); len(names) != 2 || names[broken.Name] {
			t.Errorf("left are %v", names)
		}
	})
	f.DeleteDeployment(t, md.Name)
}

// TestTheAutoscalerTakesAnotherGroupWhenACloudHasNoRoom requests Nodes for three pods from a
// group whose cloud is full: another group must have them long before the autoscaler gives up on
// Nodes that do not register.
func TestTheAutoscalerTakesAnotherGroupWhenACloudHasNoRoom(t *testing.T) {
	t.Parallel()
	const wanted = 3
	f := plane.NewFleet(t)
	full, other := f.Deployment("full", 0, 1, 0), f.Deployment("other", 0, 1, 0)
	groups := []*kit.NodeGroup{nodeGroup(f, full), nodeGroup(f, other)}
	for _, g := range groups {
		g.ProvisionTime = 3 * patience.Limit()
	}
	_, err := f.Cloud.CreateFault(t.Context(), localcloud.Fault{
		Kind: localcloud.FaultCreateFails, Code: localcloud.CodeCapacityExhausted, Message: "sold out", Count: 1000,
		Match: localcloud.FaultMatch{Name: "full-*", Tags: map[string]string{machinev1alpha1.TagNamespace: f.Namespace}},
	})
	must(t, err)
	f.Create(t, full)
	f.Create(t, other)
	f.AwaitDeployment(t, full.Name)
	f.AwaitDeployment(t, other.Name)

	requested, last := map[string]time.Time{}, time.Now()
	began := last
	must(t, groups[0].Resize(t.Context(), wanted))
	patience.Eventually(t, func(ctx context.Context) string {
		machines, err := f.Machines(ctx)
		if err != nil {
			return err.Error()
		}
		for _, m := range machines {
			if m.Labels[machinev1alpha1.LabelDeployment] == full.Name && m.Annotations[machinev1alpha1.AnnotationExhausted] == "" {
				requested[m.Name] = m.CreationTimestamp.Time
			}
		}
		var deleted []string
		if time.Since(last) >= kit.ScanInterval {
			last = time.Now()
			if deleted, err = groups[0].Loop(ctx); err != nil {
				return err.Error()
			}
		}
		if n, err := groups[1].Size(ctx); err != nil || len(deleted) > 0 && groups[1].Resize(ctx, n+int32(len(deleted))) != nil {
			return fmt.Sprintf("cannot scale group %s: %v", other.Name, err)
		}
		instances, err := groups[1].Instances(ctx)
		registered := 0
		for _, i := range instances {
			if i.Registered {
				registered++
			}
		}
		if err != nil || registered != wanted {
			return fmt.Sprintf("%d Nodes of group %s are registered, want %d: %v", registered, other.Name, wanted, err)
		}
		return ""
	}, f.Describe)
	if n, err := groups[0].Size(t.Context()); err != nil || n != 0 {
		t.Errorf("group %s still wants %d: %v", full.Name, n, err)
	}
	t.Logf("group %s has %d Nodes after %s", other.Name, wanted, time.Since(began).Round(time.Second))
	if !oneTried(slices.Collect(maps.Values(requested))) {
		t.Errorf("Machines %v requested VMs of a cloud without room, want one", requested)
	}
	must(t, f.Client.Delete(t.Context(), full))
	f.DeleteDeployment(t, other.Name)
}
