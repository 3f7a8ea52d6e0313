package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

func TestALabelFreezesAndThaws(t *testing.T) {
	kit.OnlyInLong(t, "TestNothingHappensWhileTheTargetClusterIsCutOff, and the stories and the properties of internal/plan/simulator")
	t.Parallel()
	f := plane.NewFleet(t)
	census := f.Census(t)
	md := f.Deployment("held", 2, 1, 0)
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)

	step(t, "NothingIsCreatedOrReplaced", func(t *testing.T) {
		kubectl(t, f, "label", "md", md.Name, machinev1alpha1.LabelFreeze+"=true")
		awaitFrozen(t, f, md, "ManualFreeze")
		awaitFrozen(t, f, onlySet(t, f), "DeploymentFrozen")
		before := machineNames(t, f)
		loseOne(t, f, before)
		kubectl(t, f, "scale", "md", md.Name, "--replicas=3")
		nothingIsCreated(t, f, before)
	})
	step(t, "ScalingDownGoesOn", func(t *testing.T) {
		kubectl(t, f, "scale", "md", md.Name, "--replicas=1")
		patience.Eventually(t, func(ctx context.Context) string {
			machines, err := f.Machines(ctx)
			if err != nil || len(machines) != 1 || machines[0].Status.Phase != machinev1alpha1.MachineRunning {
				return fmt.Sprintf("%d Machines, %v\n%s", len(machines), err, f.Describe(ctx))
			}
			return ""
		})
	})
	step(t, "ItThawsWithoutTheLabel", func(t *testing.T) {
		kubectl(t, f, "scale", "md", md.Name, "--replicas=2")
		kubectl(t, f, "label", "md", md.Name, machinev1alpha1.LabelFreeze+"-")
		awaitFrozen(t, f, md, "")
		f.AwaitDeployment(t, md.Name)
		reportedOnce(t, f, "MachineDeployment", md.Name, "ManualFreeze", "NotFrozen")
	})
	everyMachineHasItsNode(t, f, 2)
	census.Done(t, 3)
	f.DeleteDeployment(t, md.Name)
}

// TestTooManyMachinesFreeze makes a set adopt Machines of a user, whose VMs then are not deleted.
// It restarts Crossplane and provider-drover meanwhile.
func TestTooManyMachinesFreeze(t *testing.T) {
	kit.OnlyInLong(t, "TestNothingHappensWhileTheTargetClusterIsCutOff, and the stories and the properties of internal/plan/simulator")
	f := plane.NewFleet(t)
	census := f.Census(t)
	md := f.Deployment("crowded", 2, 1, 0)
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)
	own := machineNames(t, f)
	set := onlySet(t, f)

	hook := machinev1alpha1.HookPreTerminate + "test"
	var extra []*machinev1alpha1.Machine
	step(t, "FourMoreThanThereMayBe", func(t *testing.T) {
		for i := range 4 {
			m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
				Namespace: f.Namespace, Name: fmt.Sprintf("extra-%d", i),
				Annotations: map[string]string{hook: "", machinev1alpha1.AnnotationDeleteMachine: ""},
			}, Spec: f.MachineSpec(kit.OldVersion)}
			f.Create(t, m)
			extra = append(extra, m)
		}
		for _, m := range extra {
			patience.Eventually(t, func(ctx context.Context) string {
				if err := f.Client.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil || m.Status.Phase != machinev1alpha1.MachineRunning {
					return fmt.Sprintf("%s is %s, %v", m.Name, m.Status.Phase, err)
				}
				return ""
			}, f.Describe)
		}
		for _, m := range extra {
			args := []string{"label", "machine", m.Name}
			for k, v := range set.Spec.Selector.MatchLabels {
				args = append(args, k+"="+string(v))
			}
			kubectl(t, f, args...)
		}
		awaitFrozen(t, f, md, "Overshoot", "there are 6 Machines", "above 3")
		awaitFrozen(t, f, set, "DeploymentFrozen", "(Overshoot)")
	})
	step(t, "NothingIsReplacedWhileTheirVMsAreThere", func(t *testing.T) {
		loseOne(t, f, own)
		before := machineNames(t, f)
		restart(t, "crossplane")
		restart(t, "provider-drover")
		f.Patch(t, md, `{"spec":{"minReadySeconds":1}}`)
		awaitObserved(t, f, md)
		nothingIsCreated(t, f, before)
		awaitFrozen(t, f, md, "Overshoot", "4 of them being deleted")
	})
	step(t, "ItThawsWhenTheyAreGone", func(t *testing.T) {
		for _, m := range extra {
			f.Patch(t, m, fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, hook))
		}
		awaitFrozen(t, f, md, "")
		f.AwaitDeployment(t, md.Name)
		reportedOnce(t, f, "MachineDeployment", md.Name, "Overshoot", "NotFrozen")
	})
	everyMachineHasItsNode(t, f, 2)
	census.Done(t, 7)
	f.DeleteDeployment(t, md.Name)
}

