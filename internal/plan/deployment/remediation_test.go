package deployment

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// mayReplace is the budget in the set's spec, on which the set has acted.
func mayReplace(n int32) setOption {
	return func(s *Set) { s.Spec.Remediation.MaxInFlight = ptr.To(intstr.FromInt32(n)) }
}

func starting(n int32) setOption {
	return func(s *Set) { s.Status.StartingReplicas, s.Status.BootingReplicas = n, n }
}

// sick sets the number of unhealthy Machines, and of those among them that wait to be replaced.
func sick(unhealthy, waiting int32) setOption {
	return func(s *Set) { s.Status.UnhealthyReplicas, s.Status.ReplaceableReplicas = unhealthy, waiting }
}

func backsOff(s *Set) {
	s.Status.Backoff = &machinev1alpha1.Backoff{Failures: 1, Until: metav1.NewTime(now.Add(time.Minute))}
}

func remediate(inFlight, unhealthy string) deploymentOption {
	return func(d *machinev1alpha1.MachineDeployment) {
		d.Spec.Remediation.MaxInFlight, d.Spec.Remediation.MaxUnhealthy = ptr.To(intstr.Parse(inFlight)), ptr.To(intstr.Parse(unhealthy))
	}
}

// allotted records the budget of a version's set.
func allotted(version string, n int32) deploymentOption {
	return func(d *machinev1alpha1.MachineDeployment) {
		i := slices.IndexFunc(d.Status.MachineSets, func(s machinev1alpha1.MachineSetReplicas) bool { return s.Name == nameOf(version) })
		d.Status.MachineSets[i].MaxInFlight = &n
	}
}

