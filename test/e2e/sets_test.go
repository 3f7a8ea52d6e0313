package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

func machineSet(f kit.Fleet, name string, replicas int32) *machinev1alpha1.MachineSet {
	labels := map[string]machinev1alpha1.LabelValue{"pool": "lone"}
	s := &machinev1alpha1.MachineSet{}
	s.Namespace, s.Name = f.Namespace, name
	s.Spec.Replicas = replicas
	s.Spec.Selector.MatchLabels = labels
	s.Spec.Template.Metadata.Labels = labels
	s.Spec.Template.Spec = f.MachineSpec(kit.OldVersion)
	return s
}

// awaitSet waits until a set's Machines are available.
func awaitSet(t *testing.T, f kit.Fleet, s *machinev1alpha1.MachineSet) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		if err := f.Client.Get(ctx, client.ObjectKeyFromObject(s), s); err != nil {
			return err.Error()
		}
		want := s.Spec.Replicas
		if st := s.Status; st.ObservedGeneration != s.Generation || st.AvailableReplicas != want || st.Replicas != want || st.TerminatingReplicas != 0 {
			return fmt.Sprintf("MachineSet %s wants %d and has status %+v\n%s", s.Name, want, st, f.Describe(ctx))
		}
		return ""
	})
}

func conditionOf(conditions []metav1.Condition, typ string) metav1.Condition {
	if c := meta.FindStatusCondition(conditions, typ); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func TestAStandaloneSetAdoptsALoneMachine(t *testing.T) {
	t.Parallel()
	f := plane.NewFleet(t)
	lone := &machinev1alpha1.Machine{}
	lone.Namespace, lone.Name, lone.Spec = f.Namespace, "lone", f.MachineSpec(kit.NewVersion)
	lone.Labels = map[string]string{"pool": "lone"}
	f.Create(t, lone)
	patience.Eventually(t, func(ctx context.Context) string {
		if err := f.Client.Get(ctx, client.ObjectKeyFromObject(lone), lone); err != nil {
			return err.Error()
		}
		if lone.Status.Phase != machinev1alpha1.MachineRunning {
			return fmt.Sprintf("phase %s\n%s", lone.Status.Phase, f.Describe(ctx))
		}
		return ""
	})

	s := machineSet(f, "adopter", 2)
	step(t, "ItIsOneOfTheTwoThatAreWanted", func(t *testing.T) {
		f.Create(t, s)
		awaitSet(t, f, s)
		everyMachineHasItsNode(t, f, 2)
		before := lone.Status.ProviderID
		if err := f.Client.Get(t.Context(), client.ObjectKeyFromObject(lone), lone); err != nil {
			t.Fatal(err)
		}
		if !metav1.IsControlledBy(lone, s) || lone.Spec.Version != kit.NewVersion || lone.Status.ProviderID != before {
			t.Errorf("owners %v, version %s, VM %s and before %s", lone.OwnerReferences, lone.Spec.Version, lone.Status.ProviderID, before)
		}
		if s.Status.UpdatedReplicas != 1 {
			t.Errorf("%d are of the template, want 1", s.Status.UpdatedReplicas)
		}
		kubectl(t, f, "wait", "machineset", s.Name, "--for=condition=Reconciling=false", patience.Flag())
	})
	step(t, "ASetThatNeedsSomebodysHelpIsStalled", func(t *testing.T) {
		helpless := machineSet(f, "helpless", 1)
		helpless.Spec.Template.Spec.ClassRef.Name = "nowhere"
		f.Create(t, helpless)
		kubectl(t, f, "wait", "machineset", helpless.Name, "--for=condition=Stalled", patience.Flag())
		if err := f.Client.Get(t.Context(), client.ObjectKeyFromObject(helpless), helpless); err != nil {
			t.Fatal(err)
		}
		if c := conditionOf(helpless.Status.Conditions, "Stalled"); c.Reason != "ClassNotFound" {
			t.Errorf("condition %+v", c)
		}
		kubectl(t, f, "delete", "machineset", helpless.Name)
	})
	step(t, "AnotherSetLeavesTheMachinesAloneAndSaysSo", func(t *testing.T) {
		other := machineSet(f, "other", 0)
		f.Create(t, other)
		patience.Eventually(t, func(ctx context.Context) string {
			if err := f.Client.Get(ctx, client.ObjectKeyFromObject(other), other); err != nil {
				return err.Error()
			}
			c := conditionOf(other.Status.Conditions, "SelectorExclusive")
			if want := "Machines that spec.selector matches are controlled by MachineSet adopter, and left alone"; c.Message != want {
				return fmt.Sprintf("condition %+v", c)
			}
			return ""
		})
		everyMachineHasItsNode(t, f, 2)
		kubectl(t, f, "delete", "machineset", other.Name)
	})
	step(t, "ANamedMachineIsRemovedAndNotReplaced", func(t *testing.T) {
		kubectl(t, f, "annotate", "machine", lone.Name, machinev1alpha1.AnnotationDeleteMachine+"=")
		kubectl(t, f, "scale", "machineset", s.Name, "--replicas=1")
		awaitSet(t, f, s)
		if names := machineNames(t, f); names[lone.Name] || len(names) != 1 {
			t.Errorf("left are %v", names)
		}
	})
	step(t, "DeletionLeavesNothing", func(t *testing.T) {
		kubectl(t, f, "delete", "machineset", s.Name)
		f.AwaitNothing(t)
	})
}

func TestAFailedMachineIsKeptForAnalysis(t *testing.T) {
	kit.OnlyInLong(t, "the stories and the properties of internal/plan/simulator")
	t.Parallel()
	f := plane.NewFleet(t)
	s := machineSet(f, "kept", 1)
	f.Create(t, s)
	awaitSet(t, f, s)
	machines, err := f.Machines(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := &machines[0]

	step(t, "ItsNodesAnnotationKeepsIt", func(t *testing.T) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Status.NodeRef.Name}}
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"when-failed"}}}`, machinev1alpha1.AnnotationPreserve)
		if err := f.Cluster.Client.Patch(t.Context(), node, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			t.Fatal(err)
		}
		patience.Eventually(t, func(ctx context.Context) string {
			if err := f.Client.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil {
				return err.Error()
			}
			if m.Status.Preserve != machinev1alpha1.PreserveWhenFailed {
				return fmt.Sprintf("status %+v", m.Status)
			}
			return ""
		})
		vms, err := f.VMs(t.Context())
		if err != nil || len(vms) != 1 {
			t.Fatalf("%d VMs, %v", len(vms), err)
		}
		if err := f.Cloud.DeleteVM(t.Context(), vms[0].ID); err != nil {
			t.Fatal(err)
		}
		patience.Eventually(t, func(ctx context.Context) string {
			if err := f.Client.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil {
				return err.Error()
			}
			if m.Status.Phase != machinev1alpha1.MachineFailed || conditionOf(m.Status.Conditions, "Preserved").Status != metav1.ConditionTrue {
				return fmt.Sprintf("phase %s, conditions %+v", m.Status.Phase, m.Status.Conditions)
			}
			if err := f.Client.Get(ctx, client.ObjectKeyFromObject(s), s); err != nil {
				return err.Error()
			}
			if s.Status.PreservedFailedReplicas != 1 {
				return fmt.Sprintf("status of the set %+v", s.Status)
			}
			return ""
		})
	})
	step(t, "ItsNodeIsTaintedAndEmptied", func(t *testing.T) {
		patience.Eventually(t, func(ctx context.Context) string {
			n := &corev1.Node{}
			if err := f.Cluster.Client.Get(ctx, client.ObjectKey{Name: m.Status.NodeRef.Name}, n); err != nil {
				return err.Error()
			}
			tainted := false
			for _, taint := range n.Spec.Taints {
				tainted = tainted || taint.Key == machinev1alpha1.TaintPreserved
			}
			if !tainted || !n.Spec.Unschedulable || n.Annotations[machinev1alpha1.AnnotationScaleDownDisabled] != "true" {
				return fmt.Sprintf("taints %v, unschedulable %t, annotations %v", n.Spec.Taints, n.Spec.Unschedulable, n.Annotations)
			}
			return ""
		})
		if names := machineNames(t, f); !names[m.Name] || len(names) != 1 {
			t.Errorf("there are %v", names)
		}
	})
	step(t, "FalseHasItReplaced", func(t *testing.T) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Status.NodeRef.Name}}
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"false"}}}`, machinev1alpha1.AnnotationPreserve)
		if err := f.Cluster.Client.Patch(t.Context(), node, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			t.Fatal(err)
		}
		awaitSet(t, f, s)
		if names := machineNames(t, f); names[m.Name] {
			t.Errorf("there are %v", names)
		}
	})
	kubectl(t, f, "delete", "machineset", s.Name)
	f.AwaitNothing(t)
}