// TestNothingHappensWhileTheTargetClusterIsCutOff cuts the only connection of Drover and the
// kubelets to their API server until all Nodes are lost there. It restarts Crossplane meanwhile.
func TestNothingHappensWhileTheTargetClusterIsCutOff(t *testing.T) {
	f, proxy := plane.NewProxiedFleet(t)
	census := f.Census(t)
	// Without the cut, all Machines would be Failed soon after their Nodes are lost.
	md := impatient(f, "cut", 3)
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)
	before := machineNames(t, f)
	vms, err := f.VMs(t.Context())
	must(t, err)

	proxy.Cut()
	step(t, "AllNodesAreLost", func(t *testing.T) {
		awaitCondition(t, f, clusterv1alpha1.ConditionReachable, corev1.ConditionFalse)
		awaitNodes(t, f, 3, corev1.ConditionUnknown)
	})
	var lost string
	step(t, "NothingIsCreatedOrReplaced", func(t *testing.T) {
		lost = loseOne(t, f, before)
		awaitFrozen(t, f, onlySet(t, f), "TargetUnreachable", `ProviderConfig "target"`)
		restart(t, "crossplane")
		restart(t, "provider-drover")
		kubectl(t, f, "scale", "md", md.Name, "--replicas=4")
		awaitFrozen(t, f, md, "TargetUnreachable")
		awaitObserved(t, f, md)
		nothingIsCreated(t, f, before)
		machines, err := f.Machines(t.Context())
		must(t, err)
		for _, m := range machines {
			if (m.Status.Phase == machinev1alpha1.MachineFailed) != (m.Name == lost) {
				t.Errorf("Machine %s is %s: %s", m.Name, m.Status.Phase, m.Status.FailureMessage)
			}
		}
	})
	proxy.Mend()
	step(t, "AllGoesOnWhenItIsBack", func(t *testing.T) {
		awaitCondition(t, f, clusterv1alpha1.ConditionReachable, corev1.ConditionTrue)
		awaitFrozen(t, f, md, "")
		f.AwaitDeployment(t, md.Name)
		everyMachineHasItsNode(t, f, 4)
		awaitNodes(t, f, 4, corev1.ConditionTrue)
		after := machineNames(t, f)
		for name := range before {
			if !after[name] && name != lost {
				t.Errorf("Machine %s was replaced", name)
			}
		}
		pc, err := f.Config(t.Context())
		must(t, err)
		if o := pc.Status.Outage; o == nil || o.Until == nil || !o.Until.After(o.Since.Time) {
			t.Errorf("outage %+v", o)
		}
		reportedOnce(t, f, "MachineDeployment", md.Name, "TargetUnreachable", "NotFrozen")
	})
	// All previous VMs, the successor of the lost one, and one more.
	census.Done(t, len(vms)+2)
	f.DeleteDeployment(t, md.Name)
	kubectl(t, f, "delete", "providerconfigs.cluster.drover.dev", "--all")
}

// awaitFrozen waits until an XR is frozen for a reason, with all of the texts in the message. If
// the reason is "", it waits until the XR is not frozen.
func awaitFrozen(t *testing.T, f kit.Fleet, xr client.Object, reason string, says ...string) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		if err := f.Client.Get(ctx, client.ObjectKeyFromObject(xr), xr); err != nil {
			return err.Error()
		}
		var c metav1.Condition
		switch xr := xr.(type) {
		case *machinev1alpha1.MachineDeployment:
			c = conditionOf(xr.Status.Conditions, "Frozen")
		case *machinev1alpha1.MachineSet:
			c = conditionOf(xr.Status.Conditions, "Frozen")
		}
		frozen := c.Status == metav1.ConditionTrue
		lacks := slices.ContainsFunc(says, func(s string) bool { return !strings.Contains(c.Message, s) })
		if frozen != (reason != "") || frozen && c.Reason != reason || lacks {
			return fmt.Sprintf("%s has condition %+v, want reason %q and %q", xr.GetName(), c, reason, says)
		}
		return ""
	}, f.Describe)
}

