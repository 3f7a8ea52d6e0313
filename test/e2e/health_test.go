package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// impatient returns a deployment whose Machines are Failed soon after their Nodes are lost.
func impatient(f kit.Fleet, name string, replicas int32) *machinev1alpha1.MachineDeployment {
	md := f.Deployment(name, replicas, 1, 0)
	md.Spec.Template.Spec.Health.Timeout = metav1.Duration{Duration: 5 * time.Second}
	return md
}

// strike the VM of a Machine with a fault that acts immediately.
func strike(t *testing.T, f kit.Fleet, kind localcloud.FaultKind, machines ...string) {
	t.Helper()
	for _, name := range machines {
		hit, err := f.Cloud.CreateFault(t.Context(), localcloud.Fault{Kind: kind, Match: localcloud.FaultMatch{Tags: map[string]string{
			machinev1alpha1.TagNamespace: f.Namespace, machinev1alpha1.TagMachine: name,
		}}})
		must(t, err)
		if hit.Count != 1 {
			t.Fatalf("%s hit %d VMs of Machine %s", kind, hit.Count, name)
		}
	}
}

func awaitPhase(t *testing.T, f kit.Fleet, name string, phase machinev1alpha1.MachinePhase) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		m := &machinev1alpha1.Machine{}
		if err := f.Client.Get(ctx, client.ObjectKey{Namespace: f.Namespace, Name: name}, m); err != nil {
			return err.Error()
		}
		if m.Status.Phase != phase {
			return fmt.Sprintf("Machine %s is %s, want %s", name, m.Status.Phase, phase)
		}
		return ""
	}, f.Describe)
}

// awaitReplaced waits until a Machine is deleted and the deployment is settled without it.
func awaitReplaced(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment, name string) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		err := f.Client.Get(ctx, client.ObjectKey{Namespace: f.Namespace, Name: name}, &machinev1alpha1.Machine{})
		if client.IgnoreNotFound(err) != nil {
			return err.Error()
		}
		if err == nil {
			return "Machine " + name + " is still there"
		}
		return ""
	}, f.Describe)
	f.AwaitDeployment(t, md.Name)
}

func anyOf(names map[string]bool) string {
	for name := range names {
		return name
	}
	return ""
}

// comingUp checks that at most a budget of Machines is starting at the same time.
func comingUp(budget int) func(map[string]*machinev1alpha1.Machine) []string {
	return func(machines map[string]*machinev1alpha1.Machine) []string {
		n := 0
		for _, m := range machines {
			switch m.Status.Phase {
			case "", machinev1alpha1.MachinePending, machinev1alpha1.MachineProvisioning, machinev1alpha1.MachineJoining:
				if m.DeletionTimestamp.IsZero() {
					n++
				}
			}
		}
		if n > budget {
			return []string{fmt.Sprintf("%d Machines come up, of a budget of %d", n, budget)}
		}
		return nil
	}
}

// TestAMachineThatBreaksIsReplaced has a case per kind of fault and per request to replace a
// Machine. It restarts Crossplane and provider-drover in the middle.
func TestAMachineThatBreaksIsReplaced(t *testing.T) {
	f := plane.NewFleet(t)
	census := f.Census(t)
	md := impatient(f, "breaks", 2)
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)

	step(t, "ItsVMVanishes", func(t *testing.T) {
		name := anyOf(machineNames(t, f))
		strike(t, f, localcloud.FaultVanish, name)
		restart(t, "crossplane")
		restart(t, "provider-drover")
		awaitReplaced(t, f, md, name)
	})
	var stopped string
	step(t, "ItsKubeletStopsAndItIsHeldOff", func(t *testing.T) {
		stopped = anyOf(machineNames(t, f))
		m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: stopped}}
		f.Patch(t, m, fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, machinev1alpha1.AnnotationSkipRemediation))
		strike(t, f, localcloud.FaultKubeletStops, stopped)
		awaitPhase(t, f, stopped, machinev1alpha1.MachineUnknown)
		patience.Throughout(t, patience.After(3*md.Spec.Template.Spec.Health.Timeout.Duration), func(ctx context.Context) string {
			if err := f.Client.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil || m.Status.Phase != machinev1alpha1.MachineUnknown {
				return fmt.Sprintf("it is %s, %v", m.Status.Phase, err)
			}
			return ""
		})
	})
	step(t, "ItIsNotHeldOffAnyMore", func(t *testing.T) {
		m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: stopped}}
		f.Patch(t, m, fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, machinev1alpha1.AnnotationSkipRemediation))
		restart(t, "crossplane")
		restart(t, "provider-drover")
		awaitReplaced(t, f, md, stopped)
	})
	step(t, "SomebodyAsksForAnother", func(t *testing.T) {
		name := anyOf(machineNames(t, f))
		m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: name}}
		f.Patch(t, m, fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, machinev1alpha1.AnnotationReplace))
		awaitReplaced(t, f, md, name)
	})
	everyMachineHasItsNode(t, f, 2)
	census.Done(t, 5)
	f.DeleteDeployment(t, md.Name)
}

