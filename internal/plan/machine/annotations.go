package machine

import (
	"fmt"
	"strconv"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

// annotationsValid is False while the Machine or its Node has annotations with invalid values,
// which Drover ignores. It is nil for a Machine that never had any.
func annotationsValid(f facts) *plan.Condition {
	var wrong []string
	if v, ok := f.Machine.Annotations[machinev1alpha1.AnnotationDeletionCost]; ok {
		if _, err := strconv.ParseInt(v, 10, 32); err != nil {
			wrong = append(wrong, fmt.Sprintf("%s: %q of the Machine must be an integer of 32 bits, and counts as 0", machinev1alpha1.AnnotationDeletionCost, plan.ShownValue(v)))
		}
	}
	const allowed = "must be now, when-failed or false, and is passed over"
	if v, ok := f.Machine.Annotations[machinev1alpha1.AnnotationPreserve]; ok && !preservesMachine(v) {
		wrong = append(wrong, fmt.Sprintf("%s: %q of the Machine %s", machinev1alpha1.AnnotationPreserve, plan.ShownValue(v), allowed))
	}
	if v, ok := f.node.Annotations[machinev1alpha1.AnnotationPreserve]; ok && !preservesNode(v) {
		wrong = append(wrong, fmt.Sprintf("%s: %q of the Node %s", machinev1alpha1.AnnotationPreserve, plan.ShownValue(v), allowed))
	}
	wrong = append(wrong, plan.InvalidSwitches(f.Machine.Annotations)...)
	wrong = append(wrong, plan.InvalidSwitchesOfNode(f.node.Annotations)...)
	if v, ok := f.Machine.Annotations[machinev1alpha1.AnnotationReboot]; ok && !machinev1alpha1.IsRebootID(v) {
		wrong = append(wrong, fmt.Sprintf("%s: %q of the Machine must have %s, and is passed over", machinev1alpha1.AnnotationReboot, plan.ShownValue(v), machinev1alpha1.FormOfRebootID))
	}
	if v, ok := f.Machine.Annotations[machinev1alpha1.AnnotationRebootDrain]; ok && v != machinev1alpha1.RebootDrainNever {
		wrong = append(wrong, fmt.Sprintf("%s: %q of the Machine must be %s, and is passed over", machinev1alpha1.AnnotationRebootDrain, plan.ShownValue(v), machinev1alpha1.RebootDrainNever))
	}
	return plan.AnnotationsValid(wrong, f.before.Conditions)
}