// awaitObserved waits until the current version of a MachineDeployment was planned.
func awaitObserved(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		if err := f.Client.Get(ctx, client.ObjectKeyFromObject(md), md); err != nil || md.Status.ObservedGeneration != md.Generation {
			return fmt.Sprintf("generation %d, observed %d, %v", md.Generation, md.Status.ObservedGeneration, err)
		}
		return ""
	})
}

// loseOne deletes the VM of one of these Machines, and waits until the Machine reports it.
func loseOne(t *testing.T, f kit.Fleet, of map[string]bool) string {
	t.Helper()
	vms, err := f.VMs(t.Context())
	must(t, err)
	i := slices.IndexFunc(vms, func(vm localcloud.VM) bool { return of[vm.Tags[machinev1alpha1.TagMachine]] })
	if i < 0 {
		t.Fatalf("no VM of %v", of)
	}
	must(t, f.Cloud.DeleteVM(t.Context(), vms[i].ID))
	m := &machinev1alpha1.Machine{}
	m.Namespace, m.Name = f.Namespace, vms[i].Tags[machinev1alpha1.TagMachine]
	patience.Eventually(t, func(ctx context.Context) string {
		if err := f.Client.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil {
			return err.Error()
		}
		if m.Status.Phase != machinev1alpha1.MachineFailed {
			return fmt.Sprintf("%s is %s", m.Name, m.Status.Phase)
		}
		return ""
	}, f.Describe)
	return m.Name
}

// nothingIsCreated checks for a while that no Machine is added to these, and none is deleted.
func nothingIsCreated(t *testing.T, f kit.Fleet, before map[string]bool) {
	t.Helper()
	f.Throughout(t, func(ctx context.Context) string {
		machines, err := f.Machines(ctx)
		if err != nil {
			return err.Error()
		}
		gone := len(before)
		for _, m := range machines {
			if !before[m.Name] {
				return fmt.Sprintf("Machine %s was created\n%s", m.Name, f.Describe(ctx))
			}
			gone--
		}
		if gone > 0 {
			return fmt.Sprintf("%d Machines are gone\n%s", gone, f.Describe(ctx))
		}
		return ""
	})
}

// awaitNodes waits until all Nodes exist, with a status of their condition Ready.
func awaitNodes(t *testing.T, f kit.Fleet, n int, status corev1.ConditionStatus) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		nodes, err := f.Nodes(ctx)
		if err != nil || len(nodes) != n {
			return fmt.Sprintf("%d Nodes, %v", len(nodes), err)
		}
		for _, node := range nodes {
			for _, c := range node.Status.Conditions {
				if c.Type == corev1.NodeReady && c.Status != status {
					return fmt.Sprintf("Node %s is Ready=%s", node.Name, c.Status)
				}
			}
		}
		return ""
	}, f.Describe)
}

// reportedOnce checks that there is one event per reason.
func reportedOnce(t *testing.T, f kit.Fleet, kind, name string, reasons ...string) {
	t.Helper()
	l := &corev1.EventList{}
	must(t, f.Client.List(t.Context(), l, client.InNamespace(f.Namespace)))
	times := map[string]int{}
	for _, line := range kit.Story(l.Items, kind, name) {
		reason, _, _ := strings.Cut(line, ":")
		times[reason]++
	}
	for _, reason := range reasons {
		if times[reason] != 1 {
			t.Errorf("%d events %s, want 1: %q", times[reason], reason, kit.Story(l.Items, kind, name))
		}
	}
}

// restart a process. A test that does so runs alone: the process sends its events in the background, and loses those of
// parallel tests that it has not sent.
func restart(t *testing.T, component string) {
	t.Helper()
	must(t, plane.Launcher(t.Context(), "restart", component))
}
