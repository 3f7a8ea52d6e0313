package plan

import (
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/util/intstr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// Scaled returns the number of Machines for a number or a percentage of replicas. If the value is
// malformed or out of bounds, the text describes the value and the allowed ones, for a message that
// names the field. Otherwise the text is empty.
func Scaled(v *intstr.IntOrString, replicas int32, roundUp bool) (n int32, invalid string) {
	scaled, err := intstr.GetScaledValueFromIntOrPercent(v, int(replicas), roundUp)
	if err != nil || scaled < 0 || v.Type == intstr.Int && scaled > machinev1alpha1.MaxReplicas {
		return 0, fmt.Sprintf("%q must be a number from 0 to %d, or a percentage from 0%% to 100%%", v.String(), machinev1alpha1.MaxReplicas)
	}
	return int32(min(scaled, math.MaxInt32)), ""
}
