package simulator

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

// TestTheEndOfARolloutIsReportedOnce: Argo CD and Flux continue with what depends on a deployment when it is complete, so it must
// not be in progress again a moment later because Crossplane forgets the old set, which raises the generation.
func TestTheEndOfARolloutIsReportedOnce(t *testing.T) {
	for name, change := range map[string]func(*machinev1alpha1.MachineDeployment){
		"one at a time": func(*machinev1alpha1.MachineDeployment) {},
		"without surge": func(d *machinev1alpha1.MachineDeployment) {
			d.Spec.Strategy.RollingUpdate.MaxSurge, d.Spec.Strategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(0)), new(intstr.FromInt32(1))
		},
		"all at once":   func(d *machinev1alpha1.MachineDeployment) { d.Spec.Strategy.Type = machinev1alpha1.Recreate },
		"with a canary": func(d *machinev1alpha1.MachineDeployment) { d.Spec.Strategy.RollingUpdate.Steps, _ = stepsOf("1+10m") },
		"with an age": func(d *machinev1alpha1.MachineDeployment) {
			d.Spec.Rollout.MaxAge = &metav1.Duration{Duration: 1000 * time.Hour}
		},
		"with ready seconds":  func(d *machinev1alpha1.MachineDeployment) { d.Spec.MinReadySeconds = 30 },
		"with a fallback":     func(d *machinev1alpha1.MachineDeployment) { d.Spec.Rollout.OnFailure = machinev1alpha1.FailureRollback },
		"to another class":    func(d *machinev1alpha1.MachineDeployment) { d.Spec.Template.Spec.ClassRef.Name = "large" },
		"and scaled meantime": func(d *machinev1alpha1.MachineDeployment) { d.Spec.Replicas++ },
	} {
		t.Run(name, func(t *testing.T) {
			w := NewWorld(poolOf(3, 1, 0), Cloud{ID: 30 * time.Second, Boot: time.Minute, Drain: 20 * time.Second})
			if !w.RunUntil(time.Hour, w.Settled) {
				t.Fatalf("the pool did not begin:\n%s", w)
			}
			from := len(w.deployments.log)
			w.Update(func(d *machinev1alpha1.MachineDeployment) {
				change(d)
				d.Spec.Template.Spec.Version = "v2"
			})
			w.Run(3 * time.Hour)
			ends, was := 0, false
			for _, e := range w.deployments.log[from:] {
				is := plan.IsReadyFor(e.object.Generation, e.object.Status.Conditions) && e.object.Status.ObservedGeneration == e.object.Generation
				if is && !was {
					ends++
				}
				was = is
			}
			if ends != 1 || !was {
				t.Errorf("reported to be complete %d times, now %t", ends, was)
			}
		})
	}
}
