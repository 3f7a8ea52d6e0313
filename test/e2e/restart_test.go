package e2e

import (
	"context"
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/test/kit"
)

// TestARolloutSurvivesTheRestartOfEverything restarts each process in the middle of
// a rollout, once the rollout got a Machine further than at the restart before.
func TestARolloutSurvivesTheRestartOfEverything(t *testing.T) {
	f := plane.NewFleet(t)
	md := f.Deployment("restarted", 6, 2, 1)
	census := f.Census(t)
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)

	guard := f.Guard(t, kit.Bounds{MaxMachines: 8, MinAvailable: 5})
	f.Patch(t, md, fmt.Sprintf(`{"spec":{"template":{"spec":{"version":%q}}}}`, kit.NewVersion))
	for i, component := range []string{"crossplane", "function-drover", "provider-drover", "provider-local", "local-cloud"} {
		kit.Eventually(t, kit.Patience, func(ctx context.Context) string {
			if err := f.Client.Get(ctx, client.ObjectKeyFromObject(md), md); err != nil {
				return err.Error()
			}
			if got := int(md.Status.UpdatedReplicas); got < i+1 {
				return fmt.Sprintf("%d Machines updated, want %d before %s restarts\n%s", got, i+1, component, f.Describe(ctx))
			}
			return ""
		})
		if err := plane.Launcher(t.Context(), "restart", component); err != nil {
			t.Fatal(err)
		}
	}
	f.AwaitDeployment(t, md.Name)
	guard.Done(t, 20)
	everyMachineHasItsNode(t, f, 6)

	census.Done(t, 12)

	if err := f.Client.Delete(t.Context(), md); err != nil {
		t.Fatal(err)
	}
	f.AwaitNothing(t)
}
