package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/kit"
)

// TestANodeWithoutProviderIDIsFoundByItsName has a cloud whose Nodes come without one.
// It is not parallel to others: lone Machines choose among all Compositions there are.
func TestANodeWithoutProviderIDIsFoundByItsName(t *testing.T) {
	f := plane.NewTargetFleet(t)
	const provider = "nameless"
	f.Create(t, compositionByName(t, provider))
	t.Cleanup(func() { _ = f.Client.Delete(context.Background(), compositionByName(t, provider)) })
	class := f.Class(provider, provider, `{"image":"ubuntu-24.04","size":"small"}`)
	f.Create(t, class)
	_, err := f.Cloud.CreateFault(t.Context(), localcloud.Fault{Kind: localcloud.FaultNoProviderID, Count: 2, Match: localcloud.FaultMatch{Tags: map[string]string{
		machinev1alpha1.TagNamespace: f.Namespace,
	}}})
	must(t, err)

	md := f.Deployment("workers", 2, 1, 0)
	md.Spec.Template.Spec.ClassRef.Name = class.Name
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)
	vms, err := f.VMs(t.Context())
	must(t, err)
	for _, vm := range vms {
		n := &corev1.Node{}
		if err := f.Cluster.Client.Get(t.Context(), client.ObjectKey{Name: vm.Name}, n); err != nil || n.Spec.ProviderID != vm.ProviderID {
			t.Errorf("VM %s %s has Node %q with the providerID %q, %v", vm.Name, vm.ProviderID, n.Name, n.Spec.ProviderID, err)
		}
		if console, err := f.Cloud.Console(t.Context(), vm.ID); err != nil || !strings.Contains(console, "with provider ID \n") {
			t.Errorf("the kubelet of VM %s knew its providerID, so that this shows nothing: %v\n%s", vm.Name, err, console)
		}
	}
	order := watchOrder(t, f)
	for _, vm := range vms {
		lingering(t, f, vm.Name)
	}
	// Nothing that they are made from is needed for Machines to go.
	must(t, f.Client.Delete(t.Context(), compositionByName(t, provider)))
	must(t, f.Client.Delete(t.Context(), class))
	kubectl(t, f, "delete", "md", md.Name)
	f.AwaitNothing(t)
	order.done(t, 2)
	must(t, f.Client.DeleteAllOf(t.Context(), &clusterv1alpha1.ProviderConfig{}, client.InNamespace(f.Namespace)))
}

// compositionByName is that of the local cloud, for another provider whose Nodes are
// found by their names.
func compositionByName(t *testing.T, provider string) *unstructured.Unstructured {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(kit.Root(), "apis", "machine", "compositions", "machine-local.yaml"))
	must(t, err)
	c := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal(b, &c.Object))
	c.SetName("machine-" + provider)
	c.SetLabels(map[string]string{machinev1alpha1.LabelProvider: provider})
	steps, _, err := unstructured.NestedSlice(c.Object, "spec", "pipeline")
	must(t, err)
	for name, set := range map[string]struct {
		field string
		value any
	}{"infrastructure": {"provider", provider}, "lifecycle": {"nodesByName", true}} {
		i := slices.IndexFunc(steps, func(s any) bool { return s.(map[string]any)["step"] == name })
		must(t, unstructured.SetNestedField(steps[i].(map[string]any), set.value, "input", set.field))
	}
	must(t, unstructured.SetNestedSlice(c.Object, steps, "spec", "pipeline"))
	return c
}

// TestTwoMachinesNeverClaimOneNode has WorkerNodes that want the Node of a Machine: by
// its providerID, and by its name. What becomes of them is nothing to the Node.
func TestTwoMachinesNeverClaimOneNode(t *testing.T) {
	t.Parallel()
	f := plane.NewTargetFleet(t)
	m := running(t, f, "first")
	pod := m.pod(t, "app", nil)
	owner := m.workerNode(t.Context())
	n := &corev1.Node{}
	must(t, f.Cluster.Client.Get(t.Context(), client.ObjectKey{Name: m.node}, n))

	rival := func(name string, change func(*clusterv1alpha1.WorkerNodeParameters)) *clusterv1alpha1.WorkerNode {
		wn := &clusterv1alpha1.WorkerNode{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: name}}
		wn.SetProviderConfigReference(owner.GetProviderConfigReference())
		wn.Spec.ForProvider.ProviderID = owner.Spec.ForProvider.ProviderID
		wn.Spec.ForProvider.Labels = map[string]string{"example.org/claimed-by": name}
		wn.Spec.ForProvider.Taints = []clusterv1alpha1.NodeTaint{{Key: "example.org/claimed", Effect: "NoExecute"}}
		if change != nil {
			change(&wn.Spec.ForProvider)
		}
		f.Create(t, wn)
		return wn
	}
	byID := rival("by-provider-id", nil)
	byName := rival("by-name", func(p *clusterv1alpha1.WorkerNodeParameters) {
		p.ProviderID, p.NodeName = "local:///zone-a/another", m.node
	})
	says := func(wn *clusterv1alpha1.WorkerNode, typ xpv1.ConditionType, want ...string) {
		t.Helper()
		kit.Eventually(t, kit.Patience, func(ctx context.Context) string {
			if err := f.Client.Get(ctx, client.ObjectKeyFromObject(wn), wn); err != nil {
				return err.Error()
			}
			c := wn.GetCondition(typ)
			for _, w := range want {
				if c.Status != corev1.ConditionFalse || !strings.Contains(string(c.Reason)+": "+c.Message, w) {
					return fmt.Sprintf("condition %+v, want %q", c, w)
				}
			}
			return ""
		})
	}
	says(byID, xpv1.TypeSynced, f.Namespace+"/"+owner.Name, "which is older")
	says(byName, xpv1.TypeReady, string(clusterv1alpha1.ReasonNodeJoining))
	for _, wn := range []*clusterv1alpha1.WorkerNode{byID, byName} {
		must(t, f.Client.Delete(t.Context(), wn))
		kit.Eventually(t, kit.Patience, func(ctx context.Context) string {
			if err := f.Client.Get(ctx, client.ObjectKeyFromObject(wn), wn); !apierrors.IsNotFound(err) {
				return fmt.Sprintf("WorkerNode %s is still there: %v", wn.Name, err)
			}
			return ""
		})
	}
	kit.Throughout(t, 3*time.Second, func(ctx context.Context) string {
		now := &corev1.Node{}
		if err := f.Cluster.Client.Get(ctx, client.ObjectKey{Name: m.node}, now); err != nil {
			return err.Error()
		}
		if now.UID != n.UID || now.Spec.Unschedulable || len(now.Spec.Taints) > 0 || now.Labels["example.org/claimed-by"] != "" || now.Spec.ProviderID != n.Spec.ProviderID {
			return fmt.Sprintf("the Node is not as it was: %+v %+v", now.ObjectMeta, now.Spec)
		}
		return m.is(ctx, machinev1alpha1.MachineRunning)
	})
	m.stays(t, pod)
	m.delete(t)
	m.awaitGone(t)
	must(t, f.Client.DeleteAllOf(t.Context(), &clusterv1alpha1.ProviderConfig{}, client.InNamespace(f.Namespace)))
}
