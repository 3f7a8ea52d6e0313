package deployment

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

func TestMessagesWithNumbersAreWrittenAtMostEveryFiveSeconds(t *testing.T) {
	const before, fresh = "1 of 3 Machines are available, at least 3 must be", "2 of 3 Machines are available, at least 3 must be"
	observe := func(available int32) Observed {
		return Observed{ClassFound: true, Deployment: deployment(3, completed(1), recorded("v2", 3)), Sets: []Set{machineSet("v2", 1, 3, func(s *Set) {
			s.Status.ReadyReplicas, s.Status.AvailableReplicas = available, available
		})}}
	}
	change := func(typ string, change func(*metav1.Condition)) deploymentOption {
		return func(d *machinev1alpha1.MachineDeployment) { change(meta.FindStatusCondition(d.Status.Conditions, typ)) }
	}
	nothing := func(*machinev1alpha1.MachineDeployment) {}

	cases := map[string]struct {
		age       time.Duration
		otherwise deploymentOption
		want      string
		callAgain time.Duration
	}{
		"YoungMessagesStay":         {age: 2 * time.Second, otherwise: nothing, want: before, callAgain: 3 * time.Second},
		"MessagesOfThisMomentStay":  {age: 0, otherwise: nothing, want: before, callAgain: 5 * time.Second},
		"OldMessagesAreReplaced":    {age: 5 * time.Second, otherwise: nothing, want: fresh, callAgain: shared.InFlight},
		"AClockThatIsAheadIsNoTime": {age: -time.Hour, otherwise: nothing, want: fresh, callAgain: shared.InFlight},
		"ThoseOfAnotherReasonAreReplacedAtOnce": {
			age:       time.Second,
			otherwise: change("Available", func(c *metav1.Condition) { c.Reason = "Other" }),
			want:      fresh, callAgain: shared.InFlight,
		},
		"ThoseOfAnotherStatusAreReplacedAtOnce": {
			age:       time.Second,
			otherwise: change("Available", func(c *metav1.Condition) { c.Status = metav1.ConditionTrue }),
			want:      fresh, callAgain: shared.InFlight,
		},
		"AllAreReplacedWhenOneIsOld": {
			age: time.Second,
			otherwise: change("Reconciling", func(c *metav1.Condition) {
				c.LastTransitionTime = metav1.NewTime(now.Add(-time.Minute))
			}),
			want: fresh, callAgain: shared.InFlight,
		},
		"AllAreReplacedWhenAnotherConditionChanges": {
			age:       time.Second,
			otherwise: change("Progressing", func(c *metav1.Condition) { c.Message = "Rolling out revision 1" }),
			want:      fresh, callAgain: shared.InFlight,
		},
		"ThoseOfAnEarlierGenerationAreReplacedAtOnce": {
			age: time.Second,
			otherwise: func(d *machinev1alpha1.MachineDeployment) {
				d.Status.ObservedGeneration = 8
				ready(metav1.ConditionFalse, 8)(d)
			},
			want: fresh, callAgain: shared.Soonest,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := observe(2)
			crossplane(o.Deployment, Plan(now.Add(-tc.age), observe(1)), func() {})
			for i := range o.Deployment.Status.Conditions {
				o.Deployment.Status.Conditions[i].LastTransitionTime = metav1.NewTime(now.Add(-tc.age))
			}
			tc.otherwise(o.Deployment)

			got := Plan(now, o)
			for _, c := range got.Conditions {
				if c.Type == "Available" && c.Message != tc.want {
					t.Errorf("the message is %q, want %q", c.Message, tc.want)
				}
			}
			if got.CallAgain != tc.callAgain {
				t.Errorf("the next call is after %s, want %s", got.CallAgain, tc.callAgain)
			}
			if got.Status.AvailableReplicas != 2 {
				t.Errorf("the status has %d available Machines, want 2", got.Status.AvailableReplicas)
			}
		})
	}
}

func TestADeploymentWithoutNewMessagesIsNotPlannedAgainForThem(t *testing.T) {
	o := Observed{ClassFound: true, Deployment: deployment(3, completed(1), recorded("v2", 3)), Sets: []Set{machineSet("v2", 1, 3)}}
	var last Decision
	for range 3 {
		last = Plan(now, o)
		crossplane(o.Deployment, last, func() {})
	}
	if last.CallAgain != shared.AtRest {
		t.Errorf("the next call is after %s, want %s", last.CallAgain, shared.AtRest)
	}
}
