package deployment

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// A deploymentOption changes a MachineDeployment.
type deploymentOption func(*machinev1alpha1.MachineDeployment)

// deployment returns a MachineDeployment of version v2.
func deployment(replicas int32, options ...deploymentOption) *machinev1alpha1.MachineDeployment {
	d := &machinev1alpha1.MachineDeployment{}
	d.Name, d.Namespace, d.UID, d.Generation = "md", "default", "uid-of-md", 9
	d.Spec.Replicas = replicas
	d.Spec.Selector.MatchLabels = map[string]machinev1alpha1.LabelValue{"pool": "a"}
	d.Spec.Template = template("v2")
	d.Spec.RevisionHistoryLimit = 1
	d.Status.ObservedGeneration = 9
	ready(metav1.ConditionFalse, 9)(d)
	for _, o := range options {
		o(d)
	}
	return d
}

func template(version string) machinev1alpha1.MachineTemplate {
	t := machinev1alpha1.MachineTemplate{}
	t.Metadata.Labels = map[string]machinev1alpha1.LabelValue{"pool": "a", "team": "b"}
	t.Spec.ClassRef.Name, t.Spec.Version = "small", version
	return t
}

func strategy(surge, unavailable intstr.IntOrString) deploymentOption {
	return func(d *machinev1alpha1.MachineDeployment) {
		d.Spec.Strategy.RollingUpdate = machinev1alpha1.RollingUpdateBounds{MaxSurge: &surge, MaxUnavailable: &unavailable}
	}
}

func ints(surge, unavailable int32) deploymentOption {
	return strategy(intstr.FromInt32(surge), intstr.FromInt32(unavailable))
}

// completed means that the revision was rolled out before.
func completed(revision int64) deploymentOption {
	return func(d *machinev1alpha1.MachineDeployment) {
		d.Status.Revision = revision
		d.Status.Conditions = append(d.Status.Conditions, metav1.Condition{Type: "Progressing", Status: "True", Reason: "NewMachineSetAvailable"})
	}
}

// recorded sets the recorded replicas of a version's set.
func recorded(version string, replicas int32) deploymentOption {
	return func(d *machinev1alpha1.MachineDeployment) {
		d.Status.MachineSets = append(d.Status.MachineSets, machinev1alpha1.MachineSetReplicas{Name: nameOf(version), Replicas: replicas})
	}
}

// A setOption changes a Set.
type setOption func(*Set)

// machineSet returns a settled set of a version: all its desired Machines exist and are available.
func machineSet(version string, revision int64, replicas int32, options ...setOption) Set {
	d := deployment(0, func(d *machinev1alpha1.MachineDeployment) { d.Spec.Template = template(version) })
	s := Set{Observed: true}
	f := fleetOf(now, Observed{Deployment: d, ClassFound: true})
	f.current.desired, f.current.budget = replicas, allottedTo(version)
	p := newPlan(f)
	p.revision = revision
	s.MachineSet = p.composed(f.current)
	s.UID, s.Generation = "uid-of-set", 4
	s.Status.ObservedGeneration, s.Status.DecidedGeneration = 4, 4
	s.Status.Replicas, s.Status.ReadyReplicas, s.Status.AvailableReplicas = replicas, replicas, replicas
	for _, o := range options {
		o(&s)
	}
	return s
}

// allottedTo returns the budget of replacements: 1 for the set of the deployment's version.
func allottedTo(version string) int32 {
	if version == "v2" {
		return 1
	}
	return 0
}

func available(n int32) setOption {
	return func(s *Set) { s.Status.ReadyReplicas, s.Status.AvailableReplicas = n, n }
}

func terminating(n int32) setOption {
	return func(s *Set) { s.Status.TerminatingReplicas = n }
}

func has(n int32) setOption { return func(s *Set) { s.Status.Replicas = n } }

func unsettled(s *Set) { s.Status.ObservedGeneration, s.Status.DecidedGeneration = 3, 3 }
func deleted(s *Set)   { s.Terminating, s.Observed = true, false }
func forgotten(s *Set) { s.Observed = false }

func nameOf(version string) string {
	return machineSet(version, 1, 0).Name
}

func versionOf(name string) string {
	for _, v := range []string{"v0", "v1", "v2", "v3"} {
		if nameOf(v) == name {
			return v
		}
	}
	return name
}

// composed returns the replicas of the composed sets by version.
func composed(d Decision) map[string]int32 {
	out := map[string]int32{}
	for _, s := range d.Sets {
		out[versionOf(s.Name)] = s.Spec.Replicas
	}
	return out
}

// decided returns the replicas that the status records.
func decided(d Decision) map[string]int32 {
	out := map[string]int32{}
	for _, s := range d.Status.MachineSets {
		out[versionOf(s.Name)] = s.Replicas
	}
	return out
}

func condition(d Decision, typ string) string {
	for _, c := range d.Conditions {
		if c.Type == typ {
			return c.Status + " " + c.Reason
		}
	}
	return ""
}

type counts = map[string]int32

