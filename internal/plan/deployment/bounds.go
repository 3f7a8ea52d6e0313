package deployment

import (
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/util/intstr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/remediation"
)

// bounds of a rollout.
type bounds struct {
	replicas int32
	// surge is the number of Machines that may exist above replicas.
	surge int32
	// unavailable is the number of Machines that may be missing from replicas.
	unavailable int32
}

// Most returns the number of Machines that a deployment may have at once, including those that are
// being deleted. Each replacement of a Failed Machine may add one. One replacement at a time is not
// counted, because the margins cover it.
func Most(d *machinev1alpha1.MachineDeployment) int32 {
	b, _ := boundsOf(d)
	l, _ := remediation.LimitsOf(d.Spec.Remediation, d.Spec.Replicas)
	return add(b.most(), max(0, min(l.InFlight, d.Spec.Replicas)-1))
}

// Bounds returns the surge and the unavailable Machines that a strategy allows for a number of
// Machines. Both are 0 for a strategy without bounds.
func Bounds(replicas int32, s machinev1alpha1.Strategy) (surge, unavailable int32, problem *shared.Problem) {
	b, problem := boundsFor(replicas, s)
	return b.surge, b.unavailable, problem
}

func boundsOf(d *machinev1alpha1.MachineDeployment) (bounds, *shared.Problem) {
	return boundsFor(d.Spec.Replicas, d.Spec.Strategy)
}

func boundsFor(replicas int32, s machinev1alpha1.Strategy) (bounds, *shared.Problem) {
	switch s.Type {
	case machinev1alpha1.Recreate, machinev1alpha1.OnDelete:
		return bounds{replicas: max(0, replicas)}, nil
	case machinev1alpha1.InPlaceUpdate:
		b, problem := resolve("inPlaceUpdate", replicas, s.InPlaceUpdate.MaxSurge, 0, s.InPlaceUpdate.MaxUnavailable, 1)
		if s.InPlaceUpdate.Fallback == machinev1alpha1.FallbackNever {
			// Without it, the Machine above replicas would replace the last outdated one.
			b.unavailable = max(1, b.unavailable)
		}
		return b, problem
	default:
		return resolve("rollingUpdate", replicas, s.RollingUpdate.MaxSurge, 1, s.RollingUpdate.MaxUnavailable, 0)
	}
}

func resolve(strategy string, replicas int32, maxSurge *intstr.IntOrString, surge int32, maxUnavailable *intstr.IntOrString, unavailable int32) (bounds, *shared.Problem) {
	b := bounds{replicas: max(0, replicas)}
	var problem *shared.Problem
	if b.surge, problem = scaled(strategy+".maxSurge", maxSurge, surge, replicas, true); problem != nil {
		return b, problem
	}
	if b.unavailable, problem = scaled(strategy+".maxUnavailable", maxUnavailable, unavailable, replicas, false); problem != nil {
		return b, problem
	}
	// Percentages of few Machines may both round to 0, and then no Machine could ever be replaced.
	if b.surge == 0 && b.unavailable == 0 {
		b.unavailable = 1
	}
	return b, nil
}

func scaled(field string, v *intstr.IntOrString, otherwise, replicas int32, roundUp bool) (int32, *shared.Problem) {
	if v == nil {
		return otherwise, nil
	}
	n, invalid := shared.Scaled(v, replicas, roundUp)
	if invalid != "" {
		return 0, &shared.Problem{Reason: machinev1alpha1.ReasonInvalidStrategy, Message: fmt.Sprintf("spec.strategy.%s: %s", field, invalid)}
	}
	return n, nil
}

// most is the number of Machines that may exist. It is 0 if replicas is 0, because a rollout then
// has nothing to replace.
func (b bounds) most() int32 {
	if b.replicas == 0 {
		return 0
	}
	return add(b.replicas, b.surge)
}

// least is the number of Machines that must be available.
func (b bounds) least() int32 { return max(0, b.replicas-b.unavailable) }

// add returns a + b, limited to the range of int32.
func add(a, b int32) int32 {
	return int32(max(math.MinInt32, min(math.MaxInt32, int64(a)+int64(b))))
}