func TestTheBudgetOfReplacements(t *testing.T) {
	both := func(options ...deploymentOption) *machinev1alpha1.MachineDeployment {
		return deployment(6, append([]deploymentOption{ints(1, 0), recorded("v1", 3), recorded("v2", 3), paused}, options...)...)
	}
	cases := map[string]struct {
		deployment *machinev1alpha1.MachineDeployment
		sets       []Set
		frozen     bool
		// decided are the recorded budgets, and now the budgets in the sets.
		decided, now map[string]int32
		allowed      string
	}{
		"TheOnlySetHasAllOfIt": {
			deployment: deployment(10, recorded("v2", 10), remediate("30%", "100%")),
			sets:       []Set{machineSet("v2", 1, 10, mayReplace(1))},
			decided:    map[string]int32{"v2": 3}, now: map[string]int32{"v2": 1},
		},
		"WhatWasWrittenDownIsReported": {
			deployment: deployment(10, recorded("v2", 10), allotted("v2", 3), remediate("30%", "100%")),
			sets:       []Set{machineSet("v2", 1, 10, mayReplace(1))},
			decided:    map[string]int32{"v2": 3}, now: map[string]int32{"v2": 3},
		},
		"ANewSetGetsItOnceItIsThere": {
			deployment: deployment(3),
			decided:    map[string]int32{"v2": 1}, now: map[string]int32{"v2": 0},
		},
		"TheSetThatHasItKeepsItWhileNobodyNeedsIt": {
			deployment: both(allotted("v1", 1), allotted("v2", 0)),
			sets:       []Set{machineSet("v1", 1, 3, mayReplace(1)), machineSet("v2", 2, 3, mayReplace(0))},
			decided:    map[string]int32{"v1": 1, "v2": 0}, now: map[string]int32{"v1": 1, "v2": 0},
		},
		"ItIsTakenFromASetThatDoesNotNeedIt": {
			deployment: both(allotted("v1", 1), allotted("v2", 0)),
			sets:       []Set{machineSet("v1", 1, 3, mayReplace(1)), machineSet("v2", 2, 3, mayReplace(0), sick(1, 1))},
			decided:    map[string]int32{"v1": 0, "v2": 0}, now: map[string]int32{"v1": 1, "v2": 0},
		},
		"AndNotGivenToAnotherBeforeTheSetWasNotified": {
			deployment: both(allotted("v1", 0), allotted("v2", 0)),
			sets:       []Set{machineSet("v1", 1, 3, mayReplace(1)), machineSet("v2", 2, 3, mayReplace(0), sick(1, 1))},
			decided:    map[string]int32{"v1": 0, "v2": 0}, now: map[string]int32{"v1": 0, "v2": 0},
		},
		"NorBeforeItHasActedOnThat": {
			deployment: both(allotted("v1", 0), allotted("v2", 0)),
			sets:       []Set{machineSet("v1", 1, 3, mayReplace(0), unsettled, starting(1)), machineSet("v2", 2, 3, mayReplace(0), sick(1, 1))},
			decided:    map[string]int32{"v1": 0, "v2": 0}, now: map[string]int32{"v1": 0, "v2": 0},
			allowed: "False WaitingForMachines: 1 wait to be replaced, 1 are starting, and the next is replaced when fewer than 1 are; to replace it sooner, delete a Machine that does not start, or raise spec.remediation.maxInFlight",
		},
		"ThenItIsGivenToTheOther": {
			deployment: both(allotted("v1", 0), allotted("v2", 0)),
			sets:       []Set{machineSet("v1", 1, 3, mayReplace(0)), machineSet("v2", 2, 3, mayReplace(0), sick(1, 1))},
			decided:    map[string]int32{"v1": 0, "v2": 1}, now: map[string]int32{"v1": 0, "v2": 0},
		},
		"WithoutWhatTheFirstHasInFlight": {
			deployment: both(allotted("v1", 0), allotted("v2", 0), remediate("3", "100%")),
			sets:       []Set{machineSet("v1", 1, 3, mayReplace(0), starting(1)), machineSet("v2", 2, 3, mayReplace(0), sick(2, 2))},
			decided:    map[string]int32{"v1": 0, "v2": 2}, now: map[string]int32{"v1": 0, "v2": 0},
		},
		"OfTwoThatNeedItTheNewerGetsIt": {
			deployment: both(allotted("v1", 0), allotted("v2", 0)),
			sets:       []Set{machineSet("v1", 1, 3, mayReplace(0), sick(1, 1)), machineSet("v2", 2, 3, mayReplace(0), sick(1, 1))},
			decided:    map[string]int32{"v1": 0, "v2": 1}, now: map[string]int32{"v1": 0, "v2": 0},
		},
		"ASetWhoseTemplateFailsDoesNotStarveTheOther": {
			deployment: both(allotted("v1", 0), allotted("v2", 1)),
			sets:       []Set{machineSet("v1", 1, 3, mayReplace(0), sick(1, 1)), machineSet("v2", 2, 3, mayReplace(1), sick(1, 1), backsOff)},
			decided:    map[string]int32{"v1": 0, "v2": 0}, now: map[string]int32{"v1": 0, "v2": 1},
		},
		"TooManyAreUnhealthyInAllSetsTogether": {
			deployment: both(allotted("v1", 0), allotted("v2", 1), remediate("1", "50%")),
			sets:       []Set{machineSet("v1", 1, 3, mayReplace(0), sick(2, 0)), machineSet("v2", 2, 3, mayReplace(1), sick(2, 1))},
			decided:    map[string]int32{"v1": 0, "v2": 0}, now: map[string]int32{"v1": 0, "v2": 1},
			allowed: "False TooManyUnhealthy: 4 of 6 Machines are unhealthy: none is replaced while more than 3 are",
		},
		"ASetThatIsAloneKnowsItselfThatTooManyAreUnhealthy": {
			deployment: deployment(6, recorded("v2", 6), allotted("v2", 1), remediate("1", "50%")),
			sets:       []Set{machineSet("v2", 1, 6, mayReplace(1), sick(4, 1))},
			decided:    map[string]int32{"v2": 1}, now: map[string]int32{"v2": 1},
			allowed: "False TooManyUnhealthy: 4 of 6 Machines are unhealthy: none is replaced while more than 3 are",
		},
		"ABudgetThatNoSetHasIsTheNewestSets": {
			deployment: both(allotted("v1", 0), allotted("v2", 0)),
			sets:       []Set{machineSet("v1", 1, 3, mayReplace(0)), machineSet("v2", 2, 3, mayReplace(0))},
			decided:    map[string]int32{"v1": 0, "v2": 1}, now: map[string]int32{"v1": 0, "v2": 0},
		},
		"ASetThatNeedsItGetsMoreOfALargerBudget": {
			deployment: both(allotted("v1", 0), allotted("v2", 1), remediate("3", "100%")),
			sets:       []Set{machineSet("v1", 1, 3, mayReplace(0)), machineSet("v2", 2, 3, mayReplace(1), sick(2, 2), starting(2))},
			decided:    map[string]int32{"v1": 0, "v2": 3}, now: map[string]int32{"v1": 0, "v2": 1},
		},
		"ASetThatDoesNotNeedItKeepsWhatItHas": {
			deployment: both(allotted("v1", 0), allotted("v2", 1), remediate("3", "100%")),
			sets:       []Set{machineSet("v1", 1, 3, mayReplace(0)), machineSet("v2", 2, 3, mayReplace(1))},
			decided:    map[string]int32{"v1": 0, "v2": 1}, now: map[string]int32{"v1": 0, "v2": 1},
		},
		"ASmallerBudgetIsTakenFromTheSetThatHasIt": {
			deployment: both(allotted("v1", 0), allotted("v2", 3), remediate("2", "100%")),
			sets:       []Set{machineSet("v1", 1, 3, mayReplace(0)), machineSet("v2", 2, 3, mayReplace(3))},
			decided:    map[string]int32{"v1": 0, "v2": 2}, now: map[string]int32{"v1": 0, "v2": 3},
		},
		"ABudgetDoesNotChangeBeforeTheSetWasNotified": {
			deployment: both(allotted("v1", 0), allotted("v2", 1), remediate("1", "50%")),
			sets:       []Set{machineSet("v1", 1, 3, mayReplace(0), sick(2, 0)), machineSet("v2", 2, 3, mayReplace(0), sick(2, 1))},
			decided:    map[string]int32{"v1": 0, "v2": 1}, now: map[string]int32{"v1": 0, "v2": 1},
			allowed: "False TooManyUnhealthy: 4 of 6 Machines are unhealthy: none is replaced while more than 3 are",
		},
		"NorBeforeItHasActedOnIt": {
			deployment: both(allotted("v1", 0), allotted("v2", 1), remediate("1", "50%")),
			sets:       []Set{machineSet("v1", 1, 3, mayReplace(0), sick(2, 0)), machineSet("v2", 2, 3, mayReplace(1), unsettled, sick(2, 1))},
			decided:    map[string]int32{"v1": 0, "v2": 1}, now: map[string]int32{"v1": 0, "v2": 1},
			allowed: "False TooManyUnhealthy: 4 of 6 Machines are unhealthy: none is replaced while more than 3 are",
		},
		"WithoutWhatTheFirstHasYetToCreate": {
			deployment: both(allotted("v1", 0), allotted("v2", 0), remediate("3", "100%")),
			sets:       []Set{machineSet("v1", 1, 3, mayReplace(0), has(2), unsettled), machineSet("v2", 2, 3, mayReplace(0), sick(2, 2))},
			decided:    map[string]int32{"v1": 0, "v2": 2}, now: map[string]int32{"v1": 0, "v2": 0},
		},
		"AnInvalidBudgetReplacesNone": {
			deployment: deployment(3, recorded("v2", 3), remediate("some", "100%")),
			sets:       []Set{machineSet("v2", 1, 3)},
			decided:    map[string]int32{"v2": 0}, now: map[string]int32{"v2": 1},
			allowed: `False InvalidRemediation: spec.remediation.maxInFlight: "some" must be a number from 0 to 10000, or a percentage from 0% to 100%; no Machine is replaced until it is`,
		},
		"AFreezeChangesNothing": {
			deployment: deployment(10, recorded("v2", 10), remediate("3", "100%")), frozen: true,
			sets:    []Set{machineSet("v2", 1, 10)},
			decided: map[string]int32{"v2": 1}, now: map[string]int32{"v2": 1},
		},
		"WhatAnOldSetGaveUpAndNoSetIsAskedToCreateIsInFlight": {
			deployment: deployment(4, by(machinev1alpha1.OnDelete), recorded("v1", 4), recorded("v2", 0), allotted("v1", 3), allotted("v2", 0), remediate("3", "100%")),
			sets:       []Set{machineSet("v1", 1, 4, mayReplace(3), createsNone, has(2), available(2), starting(2), sick(2, 2)), machineSet("v2", 2, 0, mayReplace(0), unsettled)},
			decided:    map[string]int32{"v1": 1, "v2": 0}, now: map[string]int32{"v1": 3, "v2": 0},
		},
		"ASetThatCreatesNoneHasNoMoreThanTheSetThatCreatesForItLeaves": {
			deployment: deployment(4, by(machinev1alpha1.OnDelete), recorded("v1", 3), recorded("v2", 1), allotted("v1", 1), allotted("v2", 0)),
			sets:       []Set{machineSet("v1", 1, 3, mayReplace(1), createsNone, has(2), available(2), starting(1)), machineSet("v2", 2, 1, mayReplace(0))},
			// In the same plan, the number of v2 rises for the Machine that v1 lost.
			decided: map[string]int32{"v1": 0, "v2": 0}, now: map[string]int32{"v1": 1, "v2": 0},
		},
		"MachinesThatWaitForAnotherAreCounted": {
			deployment: deployment(4, recorded("v2", 4), allotted("v2", 1)),
			sets:       []Set{machineSet("v2", 1, 4, sick(2, 2), starting(1), available(1))},
			decided:    map[string]int32{"v2": 1}, now: map[string]int32{"v2": 1},
			allowed: "False WaitingForMachines: 2 wait to be replaced, 1 are starting, and the next is replaced when fewer than 1 are; to replace it sooner, delete a Machine that does not start, or raise spec.remediation.maxInFlight",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Plan(now, Observed{Deployment: tc.deployment, Sets: tc.sets, ClassFound: true, Safety: shared.Safety{Frozen: tc.frozen}})
			decided, reported := map[string]int32{}, map[string]int32{}
			for _, s := range d.Status.MachineSets {
				decided[versionOf(s.Name)] = *s.MaxInFlight
			}
			for _, s := range d.Sets {
				reported[versionOf(s.Name)] = s.Spec.Remediation.MaxInFlight.IntVal
			}
			if diff := cmp.Diff(tc.decided, decided); diff != "" {
				t.Errorf("decided: -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(tc.now, reported); diff != "" {
				t.Errorf("reported: -want +got:\n%s", diff)
			}
			allowed := ""
			for _, c := range d.Conditions {
				if c.Type == "RemediationAllowed" {
					allowed = c.Status + " " + c.Reason + ": " + c.Message
				}
			}
			if allowed != tc.allowed {
				t.Errorf("the condition is %q, want %q", allowed, tc.allowed)
			}
			if !cmp.Equal(decided, reported) && d.CallAgain != shared.Soonest {
				t.Errorf("what was decided is carried out in %s", d.CallAgain)
			}
		})
	}
}

func TestReplacementsMayBeAboveTheBoundsOfARollout(t *testing.T) {
	for name, tc := range map[string]struct {
		d    *machinev1alpha1.MachineDeployment
		want int32
	}{
		"OneIsWithinTheMargins":          {deployment(10, ints(2, 0)), 12},
		"EachOfMoreMayBeOneMore":         {deployment(10, ints(2, 0), remediate("30%", "100%")), 14},
		"ThereAreNoMoreThanThereAreOnes": {deployment(2, ints(1, 0), remediate("100", "100%")), 4},
	} {
		if got := Most(tc.d); got != tc.want {
			t.Errorf("%s: there may be %d, want %d", name, got, tc.want)
		}
	}
}
