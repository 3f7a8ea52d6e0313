package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// TestTwoClustersRollInWaves changes the version of two deployments whose Machines join two clusters, that of the later wave
// first. The later one begins when the earlier one is complete and has soaked.
func TestTwoClustersRollInWaves(t *testing.T) {
	t.Parallel()
	first, second := plane.NewSharedTargetFleet(t), plane.NewFleet(t)
	const soak = 5 * time.Second
	policy := &machinev1alpha1.RolloutPolicy{ObjectMeta: metav1.ObjectMeta{Name: first.Namespace}}
	policy.Spec = machinev1alpha1.RolloutPolicySpec{Delay: metav1.Duration{Duration: 5 * time.Second}, Waves: []machinev1alpha1.RolloutWave{
		{Name: "one", Clusters: []string{first.Namespace}, Soak: &metav1.Duration{Duration: soak}},
		{Name: "two", Namespaces: []clusterv1alpha1.NamespacePattern{clusterv1alpha1.NamespacePattern(second.Namespace)}},
	}}
	first.Create(t, policy)
	t.Cleanup(func() {
		if err := plane.Client.Delete(context.Background(), policy); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	earlier, later := first.Deployment("waved", 1, 1, 0), second.Deployment("waved", 1, 1, 0)
	first.Create(t, earlier)
	second.Create(t, later)
	first.AwaitDeployment(t, earlier.Name)
	second.AwaitDeployment(t, later.Name)

	roll(t, second, later, kit.NewVersion)
	roll(t, first, earlier, kit.NewVersion)
	awaitReason(t, second, later, machinev1alpha1.ConditionProgressing, machinev1alpha1.ReasonAwaitingWave)
	awaitVersions(t, first, map[string]int{kit.NewVersion: 1})
	awaitVersions(t, second, map[string]int{kit.NewVersion: 1})

	must(t, plane.Client.Get(t.Context(), client.ObjectKeyFromObject(earlier), earlier))
	last := earlier.Status.Revisions[len(earlier.Status.Revisions)-1]
	machines, err := second.Machines(t.Context())
	must(t, err)
	for _, m := range machines {
		if begin := last.CompletionTime.Add(soak); m.Spec.Version == kit.NewVersion && m.CreationTimestamp.Time.Before(begin) {
			t.Errorf("Machine %s of the later wave was created at %s, before the earlier one was complete and had soaked at %s", m.Name, m.CreationTimestamp, begin)
		}
	}
	patience.Eventually(t, func(ctx context.Context) string {
		if err := plane.Client.Get(ctx, client.ObjectKeyFromObject(policy), policy); err != nil {
			return err.Error()
		}
		for _, w := range policy.Status.Waves {
			if w.State != machinev1alpha1.WaveComplete || w.Members != 1 {
				return fmt.Sprintf("wave %s is %s with %d members", w.Name, w.State, w.Members)
			}
		}
		turns := &machinev1alpha1.RolloutTurnList{}
		if err := plane.Client.List(ctx, turns, client.InNamespace(second.Namespace)); err != nil || len(turns.Items) > 0 {
			return fmt.Sprintf("%d turns are left: %v", len(turns.Items), err)
		}
		return ""
	})
	first.DeleteDeployment(t, earlier.Name)
	second.DeleteDeployment(t, later.Name)
}
