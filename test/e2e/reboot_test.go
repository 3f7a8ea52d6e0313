package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// TestAMachineIsRebooted reboots the Machine of a set, healthy and with a kubelet that stopped, and lets its health reboot it.
// It keeps its VM and its Node object, and its set makes no other. provider-drover and provider-local are restarted in the
// middle.
func TestAMachineIsRebooted(t *testing.T) {
	f := plane.NewFleet(t)
	census := f.Census(t)
	md := f.Deployment("reboots", 1, 1, 0)
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)
	name := anyOf(machineNames(t, f))
	before := nodeOfMachine(t, f, name)

	step(t, "OnRequest", func(t *testing.T) {
		kubectlDrover(t, f, "reboot", "ma/"+name, "--id=one")
		restart(t, "provider-drover")
		restart(t, "provider-local")
		awaitReboot(t, f, name, "one", machinev1alpha1.RebootSucceeded)
		f.AwaitDeployment(t, md.Name)
		if n := reboots(t, f, name); n != 1 {
			t.Errorf("the cloud rebooted the VM %d times", n)
		}
	})
	step(t, "WithoutADrainBecauseItsKubeletStopped", func(t *testing.T) {
		strike(t, f, localcloud.FaultKubeletStops, name)
		awaitPhase(t, f, name, machinev1alpha1.MachineUnknown)
		kubectlDrover(t, f, "reboot", "ma/"+name, "--id=two", "--drain=Never")
		awaitReboot(t, f, name, "two", machinev1alpha1.RebootSucceeded)
		f.AwaitDeployment(t, md.Name)
	})

	step(t, "ByItsHealthBecauseItsKubeletStopped", func(t *testing.T) {
		profile := &machinev1alpha1.HealthProfile{ObjectMeta: metav1.ObjectMeta{Name: f.Namespace + "-v1"}}
		kubectl(t, f, "patch", "md", md.Name, "--type=merge", "--patch",
			fmt.Sprintf(`{"spec": {"template": {"spec": {"health": {"profiles": [%q]}}}}}`, profile.Name))
		awaitReason(t, f, md, machinev1alpha1.ConditionHealthValid, machinev1alpha1.ReasonHealthProfileNotFound)
		profile.Spec.Conditions = []machinev1alpha1.ProfileCondition{{HealthCondition: machinev1alpha1.HealthCondition{
			Type: string(corev1.NodeReady), Status: string(corev1.ConditionUnknown), Timeout: &metav1.Duration{Duration: time.Second}, Action: machinev1alpha1.HealthActionReboot,
		}}}
		f.Create(t, profile)
		t.Cleanup(func() { _ = f.Client.Delete(context.Background(), profile) })
		awaitReason(t, f, md, machinev1alpha1.ConditionHealthValid, machinev1alpha1.ReasonValid)
		strike(t, f, localcloud.FaultKubeletStops, name)
		patience.Eventually(t, func(ctx context.Context) string {
			d := &machinev1alpha1.MachineDeployment{}
			if err := f.Client.Get(ctx, client.ObjectKey{Namespace: f.Namespace, Name: md.Name}, d); err != nil {
				return err.Error()
			}
			isOfHealth := func(r machinev1alpha1.ReplacedMachine) bool {
				return r.Machine == name && r.Reason == machinev1alpha1.ReplacedRebooted && r.FailureReason == machinev1alpha1.FailureNodeUnhealthy
			}
			if !slices.ContainsFunc(d.Status.Replacements, isOfHealth) {
				return fmt.Sprintf("the health of the Machine did not reboot it: %+v", d.Status.Replacements)
			}
			return ""
		}, f.Describe)
		f.AwaitDeployment(t, md.Name)
	})

	after := nodeOfMachine(t, f, name)
	if after.UID != before.UID || after.Spec.ProviderID != before.Spec.ProviderID || after.Status.NodeInfo.BootID == before.Status.NodeInfo.BootID || after.Spec.Unschedulable {
		t.Errorf("Node %s of VM %s, boot %s, became %s of VM %s, boot %s, unschedulable %t", before.UID, before.Spec.ProviderID, before.Status.NodeInfo.BootID,
			after.UID, after.Spec.ProviderID, after.Status.NodeInfo.BootID, after.Spec.Unschedulable)
	}
	census.Done(t, 1)
	f.DeleteDeployment(t, md.Name)
}

// nodeOfMachine returns the Node of a Machine that joins the control cluster.
func nodeOfMachine(t *testing.T, f kit.Fleet, name string) *corev1.Node {
	t.Helper()
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: name}}
	must(t, f.Client.Get(t.Context(), client.ObjectKeyFromObject(m), m))
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Status.NodeRef.Name}}
	must(t, f.Client.Get(t.Context(), client.ObjectKeyFromObject(n), n))
	return n
}

// awaitReboot waits for the end of a reboot, and for its Node to be in use again.
func awaitReboot(t *testing.T, f kit.Fleet, name, id string, state machinev1alpha1.RebootState) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		m := &machinev1alpha1.Machine{}
		if err := f.Client.Get(ctx, client.ObjectKey{Namespace: f.Namespace, Name: name}, m); err != nil {
			return err.Error()
		}
		if r := m.Status.Reboot; r == nil || r.ID != id || r.State != state || m.Status.Phase != machinev1alpha1.MachineRunning {
			return fmt.Sprintf("phase %s, reboot %+v", m.Status.Phase, r)
		}
		return ""
	}, f.Describe)
}

// reboots returns how often the cloud rebooted the VM of a Machine, by its console.
func reboots(t *testing.T, f kit.Fleet, name string) int {
	t.Helper()
	vms, err := f.Cloud.ListVMs(t.Context(), localcloud.ListVMsOptions{Tags: map[string]string{machinev1alpha1.TagNamespace: f.Namespace, machinev1alpha1.TagMachine: name}})
	must(t, err)
	if len(vms) != 1 {
		t.Fatalf("Machine %s has %d VMs", name, len(vms))
	}
	text, err := f.Cloud.Console(t.Context(), vms[0].ID)
	must(t, err)
	return strings.Count(text, " rebooted\n")
}

// kubectlDrover runs kubectl drover in the namespace of a fleet.
func kubectlDrover(t *testing.T, f kit.Fleet, args ...string) {
	t.Helper()
	if out, code := runPlugin(t.Context(), f, args...); code != 0 {
		t.Fatalf("kubectl drover %s ended with %d:\n%s", strings.Join(args, " "), code, out)
	}
}
