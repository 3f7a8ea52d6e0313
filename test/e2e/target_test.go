package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// TestMachinesJoinAnotherCluster has Machines in the control cluster and their Nodes in the
// target cluster, where Drover has exactly the shipped rights.
func TestMachinesJoinAnotherCluster(t *testing.T) {
	t.Parallel()
	f := plane.NewTargetFleet(t)
	md := f.Deployment("workers", 2, 1, 0)
	pc, err := f.Config(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Machines use another name of the API server than Drover.
	server := strings.Replace(f.Cluster.Server, "127.0.0.1", "localhost", 1)
	f.Patch(t, pc, fmt.Sprintf(`{"spec":{"apiServer":{"endpoint":%q}}}`, server))
	leftOver := bootstrapToken(t, f, map[string]string{clusterv1alpha1.LabelConfig: string(pc.UID), clusterv1alpha1.LabelJoinToken: "no-such-join-token"})
	others := bootstrapToken(t, f, map[string]string{clusterv1alpha1.LabelConfig: "of-another-drover", clusterv1alpha1.LabelJoinToken: "no-such-join-token"})

	step(t, "TheyJoinThereAndOnlyThere", func(t *testing.T) {
		f.Create(t, md)
		f.AwaitDeployment(t, md.Name)
		everyMachineHasItsNode(t, f, 2)
		here := kit.Fleet{Plane: f.Plane, Namespace: f.Namespace, Cluster: f.Control}
		if nodes, err := here.Nodes(t.Context()); err != nil || len(nodes) > 0 {
			t.Errorf("%d Nodes in the control cluster, %v", len(nodes), err)
		}
	})
	step(t, "ByTheEndpointOfTheConfiguration", func(t *testing.T) {
		l := &corev1.SecretList{}
		if err := f.Client.List(t.Context(), l, client.InNamespace(f.Namespace)); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, s := range l.Items {
			if data, ok := s.Data["userData"]; ok {
				n++
				if !strings.Contains(string(data), server) || strings.Contains(string(data), f.Cluster.Server) {
					t.Errorf("the user data of Secret %s does not name %s alone", s.Name, server)
				}
			}
		}
		if n != 2 {
			t.Errorf("%d Secrets with user data, want 2", n)
		}
	})
	before, err := f.VMs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	old := plane.Target.Credentials(t)
	step(t, "TheShippedRightsAreEnough", func(t *testing.T) {
		f.SetKubeconfig(t, old.Kubeconfig)
		awaitCondition(t, f, clusterv1alpha1.ConditionReachable, corev1.ConditionTrue)
		awaitCondition(t, f, clusterv1alpha1.ConditionAuthorized, corev1.ConditionTrue)
	})
	step(t, "TheKubeconfigIsRotatedInTheMiddleOfAScaleUp", func(t *testing.T) {
		since := reachable(t, f).LastTransitionTime
		kubectl(t, f, "scale", "md", md.Name, "--replicas=4")
		patience.Eventually(t, func(ctx context.Context) string {
			machines, err := f.Machines(ctx)
			if err != nil || len(machines) < 3 {
				return fmt.Sprintf("%d Machines, %v", len(machines), err)
			}
			return ""
		})
		next := plane.Target.Credentials(t)
		f.SetKubeconfig(t, next.Kubeconfig)
		old.Revoke(t)
		f.AwaitDeployment(t, md.Name)
		everyMachineHasItsNode(t, f, 4)
		if s := stillThere(t.Context(), f, before); s != "" {
			t.Error(s)
		}
		if c := reachable(t, f); c.Status != corev1.ConditionTrue || !c.LastTransitionTime.Equal(&since) {
			t.Errorf("condition %+v: a rotation is no outage", c)
		}
		old = next
	})
	step(t, "CredentialsThatEndTooEarlyLoseNoVM", func(t *testing.T) {
		old.Revoke(t)
		awaitCondition(t, f, clusterv1alpha1.ConditionReachable, corev1.ConditionFalse)
		if c := reachable(t, f); c.Reason != clusterv1alpha1.ReasonUnauthorized {
			t.Errorf("condition %+v", c)
		}
		f.SetKubeconfig(t, plane.Target.Credentials(t).Kubeconfig)
		awaitCondition(t, f, clusterv1alpha1.ConditionReachable, corev1.ConditionTrue)
		f.Patch(t, md, `{"spec":{"template":{"spec":{"metadata":{"labels":{"example.org/after":"rotation"}}}}}}`)
		patience.Eventually(t, func(ctx context.Context) string {
			nodes, err := f.Nodes(ctx)
			if err != nil || len(nodes) != 4 {
				return fmt.Sprintf("%d Nodes, %v", len(nodes), err)
			}
			for _, n := range nodes {
				if n.Labels["example.org/after"] != "rotation" {
					return fmt.Sprintf("Node %s has labels %v", n.Name, n.Labels)
				}
			}
			return ""
		})
		if s := stillThere(t.Context(), f, before); s != "" {
			t.Error(s)
		}
	})
	step(t, "NobodyStormedAboutIt", func(t *testing.T) {
		warnings := map[string]int32{}
		l := &corev1.EventList{}
		if err := f.Client.List(t.Context(), l, client.InNamespace(f.Namespace)); err != nil {
			t.Fatal(err)
		}
		for _, e := range l.Items {
			if e.Type == corev1.EventTypeWarning {
				warnings[e.InvolvedObject.Kind+"/"+e.InvolvedObject.Name] += max(e.Count, 1)
			}
		}
		for object, n := range warnings {
			if n > 10 {
				t.Errorf("%d warnings of %s\n%s", n, object, f.Describe(t.Context()))
			}
		}
	})
	step(t, "TokensThatWereLeftOverAreSwept", func(t *testing.T) {
		patience.Eventually(t, func(ctx context.Context) string {
			if err := f.Cluster.Client.Get(ctx, client.ObjectKeyFromObject(leftOver), leftOver); !apierrors.IsNotFound(err) {
				return fmt.Sprintf("it is still there: %v", err)
			}
			return ""
		})
		if err := f.Cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(others), others); err != nil {
			t.Errorf("a token of others is gone: %v", err)
		}
	})
	step(t, "DeletionLeavesNothing", func(t *testing.T) {
		kubectl(t, f, "delete", "md", md.Name)
		f.AwaitNothing(t)
		kubectl(t, f, "delete", "providerconfigs.cluster.drover.dev", "--all")
	})
}

