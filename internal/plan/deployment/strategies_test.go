package deployment

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

func by(t machinev1alpha1.StrategyType) deploymentOption {
	return func(d *machinev1alpha1.MachineDeployment) { d.Spec.Strategy.Type = t }
}

func paused(d *machinev1alpha1.MachineDeployment) { d.Spec.Paused = true }

func inPlaceBounds(surge, unavailable int32, how machinev1alpha1.Orchestration) deploymentOption {
	return func(d *machinev1alpha1.MachineDeployment) {
		d.Spec.Strategy.Type = machinev1alpha1.InPlaceUpdate
		d.Spec.Strategy.InPlaceUpdate = machinev1alpha1.InPlaceUpdateBounds{
			MaxSurge: ptr.To(intstr.FromInt32(surge)), MaxUnavailable: ptr.To(intstr.FromInt32(unavailable)), Orchestration: how,
		}
	}
}

// scaledFor records the number of replicas that the sets were last scaled for.
func scaledFor(n int32) deploymentOption {
	return func(d *machinev1alpha1.MachineDeployment) { d.Status.DesiredReplicas = &n }
}

func createsNone(s *Set) { s.Spec.Creation = machinev1alpha1.CreationDisabled }

// dropping names Machines whose deletion is recorded and not requested yet.
func dropping(names ...string) setOption {
	return func(s *Set) { s.Status.Dropping, s.Status.TerminatingReplicas = names, int32(len(names)) }
}

// setAside names Machines that are kept for analysis and no longer count.
func setAside(names ...string) setOption { return func(s *Set) { s.Status.SetAside = names } }

// countedFor makes a set one that has counted its Machines since the deployment has this number of
// replicas.
func countedFor(n int32) setOption { return func(s *Set) { s.Spec.DeploymentReplicas = &n } }

// preserved is the number of Failed Machines of a set that are kept for analysis.
func preserved(n int32) setOption {
	return func(s *Set) { s.Status.PreservedFailedReplicas = n }
}

func marked(n int32) setOption { return func(s *Set) { s.Status.MarkedReplicas = n } }

// updated is the number of Machines with the current template, in a set that updates in place.
func updated(n int32) setOption {
	return func(s *Set) {
		s.Spec.InPlaceUpdate = &machinev1alpha1.MachineSetInPlaceUpdate{ID: rollingOf(template("v2")).hash()}
		s.Status.UpdatedReplicas, s.Status.UpdatedAvailableReplicas = n, min(n, s.Status.AvailableReplicas)
	}
}

// updatedFor makes the update in place of a set one of another version.
func updatedFor(version string) setOption {
	return func(s *Set) { s.Spec.InPlaceUpdate.ID = rollingOf(template(version)).hash() }
}

// booting is the number of starting Machines whose VMs did not exist before them.
func booting(n int32) setOption { return func(s *Set) { s.Status.BootingReplicas = n } }

type strategyCase struct {
	d      *machinev1alpha1.MachineDeployment
	sets   []Set
	frozen bool
	// decided are the recorded replicas of the sets.
	decided counts
}

func testStrategy(t *testing.T, cases map[string]strategyCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, s := range tc.sets {
				if s.Spec.DeploymentReplicas == nil {
					s.Spec.DeploymentReplicas = &tc.d.Spec.Replicas
				}
			}
			d := Plan(now, Observed{Deployment: tc.d, Sets: tc.sets, ClassFound: true, Safety: shared.Safety{Frozen: tc.frozen}})
			if diff := cmp.Diff(tc.decided, decided(d)); diff != "" {
				t.Errorf("decided: -want +got:\n%s", diff)
			}
		})
	}
}

func TestRecreate(t *testing.T) {
	recreate := by(machinev1alpha1.Recreate)
	testStrategy(t, map[string]strategyCase{
		"AllOldMachinesGoFirst": {
			d: deployment(3, recreate), sets: []Set{machineSet("v1", 1, 3), machineSet("v2", 2, 0)},
			decided: counts{"v1": 0, "v2": 0},
		},
		"NoneIsCreatedWhileOneTerminates": {
			d: deployment(3, recreate), sets: []Set{machineSet("v1", 1, 0, terminating(1)), machineSet("v2", 2, 0)},
			decided: counts{"v1": 0, "v2": 0},
		},
		"NoneIsCreatedWhileASetIsBeingDeleted": {
			d: deployment(3, recreate), sets: []Set{machineSet("v1", 1, 2, deleted), machineSet("v2", 2, 0)},
			decided: counts{"v2": 0},
		},
		"AllAreCreatedWhenNothingIsLeft": {
			d: deployment(3, recreate), sets: []Set{machineSet("v1", 1, 0), machineSet("v2", 2, 0)},
			decided: counts{"v2": 3},
		},
		"ARolloutThatIsSupersededEmptiesWhatItHadMade": {
			d: deployment(3, recreate), sets: []Set{machineSet("v0", 1, 0), machineSet("v1", 2, 3, available(1)), machineSet("v2", 3, 0)},
			decided: counts{"v1": 0, "v2": 0},
		},
		"PausedReplacesNothing": {
			d: deployment(3, recreate, paused), sets: []Set{machineSet("v1", 1, 3)},
			decided: counts{"v1": 3},
		},
		"PausedScales": {
			d: deployment(5, recreate, paused), sets: []Set{machineSet("v1", 1, 3)},
			decided: counts{"v1": 5},
		},
		"PausedInTheMiddleScalesDown": {
			d: deployment(1, recreate, paused, scaledFor(3)), sets: []Set{machineSet("v1", 1, 3), machineSet("v2", 2, 0)},
			decided: counts{"v1": 1, "v2": 0},
		},
		"PausedInTheMiddleScalesDownByMarkedMachinesFirst": {
			d: deployment(4, recreate, paused, scaledFor(6)), sets: []Set{machineSet("v0", 1, 3), machineSet("v1", 2, 3, marked(2)), machineSet("v2", 3, 0)},
			decided: counts{"v0": 3, "v1": 1, "v2": 0},
		},
		"PausedInTheMiddleDeletesNoMoreThanAreTooMany": {
			d: deployment(3, recreate, paused, scaledFor(4)), sets: []Set{machineSet("v1", 1, 4, available(1)), machineSet("v2", 2, 0)},
			decided: counts{"v1": 3, "v2": 0},
		},
		"PausedInTheMiddleScalesDownWhenTheMarksAreCounted": {
			d: deployment(1, recreate, paused, scaledFor(3)), sets: []Set{machineSet("v1", 1, 3, countedFor(3)), machineSet("v2", 2, 0)},
			decided: counts{"v1": 3, "v2": 0},
		},
		"PausedInTheMiddleCreatesNothingBesideOldMachines": {
			d: deployment(3, recreate, paused), sets: []Set{machineSet("v1", 1, 0, terminating(3)), machineSet("v2", 2, 0)},
			decided: counts{"v1": 0, "v2": 0},
		},
		"AChangeThatIsTakenBackWaitsForWhatTheSetGaveUpForIt": {
			d: deployment(3, recreate), sets: []Set{machineSet("v2", 3, 0, terminating(2))},
			decided: counts{"v2": 1},
		},
		"WhatIsTooMuchForTheSpecGoesWhileOthersTerminate": {
			d: deployment(1, recreate), sets: []Set{machineSet("v1", 1, 0, terminating(1)), machineSet("v2", 2, 3)},
			decided: counts{"v1": 0, "v2": 1},
		},
		"AfterwardsItScales": {
			d: deployment(1, recreate, completed(2)), sets: []Set{machineSet("v2", 2, 3)},
			decided: counts{"v2": 1},
		},
	})
}

