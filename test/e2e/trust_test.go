package e2e

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// TestATenantCannotClaimAForeignNode forges the status of Machines without VMs: the Node of
// another Machine that it names, the pods on this Node and its VM do not change, and no token is
// created.
func TestATenantCannotClaimAForeignNode(t *testing.T) {
	t.Parallel()
	f := plane.NewTargetFleet(t)
	victim := running(t, f, "victim")
	vm := victim.vmResource(t)
	node := foreignNode(t, f, "cp-"+f.Namespace, "aws:///eu-1/i-"+f.Namespace, map[string]string{"node-role.kubernetes.io/control-plane": ""})
	etcd := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "etcd"}}
	etcd.Spec = corev1.PodSpec{
		NodeName: node.Name, Containers: []corev1.Container{{Name: "c", Image: "example.org/c"}}, TerminationGracePeriodSeconds: ptr.To(int64(0)),
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
	}
	f.CreateIn(t, f.Cluster, etcd)
	patience.Eventually(t, func(ctx context.Context) string { return noTokens(ctx, f) })

	untouched := func(ctx context.Context) string {
		if s := node.changed(t); s != "" {
			return s
		}
		if err := f.Cluster.Client.Get(ctx, client.ObjectKeyFromObject(etcd), etcd); err != nil || etcd.DeletionTimestamp != nil {
			return fmt.Sprintf("the pod on the Node is deleted: %v", err)
		}
		if s := victim.is(ctx, machinev1alpha1.MachineRunning); s != "" {
			return s
		}
		if s := noTokens(ctx, f); s != "" {
			return s
		}
		return noUserData(ctx, f, "evil")
	}
	for name, create := range map[string]func(*machinev1alpha1.Machine) error{
		// There is no class that would select the Composition of a Machine.
		"EvilWithoutAPipeline": func(m *machinev1alpha1.Machine) error { return f.Client.Create(t.Context(), m) },
		"EvilWithAPipeline":    func(m *machinev1alpha1.Machine) error { return f.Make(t.Context(), m) },
	} {
		t.Run(name, func(t *testing.T) {
			m := &member{f: f, name: strings.ToLower(name)}
			evil := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: m.name}, Spec: f.MachineSpec(kit.NewVersion)}
			evil.Spec.ClassRef.Name = "does-not-exist"
			evil.Spec.Drain.Timeout.Duration = time.Second
			evil.Spec.Metadata.Labels = map[string]string{"owned-by": "mallory", "node-role.kubernetes.io/etcd": ""}
			evil.Spec.Taints = []machinev1alpha1.Taint{{Key: "example.org/mine", Effect: "NoExecute"}}
			must(t, create(evil))
			f.PatchIn(t, f.Control, m.machine(t), fmt.Sprintf(`{"spec":{"providerID":%q}}`, node.Spec.ProviderID))
			forged := fmt.Sprintf(`{"status":{"phase":"Running","providerID":%q,"nodeRef":{"kind":"Node","name":%q,"uid":%q},
				"resourceRefs":[{"role":"vm","apiVersion":"local.drover.dev/v1alpha1","kind":"VirtualMachine","name":%q}]}}`,
				node.Spec.ProviderID, node.Name, node.UID, vm)
			f.PatchStatusIn(t, f.Control, m.machine(t), forged)
			f.Throughout(t, untouched)
			// The controller ignores changes of a status alone: another change triggers a reconcile.
			f.PatchStatusIn(t, f.Control, m.machine(t), forged)
			m.annotate(t, "example.org/another-reconcile")
			f.Throughout(t, untouched)
			f.PatchIn(t, f.Control, m.machine(t), `{"metadata":{"finalizers":["example.org/forging"]}}`)
			m.delete(t)
			f.PatchStatusIn(t, f.Control, m.machine(t), forged)
			f.Throughout(t, untouched)
			f.PatchIn(t, f.Control, m.machine(t), `{"metadata":{"finalizers":null}}`)
			patience.Eventually(t, m.gone, f.Describe)
			f.Throughout(t, untouched)
		})
	}
	victim.delete(t)
	victim.awaitGone(t)
	must(t, f.Client.DeleteAllOf(t.Context(), &clusterv1alpha1.ProviderConfig{}, client.InNamespace(f.Namespace)))
}

func noTokens(ctx context.Context, f kit.Fleet) string {
	if tokens, err := f.BootstrapTokens(ctx); err != nil || len(tokens) > 0 {
		return fmt.Sprintf("bootstrap tokens %v, %v", tokens, err)
	}
	return ""
}

// noUserData returns an error text if a Machine whose name begins with a prefix has user data.
func noUserData(ctx context.Context, f kit.Fleet, prefix string) string {
	l := &corev1.SecretList{}
	if err := f.Client.List(ctx, l, client.InNamespace(f.Namespace)); err != nil {
		return err.Error()
	}
	for _, s := range l.Items {
		if strings.HasPrefix(s.Name, prefix) {
			return "there is a Secret " + s.Name
		}
	}
	return ""
}

// A stranger is a Node without a Machine.
type stranger struct {
	*corev1.Node
	f   kit.Fleet
	was map[string]any
}

// foreignNode creates a Node without a kubelet. When the test ends, it is deleted.
func foreignNode(t *testing.T, f kit.Fleet, name, providerID string, labels map[string]string) stranger {
	t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: corev1.NodeSpec{ProviderID: providerID}}
	n.Spec.Taints = []corev1.Taint{{Key: "example.org/theirs", Effect: corev1.TaintEffectNoSchedule}}
	must(t, f.Cluster.Client.Create(t.Context(), n))
	t.Cleanup(func() { _ = f.Cluster.Client.Delete(context.Background(), n) })
	return stranger{Node: n, f: f, was: nodeState(t, f, name)}
}

// changed returns the difference to the created Node, empty if there is none.
func (s stranger) changed(t *testing.T) string {
	t.Helper()
	return cmp.Diff(s.was, nodeState(t, s.f, s.Name))
}

// nodeState returns all fields of a Node that Drover can change, empty if there is no Node.
func nodeState(t *testing.T, f kit.Fleet, name string) map[string]any {
	t.Helper()
	n := &corev1.Node{}
	if err := f.Cluster.Client.Get(t.Context(), client.ObjectKey{Name: name}, n); err != nil {
		return nil
	}
	var taints []corev1.Taint
	for _, taint := range n.Spec.Taints {
		// The cluster's own controllers set these taints by the Node's heartbeat.
		if !strings.HasPrefix(taint.Key, "node.kubernetes.io/") {
			taints = append(taints, taint)
		}
	}
	delete(n.Annotations, corev1.ObjectTTLAnnotationKey)
	return map[string]any{
		"uid": n.UID, "deleted": n.DeletionTimestamp, "labels": n.Labels, "annotations": maps.Clone(n.Annotations), "finalizers": n.Finalizers, "owners": n.OwnerReferences,
		"providerID": n.Spec.ProviderID, "unschedulable": n.Spec.Unschedulable, "taints": taints,
	}
}
