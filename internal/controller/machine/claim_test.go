package machine

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/machine/nodekeeper/nodetest"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/workernode"
)

// TestAForgedStatusReachesNoNode plays a tenant who may write Machines and their status. No
// VM was made for the Machine.
func TestAForgedStatusReachesNoNode(t *testing.T) {
	for name, cloudNamesNodes := range map[string]bool{"WhereDroverNamesNodes": false, "WhereTheCloudDoes": true} {
		for restart, restarted := range map[string]bool{"": false, "AfterARestart": true} {
			t.Run(name+restart, func(t *testing.T) {
				m := aMachine(false, machinev1alpha1.FinalizerTerminator, metav1.FinalizerDeleteDependents)
				m.Spec.Drain.Timeout.Duration = time.Second
				m.Status.ProviderID, m.Status.ResourceRefs = "aws:///eu-1/i-controlplane1", nil
				m.Status.NodeRef = &machinev1alpha1.NodeReference{Name: "cp-1", UID: "uid-cp-1"}
				w := newWorld(t, m, aClass(), revision("machine-cloud", 1))
				cp, etcd := nodetest.Joined("cp-1", "uid-cp-1", "", "aws:///eu-1/i-controlplane1"), nodetest.PodOn("etcd", func(p *corev1.Pod) { p.Spec.NodeName = "cp-1" })
				w.join(cp, etcd)
				w.script = func(ctx context.Context, req *fnRequest) (*fnResponse, error) {
					// As the step lifecycle does: the status is all that is known of the VM.
					observed := machineIn(t, req)
					return answer(t, req, answered{
						vm: plan.VM{State: plan.VMAbsent, ProviderID: observed.Status.ProviderID},
						node: &workernode.Parameters{
							ProviderID: observed.Status.ProviderID, CloudNamesNodes: cloudNamesNodes,
							Labels: map[string]string{"owned-by": "mallory"}, Taints: []workernode.Taint{{Key: "a", Effect: "NoExecute"}},
						},
						status: observed.Status,
					}), ctx.Err()
				}
				for range 3 {
					w.step()
				}
				m = w.machine()
				m.Status.Drain = &machinev1alpha1.DrainStatus{StartTime: metav1.Unix(0, 0), Stage: machinev1alpha1.DrainDeletingNode}
				if err := w.client.Status().Update(t.Context(), m); err != nil {
					t.Fatal(err)
				}
				if err := w.client.Delete(t.Context(), m); err != nil {
					t.Fatal(err)
				}
				w.now = time.Now().Add(time.Hour)
				if restarted {
					w.restart()
				}
				for range 3 {
					w.step()
				}
				if got := w.nodeWrites(); len(got) > 0 || !w.hasNode("cp-1") {
					t.Errorf("writes to the target cluster: %v", got)
				}
				if w.isHeld() {
					t.Error("the Machine is still held")
				}
			})
		}
	}
}
