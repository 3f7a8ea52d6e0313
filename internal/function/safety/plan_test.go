package safety

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

func TestPlan(t *testing.T) {
	freeze := func(v string) map[string]string { return map[string]string{machinev1alpha1.LabelFreeze: v} }
	frozen := func(s metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}, {Type: ConditionFrozen, Status: s}}
	}
	type want struct {
		Frozen    bool
		Condition string
		Reason    string
		Event     string
	}
	cases := map[string]struct {
		o    Observed
		want want
	}{
		"NothingIsFrozenByDefault": {
			want: want{Condition: "False", Reason: ReasonNotFrozen},
		},
		"TheLabelFreezes": {
			o:    Observed{Labels: freeze("true")},
			want: want{Frozen: true, Condition: "True", Reason: ReasonManualFreeze, Event: ReasonManualFreeze},
		},
		"TheLabelFreezesWhatWasThawed": {
			o:    Observed{Labels: freeze("true"), Conditions: frozen(metav1.ConditionFalse)},
			want: want{Frozen: true, Condition: "True", Reason: ReasonManualFreeze, Event: ReasonManualFreeze},
		},
		"AFreezeIsToldOnce": {
			o:    Observed{Labels: freeze("true"), Conditions: frozen(metav1.ConditionTrue)},
			want: want{Frozen: true, Condition: "True", Reason: ReasonManualFreeze},
		},
		"ItThawsWhenTheLabelIsGone": {
			o:    Observed{Conditions: frozen(metav1.ConditionTrue)},
			want: want{Condition: "False", Reason: ReasonNotFrozen, Event: ReasonNotFrozen},
		},
		"AThawIsToldOnce": {
			o:    Observed{Conditions: frozen(metav1.ConditionFalse)},
			want: want{Condition: "False", Reason: ReasonNotFrozen},
		},
		"AnyOtherValueOfTheLabelFreezesNothing": {
			o:    Observed{Labels: freeze("false")},
			want: want{Condition: "False", Reason: ReasonNotFrozen},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Plan(tc.o)
			got := want{Frozen: d.Safety.Frozen, Condition: d.Condition.Status, Reason: d.Condition.Reason}
			for _, e := range d.Events {
				got.Event += e.Reason
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if d.Safety.Frozen && d.Safety.Message == "" {
				t.Error("a freeze must say why")
			}
		})
	}
}
