package e2e

import (
	"context"
	"fmt"
	"syscall"
	"testing"

	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// TestARolloutSurvivesTheRestartOfEverything restarts each process in the middle of a rollout,
// each time after the rollout has updated another Machine.
func TestARolloutSurvivesTheRestartOfEverything(t *testing.T) {
	f := plane.NewFleet(t)
	md := f.Deployment("restarted", 6, 2, 1)
	census := f.Census(t)
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)

	guard := f.Guard(t, kit.Bounds{MaxMachines: 8, MinAvailable: 5})
	f.Patch(t, md, fmt.Sprintf(`{"spec":{"template":{"spec":{"version":%q}}}}`, kit.NewVersion))
	for i, component := range []string{"crossplane", "function-drover", "provider-drover", "provider-local", "local-cloud"} {
		patience.Eventually(t, func(ctx context.Context) string {
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
	theTokensAreRefused(t, f, 12)

	census.Done(t, 12)

	if err := f.Client.Delete(t.Context(), md); err != nil {
		t.Fatal(err)
	}
	f.AwaitNothing(t)
}

// TestATokenIsDeletedThoughNoProcessSawItsNodeJoin has a Node join while provider-drover does not
// run. The next process must delete the token.
func TestATokenIsDeletedThoughNoProcessSawItsNodeJoin(t *testing.T) {
	f := plane.NewFleet(t)
	m := &machinev1alpha1.Machine{}
	m.Namespace, m.Name, m.Spec = f.Namespace, "missed", f.MachineSpec(kit.NewVersion)
	f.Create(t, m)
	if err := f.Client.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
		t.Fatal(err)
	}
	patience.Eventually(t, func(ctx context.Context) string {
		if vms, err := f.VMs(ctx); err != nil || len(vms) != 1 {
			return fmt.Sprintf("%d VMs, %v", len(vms), err)
		}
		return ""
	})
	pid := pidOf(t, "provider-drover")
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) }) // The test may fail before the process ends.
	patience.Eventually(t, func(ctx context.Context) string {
		nodes := &corev1.NodeList{}
		if err := f.Cluster.Client.List(ctx, nodes, client.MatchingLabels{clusterv1alpha1.LabelJoinToken: string(m.UID)}); err != nil || len(nodes.Items) != 1 {
			return fmt.Sprintf("%d Nodes, %v", len(nodes.Items), err)
		}
		return ""
	})
	for _, token := range plane.Witness.Tokens(f.Namespace) {
		review := &authv1.SelfSubjectReview{}
		if err := f.Cluster.WithToken(t, token).Create(t.Context(), review); err != nil {
			t.Fatalf("the token was deleted before the process stopped: %v: this shows nothing", err)
		}
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	theTokensAreRefused(t, f, 1)
	kubectl(t, f, "delete", "machine", m.Name)
	f.AwaitNothing(t)
}

func pidOf(t *testing.T, component string) int {
	t.Helper()
	status, err := plane.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range status.Components {
		if c.Name == component {
			return c.PID
		}
	}
	t.Fatalf("there is no %s: %+v", component, status.Components)
	return 0
}