// bootstrapToken creates a bootstrap token in the target cluster.
func bootstrapToken(t *testing.T, f kit.Fleet, labels map[string]string) *corev1.Secret {
	t.Helper()
	token, err := bootstraputil.GenerateBootstrapToken()
	if err != nil {
		t.Fatal(err)
	}
	id, secret, _ := strings.Cut(token, ".")
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: bootstraputil.BootstrapTokenSecretName(id), Labels: labels}}
	s.Type = corev1.SecretTypeBootstrapToken
	s.StringData = map[string]string{"token-id": id, "token-secret": secret, "expiration": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}
	if err := f.Cluster.Client.Create(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Cluster.Client.Delete(context.Background(), s) })
	return s
}

func reachable(t *testing.T, f kit.Fleet) xpv2.Condition {
	t.Helper()
	pc, err := f.Config(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return pc.Status.GetCondition(clusterv1alpha1.ConditionReachable)
}

func awaitCondition(t *testing.T, f kit.Fleet, typ xpv2.ConditionType, status corev1.ConditionStatus) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		pc, err := f.Config(ctx)
		if err != nil {
			return err.Error()
		}
		if c := pc.Status.GetCondition(typ); c.Status != status {
			return fmt.Sprintf("condition %+v", c)
		}
		return ""
	})
}

// stillThere checks that all previous VMs still run.
func stillThere(ctx context.Context, f kit.Fleet, before []localcloud.VM) string {
	vms, err := f.VMs(ctx)
	if err != nil {
		return err.Error()
	}
	runs := map[string]bool{}
	for _, vm := range vms {
		runs[vm.ID] = vm.State == localcloud.StateRunning
	}
	for _, vm := range before {
		if !runs[vm.ID] {
			return fmt.Sprintf("VM %s is lost", vm.ID)
		}
	}
	return ""
}