func TestOnDelete(t *testing.T) {
	onDelete := by(machinev1alpha1.OnDelete)
	testStrategy(t, map[string]strategyCase{
		"AScaleDownAwaitsTheMarksThatComeWithIt": {
			d:       deployment(4, onDelete, scaledFor(5)),
			sets:    []Set{machineSet("v1", 1, 3, createsNone, countedFor(5)), machineSet("v2", 2, 2, countedFor(5))},
			decided: counts{"v1": 3, "v2": 2},
		},
		"OldMachinesStay": {
			d: deployment(3, onDelete), sets: []Set{machineSet("v1", 1, 3, createsNone), machineSet("v2", 2, 0)},
			decided: counts{"v1": 3, "v2": 0},
		},
		"AMachineThatSomebodyDeletesIsReplacedByANewOne": {
			d: deployment(3, onDelete), sets: []Set{machineSet("v1", 1, 3, createsNone, has(2), available(2)), machineSet("v2", 2, 0)},
			decided: counts{"v1": 2, "v2": 1},
		},
		"ASetThatMayStillCreateIsCountedInFull": {
			d: deployment(3, onDelete), sets: []Set{machineSet("v1", 1, 3, has(2)), machineSet("v2", 2, 0)},
			decided: counts{"v1": 3, "v2": 0},
		},
		"AMachineWhoseDeletionIsOnlyRecordedStillTakesItsPlace": {
			d: deployment(3, onDelete), sets: []Set{machineSet("v1", 1, 3, createsNone, has(2), available(2), dropping("a")), machineSet("v2", 2, 0)},
			decided: counts{"v1": 2, "v2": 0},
		},
		"ScalingUpCountsMachinesThatAnOldSetHasYetToGiveUp": {
			d:       deployment(5, onDelete, recorded("v1", 1), recorded("v2", 0)),
			sets:    []Set{machineSet("v1", 1, 4, createsNone), machineSet("v2", 2, 0)},
			decided: counts{"v1": 1, "v2": 1},
		},
		"ScalingUpMakesNewMachines": {
			d: deployment(5, onDelete), sets: []Set{machineSet("v1", 1, 2, createsNone), machineSet("v2", 2, 1)},
			decided: counts{"v1": 2, "v2": 3},
		},
		"ScalingDownTakesUnavailableOldMachinesFirst": {
			d: deployment(3, onDelete), sets: []Set{machineSet("v0", 1, 2, createsNone), machineSet("v1", 2, 2, createsNone, available(1)), machineSet("v2", 3, 1)},
			decided: counts{"v0": 1, "v1": 1, "v2": 1},
		},
		"ScalingDownTakesMarkedMachinesBeforeThat": {
			d: deployment(4, onDelete), sets: []Set{machineSet("v0", 1, 2, createsNone, available(1)), machineSet("v1", 2, 2, createsNone, marked(1)), machineSet("v2", 3, 1)},
			decided: counts{"v0": 2, "v1": 1, "v2": 1},
		},
		"ScalingDownTakesNewMachinesWhenNoOldOneIsLeft": {
			d: deployment(1, onDelete), sets: []Set{machineSet("v1", 1, 1, createsNone), machineSet("v2", 2, 3)},
			decided: counts{"v1": 0, "v2": 1},
		},
		"ScalingDownWaitsForAnOldSetThatHasNotActedOnItsLastNumber": {
			d:       deployment(4, onDelete, recorded("v1", 3), recorded("v2", 2)),
			sets:    []Set{machineSet("v1", 1, 4, createsNone), machineSet("v2", 2, 2)},
			decided: counts{"v1": 3, "v2": 2},
		},
		"ScalingDownTakesOldMachinesThatAreNotMissedBeforeAllOldSetsHaveActed": {
			d:       deployment(3, onDelete, recorded("v0", 1), recorded("v1", 2), recorded("v2", 2)),
			sets:    []Set{machineSet("v0", 1, 2, createsNone), machineSet("v1", 2, 2, createsNone), machineSet("v2", 3, 2)},
			decided: counts{"v0": 1, "v1": 0, "v2": 2},
		},
		"ScalingDownTakesNewMachinesAsFarAsAnOldSetThatIsWaitedForHasTooFew": {
			d:       deployment(1, onDelete, recorded("v1", 1), recorded("v2", 3)),
			sets:    []Set{machineSet("v1", 1, 2, createsNone), machineSet("v2", 2, 3)},
			decided: counts{"v1": 1, "v2": 1},
		},
		"ScalingDownTakesMarkedMachinesOfTheNewSetToo": {
			d:       deployment(4, onDelete),
			sets:    []Set{machineSet("v1", 1, 3, createsNone), machineSet("v2", 2, 2, marked(1))},
			decided: counts{"v1": 3, "v2": 1},
		},
		"ScalingDownKeepsAsManyAvailableAsThereShallBe": {
			d:       deployment(24, onDelete),
			sets:    []Set{machineSet("v1", 1, 26, createsNone), machineSet("v2", 2, 12, has(1), available(0))},
			decided: counts{"v1": 24, "v2": 0},
		},
		"ScalingDownKeepsANewMachineThatIsAvailable": {
			d:       deployment(8, onDelete),
			sets:    []Set{machineSet("v1", 1, 8, createsNone), machineSet("v2", 2, 2, available(1))},
			decided: counts{"v1": 7, "v2": 1},
		},
		"ScalingDownTakesANewMachineThatIsNotAvailableWhenAllOldSetsHaveActed": {
			d:       deployment(3, onDelete, recorded("v0", 1), recorded("v1", 2), recorded("v2", 2)),
			sets:    []Set{machineSet("v0", 1, 2, createsNone), machineSet("v1", 2, 2, createsNone), machineSet("v2", 3, 2, available(0))},
			decided: counts{"v0": 1, "v1": 2, "v2": 2},
		},
		"ScalingDownTakesAPreservedMachineLast": {
			d:       deployment(4, onDelete),
			sets:    []Set{machineSet("v0", 1, 2, createsNone, available(1), preserved(1)), machineSet("v1", 2, 3, createsNone, available(2)), machineSet("v2", 3, 0)},
			decided: counts{"v0": 2, "v1": 2, "v2": 0},
		},
		"ScalingDownCountsANewMachineThatIsMarkedAndNotAvailableOnce": {
			d:       deployment(8, onDelete),
			sets:    []Set{machineSet("v1", 1, 8, createsNone, available(7), preserved(1)), machineSet("v2", 2, 2, available(1), marked(1))},
			decided: counts{"v1": 7, "v2": 1},
		},
		"ScalingDownCountsMarkedMachinesAmongThoseThatAreLost": {
			d:       deployment(5, onDelete),
			sets:    []Set{machineSet("v1", 1, 5, createsNone, marked(1)), machineSet("v2", 2, 2, available(1))},
			decided: counts{"v1": 4, "v2": 1},
		},
		"ScalingDownKeepsEnoughAvailableOfAllOldSetsTogether": {
			d:       deployment(4, onDelete),
			sets:    []Set{machineSet("v0", 1, 2, createsNone), machineSet("v1", 2, 2, createsNone), machineSet("v2", 3, 2, available(1))},
			decided: counts{"v0": 1, "v1": 2, "v2": 1},
		},
		"PausedAnOldSetKeepsThePlaceOfAMachineThatIsLost": {
			d:       deployment(3, onDelete, paused),
			sets:    []Set{machineSet("v1", 1, 3, createsNone, has(2), available(2)), machineSet("v2", 2, 0)},
			decided: counts{"v1": 3, "v2": 0},
		},
		"PausedMakesNoNewSet": {
			d: deployment(4, onDelete, paused), sets: []Set{machineSet("v1", 1, 3)},
			decided: counts{"v1": 4},
		},
	})
}

// TestWithOnDeleteOldSetsCreateNothing unless a user holds the rollout: a Machine that is lost then
// is replaced by one of its own template.
func TestWithOnDeleteOldSetsCreateNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		with   deploymentOption
		frozen bool
		want   machinev1alpha1.CreationPolicy
	}{
		"InARollout":                    {func(*machinev1alpha1.MachineDeployment) {}, false, machinev1alpha1.CreationDisabled},
		"InAFreeze":                     {func(*machinev1alpha1.MachineDeployment) {}, true, machinev1alpha1.CreationDisabled},
		"InAPause":                      {paused, false, machinev1alpha1.CreationEnabled},
		"InAPauseAndAFreeze":            {paused, true, machinev1alpha1.CreationEnabled},
		"ForARevisionThatDoesNotExist":  {backTo(9), false, machinev1alpha1.CreationEnabled},
		"WithAnotherStrategyInARollout": {by(machinev1alpha1.RollingUpdate), false, machinev1alpha1.CreationEnabled},
	} {
		t.Run(name, func(t *testing.T) {
			p := Plan(now, Observed{
				Deployment: deployment(3, by(machinev1alpha1.OnDelete), tc.with), ClassFound: true, Safety: shared.Safety{Frozen: tc.frozen},
				Sets: []Set{machineSet("v1", 1, 3), machineSet("v2", 2, 0)},
			})
			if old, current := p.Sets[0].Spec.Creation, p.Sets[1].Spec.Creation; old != tc.want || current != machinev1alpha1.CreationEnabled {
				t.Errorf("creation of the old set is %s and of the new one %s, want %s and Enabled", old, current, tc.want)
			}
		})
	}
}

