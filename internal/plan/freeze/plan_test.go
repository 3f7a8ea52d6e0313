package freeze

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

var (
	since       = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	unreachable = &Cluster{Kind: "ClusterProviderConfig", Name: "default", Unreachable: true, Reason: "Unreachable", Since: since}
	reachable   = &Cluster{Kind: "ClusterProviderConfig", Name: "default", Reason: "Reachable", Since: since}
)

func freeze(v string) map[string]string { return map[string]string{machinev1alpha1.LabelFreeze: v} }

func reported(s metav1.ConditionStatus, reason string) []metav1.Condition {
	return []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}, {Type: machinev1alpha1.ConditionFrozen, Status: s, Reason: reason}}
}

// there returns counts of a fleet that may have ten Machines.
func there(existing, terminating int32) *Machines {
	return &Machines{Expected: 10, Existing: existing, Terminating: terminating}
}

func TestPlan(t *testing.T) {
	type want struct {
		Frozen    bool
		Condition string
		Reason    string
		Event     string
		Sets      string
		Again     time.Duration
	}
	frozen := func(reason, event, sets string) want {
		return want{Frozen: true, Condition: "True", Reason: reason, Event: event, Sets: sets}
	}
	soon := func(w want) want {
		w.Again = lookAgain
		return w
	}
	cases := map[string]struct {
		o    Observed
		want want
	}{
		"NothingIsFrozenByDefault": {
			want: want{Condition: "False", Reason: machinev1alpha1.ReasonNotFrozen},
		},
		"TheLabelFreezes": {
			o:    Observed{Labels: freeze("true")},
			want: frozen(machinev1alpha1.ReasonManualFreeze, machinev1alpha1.ReasonManualFreeze, "true"),
		},
		"TheLabelFreezesWhatWasThawed": {
			o:    Observed{Labels: freeze("true"), Conditions: reported(metav1.ConditionFalse, machinev1alpha1.ReasonNotFrozen)},
			want: frozen(machinev1alpha1.ReasonManualFreeze, machinev1alpha1.ReasonManualFreeze, "true"),
		},
		"AFreezeIsReportedOnce": {
			o:    Observed{Labels: freeze("true"), Conditions: reported(metav1.ConditionTrue, machinev1alpha1.ReasonManualFreeze)},
			want: frozen(machinev1alpha1.ReasonManualFreeze, "", "true"),
		},
		"ItThawsWhenTheLabelIsGone": {
			o:    Observed{Conditions: reported(metav1.ConditionTrue, machinev1alpha1.ReasonManualFreeze)},
			want: want{Condition: "False", Reason: machinev1alpha1.ReasonNotFrozen, Event: machinev1alpha1.ReasonNotFrozen},
		},
		"AThawIsReportedOnce": {
			o:    Observed{Conditions: reported(metav1.ConditionFalse, machinev1alpha1.ReasonNotFrozen)},
			want: want{Condition: "False", Reason: machinev1alpha1.ReasonNotFrozen},
		},
		"AnyOtherValueOfTheLabelFreezesNothingAndIsReported": {
			o:    Observed{Labels: freeze("yes"), Conditions: reported(metav1.ConditionFalse, machinev1alpha1.ReasonNotFrozen)},
			want: want{Condition: "False", Reason: machinev1alpha1.ReasonFreezeLabelInvalid, Event: machinev1alpha1.ReasonFreezeLabelInvalid},
		},
		"ThatIsReportedOnce": {
			o:    Observed{Labels: freeze("yes"), Conditions: reported(metav1.ConditionFalse, machinev1alpha1.ReasonFreezeLabelInvalid)},
			want: want{Condition: "False", Reason: machinev1alpha1.ReasonFreezeLabelInvalid},
		},
		"ASetSaysThatItsDeploymentIsFrozen": {
			o:    Observed{Labels: freeze("true"), Annotations: map[string]string{machinev1alpha1.AnnotationFreezeReason: machinev1alpha1.ReasonOvershoot}},
			want: frozen(machinev1alpha1.ReasonDeploymentFrozen, machinev1alpha1.ReasonDeploymentFrozen, "true"),
		},

		"AClusterThatCannotBeReachedFreezes": {
			o:    Observed{Cluster: unreachable},
			want: soon(frozen(machinev1alpha1.ReasonTargetUnreachable, machinev1alpha1.ReasonTargetUnreachable, "")),
		},
		"AClusterThatMayNotBeReachedFreezesByAnotherReason": {
			o:    Observed{Cluster: &Cluster{Kind: "ClusterProviderConfig", Name: "eu", Unreachable: true, Reason: "InjectedIdentityNotAllowed"}},
			want: soon(frozen(machinev1alpha1.ReasonInjectedIdentityNotAllowed, machinev1alpha1.ReasonInjectedIdentityNotAllowed, "")),
		},
		"ItIsLookedAtAgainSoonForAsLongAsItCannotBeReached": {
			o:    Observed{Cluster: unreachable, Conditions: reported(metav1.ConditionTrue, machinev1alpha1.ReasonTargetUnreachable)},
			want: soon(frozen(machinev1alpha1.ReasonTargetUnreachable, "", "")),
		},
		"ItThawsWhenTheClusterIsBack": {
			o:    Observed{Cluster: reachable, Conditions: reported(metav1.ConditionTrue, machinev1alpha1.ReasonTargetUnreachable)},
			want: want{Condition: "False", Reason: machinev1alpha1.ReasonNotFrozen, Event: machinev1alpha1.ReasonNotFrozen},
		},
		"AClusterThatWasNotAskedForFreezesNothing": {
			o:    Observed{Conditions: reported(metav1.ConditionFalse, machinev1alpha1.ReasonNotFrozen)},
			want: want{Condition: "False", Reason: machinev1alpha1.ReasonNotFrozen},
		},
		"AHandThatFreezesSaysMoreThanTheCluster": {
			o:    Observed{Labels: freeze("true"), Cluster: unreachable},
			want: soon(frozen(machinev1alpha1.ReasonManualFreeze, machinev1alpha1.ReasonManualFreeze, "true")),
		},

		"AsManyAsTheMarginAllowsAreNotTooMany": {
			o:    Observed{Machines: there(12, 0)},
			want: want{Condition: "False", Reason: machinev1alpha1.ReasonNotFrozen},
		},
		"OneMoreIs": {
			o:    Observed{Machines: there(13, 0)},
			want: frozen(machinev1alpha1.ReasonOvershoot, machinev1alpha1.ReasonOvershoot, "true"),
		},
		"MachinesThatDrainAreNotTooMany": {
			o:    Observed{Machines: there(10, 7)},
			want: want{Condition: "False", Reason: machinev1alpha1.ReasonNotFrozen},
		},
		"AsManyThatDrainAsPileUpFreezeForFiveMinutes": {
			o:    Observed{Machines: there(10, 8)},
			want: func(w want) want { w.Again = 5 * time.Minute; return w }(frozen(machinev1alpha1.ReasonOvershoot, machinev1alpha1.ReasonOvershoot, "true")),
		},
		"ItStaysFrozenUntilTheyAreFewerByTheOtherMargin": {
			o:    Observed{Machines: there(12, 0), Conditions: reported(metav1.ConditionTrue, machinev1alpha1.ReasonOvershoot)},
			want: frozen(machinev1alpha1.ReasonOvershoot, "", "true"),
		},
		"ItThawsThen": {
			o:    Observed{Machines: there(11, 0), Conditions: reported(metav1.ConditionTrue, machinev1alpha1.ReasonOvershoot)},
			want: want{Condition: "False", Reason: machinev1alpha1.ReasonNotFrozen, Event: machinev1alpha1.ReasonNotFrozen},
		},
		"AFreezeForAnotherReasonDoesNotLowerTheBound": {
			o:    Observed{Machines: there(12, 0), Cluster: reachable, Conditions: reported(metav1.ConditionTrue, machinev1alpha1.ReasonTargetUnreachable)},
			want: want{Condition: "False", Reason: machinev1alpha1.ReasonNotFrozen, Event: machinev1alpha1.ReasonNotFrozen},
		},
		"ANewReasonIsReported": {
			o:    Observed{Machines: there(20, 0), Cluster: unreachable, Conditions: reported(metav1.ConditionTrue, machinev1alpha1.ReasonOvershoot)},
			want: soon(frozen(machinev1alpha1.ReasonTargetUnreachable, machinev1alpha1.ReasonTargetUnreachable, "")),
		},

		"FalseThawsWhatIsTooMuchAndSaysInSpiteOfWhat": {
			o:    Observed{Labels: freeze("false"), Machines: there(20, 0), Conditions: reported(metav1.ConditionTrue, machinev1alpha1.ReasonOvershoot)},
			want: want{Condition: "False", Reason: machinev1alpha1.ReasonFreezeOverridden, Event: machinev1alpha1.ReasonFreezeOverridden, Sets: "false"},
		},
		"FalseKeepsThawedWhoseClusterCannotBeReached": {
			o:    Observed{Labels: freeze("false"), Cluster: unreachable, Conditions: reported(metav1.ConditionFalse, machinev1alpha1.ReasonFreezeOverridden)},
			want: soon(want{Condition: "False", Reason: machinev1alpha1.ReasonFreezeOverridden, Sets: "false"}),
		},
		"FalseIsNoNewsWhereNothingIsFound": {
			o:    Observed{Labels: freeze("false"), Machines: there(10, 0), Cluster: reachable, Conditions: reported(metav1.ConditionFalse, machinev1alpha1.ReasonFreezeOverridden)},
			want: want{Condition: "False", Reason: machinev1alpha1.ReasonNotFrozen, Sets: "false"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.o.Margins = Margins{Up: 2, Down: 1}
			d := Plan(since, tc.o)
			got := want{Frozen: d.Safety.Frozen, Condition: d.Condition.Status, Reason: d.Condition.Reason, Sets: d.Safety.Sets, Again: d.CallAgain}
			for _, e := range d.Events {
				got.Event += e.Reason
			}
			if tc.want.Again == 0 {
				tc.want.Again = plan.AtRest
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if d.Condition.Reason != machinev1alpha1.ReasonNotFrozen && d.Condition.Message == "" {
				t.Error("it must say why")
			}
			if d.Safety.Frozen && d.Safety.Message != d.Condition.Message {
				t.Errorf("the steps after it are reported %q", d.Safety.Message)
			}
		})
	}
}

func TestMessagesHaveTheNumbers(t *testing.T) {
	deleted, many := there(9, 11), there(15, 1)
	deleted.Remembered = &machinev1alpha1.SafetyStatus{Expected: 10, Leaving: 3}
	many.Remembered = &machinev1alpha1.SafetyStatus{Expected: 10, Surplus: 1}
	const tail = ": no Machines are created or replaced meanwhile"
	for want, o := range map[string]Observed{
		"there are 20 Machines, 11 of them being deleted: it freezes above 10 that are (half of 10 by the spec, 3 that do not count, a margin of 2) and thaws at 9, or at 2030-01-01T12:05:00Z" + tail: {Machines: deleted},
		"there are 16 Machines, 1 of them being deleted: it freezes above 13 that are not (10 by the spec, 1 that a scale-down has yet to delete, a margin of 2) and thaws at 12" + tail:               {Machines: many},
		`ClusterProviderConfig "default" is not Reachable since 2030-01-01T12:00:00Z (Unreachable): no Machines are created or replaced meanwhile`:                                                     {Cluster: unreachable},
		`ClusterProviderConfig "eu" has spec.credentials.source InjectedIdentity, and the flag --injected-identity-for of provider-drover does not name it` + tail: {
			Cluster: &Cluster{Kind: "ClusterProviderConfig", Name: "eu", Unreachable: true, Reason: "InjectedIdentityNotAllowed"},
		},
		`MachineDeployment workers is frozen (Overshoot): no Machines are created or replaced until it thaws`: {
			Labels:      map[string]string{machinev1alpha1.LabelFreeze: "true", machinev1alpha1.LabelDeployment: "workers"},
			Annotations: map[string]string{machinev1alpha1.AnnotationFreezeReason: machinev1alpha1.ReasonOvershoot},
		},
		`label machine.drover.dev/freeze: "yes" must be "true" or "false", and is passed over`: {Labels: freeze("yes")},
	} {
		o.Margins = Margins{Up: 2, Down: 1}
		d := Plan(since, o)
		if d.Condition.Message != want {
			t.Errorf("\n%q, want\n%q", d.Condition.Message, want)
		}
		if len(d.Events) != 1 || !strings.HasSuffix(d.Events[0].Message, want) {
			t.Errorf("events %v", d.Events)
		}
	}
}
