package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
)

// TestAPodWithABudgetIsEvictedNotKilled deletes a Machine whose Node runs a pod
// that its PodDisruptionBudget holds: nothing may go until the budget lets it.
func TestAPodWithABudgetIsEvictedNotKilled(t *testing.T) {
	t.Parallel()
	f := plane.NewFleet(t)
	md := f.Deployment("budget", 1, 1, 0)
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)
	nodes, err := f.Nodes(t.Context())
	if err != nil || len(nodes) != 1 {
		t.Fatalf("%d Nodes, %v", len(nodes), err)
	}

	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "held", Labels: map[string]string{"app": "held"}}}
	pod.Spec = corev1.PodSpec{
		NodeName:                      nodes[0].Name,
		Containers:                    []corev1.Container{{Name: "c", Image: "example.org/c"}},
		TerminationGracePeriodSeconds: ptr.To(int64(1)),
	}
	f.Create(t, pod)
	pdb := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "held"}}
	pdb.Spec.MinAvailable = ptr.To(intstr.FromInt(1))
	pdb.Spec.Selector = &metav1.LabelSelector{MatchLabels: pod.Labels}
	f.Create(t, pdb)
	kit.Eventually(t, kit.Patience, func(ctx context.Context) string {
		if err := f.Client.Get(ctx, client.ObjectKeyFromObject(pdb), pdb); err != nil {
			return err.Error()
		}
		if pdb.Status.CurrentHealthy != 1 {
			return fmt.Sprintf("the budget sees %d healthy pods", pdb.Status.CurrentHealthy)
		}
		return ""
	})

	kubectl(t, f, "delete", "md", md.Name, "--wait=false")

	step(t, "TheDrainNamesThePodAndTheBudget", func(t *testing.T) {
		kit.Eventually(t, kit.Patience, func(ctx context.Context) string {
			wns := &clusterv1alpha1.WorkerNodeList{}
			if err := f.Client.List(ctx, wns, client.InNamespace(f.Namespace)); err != nil {
				return err.Error()
			}
			for _, wn := range wns.Items {
				if d := wn.Status.AtProvider.Drain; d != nil && d.Remaining == 1 && len(d.Pods) == 1 && d.Pods[0].Name == "held" && d.Pods[0].Reason != "" {
					return ""
				}
			}
			return "no WorkerNode tells of the pod\n" + f.Describe(ctx)
		})
	})
	step(t, "NothingGoesWhileTheBudgetHolds", func(t *testing.T) {
		kit.Throughout(t, 8*time.Second, func(ctx context.Context) string {
			if err := f.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil || pod.DeletionTimestamp != nil {
				return fmt.Sprintf("the pod goes: %v %v", err, pod.DeletionTimestamp)
			}
			vms, err := f.VMs(ctx)
			if err != nil || len(vms) != 1 || vms[0].State != "Running" {
				return fmt.Sprintf("VMs %+v, %v", vms, err)
			}
			return ""
		})
		n := &corev1.Node{}
		if err := f.Client.Get(t.Context(), client.ObjectKeyFromObject(&nodes[0]), n); err != nil {
			t.Fatal(err)
		}
		if !n.Spec.Unschedulable {
			t.Error("the Node is not cordoned")
		}
	})
	step(t, "TheRestGoesOnceTheBudgetLetsIt", func(t *testing.T) {
		f.Patch(t, pdb, `{"spec":{"minAvailable":0}}`)
		kit.Eventually(t, kit.Patience, func(ctx context.Context) string {
			if err := f.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod); !apierrors.IsNotFound(err) {
				return fmt.Sprintf("the pod is still there: %v", err)
			}
			return ""
		})
		f.AwaitNothing(t)
	})
}