// TestAScaleUpOnTrialIsNotFinal: the sets stay scaled for the previous replicas until a Machine of
// the new template is available, or the trial is over.
func TestAScaleUpOnTrialIsNotFinal(t *testing.T) {
	fresh, late := progressed(time.Minute, 2, 2, 7, 5), progressed(time.Hour, 2, 2, 7, 5)
	for name, tc := range map[string]struct {
		progress deploymentOption
		newSet   Set
		want     int32
	}{
		"OnTrial":                        {fresh, machineSet("v2", 2, 2, available(0), starting(2)), 6},
		"WithoutRoomForMoreMachines":     {fresh, machineSet("v2", 2, 9, available(0), starting(9)), 6},
		"ThatFoundAnAvailableMachine":    {fresh, machineSet("v2", 2, 9, available(1), starting(8)), 12},
		"ThatIsOver":                     {late, machineSet("v2", 2, 2, available(0), starting(2)), 12},
		"ThatIsOverAndReturnsItsGrowth":  {late, machineSet("v2", 2, 9, available(0), starting(9)), 6},
		"ThatIsOverAndFreesItsPlacesYet": {late, machineSet("v2", 2, 3, available(0), starting(3), terminating(6)), 6},
	} {
		t.Run(name, func(t *testing.T) {
			d := deployment(12, ints(2, 0), scaledFor(6), tc.progress)
			sets := []Set{machineSet("v1", 1, 5, countedFor(12)), tc.newSet}
			sets[1].Spec.DeploymentReplicas = &d.Spec.Replicas
			if got := *Plan(now, Observed{Deployment: d, Sets: sets, ClassFound: true}).Status.DesiredReplicas; got != tc.want {
				t.Errorf("scaled for %d replicas, want %d", got, tc.want)
			}
		})
	}
}

// TestMachinesThatCostNothingGoAtOnce in a rollout, without regard to the bounds.
func TestMachinesThatCostNothingGoAtOnce(t *testing.T) {
	held := func(d *machinev1alpha1.MachineDeployment) { paused(d); scaledFor(d.Spec.Replicas)(d) }
	testStrategy(t, map[string]strategyCase{
		"ThoseOfAPoolOfWhichNothingRuns": {
			d: deployment(12, ints(1, 0)), sets: []Set{machineSet("v1", 1, 12, available(0), starting(12)), machineSet("v2", 2, 0)},
			decided: counts{"v1": 0, "v2": 1},
		},
		"AndMissingOnes": {
			d: deployment(12, ints(1, 0)), sets: []Set{machineSet("v1", 1, 12, has(1), available(0), starting(12)), machineSet("v2", 2, 0)},
			decided: counts{"v1": 0, "v2": 1},
		},
		"ThoseThatStartBesideMachinesThatRunStayUntilTheNewTemplateRuns": {
			d: deployment(12, ints(1, 0)), sets: []Set{machineSet("v1", 1, 12, available(3), starting(9)), machineSet("v2", 2, 1, available(0), starting(1))},
			decided: counts{"v1": 12, "v2": 1},
		},
		"ThenTheyGo": {
			d: deployment(12, ints(1, 0)), sets: []Set{machineSet("v1", 1, 12, available(3), starting(9)), machineSet("v2", 2, 1)},
			decided: counts{"v1": 3, "v2": 1},
		},
		"LostMachinesGoWhenTheNewTemplateRuns": {
			d:       deployment(20, ints(2, 0), remediate("1", "100%")),
			sets:    []Set{machineSet("v1", 1, 12, available(7), sick(0, 5)), machineSet("v2", 2, 10, available(8), starting(2))},
			decided: counts{"v1": 7, "v2": 10},
		},
		"NotBeforeThat": {
			d:       deployment(20, ints(2, 0), remediate("1", "100%")),
			sets:    []Set{machineSet("v1", 1, 20, available(15), sick(0, 5)), machineSet("v2", 2, 2, available(0), starting(2))},
			decided: counts{"v1": 20, "v2": 2},
		},
		"NorWhileTooManyAreUnhealthy": {
			d:       deployment(20, ints(2, 0), remediate("1", "4")),
			sets:    []Set{machineSet("v1", 1, 12, available(7), sick(5, 5)), machineSet("v2", 2, 10, available(8), starting(2))},
			decided: counts{"v1": 12, "v2": 10},
		},
		"WhenNoStartingMachineIsTakenForAnUnhealthyOne": {
			d:       deployment(20, ints(2, 0), remediate("1", "4")),
			sets:    []Set{machineSet("v1", 1, 12, available(4), starting(3), sick(5, 5)), machineSet("v2", 2, 10, available(8), starting(2))},
			decided: counts{"v1": 12, "v2": 10},
		},
		"MachinesThatAreNotReadyAnyMoreStayWithinTheBounds": {
			d:       deployment(20, ints(2, 0)),
			sets:    []Set{machineSet("v1", 1, 12, available(7)), machineSet("v2", 2, 10, available(8), starting(2))},
			decided: counts{"v1": 12, "v2": 10},
		},
		"ALeftoverOfARevertedTemplateGoes": {
			d:       deployment(3, ints(1, 0)),
			sets:    []Set{machineSet("v1", 1, 1, available(0), starting(1)), machineSet("v2", 2, 3, available(1), starting(1), sick(1, 1))},
			decided: counts{"v1": 0, "v2": 3},
		},
		"WithOnDeleteToo": {
			d:       deployment(3, by(machinev1alpha1.OnDelete)),
			sets:    []Set{machineSet("v1", 1, 1, createsNone, available(0), starting(1)), machineSet("v2", 2, 3, available(1), starting(1))},
			decided: counts{"v1": 0, "v2": 3},
		},
		"MachinesOfARestoreStay": {
			d:       deployment(12, ints(1, 0)),
			sets:    []Set{machineSet("v1", 1, 12, available(0), starting(12), booting(0)), machineSet("v2", 2, 0)},
			decided: counts{"v1": 12, "v2": 1},
		},
		"AScaleDownWithOnDeleteDeletesAMarkedMachineFirst": {
			d:       deployment(6, by(machinev1alpha1.OnDelete), scaledFor(7)),
			sets:    []Set{machineSet("v1", 1, 1, createsNone, available(0), starting(1)), machineSet("v2", 2, 6, marked(2))},
			decided: counts{"v1": 1, "v2": 5},
		},
		"APauseKeepsIt": {
			d:       deployment(3, ints(1, 0), held),
			sets:    []Set{machineSet("v1", 1, 1, available(0), starting(1)), machineSet("v2", 2, 3, available(1), starting(1))},
			decided: counts{"v1": 1, "v2": 3},
		},
	})
}

// TestOldSetsCreateNothingOnceTheNewTemplateRuns: the new set replaces the Machines that they lose.
func TestOldSetsCreateNothingOnceTheNewTemplateRuns(t *testing.T) {
	for name, tc := range map[string]struct {
		with      deploymentOption
		available int32
		problem   *shared.Problem
		want      machinev1alpha1.CreationPolicy
	}{
		"Once":                  {ints(1, 0), 1, nil, machinev1alpha1.CreationDisabled},
		"NotBefore":             {ints(1, 0), 0, nil, machinev1alpha1.CreationEnabled},
		"NotInAPause":           {paused, 1, nil, machinev1alpha1.CreationEnabled},
		"NotWithoutAUsualClass": {ints(1, 0), 1, &shared.Problem{Reason: "Unusable"}, machinev1alpha1.CreationEnabled},
	} {
		t.Run(name, func(t *testing.T) {
			p := Plan(now, Observed{
				Deployment: deployment(3, tc.with), ClassFound: true, ClassProblem: tc.problem,
				Sets: []Set{machineSet("v1", 1, 3), machineSet("v2", 2, 1, available(tc.available))},
			})
			if old, current := p.Sets[0].Spec.Creation, p.Sets[1].Spec.Creation; old != tc.want || current != machinev1alpha1.CreationEnabled {
				t.Errorf("creation of the old set is %s and of the new one %s, want %s and Enabled", old, current, tc.want)
			}
		})
	}
}

