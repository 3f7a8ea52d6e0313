package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// TestANodeWithoutProviderIDIsFoundByItsName has a cloud whose Nodes have no providerID: they are
// found by the join token that they registered with, and by their names.
func TestANodeWithoutProviderIDIsFoundByItsName(t *testing.T) {
	kit.OnlyInLong(t, "TestANodeCannot, and the tests of claims in internal/controller/machine")
	t.Parallel()
	f := plane.NewTargetFleet(t)
	const provider = "nameless"
	f.Create(t, compositionFor(t, provider))
	t.Cleanup(func() { _ = f.Client.Delete(context.Background(), compositionFor(t, provider)) })
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
	// Machines must be deletable without the objects that they are created from.
	must(t, f.Client.Delete(t.Context(), compositionFor(t, provider)))
	must(t, f.Client.Delete(t.Context(), class))
	kubectl(t, f, "delete", "md", md.Name)
	f.AwaitNothing(t)
	order.done(t, 2)
	must(t, f.Client.DeleteAllOf(t.Context(), &clusterv1alpha1.ProviderConfig{}, client.InNamespace(f.Namespace)))
}

// compositionFor returns the Composition of the local cloud for another provider.
func compositionFor(t *testing.T, provider string) *unstructured.Unstructured {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(kit.Root(), "apis", "machine", "compositions", "machine-local.yaml"))
	must(t, err)
	c := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal(b, &c.Object))
	c.SetName("machine-" + provider)
	c.SetLabels(map[string]string{machinev1alpha1.LabelProvider: provider})
	changeStep(t, c, "infrastructure", func(step map[string]any) {
		must(t, unstructured.SetNestedField(step, provider, "input", "provider"))
	})
	return c
}

// changeStep of a Composition.
func changeStep(t *testing.T, c *unstructured.Unstructured, name string, change func(step map[string]any)) {
	t.Helper()
	steps, _, err := unstructured.NestedSlice(c.Object, "spec", "pipeline")
	must(t, err)
	i := slices.IndexFunc(steps, func(s any) bool { return s.(map[string]any)["step"] == name })
	change(steps[i].(map[string]any))
	must(t, unstructured.SetNestedSlice(c.Object, steps, "spec", "pipeline"))
}

// TestTwoMachinesNeverClaimOneNode has a Node that pretends to be the Node of a Machine, and a
// Machine whose status claims the Node of another Machine. Neither may change anything: a Machine
// has one Node, and a Node has one Machine.
func TestTwoMachinesNeverClaimOneNode(t *testing.T) {
	kit.OnlyInLong(t, "TestANodeCannot, and the tests of claims in internal/controller/machine")
	t.Parallel()
	f := plane.NewTargetFleet(t)
	m, rival := running(t, f, "first"), running(t, f, "rival")
	pod := m.pod(t, "app", nil)
	owner, n := m.machine(t), &corev1.Node{}
	must(t, f.Cluster.Client.Get(t.Context(), client.ObjectKey{Name: m.node}, n))

	// A kubelet chooses the providerID and labels of the Node that it registers.
	rogue := foreignNode(t, f, "rogue-"+f.Namespace, owner.Status.ProviderID, map[string]string{clusterv1alpha1.LabelJoinToken: string(owner.UID)})
	// A user who may write a status can claim anything in it.
	f.PatchStatusIn(t, f.Control, rival.machine(t), fmt.Sprintf(
		`{"status":{"providerID":%q,"nodeRef":{"kind":"Node","name":%q,"uid":%q}}}`, owner.Status.ProviderID, n.Name, n.UID))
	rival.annotate(t, "example.org/reconcile")
	// The Node of the first Machine gets the label of the rival's token.
	f.PatchIn(t, f.Cluster, n.DeepCopy(), fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, clusterv1alpha1.LabelJoinToken, rival.machine(t).UID))

	patience.Eventually(t, func(ctx context.Context) string {
		s := rival.machine(t).Status
		if s.NodeRef == nil || s.NodeRef.Name != rival.node || s.ProviderID == owner.Status.ProviderID {
			return fmt.Sprintf("the rival has the Node %+v and the providerID %q", s.NodeRef, s.ProviderID)
		}
		now := &corev1.Node{}
		if err := f.Cluster.Client.Get(ctx, client.ObjectKey{Name: m.node}, now); err != nil || now.Labels[clusterv1alpha1.LabelJoinToken] != string(owner.UID) {
			return fmt.Sprintf("the Node has labels %v, %v", now.Labels, err)
		}
		return ""
	}, f.Describe)
	was := nodeState(t, f, m.node)
	f.Throughout(t, func(ctx context.Context) string {
		if diff := cmp.Diff(was, nodeState(t, f, m.node)); diff != "" {
			return diff
		}
		if s := rogue.changed(t); s != "" {
			return s
		}
		if s := m.is(ctx, machinev1alpha1.MachineRunning); s != "" {
			return s
		}
		return rival.is(ctx, machinev1alpha1.MachineRunning)
	})

	rival.delete(t)
	rival.awaitGone(t)
	if diff := cmp.Diff(was, nodeState(t, f, m.node)); diff != "" {
		t.Errorf("the deletion of the rival changed the Node of the first: %s", diff)
	}
	m.stays(t, pod)
	m.delete(t)
	m.awaitGone(t)
	if s := rogue.changed(t); s != "" {
		t.Error(s)
	}
	must(t, f.Client.DeleteAllOf(t.Context(), &clusterv1alpha1.ProviderConfig{}, client.InNamespace(f.Namespace)))
}