func TestScaling(t *testing.T) {
	cases := map[string]struct {
		d      *machinev1alpha1.MachineDeployment
		sets   []Set
		frozen bool
		// noClass means that the class of the template does not exist, and noVM that no VM can be
		// created from the existing class.
		noClass, noVM bool
		// composed are the replicas in the sets now, and decided the recorded ones.
		composed, decided counts
	}{
		"ANewSetIsCreatedEmpty": {
			d:        deployment(3),
			composed: counts{"v2": 0}, decided: counts{"v2": 3},
		},
		"ASetIsGivenANumberWhenTheDecisionIsReadBack": {
			d:        deployment(3, recorded("v2", 3)),
			sets:     []Set{machineSet("v2", 1, 0)},
			composed: counts{"v2": 3}, decided: counts{"v2": 3},
		},
		"WithoutARolloutTheSetGrowsAtOnce": {
			d:        deployment(20, completed(1), recorded("v2", 3)),
			sets:     []Set{machineSet("v2", 1, 3)},
			composed: counts{"v2": 3}, decided: counts{"v2": 20},
		},
		"WithoutARolloutTheSetGrowsEvenWhileOthersOfItTerminate": {
			d:        deployment(5, completed(1), recorded("v2", 2)),
			sets:     []Set{machineSet("v2", 1, 2, terminating(3))},
			composed: counts{"v2": 2}, decided: counts{"v2": 5},
		},
		"WithoutARolloutTheSetShrinksAtOnce": {
			d:        deployment(1, completed(1), recorded("v2", 7)),
			sets:     []Set{machineSet("v2", 1, 7)},
			composed: counts{"v2": 7}, decided: counts{"v2": 1},
		},
		"ASetThatHasNotActedYetIsGivenNothingNew": {
			d:        deployment(5, completed(1), recorded("v2", 3)),
			sets:     []Set{machineSet("v2", 1, 3, unsettled)},
			composed: counts{"v2": 3}, decided: counts{"v2": 3},
		},
		"ASetThatSomebodyElseScaledIsGivenItsNumberAgain": {
			d:        deployment(3, completed(1), recorded("v2", 3)),
			sets:     []Set{machineSet("v2", 1, 6)},
			composed: counts{"v2": 3}, decided: counts{"v2": 3},
		},
		"ARolloutStartsWithTheSurge": {
			d:        deployment(3, ints(1, 0)),
			sets:     []Set{machineSet("v1", 1, 3), machineSet("v2", 2, 0)},
			composed: counts{"v1": 3, "v2": 0}, decided: counts{"v1": 3, "v2": 1},
		},
		"SurgeAndUnavailabilityAreUsedTogether": {
			d:        deployment(10, ints(3, 2)),
			sets:     []Set{machineSet("v1", 1, 10), machineSet("v2", 2, 0)},
			composed: counts{"v1": 10, "v2": 0}, decided: counts{"v1": 8, "v2": 3},
		},
		"AnOldMachineGoesWhenANewOneIsAvailable": {
			d:        deployment(3, ints(1, 0)),
			sets:     []Set{machineSet("v1", 1, 3), machineSet("v2", 2, 1)},
			composed: counts{"v1": 3, "v2": 1}, decided: counts{"v1": 2, "v2": 1},
		},
		"NoOldMachineGoesWhileTheNewOneIsNotAvailable": {
			d:        deployment(3, ints(1, 0)),
			sets:     []Set{machineSet("v1", 1, 3), machineSet("v2", 2, 1, available(0))},
			composed: counts{"v1": 3, "v2": 1}, decided: counts{"v1": 3, "v2": 1},
		},
		"TerminatingMachinesOccupyTheSurge": {
			d:        deployment(3, ints(1, 0)),
			sets:     []Set{machineSet("v1", 1, 2, terminating(1)), machineSet("v2", 2, 1)},
			composed: counts{"v1": 2, "v2": 1}, decided: counts{"v1": 2, "v2": 1},
		},
		"TheSurgeIsFreeAgainWhenTheyAreGone": {
			d:        deployment(3, ints(1, 0)),
			sets:     []Set{machineSet("v1", 1, 2), machineSet("v2", 2, 1)},
			composed: counts{"v1": 2, "v2": 1}, decided: counts{"v1": 2, "v2": 2},
		},
		"MachinesOfASetThatIsBeingDeletedOccupyTheSurge": {
			d:        deployment(3, ints(1, 0)),
			sets:     []Set{machineSet("v0", 1, 1, deleted), machineSet("v1", 2, 3), machineSet("v2", 3, 0)},
			composed: counts{"v1": 3, "v2": 0}, decided: counts{"v1": 3, "v2": 0},
		},
		"MachinesThatASetHasNotGivenUpYetOccupyTheSurge": {
			d:        deployment(3, ints(1, 0)),
			sets:     []Set{machineSet("v1", 1, 2, has(3), unsettled), machineSet("v2", 2, 1)},
			composed: counts{"v1": 2, "v2": 1}, decided: counts{"v1": 2, "v2": 1},
		},
		"WhatASetWasGivenBeforeOccupiesTheSurgeUntilItActsOnLess": {
			d: deployment(3, ints(1, 0), recorded("v2", 0), func(d *machinev1alpha1.MachineDeployment) {
				d.Status.MachineSets = append(d.Status.MachineSets, machinev1alpha1.MachineSetReplicas{Name: nameOf("v1"), Replicas: 1, Most: 4})
			}),
			sets:     []Set{machineSet("v1", 1, 1, has(3), unsettled), machineSet("v2", 2, 0)},
			composed: counts{"v1": 1, "v2": 0}, decided: counts{"v1": 1, "v2": 0},
		},
		"MachinesThatASetWillGiveUpAreNotAvailable": {
			d:        deployment(3, ints(2, 0)),
			sets:     []Set{machineSet("v0", 1, 1, has(2), available(2), unsettled), machineSet("v1", 2, 1), machineSet("v2", 3, 1)},
			composed: counts{"v0": 1, "v1": 1, "v2": 1}, decided: counts{"v0": 1, "v1": 1, "v2": 2},
		},
		"OfTheMarkedMachinesOnlyThoseThatASetHasYetToDeleteAreNotAvailable": {
			d:        deployment(5, ints(1, 0)),
			sets:     []Set{machineSet("v0", 1, 1), machineSet("v1", 2, 4, has(5), available(5), marked(2), unsettled), machineSet("v2", 3, 1)},
			composed: counts{"v0": 1, "v1": 4, "v2": 1}, decided: counts{"v0": 0, "v1": 4, "v2": 1},
		},
		"UnavailableOldMachinesGoFirst": {
			d:        deployment(4, ints(0, 2)),
			sets:     []Set{machineSet("v0", 1, 2), machineSet("v1", 2, 2, available(0)), machineSet("v2", 3, 0)},
			composed: counts{"v0": 2, "v1": 2, "v2": 0}, decided: counts{"v0": 2, "v1": 0, "v2": 0},
		},
		"UnavailableOldMachinesStayWhenTheNewOnesAreNoBetter": {
			d:        deployment(3, ints(1, 0)),
			sets:     []Set{machineSet("v1", 1, 3, available(0)), machineSet("v2", 2, 1, available(0))},
			composed: counts{"v1": 3, "v2": 1}, decided: counts{"v1": 3, "v2": 1},
		},
		"TheOldestSetShrinksFirst": {
			d:        deployment(4, ints(2, 1)),
			sets:     []Set{machineSet("v1", 2, 2), machineSet("v0", 1, 2), machineSet("v2", 3, 2)},
			composed: counts{"v0": 2, "v1": 2, "v2": 2}, decided: counts{"v0": 0, "v1": 1, "v2": 2},
		},
		"ScalingDownInARolloutKeepsTheBounds": {
			d:        deployment(2, ints(1, 0)),
			sets:     []Set{machineSet("v1", 1, 3), machineSet("v2", 2, 2, available(1))},
			composed: counts{"v1": 3, "v2": 2}, decided: counts{"v1": 1, "v2": 2},
		},
		"ScalingDownInARolloutTakesUnavailableMachinesToo": {
			d:        deployment(2, ints(1, 0)),
			sets:     []Set{machineSet("v1", 1, 4, available(0)), machineSet("v2", 2, 2, available(0))},
			composed: counts{"v1": 4, "v2": 2}, decided: counts{"v1": 1, "v2": 2},
		},
		"ScalingUpInARolloutGrowsTheNewSet": {
			d:        deployment(6, ints(1, 0)),
			sets:     []Set{machineSet("v1", 1, 2), machineSet("v2", 2, 1)},
			composed: counts{"v1": 2, "v2": 1}, decided: counts{"v1": 2, "v2": 5},
		},
		"GoingBackTurnsTheRolloutAround": {
			d:        deployment(3, ints(1, 0)),
			sets:     []Set{machineSet("v1", 2, 2, available(0)), machineSet("v2", 1, 2)},
			composed: counts{"v1": 2, "v2": 2}, decided: counts{"v1": 1, "v2": 2},
		},
		"WhenBoundsRoundToNothingOneMayBeUnavailable": {
			d:        deployment(3, strategy(intstr.FromString("0%"), intstr.FromString("10%"))),
			sets:     []Set{machineSet("v1", 1, 3), machineSet("v2", 2, 0)},
			composed: counts{"v1": 3, "v2": 0}, decided: counts{"v1": 2, "v2": 0},
		},
		"MaxSurgeIsRoundedUpAndMaxUnavailableDown": {
			d:        deployment(5, strategy(intstr.FromString("25%"), intstr.FromString("25%"))),
			sets:     []Set{machineSet("v1", 1, 5), machineSet("v2", 2, 0)},
			composed: counts{"v1": 5, "v2": 0}, decided: counts{"v1": 4, "v2": 2},
		},
		"BoundsAreOneAndNoneByDefault": {
			d:        deployment(3),
			sets:     []Set{machineSet("v1", 1, 3), machineSet("v2", 2, 0)},
			composed: counts{"v1": 3, "v2": 0}, decided: counts{"v1": 3, "v2": 1},
		},
		"InvalidBoundsReplaceNothing": {
			d:        deployment(3, strategy(intstr.FromString("some"), intstr.FromInt32(3))),
			sets:     []Set{machineSet("v1", 1, 3), machineSet("v2", 2, 0)},
			composed: counts{"v1": 3, "v2": 0}, decided: counts{"v1": 3, "v2": 0},
		},
		"AnInvalidMaxUnavailableReplacesNothing": {
			d:        deployment(3, strategy(intstr.FromInt32(1), intstr.FromString("some"))),
			sets:     []Set{machineSet("v1", 1, 3), machineSet("v2", 2, 0)},
			composed: counts{"v1": 3, "v2": 0}, decided: counts{"v1": 3, "v2": 0},
		},
		"ARolloutGoesOnThoughTheClassIsGone": {
			d: deployment(3, ints(1, 0)), noClass: true,
			sets:     []Set{machineSet("v1", 1, 3), machineSet("v2", 2, 1)},
			composed: counts{"v1": 3, "v2": 1}, decided: counts{"v1": 2, "v2": 1},
		},
		"WithoutAClassAScaleUpIsSharedByTheSizesOfTheSets": {
			d: deployment(12, ints(2, 0), scaledFor(6)), noClass: true,
			sets:     []Set{machineSet("v1", 1, 5), machineSet("v2", 2, 2)},
			composed: counts{"v1": 5, "v2": 2}, decided: counts{"v1": 10, "v2": 4},
		},
		"MachinesOfOldSetsAndOfSetsThatAreBeingDeletedAreARollout": {
			d:        deployment(5, ints(1, 0), completed(3)),
			sets:     []Set{machineSet("v0", 1, 1, deleted), machineSet("v1", 2, 1), machineSet("v2", 3, 2)},
			composed: counts{"v1": 1, "v2": 2}, decided: counts{"v1": 1, "v2": 4},
		},
		"OfASetThatIsBeingDeletedTheMachinesCountThatItStillHas": {
			d:        deployment(5, ints(1, 0)),
			sets:     []Set{machineSet("v0", 1, 3, deleted, has(1), terminating(1)), machineSet("v1", 2, 2), machineSet("v2", 3, 1)},
			composed: counts{"v1": 2, "v2": 1}, decided: counts{"v1": 2, "v2": 2},
		},
		"AllOfItCountUntilItsStatusIsAboutItsDeletion": {
			d:        deployment(5, ints(1, 0)),
			sets:     []Set{machineSet("v0", 1, 3, deleted, has(1), terminating(1), unsettled), machineSet("v1", 2, 2), machineSet("v2", 3, 1)},
			composed: counts{"v1": 2, "v2": 1}, decided: counts{"v1": 2, "v2": 1},
		},
		"MachinesThatASetHasYetToCreateOccupyTheSurge": {
			d:        deployment(3, ints(1, 0)),
			sets:     []Set{machineSet("v1", 1, 3, has(2), available(2)), machineSet("v2", 2, 1)},
			composed: counts{"v1": 3, "v2": 1}, decided: counts{"v1": 2, "v2": 1},
		},
		"NoMoreUnavailableMachinesGoThanAreNotMissed": {
			d:        deployment(4, ints(0, 2)),
			sets:     []Set{machineSet("v0", 1, 2, available(0)), machineSet("v1", 2, 2, available(1)), machineSet("v2", 3, 0)},
			composed: counts{"v0": 2, "v1": 2, "v2": 0}, decided: counts{"v0": 0, "v1": 2, "v2": 0},
		},
		"FrozenCreatesNoSet": {
			d: deployment(3), frozen: true,
			sets:     []Set{machineSet("v1", 1, 3)},
			composed: counts{"v1": 3}, decided: counts{"v1": 3},
		},
		"FrozenReplacesNothing": {
			d: deployment(3, ints(1, 1)), frozen: true,
			sets:     []Set{machineSet("v1", 1, 3), machineSet("v2", 2, 1)},
			composed: counts{"v1": 3, "v2": 1}, decided: counts{"v1": 3, "v2": 1},
		},
		"FrozenDoesNotScaleUp": {
			d: deployment(5, completed(1)), frozen: true,
			sets:     []Set{machineSet("v2", 1, 3)},
			composed: counts{"v2": 3}, decided: counts{"v2": 3},
		},
		"FrozenScalesDown": {
			d: deployment(1, completed(1)), frozen: true,
			sets:     []Set{machineSet("v2", 1, 3)},
			composed: counts{"v2": 3}, decided: counts{"v2": 1},
		},
		"FrozenInARolloutScalesDown": {
			d: deployment(1, ints(1, 0)), frozen: true,
			sets:     []Set{machineSet("v1", 1, 3), machineSet("v2", 2, 1)},
			composed: counts{"v1": 3, "v2": 1}, decided: counts{"v1": 1, "v2": 1},
		},
		"WithoutAClassNoSetIsCreatedAndTheOldOneStays": {
			d: deployment(3), noClass: true,
			sets:     []Set{machineSet("v1", 1, 3)},
			composed: counts{"v1": 3}, decided: counts{"v1": 3},
		},
		"WithoutAClassTheOldSetIsScaledUp": {
			d: deployment(5), noClass: true,
			sets:     []Set{machineSet("v1", 1, 3)},
			composed: counts{"v1": 3}, decided: counts{"v1": 5},
		},
		"WithoutAClassTheOldSetIsScaledDown": {
			d: deployment(2), noClass: true,
			sets:     []Set{machineSet("v1", 1, 3)},
			composed: counts{"v1": 3}, decided: counts{"v1": 2},
		},
		"WithoutAClassAndWithoutASetThereIsNothing": {
			d: deployment(2), noClass: true,
			composed: counts{}, decided: counts{},
		},
		"WithAClassThatCannotBeUsedNoSetIsCreatedAndTheOldOneStays": {
			d: deployment(3), noVM: true,
			sets:     []Set{machineSet("v1", 1, 3)},
			composed: counts{"v1": 3}, decided: counts{"v1": 3},
		},
		"WithAClassThatCannotBeUsedTheOldSetIsScaledUp": {
			d: deployment(5), noVM: true,
			sets:     []Set{machineSet("v1", 1, 3)},
			composed: counts{"v1": 3}, decided: counts{"v1": 5},
		},
		"WithAClassThatCannotBeUsedAndWithoutASetThereIsNothing": {
			d: deployment(2), noVM: true,
			composed: counts{}, decided: counts{},
		},
		"EmptyOldSetsAreDropped": {
			d:        deployment(1, completed(3)),
			sets:     []Set{machineSet("v0", 1, 0), machineSet("v1", 2, 0), machineSet("v2", 3, 1)},
			composed: counts{"v2": 1}, decided: counts{"v2": 1},
		},
		"SetsWithTerminatingMachinesAreKept": {
			d:        deployment(1, completed(3)),
			sets:     []Set{machineSet("v0", 1, 0, terminating(1)), machineSet("v1", 2, 0), machineSet("v2", 3, 1)},
			composed: counts{"v0": 0, "v2": 1}, decided: counts{"v0": 0, "v2": 1},
		},
		"SetsWithMachinesThatWereSetAsideAreKept": {
			d:        deployment(1, completed(3)),
			sets:     []Set{machineSet("v0", 1, 0, setAside("v0-a")), machineSet("v1", 2, 0), machineSet("v2", 3, 1)},
			composed: counts{"v0": 0, "v2": 1}, decided: counts{"v0": 0, "v2": 1},
		},
		"AForgottenSetIsAdoptedBeforeItIsDropped": {
			d:        deployment(1, completed(3)),
			sets:     []Set{machineSet("v0", 1, 0, forgotten), machineSet("v1", 2, 0), machineSet("v2", 3, 1)},
			composed: counts{"v0": 0, "v2": 1}, decided: counts{"v0": 0, "v2": 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := Observed{Deployment: tc.d, Sets: tc.sets, ClassFound: !tc.noClass, Safety: shared.Safety{Frozen: tc.frozen}}
			if tc.noVM {
				o.ClassProblem = &shared.Problem{Reason: "ForProviderInvalid", Message: "size: must be small"}
			}
			d := Plan(now, o)
			if diff := cmp.Diff(tc.composed, composed(d)); diff != "" {
				t.Errorf("composed: -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(tc.decided, decided(d)); diff != "" {
				t.Errorf("decided: -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(d, Plan(now, o)); diff != "" {
				t.Errorf("the same view gave another decision:\n%s", diff)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	type want struct {
		Status                        machinev1alpha1.MachineDeploymentStatus
		Ready                         bool
		Valid, Available, Progressing string
		Events                        []string
		Again                         time.Duration
	}
	status := func(replicas, updated, ready, available, unavailable, terminating int32, revision int64) machinev1alpha1.MachineDeploymentStatus {
		return machinev1alpha1.MachineDeploymentStatus{
			ObservedGeneration: 9, Selector: "pool=a",
			Replicas: replicas, UpdatedReplicas: updated, ReadyReplicas: ready, AvailableReplicas: available,
			UnavailableReplicas: unavailable, TerminatingReplicas: terminating, Revision: revision,
		}
	}
	cases := map[string]struct {
		o    Observed
		want want
	}{
		"ANewDeploymentIsNotAvailable": {
			o: Observed{Deployment: deployment(3), ClassFound: true},
			want: want{
				Status: status(0, 0, 0, 0, 3, 0, 1),
				Valid:  "True Valid", Available: "False MinimumReplicasUnavailable", Progressing: "True MachineSetCreated",
				Events: []string{
					"NewMachineSet: Created machine set " + nameOf("v2") + " for revision 1",
					"ScalingMachineSet: Scaled up machine set " + nameOf("v2") + " from 0 to 3",
				},
				Again: shared.Soonest,
			},
		},
		"ARolloutCountsAllSets": {
			o: Observed{
				Deployment: deployment(3, ints(1, 1), recorded("v1", 2), recorded("v2", 1)), ClassFound: true,
				Sets: []Set{machineSet("v1", 1, 2, terminating(1)), machineSet("v2", 2, 1, available(0)), machineSet("v0", 0, 1, deleted, terminating(1))},
			},
			want: want{
				Status: status(3, 1, 2, 2, 1, 3, 2),
				Valid:  "True Valid", Available: "True MinimumReplicasAvailable", Progressing: "True MachineSetUpdated",
				Again: shared.InFlight,
			},
		},
		"ACompleteRolloutIsReadyAndReported": {
			o: Observed{
				Deployment: deployment(3, recorded("v1", 0), recorded("v2", 3)), ClassFound: true,
				Sets: []Set{machineSet("v1", 1, 0), machineSet("v2", 2, 3)},
			},
			want: want{
				Status: status(3, 3, 3, 3, 0, 0, 2), Ready: true,
				Valid: "True Valid", Available: "True MinimumReplicasAvailable", Progressing: "True NewMachineSetAvailable",
				Events: []string{"DeletedMachineSet: Deleted machine set " + nameOf("v1"), "RolloutComplete: Revision 2 is rolled out: 3 Machines of machine set " + nameOf("v2") + " are available"},
				Again:  shared.AtRest,
			},
		},
		"ACompleteRolloutIsReportedOnce": {
			o: Observed{
				Deployment: deployment(3, completed(2), recorded("v2", 3)), ClassFound: true,
				Sets: []Set{machineSet("v2", 2, 3)},
			},
			want: want{
				Status: status(3, 3, 3, 3, 0, 0, 2), Ready: true,
				Valid: "True Valid", Available: "True MinimumReplicasAvailable", Progressing: "True NewMachineSetAvailable",
				Again: shared.AtRest,
			},
		},
		"TerminatingMachinesOfAnOldSetAreARollout": {
			o: Observed{
				Deployment: deployment(3, recorded("v1", 0), recorded("v2", 3)), ClassFound: true,
				Sets: []Set{machineSet("v1", 1, 0, terminating(1)), machineSet("v2", 2, 3)},
			},
			want: want{
				Status: status(3, 3, 3, 3, 0, 1, 2),
				Valid:  "True Valid", Available: "True MinimumReplicasAvailable", Progressing: "True MachineSetUpdated",
				Again: shared.InFlight,
			},
		},
		"ScalingIsNoRollout": {
			o: Observed{
				Deployment: deployment(4, completed(2), recorded("v2", 4)), ClassFound: true,
				Sets: []Set{machineSet("v2", 2, 4, available(3))},
			},
			want: want{
				Status: status(4, 4, 3, 3, 1, 0, 2),
				Valid:  "True Valid", Available: "False MinimumReplicasUnavailable", Progressing: "True NewMachineSetAvailable",
				Again: shared.InFlight,
			},
		},
		"GoingBackMakesANewRevision": {
			o: Observed{
				Deployment: deployment(0, completed(3), recorded("v1", 0), recorded("v2", 0)), ClassFound: true,
				Sets: []Set{machineSet("v1", 3, 0), machineSet("v2", 2, 0)},
			},
			want: want{
				Status: status(0, 0, 0, 0, 0, 0, 4), Ready: true,
				Valid: "True Valid", Available: "True MinimumReplicasAvailable", Progressing: "True NewMachineSetAvailable",
				Events: []string{"DeletedMachineSet: Deleted machine set " + nameOf("v1"), "RolloutComplete: Revision 4 is rolled out: 0 Machines of machine set " + nameOf("v2") + " are available"},
				Again:  shared.AtRest,
			},
		},
		"AnUnknownClassIsReportedWithFieldAndValue": {
			o: Observed{Deployment: deployment(3, recorded("v1", 3)), Sets: []Set{machineSet("v1", 1, 3, mayReplace(1))}},
			want: want{
				Status: status(3, 0, 3, 3, 0, 0, 0),
				Valid:  "False ClassNotFound", Available: "True MinimumReplicasAvailable", Progressing: "False ClassNotFound",
				Events: []string{`ClassNotFound: spec.template.spec.classRef.name: there is no MachineClass "small" in namespace "default"; the Machines that exist stay as they are until there is`},
				Again:  shared.InFlight,
			},
		},
		"AMissingClusterIsReportedAndKeepsTheMachines": {
			o: Observed{
				Deployment: deployment(3, recorded("v1", 3)), ClassFound: true, Sets: []Set{machineSet("v1", 1, 3, mayReplace(1))},
				Safety: shared.Safety{Problem: &shared.Problem{Reason: "ClusterNotFound", Message: `spec.template.spec.clusterRef: there is no ClusterProviderConfig "none"`}},
			},
			want: want{
				Status: status(3, 0, 3, 3, 0, 0, 0),
				Valid:  "False ClusterNotFound", Available: "True MinimumReplicasAvailable", Progressing: "False ClusterNotFound",
				Events: []string{`ClusterNotFound: spec.template.spec.clusterRef: there is no ClusterProviderConfig "none"; the Machines that exist stay as they are until that is mended`},
				Again:  shared.InFlight,
			},
		},
		"AnInvalidStrategyIsReportedWithFieldAndValue": {
			o: Observed{
				Deployment: deployment(3, recorded("v2", 3), strategy(intstr.FromInt32(1), intstr.FromString("some"))), ClassFound: true,
				Sets: []Set{machineSet("v2", 1, 3)},
			},
			want: want{
				Status: status(3, 3, 3, 3, 0, 0, 1), Ready: true,
				Valid: "False InvalidStrategy", Available: "True MinimumReplicasAvailable", Progressing: "True NewMachineSetAvailable",
				Events: []string{
					`InvalidStrategy: spec.strategy.rollingUpdate.maxUnavailable: "some" must be a number from 0 to 10000, or a percentage from 0% to 100%`,
					"RolloutComplete: Revision 1 is rolled out: 3 Machines of machine set " + nameOf("v2") + " are available",
				},
				Again: shared.AtRest,
			},
		},
		"FrozenDoesNotProgress": {
			o: Observed{
				Deployment: deployment(3, recorded("v1", 3)), ClassFound: true, Safety: shared.Safety{Frozen: true, Reason: "ManualFreeze"},
				Sets: []Set{machineSet("v1", 1, 3)},
			},
			want: want{
				Status: status(3, 0, 3, 3, 0, 0, 0),
				Valid:  "True Valid", Available: "True MinimumReplicasAvailable", Progressing: "False Frozen",
				Again: shared.InFlight,
			},
		},
		"ForgottenAndDeletedSetsAreReported": {
			o: Observed{
				Deployment: deployment(3, completed(2), recorded("v0", 0), recorded("v2", 3)), ClassFound: true,
				Sets: []Set{machineSet("v2", 2, 3, forgotten)},
			},
			want: want{
				Status: status(3, 3, 3, 3, 0, 0, 2), Ready: true,
				Valid: "True Valid", Available: "True MinimumReplicasAvailable", Progressing: "True NewMachineSetAvailable",
				Events: []string{
					"ReadoptedMachineSet: Adopted again what a stale write had forgotten: machine set " + nameOf("v2"),
					"DeletedMachineSet: Deleted machine set " + nameOf("v0"),
				},
				Again: shared.AtRest,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Plan(now, tc.o)
			got := want{
				Status: d.Status, Ready: d.Ready,
				Valid: condition(d, "Valid"), Available: condition(d, "Available"), Progressing: condition(d, "Progressing"),
				Again: d.CallAgain,
			}
			got.Status.MachineSets = nil
			// These have tests of their own.
			got.Status.DesiredReplicas, got.Status.Revisions, got.Status.LastProgressTime, got.Status.Progress, got.Status.FrozenSince = nil, nil, nil, nil, nil
			for _, e := range d.Events {
				got.Events = append(got.Events, e.Reason+": "+e.Message)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestTheUpperBoundOfASetIsRecordedUntilItHasActed(t *testing.T) {
	before := func(replicas, most int32) deploymentOption {
		return func(d *machinev1alpha1.MachineDeployment) {
			d.Status.MachineSets = []machinev1alpha1.MachineSetReplicas{{Name: nameOf("v2"), Replicas: replicas, Most: most}}
		}
	}
	for name, tc := range map[string]struct {
		d    *machinev1alpha1.MachineDeployment
		set  Set
		want int32
	}{
		"OfASetThatShrinks":               {deployment(2, completed(1), recorded("v2", 5)), machineSet("v2", 1, 5), 5},
		"OfASetThatGrows":                 {deployment(9, completed(1), recorded("v2", 5)), machineSet("v2", 1, 5), 0},
		"OfASetThatStays":                 {deployment(5, completed(1), recorded("v2", 5)), machineSet("v2", 1, 5), 0},
		"OfASetThatHasYetToShrink":        {deployment(2, completed(1), before(2, 5)), machineSet("v2", 1, 5), 5},
		"OfASetThatShrinksOnceMore":       {deployment(1, completed(1), before(2, 5)), machineSet("v2", 1, 2), 2},
		"OfASetThatHasActedAndStaysAsIs":  {deployment(2, completed(1), before(2, 5)), machineSet("v2", 1, 2), 0},
		"OfASetThatHasNotActedOnItsShare": {deployment(2, completed(1), before(2, 5)), machineSet("v2", 1, 2, unsettled), 5},
	} {
		t.Run(name, func(t *testing.T) {
			p := Plan(now, Observed{Deployment: tc.d, Sets: []Set{tc.set}, ClassFound: true})
			if got := p.Status.MachineSets[0].Most; got != tc.want {
				t.Errorf("at most %d, want %d", got, tc.want)
			}
		})
	}
}

func TestADeploymentCountsTheUnhealthyMachinesOfAllSets(t *testing.T) {
	p := Plan(now, Observed{Deployment: deployment(3), Sets: []Set{machineSet("v1", 1, 3, sick(2, 0)), machineSet("v2", 2, 1, sick(1, 0))}, ClassFound: true})
	if got := p.Status.UnhealthyReplicas; got != 3 {
		t.Errorf("%d are unhealthy, want 3", got)
	}
}

func TestSets(t *testing.T) {
	d := deployment(3, func(d *machinev1alpha1.MachineDeployment) {
		d.Spec.MinReadySeconds = 30
		d.Spec.Template.Spec.Taints = []machinev1alpha1.Taint{{Key: "new", Effect: "NoSchedule"}}
		d.Spec.Template.Spec.ProviderID = ptr.To("never")
		d.Spec.Template.Spec.InfrastructureRef = &machinev1alpha1.InfrastructureReference{Name: "md"}
		d.Spec.Template.Spec.FailureDomain = ptr.To("zone-b")
		d.Spec.Template.Metadata.Annotations = map[string]string{"a": "b"}
		d.Spec.Remediation = machinev1alpha1.Remediation{MaxUnhealthy: ptr.To(intstr.FromString("34%")), Order: machinev1alpha1.CreateFirst}
	})
	h := rollingOf(d.Spec.Template).hash()
	old := machineSet("v1", 4, 3)
	sets := map[string]*machinev1alpha1.MachineSet{}
	for _, s := range Plan(now, Observed{Deployment: d, ClassFound: true, Sets: []Set{old}}).Sets {
		sets[s.Spec.Template.Spec.Version] = s.MachineSet
	}

	t.Run("ANewSetIsAsTheTemplate", func(t *testing.T) {
		labels := map[string]machinev1alpha1.LabelValue{"pool": "a", "team": "b", machinev1alpha1.LabelDeployment: "md", machinev1alpha1.LabelTemplateHash: machinev1alpha1.LabelValue(h)}
		tmpl := d.Spec.Template.DeepCopy()
		tmpl.Spec.ProviderID, tmpl.Spec.InfrastructureRef = nil, nil
		tmpl.Metadata.Labels = labels
		want := &machinev1alpha1.MachineSet{
			TypeMeta: metav1.TypeMeta{APIVersion: "machine.drover.dev/v1alpha1", Kind: "MachineSet"},
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default",
				Name:      sets["v2"].Name,
				Labels: map[string]string{
					"pool": "a", "team": "b",
					machinev1alpha1.LabelDeployment: "md", machinev1alpha1.LabelTemplateHash: h, machinev1alpha1.LabelAutoscalerDeployment: "md",
				},
				Annotations: map[string]string{machinev1alpha1.AnnotationRevision: "5"},
				Finalizers:  []string{machinev1alpha1.FinalizerTerminator},
			},
			Spec: machinev1alpha1.MachineSetSpec{
				DeploymentReplicas: ptr.To[int32](3),
				Selector:           machinev1alpha1.Selector{MatchLabels: map[string]machinev1alpha1.LabelValue{"pool": "a", machinev1alpha1.LabelTemplateHash: machinev1alpha1.LabelValue(h)}},
				Template:           *tmpl,
				MinReadySeconds:    30,
				Creation:           machinev1alpha1.CreationEnabled,
				Remediation: machinev1alpha1.Remediation{
					MaxInFlight:  ptr.To(intstr.FromInt32(0)),
					MaxUnhealthy: ptr.To(intstr.FromInt32(2)),
					Order:        machinev1alpha1.CreateFirst,
				},
			},
		}
		if diff := cmp.Diff(want, sets["v2"]); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("WhatDoesNotRollReachesOldSetsTooAndTheirNodesAreMarked", func(t *testing.T) {
		want := old.MachineSet.DeepCopy()
		want.Spec.Remediation.MaxUnhealthy, want.Spec.Remediation.Order = ptr.To(intstr.FromInt32(2)), machinev1alpha1.CreateFirst
		want.UID, want.Generation, want.Status = "", 0, machinev1alpha1.MachineSetStatus{}
		want.Spec.Template.Spec.Taints = append(want.Spec.Template.Spec.Taints, d.Spec.Template.Spec.Taints[0])
		want.Spec.NodeMarks.Taints = []machinev1alpha1.Taint{{Key: machinev1alpha1.TaintOutdated, Effect: "PreferNoSchedule"}}
		want.Spec.MinReadySeconds, want.Spec.DeploymentReplicas = 30, ptr.To[int32](3)
		if diff := cmp.Diff(want, sets["v1"]); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("TheMarkIsTakenOffASetThatIsGoneBackTo", func(t *testing.T) {
		back := deployment(3, func(d *machinev1alpha1.MachineDeployment) { d.Spec.Template = template("v1") })
		marked := machineSet("v1", 4, 3)
		marked.Spec.NodeMarks.Taints = []machinev1alpha1.Taint{{Key: machinev1alpha1.TaintOutdated, Effect: "PreferNoSchedule"}}
		s := Plan(now, Observed{Deployment: back, ClassFound: true, Sets: []Set{marked, machineSet("v2", 5, 1)}}).Sets
		if got := s[1]; got.Name != marked.Name || len(got.Spec.NodeMarks.Taints) > 0 {
			t.Errorf("%s has taints %v", got.Name, got.Spec.NodeMarks.Taints)
		}
		if got := s[0]; len(got.Spec.NodeMarks.Taints) != 1 {
			t.Errorf("%s has taints %v", got.Name, got.Spec.NodeMarks.Taints)
		}
	})
	t.Run("TheAutoscalerIsHeldOffDuringARolloutWhereThatIsAskedFor", func(t *testing.T) {
		ask := func(d *machinev1alpha1.MachineDeployment) { d.Spec.Rollout.DisableScaleDown = true }
		annotations := func(d *machinev1alpha1.MachineDeployment, sets ...Set) (out []string) {
			for _, s := range Plan(now, Observed{Deployment: d, ClassFound: true, Sets: sets}).Sets {
				out = append(out, s.Spec.NodeMarks.Annotations[machinev1alpha1.AnnotationScaleDownDisabled])
			}
			return out
		}
		if diff := cmp.Diff([]string{"true", "true"}, annotations(deployment(3, ask), machineSet("v1", 1, 3), machineSet("v2", 2, 1))); diff != "" {
			t.Errorf("during a rollout: -want +got:\n%s", diff)
		}
		if diff := cmp.Diff([]string{""}, annotations(deployment(3, ask, completed(2)), machineSet("v2", 2, 3))); diff != "" {
			t.Errorf("after it: -want +got:\n%s", diff)
		}
		if diff := cmp.Diff([]string{"", ""}, annotations(deployment(3), machineSet("v1", 1, 3), machineSet("v2", 2, 1))); diff != "" {
			t.Errorf("where nobody asked: -want +got:\n%s", diff)
		}
	})
	t.Run("AnOldSetKeepsWhatItsMachinesAreMadeFrom", func(t *testing.T) {
		other := deployment(3, func(d *machinev1alpha1.MachineDeployment) {
			d.Spec.Template.Spec.ClassRef.Name, d.Spec.Template.Spec.ClusterRef.Name = "large", "other"
		})
		s := Plan(now, Observed{Deployment: other, ClassFound: true, Sets: []Set{old}}).Sets[0]
		if got := s.Spec.Template.Spec; got.ClassRef.Name != "small" || got.ClusterRef.Name != "" || got.Version != "v1" {
			t.Errorf("got class %q, cluster %q, version %s", got.ClassRef.Name, got.ClusterRef.Name, got.Version)
		}
	})
	t.Run("NodesOfOldSetsAreNotMarkedOnDelete", func(t *testing.T) {
		s := Plan(now, Observed{Deployment: deployment(3, by(machinev1alpha1.OnDelete)), ClassFound: true, Sets: []Set{old}}).Sets[0]
		if len(s.Spec.NodeMarks.Taints) > 0 {
			t.Errorf("taints %v, of Nodes that stay until a user deletes their Machines", s.Spec.NodeMarks.Taints)
		}
	})
	t.Run("ANodeGroupHasACapacityTimeout", func(t *testing.T) {
		group := deployment(3, func(d *machinev1alpha1.MachineDeployment) {
			d.Annotations = map[string]string{machinev1alpha1.AnnotationNodeGroupMaxSize: "5"}
		})
		for _, s := range Plan(now, Observed{Deployment: group, ClassFound: true, Sets: []Set{old}}).Sets {
			if got := s.Spec.Template.Spec.CapacityTimeout; got == nil || got.Duration != machinev1alpha1.DefaultCapacityTimeout {
				t.Errorf("set %s has %v", s.Name, got)
			}
		}
	})
	t.Run("ASetMayPreserveWhatOthersLeave", func(t *testing.T) {
		three := deployment(3, func(d *machinev1alpha1.MachineDeployment) { d.Spec.AutoPreserveFailedMachineMax = 3 })
		keeps := machineSet("v1", 1, 3, func(s *Set) { s.Status.PreservedFailedReplicas = 1 })
		var got []int32
		for _, s := range Plan(now, Observed{Deployment: three, ClassFound: true, Sets: []Set{keeps, machineSet("v2", 2, 1)}}).Sets {
			got = append(got, s.Spec.AutoPreserveFailedMachineMax)
		}
		if diff := cmp.Diff([]int32{3, 2}, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("AFreezeReachesTheSets", func(t *testing.T) {
		for name, tc := range map[string]struct {
			safety        shared.Safety
			label, reason string
		}{
			"ByHand":          {shared.Safety{Frozen: true, Reason: "ManualFreeze", Sets: "true"}, "true", "ManualFreeze"},
			"Overridden":      {shared.Safety{Reason: "FreezeOverridden", Sets: "false"}, "false", ""},
			"ForTheirCluster": {shared.Safety{Frozen: true, Reason: "TargetUnreachable"}, "", ""},
		} {
			s := Plan(now, Observed{Deployment: d, ClassFound: true, Sets: []Set{old}, Safety: tc.safety}).Sets[0]
			if s.Labels[machinev1alpha1.LabelFreeze] != tc.label || s.Annotations[machinev1alpha1.AnnotationFreezeReason] != tc.reason {
				t.Errorf("%s: got labels %v and annotations %v", name, s.Labels, s.Annotations)
			}
		}
	})
}

func TestHash(t *testing.T) {
	changes := map[string]struct {
		change func(*machinev1alpha1.MachineTemplate)
		rolls  bool
	}{
		"Class":           {func(t *machinev1alpha1.MachineTemplate) { t.Spec.ClassRef.Name = "large" }, true},
		"KindOfTheClass":  {func(t *machinev1alpha1.MachineTemplate) { t.Spec.ClassRef.Kind = "ClusterMachineClass" }, true},
		"DefaultKind":     {func(t *machinev1alpha1.MachineTemplate) { t.Spec.ClassRef.Kind = "MachineClass" }, false},
		"Version":         {func(t *machinev1alpha1.MachineTemplate) { t.Spec.Version = "v3" }, true},
		"Cluster":         {func(t *machinev1alpha1.MachineTemplate) { t.Spec.ClusterRef.Name = "other" }, true},
		"FailureDomain":   {func(t *machinev1alpha1.MachineTemplate) { t.Spec.FailureDomain = ptr.To("zone-b") }, true},
		"Labels":          {func(t *machinev1alpha1.MachineTemplate) { t.Metadata.Labels["team"] = "c" }, true},
		"Annotations":     {func(t *machinev1alpha1.MachineTemplate) { t.Metadata.Annotations = map[string]string{"a": "b"} }, true},
		"NodeMetadata":    {func(t *machinev1alpha1.MachineTemplate) { t.Spec.Metadata.Labels = map[string]string{"a": "b"} }, false},
		"Taints":          {func(t *machinev1alpha1.MachineTemplate) { t.Spec.Taints = []machinev1alpha1.Taint{{Key: "k"}} }, false},
		"Drain":           {func(t *machinev1alpha1.MachineTemplate) { t.Spec.Drain.Timeout.Duration = time.Hour }, false},
		"CreationTimeout": {func(t *machinev1alpha1.MachineTemplate) { t.Spec.CreationTimeout.Duration = time.Hour }, false},
		"Infrastructure": {func(t *machinev1alpha1.MachineTemplate) {
			t.Spec.InfrastructureRef = &machinev1alpha1.InfrastructureReference{Name: "web"}
		}, false},
		"ProviderID": {func(t *machinev1alpha1.MachineTemplate) { t.Spec.ProviderID = ptr.To("x") }, false},
	}
	for name, tc := range changes {
		t.Run(fmt.Sprintf("%sRolls/%t", name, tc.rolls), func(t *testing.T) {
			changed := template("v2")
			tc.change(&changed)
			if rolls := rollingOf(changed).hash() != rollingOf(template("v2")).hash(); rolls != tc.rolls {
				t.Errorf("got %t", rolls)
			}
		})
	}
	// A hash that changes rolls every existing deployment.
	if got := rollingOf(template("v2")).hash(); got != "776sbch24k" {
		t.Errorf("the hash of a template changed to %q", got)
	}
}

func TestANewSetLearnsThatItsClassIsProven(t *testing.T) {
	otherClass := func(d *machinev1alpha1.MachineDeployment) { d.Spec.Template.Spec.ClassRef.Name = "large" }
	otherZone := func(d *machinev1alpha1.MachineDeployment) { d.Spec.Template.Spec.FailureDomain = ptr.To("b") }
	cases := map[string]struct {
		reason string
		d      *machinev1alpha1.MachineDeployment
		old    Set
		want   string
	}{
		"ByAvailableMachinesOfAnotherSet": {
			reason: "The cloud has made VMs of the class.",
			d:      deployment(3), old: machineSet("v1", 1, 3), want: "true",
		},
		"NotByMachinesThatAreNotAvailable": {
			reason: "Machines that do not run prove nothing.",
			d:      deployment(3), old: machineSet("v1", 1, 3, available(0)),
		},
		"NotByMachinesOfAnotherClass": {
			reason: "The class may be refused by the cloud.",
			d:      deployment(3, otherClass), old: machineSet("v1", 1, 3),
		},
		"NotByMachinesOfAnotherFailureDomain": {
			reason: "The zone may not offer the class.",
			d:      deployment(3, otherZone), old: machineSet("v1", 1, 3),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Plan(now, Observed{Deployment: tc.d, Sets: []Set{tc.old}, ClassFound: true})
			for _, s := range got.Sets {
				if s.Name == tc.old.Name {
					continue
				}
				if is := s.Annotations[machinev1alpha1.AnnotationClassProven]; is != tc.want {
					t.Errorf("%s The annotation is %q, want %q", tc.reason, is, tc.want)
				}
				return
			}
			t.Error("there is no new set")
		})
	}
}

// TestASetHasNoKindOfAClassThatIsTheDefault: the XRD of the previous release does not have the
// kind, and the XRD of this release adds it.
func TestASetHasNoKindOfAClassThatIsTheDefault(t *testing.T) {
	for kind, want := range map[string]string{"": "", "MachineClass": "", "ClusterMachineClass": "ClusterMachineClass"} {
		d := deployment(1, func(d *machinev1alpha1.MachineDeployment) { d.Spec.Template.Spec.ClassRef.Kind = kind })
		s := Plan(now, Observed{Deployment: d, ClassFound: true}).Sets[0]
		if got := s.Spec.Template.Spec.ClassRef.Kind; got != want {
			t.Errorf("the kind %q is %q in the set, want %q", kind, got, want)
		}
	}
}