func TestInPlaceUpdate(t *testing.T) {
	auto := func(surge, unavailable int32) deploymentOption {
		return inPlaceBounds(surge, unavailable, machinev1alpha1.OrchestrationAuto)
	}
	testStrategy(t, map[string]strategyCase{
		"TheSetKeepsItsMachines": {
			d: deployment(3, auto(0, 1)), sets: []Set{machineSet("v1", 1, 3)},
			decided: counts{"v1": 3},
		},
		"SurgeAddsOneMachineWhileSomeAreOutdated": {
			d: deployment(5, auto(2, 0)), sets: []Set{machineSet("v2", 1, 5, updated(0))},
			decided: counts{"v2": 6},
		},
		"SurgeAddsNoneIfSomeMayBeUnavailable": {
			d: deployment(5, auto(3, 1)), sets: []Set{machineSet("v2", 1, 5, updated(0))},
			decided: counts{"v2": 5},
		},
		"SurgeAddsNoneIfNoneAreOutdated": {
			d: deployment(5, auto(2, 0)), sets: []Set{machineSet("v2", 1, 5, updated(5), unsettled)},
			decided: counts{"v2": 5},
		},
		"NoReplicasNeedNoSurge": {
			d: deployment(0, auto(1, 0)), sets: []Set{machineSet("v2", 1, 1, updated(0))},
			decided: counts{"v2": 0},
		},
		"SurgeStaysUntilEnoughAreUpdated": {
			d: deployment(5, auto(2, 0)), sets: []Set{machineSet("v2", 1, 6, updated(4))},
			decided: counts{"v2": 6},
		},
		"TheLastOutdatedOneIsDeletedInstead": {
			d: deployment(5, auto(2, 0)), sets: []Set{machineSet("v2", 1, 6, updated(5))},
			decided: counts{"v2": 5},
		},
		"AMarkedMachineIsNotDeletedForTheLastOutdatedOne": {
			d: deployment(5, auto(2, 0)), sets: []Set{machineSet("v2", 1, 6, updated(5), marked(1))},
			decided: counts{"v2": 6},
		},
		"AMarkedMachineIsDeletedWhenAllAreUpdated": {
			d: deployment(5, auto(2, 0)), sets: []Set{machineSet("v2", 1, 6, updated(6), marked(1))},
			decided: counts{"v2": 5},
		},
		"AMarkedMachineStaysWhileAnotherIsNotAvailable": {
			d: deployment(5, auto(2, 0)), sets: []Set{machineSet("v2", 1, 6, available(5), updated(6), marked(1))},
			decided: counts{"v2": 6},
		},
		"AScaleDownLeavesTheSurge": {
			d: deployment(5, auto(2, 0), scaledFor(9)), sets: []Set{machineSet("v2", 1, 9, updated(1))},
			decided: counts{"v2": 6},
		},
		"AScaleDownLeavesNoMarkedMachineAsTheSurge": {
			d: deployment(5, auto(2, 0), scaledFor(6)), sets: []Set{machineSet("v2", 1, 6, updated(1), marked(1))},
			decided: counts{"v2": 5},
		},
		"AScaleDownAwaitsTheMarksThatComeWithIt": {
			d: deployment(5, auto(2, 0), scaledFor(7)), sets: []Set{machineSet("v2", 1, 7, updated(1), countedFor(7))},
			decided: counts{"v2": 7},
		},
		"TheSurgeIsCreatedAfterTheMarkedMachineIsDeleted": {
			d: deployment(5, auto(2, 0), scaledFor(5)), sets: []Set{machineSet("v2", 1, 5, updated(1))},
			decided: counts{"v2": 6},
		},
		"AMarkedMachineNeedsNoSurgeIfNoneAreOutdated": {
			d: deployment(5, auto(2, 0)), sets: []Set{machineSet("v2", 1, 5, updated(5), marked(1))},
			decided: counts{"v2": 5},
		},
		"SurgeGoesWhenAllAreUpdatedThoughSomeAreNotAvailable": {
			d: deployment(5, auto(2, 0)), sets: []Set{machineSet("v2", 1, 6, available(4), updated(6))},
			decided: counts{"v2": 5},
		},
		"SurgeStaysWhileTheSetHasTheUpdateBefore": {
			d: deployment(5, auto(2, 0)), sets: []Set{machineSet("v2", 1, 6, available(4), updated(6), updatedFor("v1"))},
			decided: counts{"v2": 6},
		},
		"SurgeStaysWhileTheSetHasNoUpdateYet": {
			d: deployment(5, auto(2, 0)), sets: []Set{machineSet("v2", 1, 6, available(4))},
			decided: counts{"v2": 6},
		},
		"ManualHasNoSurge": {
			d: deployment(5, inPlaceBounds(2, 1, machinev1alpha1.OrchestrationManual)), sets: []Set{machineSet("v2", 1, 5, updated(1))},
			decided: counts{"v2": 5},
		},
		"ItScalesInTheMiddle": {
			d: deployment(9, auto(0, 1)), sets: []Set{machineSet("v2", 1, 5, updated(2))},
			decided: counts{"v2": 9},
		},
		"AMoveThatIsTakenBackWaitsForWhatTheSetGaveUpForIt": {
			d: deployment(5, auto(1, 3)), sets: []Set{machineSet("v2", 1, 2, updated(2), terminating(3))},
			decided: counts{"v2": 3},
		},
		"ASetThatIsUpdatedScalesEvenWhileOthersOfItTerminate": {
			d: deployment(5, auto(1, 3), completed(1)), sets: []Set{machineSet("v2", 1, 2, updated(2), terminating(3))},
			decided: counts{"v2": 5},
		},
		"PausedAddsNothing": {
			d: deployment(5, auto(2, 0), paused), sets: []Set{machineSet("v2", 1, 5, updated(2))},
			decided: counts{"v2": 5},
		},
		"PausedKeepsTheSurge": {
			d: deployment(5, auto(2, 0), paused), sets: []Set{machineSet("v2", 1, 6, updated(2))},
			decided: counts{"v2": 6},
		},
		"PausedTakesNoScaleDownForASurge": {
			d: deployment(5, auto(2, 0), paused, scaledFor(9)), sets: []Set{machineSet("v2", 1, 9, updated(2))},
			decided: counts{"v2": 5},
		},
	})

	plan := func(d *machinev1alpha1.MachineDeployment, sets ...Set) Decision {
		return Plan(now, Observed{Deployment: d, Sets: sets, ClassFound: true})
	}
	t.Run("TheSetGetsTheTemplateAndTheBounds", func(t *testing.T) {
		s := plan(deployment(5, auto(0, 2)), machineSet("v1", 1, 5)).Sets[0]
		if s.Name != nameOf("v1") || s.Spec.Template.Spec.Version != "v2" || s.Annotations[machinev1alpha1.AnnotationRevision] != "2" {
			t.Errorf("set %s has version %s and annotations %v", s.Name, s.Spec.Template.Spec.Version, s.Annotations)
		}
		want := &machinev1alpha1.MachineSetInPlaceUpdate{ID: rollingOf(template("v2")).hash(), MaxUnavailable: 2, Orchestration: "Auto"}
		if diff := cmp.Diff(want, s.Spec.InPlaceUpdate); diff != "" {
			t.Error(diff)
		}
		if s.Spec.Template.Metadata.Labels[machinev1alpha1.LabelTemplateHash] != s.Spec.Selector.MatchLabels[machinev1alpha1.LabelTemplateHash] {
			t.Error("the set does not select its Machines any more")
		}
	})
	t.Run("TheBoundIsThatOfAllReplicasEvenWhileTheSetIsGivenFewer", func(t *testing.T) {
		s := plan(deployment(10, auto(0, 8)), machineSet("v2", 1, 5, updated(0))).Sets[0]
		if got := s.Spec.InPlaceUpdate.MaxUnavailable; got != 3 {
			t.Errorf("of 5 Machines %d may be unavailable, want 3: 2 of 10 must be available", got)
		}
	})
	t.Run("MachinesThatAreAboutToBeDeletedLeaveNoRoomForUpdates", func(t *testing.T) {
		s := plan(deployment(17, auto(1, 0), scaledFor(18)), machineSet("v2", 1, 19, updated(9), marked(1))).Sets[0]
		if got := s.Spec.InPlaceUpdate.MaxUnavailable; got != 1 {
			t.Errorf("of 19 Machines, of which one is marked, %d may be unavailable, want 1: the set gets 18, and 17 must be available", got)
		}
	})
	t.Run("AScaleDownThatHasToWaitIsNotTakenForASurge", func(t *testing.T) {
		d := deployment(5, auto(1, 0), scaledFor(6))
		sets := []Set{machineSet("v2", 1, 6, available(2), updated(6), marked(3), unsettled)}
		awaited := Plan(now, Observed{Deployment: d, Sets: sets, ClassFound: true})
		if n := *awaited.Status.DesiredReplicas; n != 6 {
			t.Errorf("the set is scaled for %d, want 6 until it may be scaled", n)
		}
		d.Status.DesiredReplicas = awaited.Status.DesiredReplicas
		sets[0].Status.DecidedGeneration = sets[0].Generation
		done := Plan(now, Observed{Deployment: d, Sets: sets, ClassFound: true})
		if got := done.Status.MachineSets[0].Replicas; got != 5 || *done.Status.DesiredReplicas != 5 {
			t.Errorf("the set shall have %d Machines, scaled for %d, want 5", got, *done.Status.DesiredReplicas)
		}
	})
	t.Run("PausedKeepsTheTemplateThatTheSetHas", func(t *testing.T) {
		s := plan(deployment(5, auto(0, 2), paused), machineSet("v1", 1, 5)).Sets[0]
		if s.Spec.Template.Spec.Version != "v1" {
			t.Errorf("got version %s", s.Spec.Template.Spec.Version)
		}
	})
	t.Run("PausedInTheMiddlePausesTheSet", func(t *testing.T) {
		s := plan(deployment(5, auto(0, 2), paused), machineSet("v2", 1, 5, updated(2))).Sets[0]
		if !s.Spec.InPlaceUpdate.Paused {
			t.Error("not paused")
		}
	})
	t.Run("AClassThatIsMissingChangesNothing", func(t *testing.T) {
		s := Plan(now, Observed{Deployment: deployment(5, auto(0, 2)), Sets: []Set{machineSet("v1", 1, 5)}}).Sets[0]
		if s.Spec.Template.Spec.Version != "v1" {
			t.Errorf("got version %s", s.Spec.Template.Spec.Version)
		}
	})
	t.Run("WhatCannotBeUpdatedInPlaceRolls", func(t *testing.T) {
		moved := func(d *machinev1alpha1.MachineDeployment) { d.Spec.Template.Spec.FailureDomain = ptr.To("zone-b") }
		d := plan(deployment(3, auto(1, 0), moved), machineSet("v1", 1, 3))
		if len(d.Sets) != 2 || d.Sets[0].Name != nameOf("v1") || d.Sets[0].Spec.Template.Spec.Version != "v1" {
			t.Errorf("got %v", composed(d))
		}
	})
	t.Run("ItIsCompleteWhenAllAreUpdated", func(t *testing.T) {
		if plan(deployment(3, auto(0, 1), recorded("v2", 3)), machineSet("v2", 1, 3, updated(2))).Ready {
			t.Error("ready although one is outdated")
		}
		if !plan(deployment(3, auto(0, 1), recorded("v2", 3)), machineSet("v2", 1, 3, updated(3))).Ready {
			t.Error("not ready although all are updated")
		}
	})
	t.Run("RollingFromASetThatIsHalfUpdatedReplacesAll", func(t *testing.T) {
		d := plan(deployment(3), machineSet("v2", 1, 3, updated(2)))
		if len(d.Sets) != 2 || d.Sets[1].Name == d.Sets[0].Name {
			t.Errorf("got %v", composed(d))
		}
	})
	t.Run("RollingFromASetThatIsUpdatedKeepsIt", func(t *testing.T) {
		d := plan(deployment(3), machineSet("v2", 1, 3, updated(3)))
		if len(d.Sets) != 1 {
			t.Errorf("got %v", composed(d))
		}
	})
}

