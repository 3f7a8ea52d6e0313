package kit

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/drover-dev/drover/test/patience"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// MakeWorkload creates a Deployment of pods in the target cluster, and a PodDisruptionBudget of
// the same name, so that drains must evict the pods one after the other. A pod ends two seconds
// after its deletion is requested.
func (f Fleet) MakeWorkload(ctx context.Context, name string, pods int32, maxUnavailable intstr.IntOrString) error {
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: name}}
	d.Spec.Replicas = ptr.To(pods)
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Annotations = map[string]string{"localcloud.drover.dev/stop-seconds": "2"}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "example.org/c"}}
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: name}}
	b.Spec.Selector = d.Spec.Selector
	b.Spec.MaxUnavailable = &maxUnavailable
	return errors.Join(f.Cluster.Client.Create(ctx, d), f.Cluster.Client.Create(ctx, b))
}

// WorkloadUnready returns why a workload or its budget is not ready yet, "" if both are.
func (f Fleet) WorkloadUnready(ctx context.Context, name string, pods int32) string {
	d, b := &appsv1.Deployment{}, &policyv1.PodDisruptionBudget{}
	key := client.ObjectKey{Namespace: f.Namespace, Name: name}
	if err := errors.Join(f.Cluster.Client.Get(ctx, key, d), f.Cluster.Client.Get(ctx, key, b)); err != nil {
		return err.Error()
	}
	if d.Status.ReadyReplicas != pods || b.Status.CurrentHealthy != pods {
		return fmt.Sprintf("%d of %d pods are ready, and the budget counts %d", d.Status.ReadyReplicas, pods, b.Status.CurrentHealthy)
	}
	return ""
}

// DeleteWorkload deletes the pods of a workload: otherwise they would be scheduled to the next
// Node that joins, even a Node of another fleet.
func (f Fleet) DeleteWorkload(t testing.TB, name string) {
	t.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: name}}
	if err := f.Cluster.Client.Delete(t.Context(), d, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	patience.Eventually(t, func(ctx context.Context) string {
		l := &corev1.PodList{}
		if err := f.Cluster.Client.List(ctx, l, client.InNamespace(f.Namespace)); err != nil || len(l.Items) > 0 {
			return fmt.Sprintf("%d pods are left: %v", len(l.Items), err)
		}
		return ""
	})
}

// DeleteBudget deletes the budget of a workload. Without it, the last Node of the pods can be
// drained.
func (f Fleet) DeleteBudget(ctx context.Context, name string) error {
	return f.Cluster.Client.Delete(ctx, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: name}})
}
