package deployment

import (
	"math"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// TestNoNumberOverflows plans with the largest and smallest numbers of spec and status, which the
// schema refuses, because users can edit a status. The replicas of a set are never negative, and
// never exceed the bounds.
func TestNoNumberOverflows(t *testing.T) {
	number := rapid.SampledFrom([]int32{0, 1, 2, 3, 9999, 10000, 10001, math.MaxInt32 - 1, math.MaxInt32})
	invalid := rapid.OneOf(number, rapid.Just[int32](-1), rapid.Just[int32](math.MinInt32))
	rapid.Check(t, func(t *rapid.T) {
		value := func(name string) *intstr.IntOrString { return ptr.To(intstr.FromInt32(invalid.Draw(t, name))) }
		kind := rapid.SampledFrom([]machinev1alpha1.StrategyType{machinev1alpha1.RollingUpdate, machinev1alpha1.Recreate, machinev1alpha1.OnDelete, machinev1alpha1.InPlaceUpdate}).Draw(t, "strategy")
		d := deployment(number.Draw(t, "replicas"), by(kind), scaledFor(number.Draw(t, "scaled for")))
		d.Spec.Strategy.RollingUpdate = machinev1alpha1.RollingUpdateBounds{MaxSurge: value("maxSurge"), MaxUnavailable: value("maxUnavailable")}
		d.Spec.Strategy.InPlaceUpdate = machinev1alpha1.InPlaceUpdateBounds{MaxSurge: value("maxSurge in place"), MaxUnavailable: value("maxUnavailable in place")}
		d.Spec.Remediation = machinev1alpha1.Remediation{MaxInFlight: value("maxInFlight"), MaxUnhealthy: value("maxUnhealthy")}
		var sets []Set
		for i, v := range []string{"v1", "v2"} {
			if !rapid.Bool().Draw(t, v+" exists") {
				continue
			}
			s := machineSet(v, int64(i+1), number.Draw(t, v+" replicas"))
			for _, n := range []*int32{&s.Status.Replicas, &s.Status.AvailableReplicas, &s.Status.TerminatingReplicas, &s.Status.StartingReplicas, &s.Status.UnhealthyReplicas, &s.Status.ReplaceableReplicas, &s.Status.MarkedReplicas} {
				*n = invalid.Draw(t, v+" status")
			}
			sets = append(sets, s)
		}
		if most := Most(d); most < d.Spec.Replicas {
			t.Fatalf("at most %d Machines of %d wanted", most, d.Spec.Replicas)
		}
		p := Plan(now, Observed{Deployment: d, Sets: sets, ClassFound: true})
		for _, s := range p.Status.MachineSets {
			reported := int32(0)
			for _, o := range sets {
				if o.Name == s.Name {
					reported = o.Spec.Replicas
				}
			}
			if s.Replicas < 0 || s.Replicas > max(reported, Most(d)) {
				t.Fatalf("set %s is reported %d, after %d, of %d at most", s.Name, s.Replicas, reported, Most(d))
			}
		}
	})
}

// TestMoreMarkedMachinesThanMachines lowers replicas in a rollout while the counts of the old set
// contradict each other: it has no Machine, and one of them is marked.
func TestMoreMarkedMachinesThanMachines(t *testing.T) {
	d := deployment(1, by(machinev1alpha1.RollingUpdate), scaledFor(0))
	old, updated := machineSet("v1", 1, 1), machineSet("v2", 2, 2)
	old.Status.Replicas, old.Status.AvailableReplicas, old.Status.MarkedReplicas = 0, 0, 1
	updated.Status.Replicas, updated.Status.AvailableReplicas = 0, 0
	for _, s := range Plan(now, Observed{Deployment: d, Sets: []Set{old, updated}, ClassFound: true}).Status.MachineSets {
		if s.Replicas < 0 {
			t.Errorf("set %s shall have %d Machines", s.Name, s.Replicas)
		}
	}
}