func TestScalingInARollout(t *testing.T) {
	testStrategy(t, map[string]strategyCase{
		"DownKeepsAvailableMachinesThatTheNewSetWouldDeleteBeforePreservedOnes": {
			d:       deployment(3, ints(1, 0), scaledFor(5)),
			sets:    []Set{machineSet("v1", 1, 2), machineSet("v2", 2, 3, available(1), preserved(2))},
			decided: counts{"v1": 2, "v2": 3},
		},
		"DownTakesWhatTheNewSetDeletesBeforeAvailableMachines": {
			d:       deployment(3, ints(1, 0), scaledFor(5)),
			sets:    []Set{machineSet("v1", 1, 2), machineSet("v2", 2, 3, available(1), preserved(1))},
			decided: counts{"v1": 2, "v2": 2},
		},
		"DownTakesAPreservedMachineOfAnOldSetBeforeAvailableOnes": {
			d:       deployment(1, ints(1, 0), scaledFor(4)),
			sets:    []Set{machineSet("v1", 1, 1, available(0), preserved(1)), machineSet("v2", 2, 3, available(2), preserved(1))},
			decided: counts{"v1": 0, "v2": 2},
		},
		"DownKeepsAvailableMachinesBesideMarkedOnesThatAreDeleted": {
			d:       deployment(4, ints(1, 0), scaledFor(7)),
			sets:    []Set{machineSet("v1", 1, 3, available(0)), machineSet("v2", 2, 5, available(4), marked(1))},
			decided: counts{"v1": 1, "v2": 4},
		},
		"DownToNoneTakesPreservedMachinesToo": {
			d:       deployment(0, ints(1, 0), scaledFor(3)),
			sets:    []Set{machineSet("v1", 1, 1), machineSet("v2", 2, 2, available(1), preserved(1))},
			decided: counts{"v1": 0, "v2": 0},
		},
		"UpIsTheNewSetsWhenAllOfItAreAvailable": {
			d:       deployment(12, ints(2, 0), scaledFor(6)),
			sets:    []Set{machineSet("v1", 1, 5), machineSet("v2", 2, 2)},
			decided: counts{"v1": 5, "v2": 9},
		},
		"UpIsTheNewSetsWhenItHasNoMachineYet": {
			d:       deployment(4, ints(1, 0), scaledFor(2)),
			sets:    []Set{machineSet("v1", 1, 2), machineSet("v2", 2, 0)},
			decided: counts{"v1": 2, "v2": 3},
		},
		"UpIsTheNewSetsWhenItDoesNotExistYet": {
			d:       deployment(4, ints(1, 0), scaledFor(2)),
			sets:    []Set{machineSet("v1", 1, 2)},
			decided: counts{"v1": 2, "v2": 3},
		},
		"UpIsTheNewSetsWhileSomeOfItStartAndOthersAreAvailable": {
			d:       deployment(12, ints(2, 0), scaledFor(6)),
			sets:    []Set{machineSet("v1", 1, 5), machineSet("v2", 2, 2, available(1), starting(1))},
			decided: counts{"v1": 5, "v2": 9},
		},
		"UpIsTheNewSetsUpToTheSurge": {
			d:       deployment(12, ints(2, 0), scaledFor(6)),
			sets:    []Set{machineSet("v1", 1, 5, terminating(3)), machineSet("v2", 2, 2)},
			decided: counts{"v1": 5, "v2": 6},
		},
		"UpIsTheNewSetsWhileOneOfItIsAvailableAndAnotherDoesNotStart": {
			d:       deployment(12, ints(2, 0), scaledFor(6)),
			sets:    []Set{machineSet("v1", 1, 5), machineSet("v2", 2, 2, available(1))},
			decided: counts{"v1": 5, "v2": 9},
		},
		"UpIsTheNewSetsWhileOneOfItIsAvailableAndAnotherIsUnhealthy": {
			d:       deployment(12, ints(2, 0), scaledFor(6)),
			sets:    []Set{machineSet("v1", 1, 5), machineSet("v2", 2, 3, available(1), starting(1), sick(1, 0))},
			decided: counts{"v1": 5, "v2": 9},
		},
		"UpIsTheNewSetsDuringItsTrial": {
			d:       deployment(12, ints(2, 0), scaledFor(6), progressed(299*time.Second, 2, 2, 7, 5)),
			sets:    []Set{machineSet("v1", 1, 5), machineSet("v2", 2, 2, available(0), starting(2))},
			decided: counts{"v1": 5, "v2": 9},
		},
		"UpIsSharedByTheSizesOfTheSetsWhenTheTrialIsOver": {
			d:       deployment(12, ints(2, 0), scaledFor(6), progressed(300*time.Second, 2, 2, 7, 5)),
			sets:    []Set{machineSet("v1", 1, 5), machineSet("v2", 2, 2, available(0), starting(2))},
			decided: counts{"v1": 10, "v2": 4},
		},
		"ANewRevisionHasATrialOfItsOwn": {
			d:       deployment(12, ints(2, 0), scaledFor(6), progressed(300*time.Second, 1, 2, 7, 5)),
			sets:    []Set{machineSet("v1", 1, 5), machineSet("v2", 2, 2, available(0), starting(2))},
			decided: counts{"v1": 5, "v2": 9},
		},
		"UpIsSharedWhenOneOfTheNewSetIsUnhealthyAndNoneAvailable": {
			d:       deployment(12, ints(2, 0), scaledFor(6)),
			sets:    []Set{machineSet("v1", 1, 5), machineSet("v2", 2, 2, available(0), starting(1), sick(1, 0))},
			decided: counts{"v1": 10, "v2": 4},
		},
		"UpIsSharedWhenTheNewSetCannotCreateMachines": {
			d:       deployment(12, ints(2, 0), scaledFor(6)),
			sets:    []Set{machineSet("v1", 1, 5), machineSet("v2", 2, 2, available(0), starting(2), failing)},
			decided: counts{"v1": 10, "v2": 4},
		},
		"SharedUpNeverExceedsTheSurge": {
			d:       deployment(12, ints(2, 0), scaledFor(6), progressed(time.Hour, 2, 2, 7, 5)),
			sets:    []Set{machineSet("v1", 1, 5, terminating(3)), machineSet("v2", 2, 2, available(0))},
			decided: counts{"v1": 8, "v2": 3},
		},
		"WhatTheNewSetGotOnTrialIsReturnedFirst": {
			d:       deployment(12, ints(2, 0), scaledFor(6), progressed(time.Hour, 2, 2, 7, 5)),
			sets:    []Set{machineSet("v1", 1, 5), machineSet("v2", 2, 9, available(0), starting(9))},
			decided: counts{"v1": 5, "v2": 3},
		},
		"AndThePlacesAwaitedUntilTheirVMsAreGone": {
			d:       deployment(12, ints(2, 0), scaledFor(6), progressed(time.Hour, 2, 2, 7, 5)),
			sets:    []Set{machineSet("v1", 1, 5), machineSet("v2", 2, 3, available(0), starting(3), terminating(6))},
			decided: counts{"v1": 5, "v2": 3},
		},
		"ThenUpIsShared": {
			d:       deployment(12, ints(2, 0), scaledFor(6), progressed(time.Hour, 2, 2, 7, 5)),
			sets:    []Set{machineSet("v1", 1, 5), machineSet("v2", 2, 3, available(0), starting(3))},
			decided: counts{"v1": 9, "v2": 5},
		},
		"DownTakesMachinesOfOldTemplatesFirst": {
			d:       deployment(6, ints(2, 2), scaledFor(12)),
			sets:    []Set{machineSet("v0", 1, 1), machineSet("v1", 2, 7), machineSet("v2", 3, 4)},
			decided: counts{"v0": 0, "v1": 4, "v2": 4},
		},
		"DownTakesNewMachinesIfThereAreTooFewOldOnes": {
			d:       deployment(6, ints(2, 2), scaledFor(12)),
			sets:    []Set{machineSet("v1", 1, 2), machineSet("v2", 2, 10)},
			decided: counts{"v1": 0, "v2": 8},
		},
		"DownIsSharedByTheSizesOfTheSetsIfTheNewOneIsNotProven": {
			d:       deployment(6, ints(2, 2), scaledFor(12)),
			sets:    []Set{machineSet("v1", 1, 8), machineSet("v2", 2, 4, available(3), sick(1, 0))},
			decided: counts{"v1": 5, "v2": 3},
		},
		"PausedSharesAScaleDown": {
			d:       deployment(6, ints(2, 2), scaledFor(12), paused),
			sets:    []Set{machineSet("v1", 1, 8), machineSet("v2", 2, 4)},
			decided: counts{"v1": 5, "v2": 3},
		},
		"DownTakesNoMoreAvailableMachinesThanAreToSpare": {
			d:       deployment(6, ints(1, 0), scaledFor(12)),
			sets:    []Set{machineSet("v1", 1, 8), machineSet("v2", 2, 5, available(0))},
			decided: counts{"v1": 6, "v2": 1},
		},
		"DownTakesMarkedMachinesOfWhateverSet": {
			d:       deployment(9, ints(2, 2), scaledFor(10)),
			sets:    []Set{machineSet("v1", 1, 6), machineSet("v2", 2, 6, marked(1))},
			decided: counts{"v1": 6, "v2": 5},
		},
		"DownByNoMoreThanTheSurgeTakesMarkedMachinesOfTheNewSet": {
			d:       deployment(9, ints(2, 2), scaledFor(10)),
			sets:    []Set{machineSet("v1", 1, 4), machineSet("v2", 2, 6, marked(1))},
			decided: counts{"v1": 4, "v2": 5},
		},
		"DownTakesAMarkedMachineOfASetThatLacksAnother": {
			d:       deployment(1, ints(3, 0), scaledFor(2)),
			sets:    []Set{machineSet("v1", 1, 2, has(1), available(1), marked(1)), machineSet("v2", 2, 3, available(0))},
			decided: counts{"v1": 0, "v2": 3},
		},
		"DownCancelsMissingMachinesBeforeMarkedOnesOfThoseThatAreWanted": {
			d:       deployment(3, ints(3, 0), scaledFor(6)),
			sets:    []Set{machineSet("v1", 1, 4, has(2), available(2), marked(2)), machineSet("v2", 2, 2, has(1), available(0), marked(1))},
			decided: counts{"v1": 2, "v2": 1},
		},
		"DownByMoreThanTheSurgeTakesAllMarkedMachines": {
			d:       deployment(6, ints(2, 2), scaledFor(10)),
			sets:    []Set{machineSet("v1", 1, 4), machineSet("v2", 2, 6, marked(4))},
			decided: counts{"v1": 4, "v2": 2},
		},
		"DownAwaitsTheMarksThatComeWithIt": {
			d:       deployment(9, ints(2, 2), scaledFor(10)),
			sets:    []Set{machineSet("v1", 1, 6), machineSet("v2", 2, 6, countedFor(10))},
			decided: counts{"v1": 6, "v2": 6},
		},
		"UpAwaitsNoMarks": {
			d:       deployment(12, ints(2, 0), scaledFor(6)),
			sets:    []Set{machineSet("v1", 1, 5, countedFor(6)), machineSet("v2", 2, 2, countedFor(6))},
			decided: counts{"v1": 5, "v2": 9},
		},
		"DownTakesNoMoreMarkedMachinesThanReplicasIsLoweredBy": {
			d:       deployment(9, ints(2, 2), scaledFor(10)),
			sets:    []Set{machineSet("v1", 1, 4, marked(1)), machineSet("v2", 2, 6, marked(2))},
			decided: counts{"v1": 3, "v2": 6},
		},
		"FrozenTakesMarkedMachinesThoughThereIsRoomForMore": {
			d:       deployment(9, ints(2, 2), scaledFor(10)),
			frozen:  true,
			sets:    []Set{machineSet("v1", 1, 4), machineSet("v2", 2, 6, marked(1))},
			decided: counts{"v1": 4, "v2": 5},
		},
		"DownToTheSurgeGoesOnWithTheRollout": {
			d:       deployment(9, ints(2, 2), scaledFor(10)),
			sets:    []Set{machineSet("v1", 1, 5), machineSet("v2", 2, 6)},
			decided: counts{"v1": 1, "v2": 6},
		},
		"DownGrowsNoOldSet": {
			d:       deployment(9, ints(2, 2), scaledFor(10)),
			sets:    []Set{machineSet("v1", 1, 6), machineSet("v2", 2, 2, available(1), sick(1, 0))},
			decided: counts{"v1": 6, "v2": 5},
		},
		"UpWithoutRoomGoesOnWithTheRollout": {
			d:       deployment(12, ints(0, 2), scaledFor(10)),
			sets:    []Set{machineSet("v1", 1, 8), machineSet("v2", 2, 4, available(3), sick(1, 0))},
			decided: counts{"v1": 7, "v2": 4},
		},
		"ASmallerSurgeTakesMarkedMachinesFirst": {
			d:       deployment(11, ints(0, 2), scaledFor(10)),
			sets:    []Set{machineSet("v1", 1, 6), machineSet("v2", 2, 6, marked(1))},
			decided: counts{"v1": 6, "v2": 5},
		},
		"DownTakesOthersThatAreNotAvailableInsteadOfAvailableOnes": {
			d:       deployment(10, ints(1, 0), scaledFor(15)),
			sets:    []Set{machineSet("v0", 1, 8), machineSet("v1", 2, 4, available(2)), machineSet("v2", 3, 4, available(0))},
			decided: counts{"v0": 8, "v1": 2, "v2": 1},
		},
		"DownTakesNoMachineTwiceThatIsMarkedAndNotAvailable": {
			d:       deployment(10, ints(1, 0), scaledFor(15)),
			sets:    []Set{machineSet("v0", 1, 8), machineSet("v1", 2, 4, available(2), marked(1)), machineSet("v2", 3, 4, available(0))},
			decided: counts{"v0": 8, "v1": 2, "v2": 1},
		},
		"DownSparesAvailableMachinesOfTheNewestSetsFirst": {
			d:       deployment(10, ints(1, 0), scaledFor(15)),
			sets:    []Set{machineSet("v0", 1, 6), machineSet("v1", 2, 4, available(0)), machineSet("v2", 3, 6, available(5))},
			decided: counts{"v0": 5, "v1": 1, "v2": 5},
		},
		"PausedRoundsTheLargestSharesUpAndOfEqualOnesTheNewest": {
			d:       deployment(11, ints(0, 1), scaledFor(7), paused),
			sets:    []Set{machineSet("v0", 1, 5), machineSet("v1", 2, 1), machineSet("v2", 3, 1)},
			decided: counts{"v0": 8, "v1": 1, "v2": 2},
		},
		"PausedGrowsTheNewestSetFromNothing": {
			d:       deployment(3, ints(1, 0), scaledFor(0), paused),
			sets:    []Set{machineSet("v1", 1, 0, terminating(1)), machineSet("v2", 2, 0)},
			decided: counts{"v1": 0, "v2": 3},
		},
		"UpTakesNoMarkedMachine": {
			d:       deployment(12, ints(2, 0), scaledFor(6)),
			sets:    []Set{machineSet("v1", 1, 5), machineSet("v2", 2, 2, marked(1))},
			decided: counts{"v1": 5, "v2": 9},
		},
		"DownTakesMarkedMachinesThoughThereIsRoomForTheRollout": {
			d:       deployment(7, ints(2, 0), scaledFor(8)),
			sets:    []Set{machineSet("v1", 1, 4), machineSet("v2", 2, 5, marked(1))},
			decided: counts{"v1": 4, "v2": 4},
		},
		"DownTakesNoMoreMarkedMachinesThanThereAreFewer": {
			d:       deployment(7, ints(2, 0), scaledFor(8)),
			sets:    []Set{machineSet("v1", 1, 4, marked(1)), machineSet("v2", 2, 4, marked(2))},
			decided: counts{"v1": 3, "v2": 4},
		},
		"DownTakesAsManyMarkedMachinesAsThereAreFewer": {
			d:       deployment(7, ints(2, 0), scaledFor(10)),
			sets:    []Set{machineSet("v1", 1, 5), machineSet("v2", 2, 5, marked(3))},
			decided: counts{"v1": 5, "v2": 2},
		},
		"ToNothingTakesAll": {
			d:       deployment(0, ints(2, 0), scaledFor(6)),
			sets:    []Set{machineSet("v1", 1, 5), machineSet("v2", 2, 3)},
			decided: counts{"v1": 0, "v2": 0},
		},
		"ItIsDecidedWhenAllSetsActedOnWhatTheyWereGiven": {
			d:       deployment(12, ints(2, 0), scaledFor(6)),
			sets:    []Set{machineSet("v1", 1, 5, unsettled), machineSet("v2", 2, 2)},
			decided: counts{"v1": 5, "v2": 2},
		},
		"ItIsDecidedOnce": {
			d:       deployment(12, ints(2, 0), scaledFor(12)),
			sets:    []Set{machineSet("v1", 1, 10), machineSet("v2", 2, 4, available(0))},
			decided: counts{"v1": 10, "v2": 4},
		},
		"PausedSharesToo": {
			d:       deployment(12, ints(2, 0), scaledFor(6), paused),
			sets:    []Set{machineSet("v1", 1, 4), machineSet("v2", 2, 4)},
			decided: counts{"v1": 7, "v2": 7},
		},
		"MachinesThatAreNotAvailableAreMissedWhileTheNewSetDeletesMarkedOnesThatAre": {
			d:       deployment(15, ints(12, 0), scaledFor(15)),
			sets:    []Set{machineSet("v1", 1, 2, available(0)), machineSet("v2", 2, 15, has(18), available(15), marked(3), unsettled)},
			decided: counts{"v1": 2, "v2": 15},
		},
		"WhatIsTooMuchOfTheNewSetWaitsForMarkedOldMachines": {
			d:       deployment(3, ints(4, 0), scaledFor(3)),
			sets:    []Set{machineSet("v1", 1, 3, marked(2)), machineSet("v2", 2, 4)},
			decided: counts{"v1": 0, "v2": 4},
		},
		"ItDoesNotWaitAboveTheSurge": {
			d:       deployment(3, ints(3, 0), scaledFor(3)),
			sets:    []Set{machineSet("v1", 1, 3, marked(2)), machineSet("v2", 2, 4)},
			decided: counts{"v1": 0, "v2": 3},
		},
		"NorForMachinesThatAreNotMarked": {
			d:       deployment(3, ints(4, 0), scaledFor(3)),
			sets:    []Set{machineSet("v1", 1, 3), machineSet("v2", 2, 4)},
			decided: counts{"v1": 0, "v2": 3},
		},
		"ItWaitsWhileTheRolloutIsHeld": {
			d:       deployment(3, ints(4, 0), scaledFor(3), paused),
			sets:    []Set{machineSet("v1", 1, 3, marked(2)), machineSet("v2", 2, 4)},
			decided: counts{"v1": 3, "v2": 4},
		},
		"WithoutARolloutThereIsOneSetToScale": {
			d:       deployment(12, ints(2, 0), scaledFor(6), completed(2)),
			sets:    []Set{machineSet("v2", 2, 6)},
			decided: counts{"v2": 12},
		},
		"FromNothingIsNoRollout": {
			d:       deployment(12, ints(1, 0), scaledFor(0), completed(2)),
			sets:    []Set{machineSet("v2", 2, 0)},
			decided: counts{"v2": 12},
		},
	})
	t.Run("SetsAreShownTheReplicasDuringARollout", func(t *testing.T) {
		d := Plan(now, Observed{Deployment: deployment(9, ints(2, 0), scaledFor(10)), Sets: []Set{machineSet("v1", 1, 6), machineSet("v2", 2, 6)}, ClassFound: true})
		for _, s := range d.Sets {
			if n := s.Spec.DeploymentReplicas; n == nil || *n != 9 {
				t.Errorf("%s is shown %v replicas, want 9", s.Name, n)
			}
		}
		alone := Plan(now, Observed{Deployment: deployment(9, scaledFor(10), completed(2)), Sets: []Set{machineSet("v2", 2, 10, countedFor(3))}, ClassFound: true})
		if n := *alone.Sets[0].Spec.DeploymentReplicas; n != 3 {
			t.Errorf("without a rollout the set is written, for %d replicas", n)
		}
	})
	t.Run("AScaleDownThatHasToWaitWithoutARolloutIsNotForgotten", func(t *testing.T) {
		for name, d := range map[string]*machinev1alpha1.MachineDeployment{
			"complete": deployment(5, scaledFor(8), completed(2)), "paused before a rollout": deployment(5, scaledFor(8), paused),
		} {
			p := Plan(now, Observed{Deployment: d, Sets: []Set{machineSet("v1", 2, 8, unsettled)}, ClassFound: true})
			if n := *p.Status.DesiredReplicas; n != 8 {
				t.Errorf("%s: the set is scaled for %d, want 8 until it may be scaled", name, n)
			}
		}
	})
	t.Run("AScaleDownThatAwaitsMarksIsNotForgotten", func(t *testing.T) {
		for name, o := range map[string]Observed{
			"RollingUpdate": {Deployment: deployment(5, ints(1, 0), scaledFor(6)), Sets: []Set{machineSet("v1", 1, 4, countedFor(6)), machineSet("v2", 2, 2, countedFor(6))}},
			"OnDelete": {Deployment: deployment(5, by(machinev1alpha1.OnDelete), scaledFor(6)),
				Sets: []Set{machineSet("v1", 1, 4, createsNone, countedFor(6)), machineSet("v2", 2, 2, countedFor(6))}},
			"a paused Recreate": {Deployment: deployment(5, by(machinev1alpha1.Recreate), paused, scaledFor(6)),
				Sets: []Set{machineSet("v1", 1, 6, countedFor(6)), machineSet("v2", 2, 0, countedFor(6))}},
			"an update in place": {Deployment: deployment(5, inPlaceBounds(1, 0, machinev1alpha1.OrchestrationAuto), scaledFor(6)),
				Sets: []Set{machineSet("v2", 1, 6, updated(4), countedFor(6))}},
		} {
			o.ClassFound = true
			if n := *Plan(now, o).Status.DesiredReplicas; n != 6 {
				t.Errorf("%s: the sets are scaled for %d, want 6 until their marks are counted", name, n)
			}
		}
	})
	t.Run("WhatTheyWereScaledForIsWrittenDown", func(t *testing.T) {
		sets := []Set{machineSet("v1", 1, 5), machineSet("v2", 2, 2)}
		done := Plan(now, Observed{Deployment: deployment(12, ints(2, 0), scaledFor(6)), Sets: sets, ClassFound: true})
		sets[0].Status.DecidedGeneration = 0
		awaited := Plan(now, Observed{Deployment: deployment(12, ints(2, 0), scaledFor(6)), Sets: sets, ClassFound: true})
		if *done.Status.DesiredReplicas != 12 || *awaited.Status.DesiredReplicas != 6 {
			t.Errorf("got %d and %d", *done.Status.DesiredReplicas, *awaited.Status.DesiredReplicas)
		}
		frozen := shared.Safety{Frozen: true}
		up := Plan(now, Observed{Deployment: deployment(12, ints(2, 0), scaledFor(6)), Sets: []Set{machineSet("v1", 1, 5), machineSet("v2", 2, 2)}, ClassFound: true, Safety: frozen})
		down := Plan(now, Observed{Deployment: deployment(9, ints(2, 2), scaledFor(10)), Sets: []Set{machineSet("v1", 1, 5, countedFor(9)), machineSet("v2", 2, 6, countedFor(9))}, ClassFound: true, Safety: frozen})
		if *up.Status.DesiredReplicas != 6 || *down.Status.DesiredReplicas != 9 {
			t.Errorf("in a freeze, got %d up, which waits for its end, and %d down", *up.Status.DesiredReplicas, *down.Status.DesiredReplicas)
		}
	})
}

