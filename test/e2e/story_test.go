package e2e

import (
	"context"
	"fmt"
	"testing"

	authv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// TestMachineDeploymentFromNothingToNothing is the main use case of Drover, in the order of a
// user's steps.
func TestMachineDeploymentFromNothingToNothing(t *testing.T) {
	t.Parallel()
	f := plane.NewFleet(t)
	md := f.Deployment("workers", 3, 1, 0)
	md.Spec.Template.Spec.Metadata.Labels = map[string]string{"example.org/pool": "workers"}
	md.Spec.Template.Spec.Taints = []machinev1alpha1.Taint{{Key: "example.org/dedicated", Value: "workers", Effect: "NoSchedule"}}

	step(t, "ThreeMachinesComeUpAndJoin", func(t *testing.T) {
		f.Create(t, md)
		f.AwaitDeployment(t, md.Name)
		everyMachineHasItsNode(t, f, 3)
	})
	step(t, "KubectlScaleAddsTwo", func(t *testing.T) {
		kubectl(t, f, "scale", "md", md.Name, "--replicas=5")
		f.AwaitDeployment(t, md.Name)
		everyMachineHasItsNode(t, f, 5)
	})
	step(t, "ANewVersionRollsWithinItsBounds", func(t *testing.T) {
		guard := f.Guard(t, kit.Bounds{MaxMachines: 6, MinAvailable: 5})
		before := machineNames(t, f)
		f.Patch(t, md, fmt.Sprintf(`{"spec":{"template":{"spec":{"version":%q}}}}`, kit.NewVersion))
		f.AwaitDeployment(t, md.Name)
		guard.Done(t, 20)
		everyMachineHasItsNode(t, f, 5)
		for name := range machineNames(t, f) {
			if before[name] {
				t.Errorf("Machine %s of the old version is still there", name)
			}
		}
	})
	step(t, "LabelsAndTaintsReachNodesWithoutARollout", func(t *testing.T) {
		before := machineNames(t, f)
		f.Patch(t, md, `{"spec":{"template":{"spec":{"metadata":{"labels":{"example.org/pool":null,"example.org/tier":"gold"}},"taints":[]}}}}`)
		patience.Eventually(t, func(ctx context.Context) string {
			nodes, err := f.Nodes(ctx)
			if err != nil {
				return err.Error()
			}
			for _, n := range nodes {
				if _, old := n.Labels["example.org/pool"]; old || n.Labels["example.org/tier"] != "gold" {
					return fmt.Sprintf("Node %s has labels %v", n.Name, n.Labels)
				}
				for _, taint := range n.Spec.Taints {
					if taint.Key == "example.org/dedicated" {
						return fmt.Sprintf("Node %s still has taint %v", n.Name, taint)
					}
				}
			}
			return ""
		})
		f.AwaitDeployment(t, md.Name)
		for name := range machineNames(t, f) {
			if !before[name] {
				t.Errorf("Machine %s is new: a label of the Node started a rollout", name)
			}
		}
	})
	step(t, "ScaleDownKeepsTwo", func(t *testing.T) {
		kubectl(t, f, "scale", "md", md.Name, "--replicas=2")
		f.AwaitDeployment(t, md.Name)
		patience.Eventually(t, func(ctx context.Context) string {
			vms, err := f.VMs(ctx)
			if err != nil {
				return err.Error()
			}
			if len(vms) != 2 {
				return fmt.Sprintf("%d VMs, want 2", len(vms))
			}
			return ""
		})
		everyMachineHasItsNode(t, f, 2)
	})
	step(t, "NoTokenOutlivesTheJoin", func(t *testing.T) {
		patience.Eventually(t, func(ctx context.Context) string {
			tokens, err := f.BootstrapTokens(ctx)
			if err != nil {
				return err.Error()
			}
			if len(tokens) > 0 {
				return fmt.Sprintf("bootstrap tokens %v are left", tokens)
			}
			return ""
		})
		theTokensAreRefused(t, f, 10)
	})
	step(t, "DeletionLeavesNothing", func(t *testing.T) {
		kubectl(t, f, "delete", "md", md.Name)
		f.AwaitNothing(t)
	})
}

// theTokensAreRefused tries each join token that the fleet ever had, which were at least as many
// as Machines.
func theTokensAreRefused(t *testing.T, f kit.Fleet, atLeast int) {
	t.Helper()
	tokens := plane.Witness.Tokens(f.Namespace)
	if len(tokens) < atLeast {
		t.Errorf("%d tokens were seen, want %d or more", len(tokens), atLeast)
	}
	for _, token := range tokens {
		patience.Eventually(t, func(ctx context.Context) string {
			who := &authv1.SelfSubjectReview{}
			if err := f.Cluster.WithToken(t, token).Create(ctx, who); !apierrors.IsUnauthorized(err) {
				return fmt.Sprintf("a token whose Machine has joined authenticates as %q, %v", who.Status.UserInfo.Username, err)
			}
			return ""
		})
	}
}

func TestALoneMachineWorks(t *testing.T) {
	t.Parallel()
	f := plane.NewFleet(t)
	m := &machinev1alpha1.Machine{}
	m.Namespace, m.Name, m.Spec = f.Namespace, "lone", f.MachineSpec(kit.NewVersion)
	f.Create(t, m)
	patience.Eventually(t, func(ctx context.Context) string {
		if err := f.Client.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil {
			return err.Error()
		}
		if m.Status.Phase != machinev1alpha1.MachineRunning {
			return fmt.Sprintf("phase %s\n%s", m.Status.Phase, f.Describe(ctx))
		}
		return ""
	})
	everyMachineHasItsNode(t, f, 1)
	kubectl(t, f, "delete", "machine", "lone")
	f.AwaitNothing(t)
}

// step is a subtest that later steps depend on.
func step(t *testing.T, name string, do func(t *testing.T)) {
	t.Helper()
	if !t.Run(name, do) {
		t.FailNow()
	}
}

func kubectl(t *testing.T, f kit.Fleet, args ...string) string {
	t.Helper()
	out, err := f.Kubectl(t, append(args, "-n", f.Namespace)...)
	if err != nil {
		t.Fatalf("kubectl %v: %v\n%s\n%s", args, err, out, f.Describe(t.Context()))
	}
	return out
}

func machineNames(t *testing.T, f kit.Fleet) map[string]bool {
	t.Helper()
	machines, err := f.Machines(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, m := range machines {
		names[m.Name] = true
	}
	return names
}

// everyMachineHasItsNode checks that the numbers of Machines, Nodes and VMs are as wanted, and
// that they have the same providerIDs, byte for byte.
func everyMachineHasItsNode(t *testing.T, f kit.Fleet, want int) {
	t.Helper()
	machines, err := f.Machines(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := f.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	vms, err := f.VMs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(machines) != want || len(nodes) != want || len(vms) != want {
		t.Errorf("%d Machines, %d Nodes, %d VMs, want %d of each", len(machines), len(nodes), len(vms), want)
	}
	nodeOf, vmOf := map[string]string{}, map[string]string{}
	for _, n := range nodes {
		nodeOf[n.Spec.ProviderID] = n.Name
		if got := n.Annotations[machinev1alpha1.AnnotationMachine]; got == "" {
			t.Errorf("Node %s does not name its Machine", n.Name)
		}
	}
	for _, vm := range vms {
		vmOf[vm.ProviderID] = vm.Tags[machinev1alpha1.TagMachine]
	}
	for _, m := range machines {
		id := m.Status.ProviderID
		if m.Status.NodeRef == nil || nodeOf[id] != m.Status.NodeRef.Name {
			t.Errorf("Machine %s with providerID %q has nodeRef %v, the Node with that providerID is %q", m.Name, id, m.Status.NodeRef, nodeOf[id])
		}
		if vmOf[id] != m.Name {
			t.Errorf("the VM %q is tagged with Machine %q, want %q", id, vmOf[id], m.Name)
		}
		if m.Status.NodeInfo == nil || m.Status.NodeInfo.KubeletVersion != m.Spec.Version {
			t.Errorf("Machine %s wants kubelet %s and has %+v", m.Name, m.Spec.Version, m.Status.NodeInfo)
		}
	}
}