// timeOut a Machine that cannot join: its creationTimeout is over, and that of no other Machine. A set gives its Machine the
// time of the template again, so that this may need several attempts, and replaces it once it has failed.
func timeOut(t *testing.T, f kit.Fleet, name string) {
	t.Helper()
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: name}}
	patience.Eventually(t, func(ctx context.Context) string {
		err := f.Client.Patch(ctx, m, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"creationTimeout":"1s"}}`)))
		if apierrors.IsNotFound(err) && m.UID != "" {
			return "" // Its set was faster.
		}
		if err != nil {
			return err.Error()
		}
		if m.Status.FailureReason != machinev1alpha1.FailureJoinTimeout {
			return fmt.Sprintf("Machine %s is %s, failure %q", name, m.Status.Phase, m.Status.FailureReason)
		}
		return ""
	}, f.Describe)
}

// awaitJoining waits until a Machine has a running VM whose Node has not joined.
func awaitJoining(t *testing.T, f kit.Fleet) (name string) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		machines, err := f.Machines(ctx)
		if err != nil {
			return err.Error()
		}
		for _, m := range machines {
			if m.Status.Phase == machinev1alpha1.MachineJoining {
				name = m.Name
			}
		}
		if name == "" {
			return "no Machine is Joining"
		}
		return ""
	}, f.Describe)
	return name
}

// TestAMachineThatNeverJoinsIsReplaced has two VMs, the first of which runs and never boots. The
// other one is healthy.
func TestAMachineThatNeverJoinsIsReplaced(t *testing.T) {
	kit.OnlyInLong(t, "TestAMachineThatBreaksIsReplaced, and the stories and the properties of internal/plan/simulator")
	f := plane.NewFleet(t)
	census := f.Census(t)
	md := f.Deployment("joins", 2, 1, 0)
	neverBoot(t, f, 1)
	f.Create(t, md)

	var late string
	step(t, "ItsCreationTimesOut", func(t *testing.T) {
		awaitStatus(t, f, md, "the other Machine to run", func(s machinev1alpha1.MachineDeploymentStatus) bool { return s.AvailableReplicas == 1 })
		late = awaitJoining(t, f)
		timeOut(t, f, late)
		restart(t, "crossplane")
		restart(t, "provider-drover")
	})
	step(t, "ItIsReplacedOnce", func(t *testing.T) { awaitReplaced(t, f, md, late) })
	everyMachineHasItsNode(t, f, 2)
	census.Done(t, 3)
	f.DeleteDeployment(t, md.Name)
}

// TestAReplacementThatFailsAndIsPreservedIsMarkedByItsSet preserves a replacement Machine that
// never joined for analysis. The set no longer counts it, and creates another replacement.
func TestAReplacementThatFailsAndIsPreservedIsMarkedByItsSet(t *testing.T) {
	kit.OnlyInLong(t, "TestAMachineThatBreaksIsReplaced, and the stories and the properties of internal/plan/simulator")
	t.Parallel()
	f := plane.NewFleet(t)
	md := impatient(f, "first", 2)
	md.Spec.Remediation.Order = machinev1alpha1.CreateFirst
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)
	before := machineNames(t, f)
	broken := anyOf(before)

	replacement := &machinev1alpha1.Machine{}
	step(t, "ItsVMNeverBoots", func(t *testing.T) {
		neverBoot(t, f, 1)
		strike(t, f, localcloud.FaultKubeletStops, broken)
		patience.Eventually(t, func(ctx context.Context) string {
			machines, err := f.Machines(ctx)
			if err != nil {
				return err.Error()
			}
			for _, m := range machines {
				if !before[m.Name] {
					replacement = &m
					return ""
				}
			}
			return "no Machine is created to replace " + broken
		}, f.Describe)
		kubectl(t, f, "annotate", "machine", replacement.Name, machinev1alpha1.AnnotationPreserve+"="+machinev1alpha1.PreserveWhenFailed)
		awaitPhase(t, f, replacement.Name, machinev1alpha1.MachineJoining)
		timeOut(t, f, replacement.Name)
	})
	step(t, "ItIsSetAsideWithTheMarkOfItsSet", func(t *testing.T) {
		patience.Eventually(t, func(ctx context.Context) string {
			if err := f.Client.Get(ctx, client.ObjectKeyFromObject(replacement), replacement); err != nil {
				return err.Error()
			}
			set := onlySet(t, f)
			mark := replacement.Annotations[machinev1alpha1.AnnotationDeleteMachine]
			_, selected := replacement.Labels[machinev1alpha1.LabelTemplateHash]
			if mark != "failed-replacement" || selected || !slices.Contains(set.Status.SetAside, replacement.Name) {
				return fmt.Sprintf("the mark of %s is %q, it has the labels of the selector: %t; set aside are %v", replacement.Name, mark, selected, set.Status.SetAside)
			}
			return ""
		}, f.Describe)
	})
	step(t, "AnotherOneReplacesTheBrokenOne", func(t *testing.T) {
		patience.Eventually(t, func(ctx context.Context) string {
			if err := f.Client.Get(ctx, client.ObjectKeyFromObject(md), md); err != nil {
				return err.Error()
			}
			names := machineNames(t, f)
			if names[broken] || !names[replacement.Name] || len(names) != 3 || md.Status.AvailableReplicas != 2 {
				return fmt.Sprintf("there are %v, of which %d are available; want two available ones and %s, without %s", names, md.Status.AvailableReplicas, replacement.Name, broken)
			}
			return ""
		}, f.Describe)
	})
	step(t, "ItIsDeletedWhenItIsPreservedNoLonger", func(t *testing.T) {
		kubectl(t, f, "annotate", "--overwrite", "machine", replacement.Name, machinev1alpha1.AnnotationPreserve+"="+machinev1alpha1.PreserveFalse)
		awaitReplaced(t, f, md, replacement.Name)
	})
	everyMachineHasItsNode(t, f, 2)
	f.DeleteDeployment(t, md.Name)
}

// TestHalfOfAFleetThatIsNotReadyIsNotReplacedAtOnce stops the kubelets of ten of twenty Machines.
func TestHalfOfAFleetThatIsNotReadyIsNotReplacedAtOnce(t *testing.T) {
	f := raisedFleet(t)
	census := f.Census(t)
	md := impatient(f, "half", 20)
	// Silent kubelets are not all detected at the same time. With this timeout, no Machine is
	// Failed before maxUnhealthy is exceeded.
	md.Spec.Template.Spec.Health.Timeout = metav1.Duration{Duration: 30 * time.Second}
	md.Spec.Remediation.MaxUnhealthy = ptr.To(intstr.FromString("40%"))
	md.Spec.Remediation.MaxInFlight = ptr.To(intstr.FromInt32(2))
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)
	before := machineNames(t, f)

	var half []string
	for name := range before {
		if len(half) < 10 {
			half = append(half, name)
		}
	}
	strike(t, f, localcloud.FaultKubeletStops, half...)
	step(t, "TooManyAreUnhealthyAndNoneIsReplaced", func(t *testing.T) {
		for _, name := range half {
			awaitPhase(t, f, name, machinev1alpha1.MachineFailed)
		}
		awaitReason(t, f, md, "RemediationAllowed", "TooManyUnhealthy")
		must(t, f.Launcher(t.Context(), "restart", "crossplane"))
		must(t, f.Launcher(t.Context(), "restart", "provider-drover"))
		nothingIsCreated(t, f, before)
	})
	step(t, "OnceTheyMayBeTheyAreReplacedWithinTheBudget", func(t *testing.T) {
		guard := f.GuardBy(t, comingUp(2))
		f.Patch(t, md, `{"spec":{"remediation":{"maxUnhealthy":"100%"}}}`)
		for _, name := range half {
			awaitReplaced(t, f, md, name)
		}
		guard.Done(t, 20)
	})
	everyMachineHasItsNode(t, f, 20)
	census.Done(t, 30)
	f.DeleteDeployment(t, md.Name)
}

// TestVMsThatAreConfirmedAsLostAreReplacedHoweverMany deletes the VMs of four of five Machines in
// the cloud, which is more than maxUnhealthy.
func TestVMsThatAreConfirmedAsLostAreReplacedHoweverMany(t *testing.T) {
	kit.OnlyInLong(t, "TestAMachineThatBreaksIsReplaced, and the stories and the properties of internal/plan/simulator")
	t.Parallel()
	f := plane.NewFleet(t)
	census := f.Census(t)
	md := f.Deployment("lost", 5, 1, 0)
	md.Spec.Remediation.MaxUnhealthy = ptr.To(intstr.FromInt32(1))
	md.Spec.Remediation.MaxInFlight = ptr.To(intstr.FromInt32(2))
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)
	machines, err := f.Machines(t.Context())
	must(t, err)
	lost := machines[:4]

	for i := range lost {
		strike(t, f, localcloud.FaultVanish, lost[i].Name)
	}
	confirmed := map[string]bool{}
	patience.Eventually(t, func(ctx context.Context) string {
		for i := range lost {
			m := &machinev1alpha1.Machine{}
			switch err := f.Client.Get(ctx, client.ObjectKeyFromObject(&lost[i]), m); {
			case client.IgnoreNotFound(err) != nil:
				return err.Error()
			case err == nil && m.Status.LossConfirmed:
				confirmed[m.Name] = true
			}
		}
		if len(confirmed) == 0 {
			return "no loss is confirmed"
		}
		names := machineNames(t, f)
		for i := range lost {
			if names[lost[i].Name] {
				return fmt.Sprintf("Machine %s is not replaced", lost[i].Name)
			}
		}
		return ""
	}, f.Describe)
	f.AwaitDeployment(t, md.Name)
	everyMachineHasItsNode(t, f, 5)
	census.Done(t, 9)
	f.DeleteDeployment(t, md.Name)
}