func TestPaused(t *testing.T) {
	testStrategy(t, map[string]strategyCase{
		"NoSetIsCreated": {
			d: deployment(3, paused), sets: []Set{machineSet("v1", 1, 3)},
			decided: counts{"v1": 3},
		},
		"ARolloutIsHeldWhereItIs": {
			d: deployment(3, ints(1, 1), paused), sets: []Set{machineSet("v1", 1, 2), machineSet("v2", 2, 1)},
			decided: counts{"v1": 2, "v2": 1},
		},
		"ASurgeIsHeldToo": {
			d: deployment(3, ints(1, 0), paused), sets: []Set{machineSet("v1", 1, 3), machineSet("v2", 2, 1)},
			decided: counts{"v1": 3, "v2": 1},
		},
		"MachinesThatAreNotAvailableAreKept": {
			d: deployment(3, ints(1, 1), paused), sets: []Set{machineSet("v1", 1, 3, available(2)), machineSet("v2", 2, 1)},
			decided: counts{"v1": 3, "v2": 1},
		},
		"WhatIsTooMuchForTheBoundsGoesOnce": {
			d: deployment(2, ints(1, 0), paused), sets: []Set{machineSet("v1", 1, 4, available(3)), machineSet("v2", 2, 1)},
			decided: counts{"v1": 2, "v2": 1},
		},
		"WhatIsMissingIsMadeUp": {
			d: deployment(3, ints(1, 1), paused), sets: []Set{machineSet("v1", 1, 1), machineSet("v2", 2, 1)},
			decided: counts{"v1": 1, "v2": 2},
		},
		"TheAutoscalersAnnotationPausesToo": {
			d: deployment(3, ints(1, 1), func(d *machinev1alpha1.MachineDeployment) {
				d.Annotations = map[string]string{machinev1alpha1.AnnotationPaused: ""}
			}), sets: []Set{machineSet("v1", 1, 3)},
			decided: counts{"v1": 3},
		},
	})
}

