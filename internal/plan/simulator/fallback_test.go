package simulator

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// TestFallbackNeverReplacesNoMachine changes versions, failure domains and bounds of a pool whose updates are made in place
// alone. Only Machines that were lost, and those that a smaller number of replicas leaves over, are deleted. In the end, all
// are of the version of the spec.
func TestFallbackNeverReplacesNoMachine(t *testing.T) { rapid.Check(t, neverReplaced) }

func neverReplaced(t *rapid.T) {
	s := poolOf(rapid.IntRange(1, 4).Draw(t, "replicas"), rapid.IntRange(0, 2).Draw(t, "surge"), 1)
	zone := func(d *machinev1alpha1.MachineDeployment, name string) {
		d.Spec.Template.Spec.FailureDomain = ptr.To(name)
	}
	s.Template.Spec.FailureDomain = ptr.To("zone-a")
	s.Strategy.Type = machinev1alpha1.InPlaceUpdate
	s.Strategy.InPlaceUpdate.Orchestration, s.Strategy.InPlaceUpdate.Fallback = machinev1alpha1.OrchestrationAuto, machinev1alpha1.FallbackNever
	w := NewWorld(s, Cloud{ID: 30 * time.Second, Boot: time.Minute, Drain: 20 * time.Second, Update: 40 * time.Second})
	if !w.RunUntil(time.Hour, w.Settled) {
		t.Fatalf("the pool did not begin:\n%s", w)
	}
	stays := map[types.UID]bool{}
	for _, m := range w.Machines() {
		stays[m.UID] = true
	}
	shrinks := false
	for i := range rapid.IntRange(1, 6).Draw(t, "events") {
		ms := w.Machines()
		m := ms[rapid.IntRange(0, len(ms)-1).Draw(t, "machine")]
		switch rapid.IntRange(0, 4).Draw(t, "event") {
		case 0:
			w.Update(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Template.Spec.Version = fmt.Sprintf("v%d", i+2) })
		case 1:
			w.Update(func(d *machinev1alpha1.MachineDeployment) { zone(d, "zone-b") })
		case 2:
			w.Update(func(d *machinev1alpha1.MachineDeployment) { zone(d, "zone-a") })
		case 3:
			w.LoseVM(m.Name)
			delete(stays, m.UID)
		case 4:
			w.Update(func(d *machinev1alpha1.MachineDeployment) {
				n := int32(rapid.IntRange(1, 5).Draw(t, "replicas"))
				shrinks = shrinks || n < d.Spec.Replicas
				d.Spec.Replicas = n
			})
		}
		w.Run(time.Duration(rapid.SampledFrom([]int{1, 3, 10, 60}).Draw(t, "minutes")) * time.Minute)
	}
	w.Update(func(d *machinev1alpha1.MachineDeployment) { zone(d, "zone-a") })
	if !w.RunUntil(10*time.Hour, w.Settled) {
		t.Fatalf("does not arrive:\n%s", w)
	}
	if len(w.Violations) > 0 {
		t.Fatalf("%s\n%s", w.Violations[0], w)
	}
	for _, m := range w.Machines() {
		delete(stays, m.UID)
	}
	if len(stays) > 0 && !shrinks {
		t.Fatalf("%d Machines were replaced that were not lost:\n%s", len(stays), w)
	}
}
