package main

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

func TestTheTableTellsPhaseNodeVersionAndAge(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	running := machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "b", CreationTimestamp: metav1.NewTime(now.Add(-90 * time.Second))}}
	running.Spec.Version = "v1.35.4"
	running.Status.Phase = machinev1alpha1.MachineRunning
	running.Status.NodeRef = &machinev1alpha1.NodeReference{Kind: "Node", Name: "node-b"}
	fresh := machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "a", CreationTimestamp: metav1.NewTime(now)}}
	fresh.Spec.Version = "v1.35.5"
	going := machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "c", CreationTimestamp: metav1.NewTime(now), DeletionTimestamp: &metav1.Time{Time: now}}}
	going.Status.Phase = machinev1alpha1.MachineRunning

	want := strings.TrimLeft(`
MACHINE   PHASE         NODE     VERSION   AGE
a         Pending       -        v1.35.5   0s
b         Running       node-b   v1.35.4   90s
c         Terminating   -                  0s
`, "\n")
	if got := render([]machinev1alpha1.Machine{running, fresh, going}, now, true); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestADeploymentIsSettledWhenAllOfTheNewestIsAvailable(t *testing.T) {
	md := machinev1alpha1.MachineDeployment{}
	md.Generation, md.Status.ObservedGeneration = 2, 2
	md.Spec.Replicas, md.Status.AvailableReplicas, md.Status.UpdatedReplicas = 3, 3, 3
	if !settled([]machinev1alpha1.MachineDeployment{md}) {
		t.Error("it is")
	}
	md.Status.UpdatedReplicas = 2
	if settled([]machinev1alpha1.MachineDeployment{md}) {
		t.Error("one Machine is of an old template")
	}
	if settled(nil) {
		t.Error("there is no deployment at all")
	}
}