// TestFallbackNever has two Machines of v1 in zone-a that are updated in place.
func TestFallbackNever(t *testing.T) {
	inZone := func(zone string) setOption {
		return func(s *Set) { s.Spec.Template.Spec.FailureDomain = &zone }
	}
	never := func(d *machinev1alpha1.MachineDeployment) {
		inPlaceBounds(1, 1, machinev1alpha1.OrchestrationAuto)(d)
		d.Spec.Strategy.InPlaceUpdate.Fallback = machinev1alpha1.FallbackNever
	}
	to := func(zone string) deploymentOption {
		return func(d *machinev1alpha1.MachineDeployment) { d.Spec.Template.Spec.FailureDomain = &zone }
	}
	const next = "; no Machine is replaced or updated, because spec.strategy.inPlaceUpdate.fallback is Never: set it to Replace to replace Machines, or "
	for name, tc := range map[string]struct {
		options []deploymentOption
		sets    []Set
		// valid is the message of an invalid one.
		valid string
	}{
		"another version is updated in place": {[]deploymentOption{never, to("zone-a")}, []Set{machineSet("v1", 1, 2, inZone("zone-a"))}, ""},
		"another zone is not": {[]deploymentOption{never, to("zone-b")}, []Set{machineSet("v1", 1, 2, inZone("zone-a"))},
			`spec.template.spec.failureDomain: "zone-b" cannot be reached in place from "zone-a"` + next + "revert the change"},
		"another cluster is not": {[]deploymentOption{never, to("zone-a"), func(d *machinev1alpha1.MachineDeployment) { d.Spec.Template.Spec.ClusterRef.Name = "us" }}, []Set{machineSet("v1", 1, 2, inZone("zone-a"))},
			`spec.template.spec.clusterRef: "us" cannot be reached in place from ""` + next + "revert the change"},
		"a set without Machines has none to replace": {[]deploymentOption{never, to("zone-b")}, []Set{machineSet("v1", 1, 0, inZone("zone-a"))}, ""},
		"two sets of a former rollout": {[]deploymentOption{never, to("zone-a")}, []Set{machineSet("v1", 1, 1, inZone("zone-a")), machineSet("v2", 2, 1, inZone("zone-a"))},
			"spec.strategy.type: InPlaceUpdate updates the Machines of one MachineSet, and a former rollout left them in " + nameOf("v1") + " (1), " + nameOf("v2") + " (1)" + next + "set spec.strategy.type to RollingUpdate"},
		"by default another zone rolls": {[]deploymentOption{inPlaceBounds(1, 1, machinev1alpha1.OrchestrationAuto), to("zone-b")}, []Set{machineSet("v1", 1, 2, inZone("zone-a"))}, ""},
		"with another strategy it has no effect": {[]deploymentOption{never, to("zone-b"), func(d *machinev1alpha1.MachineDeployment) { d.Spec.Strategy.Type = machinev1alpha1.RollingUpdate }},
			[]Set{machineSet("v1", 1, 2, inZone("zone-a"))}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			options := slices.Clone(tc.options)
			total := int32(0)
			for i, s := range tc.sets {
				options = append(options, recorded(versionOf(s.Name), s.Spec.Replicas))
				total += tc.sets[i].Spec.Replicas
			}
			p := Plan(now, Observed{Deployment: deployment(max(1, total), options...), Sets: tc.sets, ClassFound: true})
			got := ""
			for _, c := range p.Conditions {
				if c.Type == "Valid" && c.Status == "False" {
					got = c.Message
				}
			}
			if got != tc.valid {
				t.Errorf("got  %s\nwant %s", got, tc.valid)
			}
			if tc.valid != "" && len(p.Sets) != len(tc.sets) {
				t.Errorf("%d sets, want %d", len(p.Sets), len(tc.sets))
			}
		})
	}
}

// TestFallbackNeverNeedsNoSurge has a percentage of few Machines that rounds to 0.
func TestFallbackNeverNeedsNoSurge(t *testing.T) {
	surge, none := intstr.FromInt32(1), intstr.FromString("10%")
	s := machinev1alpha1.Strategy{Type: machinev1alpha1.InPlaceUpdate}
	s.InPlaceUpdate.MaxSurge, s.InPlaceUpdate.MaxUnavailable = &surge, &none
	for fallback, want := range map[machinev1alpha1.FallbackPolicy]int32{"": 0, machinev1alpha1.FallbackReplace: 0, machinev1alpha1.FallbackNever: 1} {
		s.InPlaceUpdate.Fallback = fallback
		if _, got, _ := Bounds(3, s); got != want {
			t.Errorf("with fallback %q %d may be unavailable, want %d", fallback, got, want)
		}
	}
}
