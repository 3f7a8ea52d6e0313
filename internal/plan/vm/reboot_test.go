package vm

import (
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

func TestTheReportOfAReboot(t *testing.T) {
	for name, tc := range map[string]struct {
		condition xpv2.Condition
		want      plan.RebootReport
	}{
		"Accepted": {xpv2.Condition{Status: corev1.ConditionTrue, Reason: machinev1alpha1.ReasonRebootAccepted, Message: "Soft/one: accepted"}, plan.RebootReport{}},
		"Refused":  {xpv2.Condition{Status: corev1.ConditionFalse, Reason: machinev1alpha1.ReasonRebootRefused, Message: "Soft/one: no: tools"}, plan.RebootReport{Refused: "Soft/one", Message: "no: tools"}},
		"Delayed":  {xpv2.Condition{Status: corev1.ConditionUnknown, Reason: machinev1alpha1.ReasonRebootDelayed, Message: "Soft/one: locked"}, plan.RebootReport{Delayed: "Soft/one", Message: "locked"}},
		"Unknown":  {xpv2.Condition{Status: corev1.ConditionUnknown, Reason: "Other", Message: "Soft/one: locked"}, plan.RebootReport{}},
		"Empty":    {xpv2.Condition{Status: corev1.ConditionFalse}, plan.RebootReport{}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.condition.Type = machinev1alpha1.ConditionRebooted
			if got := *readReboot(plan.Object{Unstructured: &unstructured.Unstructured{}}, conditions{tc.condition}); got != tc.want {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
		})
	}
}
