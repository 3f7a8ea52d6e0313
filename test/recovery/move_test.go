package recovery

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

var virtualMachine = schema.GroupVersionKind{Group: "local.drover.dev", Version: "v1alpha1", Kind: "VirtualMachine"}

// kubectlDrover runs the plugin. If killAt is set, the plugin is killed once it prints a line
// that begins with killAt.
func kubectlDrover(t *testing.T, killAt string, args ...string) (killed bool, err error) {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	cmd := exec.CommandContext(ctx, filepath.Join(os.Getenv("DROVER_BIN"), "kubectl-drover"), args...)
	var says strings.Builder
	cmd.Stderr = &says
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if killAt != "" && strings.HasPrefix(lines.Text(), killAt) {
			killed = true
			kill()
		}
	}
	if err = cmd.Wait(); err != nil {
		err = fmt.Errorf("%w: %s", err, says.String())
	}
	return killed, err
}

// aFleetInUse creates Machines with pods on their Nodes.
func aFleetInUse(t *testing.T, f kit.Fleet, replicas int32) (*machinev1alpha1.MachineDeployment, *vigil) {
	t.Helper()
	md := f.Deployment("web", replicas, 1, 0)
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)
	return md, keepVigil(t, f, 2*replicas)
}

// TestAMoveThatIsKilledAtEachStepTouchesNoNode moves a fleet to another control cluster.
func TestAMoveThatIsKilledAtEachStepTouchesNoNode(t *testing.T) {
	f := here.NewTargetFleet(t)
	there := there.TargetFleetIn(t, f.Namespace)
	_, v := aFleetInUse(t, f, 3)
	args := []string{"move", "--namespace", f.Namespace, "--kubeconfig", here.Kubeconfig, "--to-kubeconfig", there.Kubeconfig, patience.Flag()}
	for _, at := range []string{"pausing Machine ", "copied VirtualMachine", "copied MachineDeployment", "letting go of", "taking on VirtualMachine", "taking on MachineSet"} {
		killed, err := kubectlDrover(t, at, args...)
		if !killed {
			t.Fatalf("it was not killed at %q: %v", at, err)
		}
		v.check(t)
	}
	if _, err := kubectlDrover(t, "", args...); err != nil {
		t.Fatal(err)
	}
	there.AwaitDeployment(t, "web")
	if machines, err := f.Machines(t.Context()); err != nil || len(machines) > 0 {
		t.Errorf("the source has %d Machines, error %v", len(machines), err)
	}
	if left, err := unclaimed(t.Context(), there); err != nil || len(left) > 0 {
		t.Errorf("no Machine has the VMs %v, error %v", left, err)
	}
	v.done(t)
	itIsAFleetLikeAnyOther(t, there, 3)
}

// itIsAFleetLikeAnyOther checks that a fleet rolls, and that no objects are left after its
// deletion.
func itIsAFleetLikeAnyOther(t *testing.T, f kit.Fleet, replicas int32) {
	t.Helper()
	md := &machinev1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "web"}}
	f.Patch(t, md, fmt.Sprintf(`{"spec":{"template":{"spec":{"version":%q}}}}`, kit.NewVersion))
	f.AwaitDeployment(t, md.Name)
	if vms, err := f.VMs(t.Context()); err != nil || len(vms) != int(replicas) {
		t.Errorf("%d VMs, error %v", len(vms), err)
	}
	f.DeleteDeployment(t, md.Name)
	patience.Eventually(t, func(ctx context.Context) string {
		vms, err := f.VMs(ctx)
		nodes := &corev1.NodeList{}
		if err == nil {
			err = f.Cluster.Client.List(ctx, nodes)
		}
		if err != nil || len(vms) > 0 {
			return fmt.Sprintf("%d VMs, error %v", len(vms), err)
		}
		return ""
	}, f.Describe)
}

// valid compares the condition Valid of each Machine of a fleet with a reason.
func valid(ctx context.Context, f kit.Fleet, reason string) string {
	machines, err := f.Machines(ctx)
	if err != nil || len(machines) == 0 {
		return fmt.Sprintf("%d Machines, error %v", len(machines), err)
	}
	for _, m := range machines {
		if c := meta.FindStatusCondition(m.Status.Conditions, machinev1alpha1.ConditionValid); c == nil || c.Reason != reason {
			return fmt.Sprintf("Machine %s: %+v", m.Name, m.Status.Conditions)
		}
	}
	return ""
}

// installationOf returns the installation ID of a control cluster.
func installationOf(t *testing.T, c client.Client) string {
	t.Helper()
	d := &metav1.PartialObjectMetadata{}
	d.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v2", Kind: "CompositeResourceDefinition"})
	if err := c.Get(t.Context(), client.ObjectKey{Name: machinev1alpha1.DefinitionOfInstallation}, d); err != nil {
		t.Fatal(err)
	}
	return string(d.GetUID())
}
