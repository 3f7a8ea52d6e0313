package machine

import (
	"strings"
	"testing"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

func TestSees(t *testing.T) {
	at := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	config := func(reachable corev1.ConditionStatus, outage *clusterv1alpha1.Outage) *clusterv1alpha1.ClusterProviderConfig {
		c := &clusterv1alpha1.ClusterProviderConfig{}
		c.Status.SetConditions(xpv2.Condition{Type: clusterv1alpha1.ConditionReachable, Status: reachable})
		c.Status.Outage = outage
		return c
	}
	over := &clusterv1alpha1.Outage{Since: metav1.NewTime(at.Add(-time.Hour)), Until: &metav1.Time{Time: at}}
	lasting := &clusterv1alpha1.Outage{Since: metav1.NewTime(at)}
	for name, tc := range map[string]struct {
		config *clusterv1alpha1.ClusterProviderConfig
		after  time.Duration
		judges bool
	}{
		"ALastingOutageJudgesNobody":                {config(corev1.ConditionFalse, lasting), 24 * time.Hour, false},
		"NorDoesAClusterThatWasNeverReached":        {config(corev1.ConditionFalse, nil), 24 * time.Hour, false},
		"AnOutageThatIsOverJudgesNobodyForTheGrace": {config(corev1.ConditionTrue, over), 119 * time.Second, false},
		"AnEndFarAheadOfTheClockIsNone":             {config(corev1.ConditionTrue, &clusterv1alpha1.Outage{Until: &metav1.Time{Time: at.Add(time.Hour)}}), 0, true},
		"AfterTheGraceItDoes":                       {config(corev1.ConditionTrue, over), 2 * time.Minute, true},
		"AnotherOutageJudgesNobody":                 {config(corev1.ConditionFalse, over), time.Hour, false},
		"AClusterThatWasAlwaysReachedJudges":        {config(corev1.ConditionTrue, nil), 0, true},
		"OneThatWasNotMeasuredYetJudges":            {config(corev1.ConditionUnknown, nil), 0, true},
		"AMissingConfigurationJudgesNobody":         {nil, 24 * time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := Observed{Machine: &machinev1alpha1.Machine{}}
			o.ObserveTarget(at.Add(tc.after), tc.config, fn.DefaultReturnGrace)
			if got := factsOf(at.Add(tc.after), o).mayFail; got != tc.judges {
				t.Errorf("judges %t, want %t", got, tc.judges)
			}
		})
	}
}

func TestOnlyWhatIsJudgedAsksForTheCluster(t *testing.T) {
	for name, tc := range map[string]struct {
		was, is machinev1alpha1.MachinePhase
		want    bool
	}{
		"AMachineThatRuns":       {machinev1alpha1.MachineRunning, machinev1alpha1.MachineRunning, false},
		"OneThatComesUp":         {machinev1alpha1.MachineJoining, machinev1alpha1.MachineJoining, false},
		"OneThatFails":           {machinev1alpha1.MachineJoining, machinev1alpha1.MachineFailed, true},
		"OneThatFailedBefore":    {machinev1alpha1.MachineFailed, machinev1alpha1.MachineFailed, false},
		"OneWhoseNodeIsNotReady": {machinev1alpha1.MachineUnknown, machinev1alpha1.MachineUnknown, true},
		"OneWhoseNodeWasReady":   {machinev1alpha1.MachineRunning, machinev1alpha1.MachineUnknown, true},
	} {
		o := Observed{Machine: &machinev1alpha1.Machine{}}
		o.Machine.Status.Phase = tc.was
		if got := o.NeedsTarget(Desired{Status: machinev1alpha1.MachineStatus{Phase: tc.is}}); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

func TestReturnGrace(t *testing.T) {
	for name, tc := range map[string]struct {
		grace *metav1.Duration
		want  time.Duration
		err   string
	}{
		"TheDefault":    {nil, 2 * time.Minute, ""},
		"NoneAtAll":     {&metav1.Duration{}, 0, ""},
		"AnyOther":      {&metav1.Duration{Duration: time.Second}, time.Second, ""},
		"ButNoNegative": {&metav1.Duration{Duration: -time.Second}, 0, "returnGrace: -1s must be 0s or more"},
	} {
		got, err := ReturnGrace(&fn.Lifecycle{ReturnGrace: tc.grace})
		if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}
