package rollout

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/intstr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
)

const reasonInvalidStrategy = "InvalidStrategy"

// bounds of a rollout.
type bounds struct {
	replicas int32
	// surge is how many Machines there may be above replicas.
	surge int32
	// unavailable is how many may be missing from replicas.
	unavailable int32
}

func boundsOf(d *machinev1alpha1.MachineDeployment) (bounds, *step.Problem) {
	b := bounds{replicas: d.Spec.Replicas}
	r := d.Spec.Strategy.RollingUpdate
	var problem *step.Problem
	if b.surge, problem = scaled("maxSurge", r.MaxSurge, 1, b.replicas, true); problem != nil {
		return b, problem
	}
	if b.unavailable, problem = scaled("maxUnavailable", r.MaxUnavailable, 0, b.replicas, false); problem != nil {
		return b, problem
	}
	// Percentages of few Machines may both round to nothing, and then no Machine
	// could ever be replaced.
	if b.surge == 0 && b.unavailable == 0 {
		b.unavailable = 1
	}
	return b, nil
}

func scaled(field string, v *intstr.IntOrString, otherwise, replicas int32, roundUp bool) (int32, *step.Problem) {
	if v == nil {
		return otherwise, nil
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(v, int(replicas), roundUp)
	if err != nil || n < 0 {
		return 0, &step.Problem{
			Reason:  reasonInvalidStrategy,
			Message: fmt.Sprintf("spec.strategy.rollingUpdate.%s: %q must be a number from 0, or a percentage from 0%% to 100%%", field, v.String()),
		}
	}
	return int32(n), nil
}

// most Machines that there may be.
func (b bounds) most() int32 { return b.replicas + b.surge }

// least Machines that must be available.
func (b bounds) least() int32 { return max(0, b.replicas-b.unavailable) }
