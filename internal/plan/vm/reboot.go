package vm

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

// readReboot returns what a VM resource reports about reboots.
func readReboot(vm plan.Object, c conditions) *plan.RebootReport {
	out := &plan.RebootReport{Begun: vm.GetAnnotations()[machinev1alpha1.AnnotationRebooted]}
	said := c.Get(machinev1alpha1.ConditionRebooted)
	request, message, ok := strings.Cut(said.Message, ": ")
	switch {
	case !ok:
	case said.Status == corev1.ConditionFalse:
		out.Refused, out.Message = request, truncate(message)
	case said.Status == corev1.ConditionUnknown && string(said.Reason) == machinev1alpha1.ReasonRebootDelayed:
		out.Delayed, out.Message = request, truncate(message)
	}
	return out
}
