package deployment

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// progressed sets the time of the last progress, and the counts of that time.
func progressed(ago time.Duration, revision int64, updated, total, ready int32) deploymentOption {
	return func(d *machinev1alpha1.MachineDeployment) {
		t := metav1.NewTime(now.Add(-ago))
		d.Status.LastProgressTime, d.Status.Revision = &t, revision
		d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.ReadyReplicas, d.Status.AvailableReplicas = total, updated, ready, ready
		outdated := total - updated
		d.Status.Progress = &machinev1alpha1.RolloutProgress{
			UpdatedReplicas: updated, ReadyReplicas: max(0, ready-outdated), AvailableReplicas: max(0, ready-outdated),
			OutdatedReplicas: outdated, OutdatedTotal: outdated,
		}
	}
}

// counted are the numbers of the last status, after the rollout had come further.
func counted(updated, total, ready int32) deploymentOption {
	return func(d *machinev1alpha1.MachineDeployment) {
		d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.ReadyReplicas, d.Status.AvailableReplicas = total, updated, ready, ready
	}
}

// stillDrains means that outdated Machines were being deleted at the last progress.
func stillDrains(n int32) deploymentOption {
	return func(d *machinev1alpha1.MachineDeployment) { d.Status.Progress.OutdatedTotal += n }
}

// frozenSince is the time for which the rollout was frozen at the last status.
func frozenSince(d time.Duration) deploymentOption {
	return func(md *machinev1alpha1.MachineDeployment) { md.Status.FrozenSince = &metav1.Time{Time: now.Add(-d)} }
}

// onlyReady Machines are not Ready for minReadySeconds.
func onlyReady(n int32) setOption { return func(s *Set) { s.Status.ReadyReplicas = n } }

func deadline(seconds int32) deploymentOption {
	return func(d *machinev1alpha1.MachineDeployment) { d.Spec.ProgressDeadlineSeconds = seconds }
}

func was(typ, reason string) deploymentOption {
	return func(d *machinev1alpha1.MachineDeployment) {
		d.Status.Conditions = append(d.Status.Conditions, metav1.Condition{Type: typ, Status: "Unknown", Reason: reason})
	}
}

func failing(s *Set) {
	s.Status.Conditions = []metav1.Condition{{Type: "ReplicaFailure", Status: "True", Reason: "QuotaExceeded", Message: "no more than 3"}}
}

func refusing(code string) setOption {
	return func(s *Set) {
		s.Status.Conditions = []metav1.Condition{{Type: "ReplicaFailure", Status: "True", Reason: code, Message: "no"}}
	}
}

// invalid makes a set one whose Machines get no VM.
func invalid(reason string) setOption {
	return func(s *Set) {
		s.Status.Conditions = []metav1.Condition{
			{Type: "Valid", Status: "False", Reason: reason, Message: "no"}, {Type: "ReplicaFailure", Status: "True", Reason: reason, Message: "no"},
		}
	}
}

// exhaustedIn makes a failure domain exhausted for the given time, or while Machines wait there.
func exhaustedIn(domain string, until time.Duration) setOption {
	return func(s *Set) {
		s.Status.Exhausted = &machinev1alpha1.Exhaustion{FailureDomain: domain, Code: "QuotaExceeded", Since: metav1.NewTime(now)}
		if until != 0 {
			s.Status.Exhausted.Until = &metav1.Time{Time: now.Add(until)}
		}
		s.Status.Conditions = []metav1.Condition{{Type: "CapacityExhausted", Status: "True", Reason: "QuotaExceeded", Message: "no more than 3"}}
	}
}

func TestExhaustedFailureDomainsAreThoseOfTheSets(t *testing.T) {
	d := Plan(now, Observed{ClassFound: true, Deployment: deployment(3), Sets: []Set{
		machineSet("v1", 1, 3, exhaustedIn("b", time.Minute)),
		machineSet("v2", 2, 1, exhaustedIn("b", 0)),
		machineSet("v3", 3, 1, exhaustedIn("a", 0)),
		machineSet("v4", 4, 1),
	}})
	var got []string
	for _, e := range d.Status.Exhausted {
		until := "while waited for"
		if e.Until != nil {
			until = e.Until.Sub(now).String()
		}
		got = append(got, e.FailureDomain+" "+until)
	}
	if diff := cmp.Diff([]string{"a while waited for", "b while waited for"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestConditions(t *testing.T) {
	middle := func(options ...setOption) []Set {
		return []Set{machineSet("v1", 1, 3), machineSet("v2", 2, 1, options...)}
	}
	type want map[string]string
	cases := map[string]struct {
		d    *machinev1alpha1.MachineDeployment
		sets []Set
		// problem with the class.
		problem *shared.Problem
		want    want
		event   string
		again   time.Duration
	}{
		"ARolloutIsReconciling": {
			d: deployment(3), sets: middle(available(0)),
			want: want{"Progressing": "True MachineSetUpdated", "Reconciling": "True MachineSetUpdated", "Stalled": "False NotStalled", "ReplicaFailure": "False NoFailure"},
		},
		"ACompleteOneIsNot": {
			d: deployment(3, recorded("v2", 3)), sets: []Set{machineSet("v2", 1, 3)},
			want:  want{"Progressing": "True NewMachineSetAvailable", "Reconciling": "False NewMachineSetAvailable", "Stalled": "False NotStalled"},
			event: "RolloutComplete",
		},
		"ItIsNotBeforeAllMachinesAreReadyForMinReadySeconds": {
			d: deployment(3, recorded("v2", 3)), sets: []Set{machineSet("v2", 1, 3, func(s *Set) { s.Status.AvailableReplicas = 2 })},
			want: want{"Progressing": "True MachineSetUpdated", "Reconciling": "True MachineSetUpdated"},
		},
		"ScalingIsReconcilingToo": {
			d: deployment(5, completed(1), recorded("v2", 5)), sets: []Set{machineSet("v2", 1, 5, available(3))},
			want: want{"Progressing": "True NewMachineSetAvailable", "Reconciling": "True Scaling"},
		},
		"WithoutProgressForTooLongItIsStalled": {
			d: deployment(3, deadline(600), progressed(601*time.Second, 2, 1, 4, 3), recorded("v1", 3), recorded("v2", 1)), sets: middle(available(0)),
			want:  want{"Progressing": "False ProgressDeadlineExceeded", "Reconciling": "False ProgressDeadlineExceeded", "Stalled": "True ProgressDeadlineExceeded"},
			event: "ProgressDeadlineExceeded",
		},
		"TheDeadlineIsReportedOnce": {
			d: deployment(3, deadline(600), progressed(700*time.Second, 2, 1, 4, 3), recorded("v1", 3), recorded("v2", 1), was("Progressing", "ProgressDeadlineExceeded")), sets: middle(available(0)),
			want: want{"Progressing": "False ProgressDeadlineExceeded"}, again: shared.InFlight,
		},
		"BeforeTheDeadlineItIsNot": {
			d: deployment(3, deadline(600), progressed(599*time.Second, 2, 1, 4, 3), recorded("v1", 3), recorded("v2", 1)), sets: middle(available(0)),
			want: want{"Progressing": "True MachineSetUpdated"}, again: time.Second,
		},
		"AtTheDeadlineItIs": {
			d: deployment(3, deadline(600), progressed(600*time.Second, 2, 1, 4, 3), recorded("v1", 3), recorded("v2", 1)), sets: middle(available(0)),
			want: want{"Progressing": "False ProgressDeadlineExceeded"}, event: "ProgressDeadlineExceeded", again: shared.InFlight,
		},
		"APauseHasNoDeadline": {
			d: deployment(3, deadline(600), paused, progressed(599*time.Second, 2, 1, 4, 3), recorded("v1", 3), recorded("v2", 1), was("Progressing", "MachineDeploymentPaused")), sets: middle(available(0)),
			want: want{"Progressing": "Unknown MachineDeploymentPaused"}, again: shared.InFlight,
		},
		"BadInputHasNone": {
			d: deployment(3, deadline(600), progressed(599*time.Second, 2, 1, 4, 3), recorded("v1", 3), recorded("v2", 1)), sets: middle(available(0)),
			problem: &shared.Problem{Reason: "ForProviderInvalid", Message: "size: must be small"},
			want:    want{"Progressing": "False ForProviderInvalid"}, event: "ForProviderInvalid", again: shared.InFlight,
		},
		"ACompleteRolloutHasNone": {
			d: deployment(3, deadline(600), completed(1), progressed(599*time.Second, 1, 3, 3, 3), recorded("v2", 3)), sets: []Set{machineSet("v2", 1, 3)},
			want: want{"Progressing": "True NewMachineSetAvailable"}, again: shared.AtRest,
		},
		"ProgressEndsIt": {
			d: deployment(3, deadline(600), progressed(700*time.Second, 2, 1, 4, 3), was("Progressing", "ProgressDeadlineExceeded")), sets: middle(),
			want: want{"Progressing": "True MachineSetUpdated", "Stalled": "False NotStalled"},
		},
		"AMachineThatIsCreatedAgainIsNoProgress": {
			d: deployment(3, deadline(600), progressed(700*time.Second, 2, 1, 4, 3), counted(0, 3, 3), was("Progressing", "ProgressDeadlineExceeded")), sets: middle(available(0)),
			want: want{"Progressing": "False ProgressDeadlineExceeded", "Stalled": "True ProgressDeadlineExceeded"},
		},
		"AFurtherMachineThatIsCreatedIsNoProgress": {
			d: deployment(3, deadline(600), progressed(700*time.Second, 2, 0, 3, 3)), sets: middle(available(0)),
			want: want{"Progressing": "False ProgressDeadlineExceeded"}, event: "ProgressDeadlineExceeded",
		},
		"AMachineThatIsReadyForTheFirstTimeIsProgress": {
			d: deployment(3, deadline(600), progressed(599*time.Second, 2, 1, 4, 3)), sets: middle(available(0), onlyReady(1)),
			want: want{"Progressing": "True MachineSetUpdated"}, again: shared.InFlight,
		},
		"ItIsNotAfterTheDeadline": {
			d: deployment(3, deadline(600), progressed(700*time.Second, 2, 1, 4, 3), was("Progressing", "ProgressDeadlineExceeded")), sets: middle(available(0), onlyReady(1)),
			want: want{"Progressing": "False ProgressDeadlineExceeded"},
		},
		"AMachineThatIsReadyAgainIsNoProgress": {
			d: deployment(3, deadline(600), progressed(700*time.Second, 2, 1, 4, 4), counted(1, 4, 3), was("Progressing", "ProgressDeadlineExceeded")), sets: middle(),
			want: want{"Progressing": "False ProgressDeadlineExceeded"},
		},
		"AnOutdatedMachineThatIsReadyAgainIsNoProgress": {
			d: deployment(3, deadline(600), progressed(700*time.Second, 2, 1, 4, 3), counted(1, 4, 1), was("Progressing", "ProgressDeadlineExceeded")), sets: middle(available(0)),
			want: want{"Progressing": "False ProgressDeadlineExceeded"},
		},
		"AnOutdatedMachineLessIsProgress": {
			d: deployment(3, deadline(600), progressed(700*time.Second, 2, 1, 4, 3)), sets: []Set{machineSet("v1", 1, 2), machineSet("v2", 2, 1, available(0))},
			want: want{"Progressing": "True MachineSetUpdated"},
		},
		"AnOutdatedMachineThatItsSetReplacesIsNone": {
			d: deployment(3, deadline(600), progressed(700*time.Second, 2, 1, 4, 3), was("Progressing", "ProgressDeadlineExceeded")), sets: []Set{machineSet("v1", 1, 3, has(2)), machineSet("v2", 2, 1, available(0))},
			want: want{"Progressing": "False ProgressDeadlineExceeded"},
		},
		"TheEndOfADrainIsProgress": {
			d: deployment(3, deadline(600), progressed(700*time.Second, 2, 1, 4, 3), stillDrains(2)), sets: []Set{machineSet("v1", 1, 3, terminating(1)), machineSet("v2", 2, 1, available(0))},
			want: want{"Progressing": "True MachineSetUpdated"},
		},
		"ADrainThatLastsIsNone": {
			d: deployment(3, deadline(600), progressed(700*time.Second, 2, 1, 4, 3), stillDrains(1), was("Progressing", "ProgressDeadlineExceeded")), sets: []Set{machineSet("v1", 1, 3, terminating(1)), machineSet("v2", 2, 1, available(0))},
			want: want{"Progressing": "False ProgressDeadlineExceeded"},
		},
		"AnUpdateInPlaceIsProgress": {
			d:    deployment(3, deadline(600), inPlaceBounds(0, 1, machinev1alpha1.OrchestrationAuto), progressed(700*time.Second, 2, 1, 3, 3)),
			sets: []Set{machineSet("v2", 2, 3, updated(2))},
			want: want{"Progressing": "True MachineSetUpdated"},
		},
		"AMachineThatIsNotUpdatedIsNone": {
			d: deployment(3, deadline(600), inPlaceBounds(0, 1, machinev1alpha1.OrchestrationAuto), progressed(700*time.Second, 2, 1, 3, 3),
				was("Progressing", "ProgressDeadlineExceeded")),
			sets: []Set{machineSet("v2", 2, 3, updated(1))},
			want: want{"Progressing": "False ProgressDeadlineExceeded"},
		},
		"AnUpdatedMachineThatIsAvailableIs": {
			d: deployment(3, deadline(600), inPlaceBounds(0, 1, machinev1alpha1.OrchestrationAuto), progressed(700*time.Second, 2, 1, 3, 2),
				was("Progressing", "ProgressDeadlineExceeded")),
			sets: []Set{machineSet("v2", 2, 3, updated(1))},
			want: want{"Progressing": "True MachineSetUpdated"},
		},
		"AChangeOfReplicasIsNoProgress": {
			d: deployment(6, deadline(600), progressed(700*time.Second, 2, 1, 4, 3), was("Progressing", "ProgressDeadlineExceeded")), sets: []Set{machineSet("v1", 1, 3, has(3)), machineSet("v2", 2, 1, available(0))},
			want: want{"Progressing": "False ProgressDeadlineExceeded"},
		},
		"TheTimeOfAFreezeDoesNotCount": {
			d: deployment(3, deadline(600), progressed(700*time.Second, 2, 1, 4, 3), was("Progressing", "Frozen")), sets: middle(available(0)),
			want: want{"Progressing": "True MachineSetUpdated"},
		},
		"NorDoesThatOfAFreezeWithATime": {
			d: deployment(3, deadline(600), progressed(700*time.Second, 2, 1, 4, 3), was("Progressing", "Frozen"), frozenSince(101*time.Second)), sets: middle(available(0)),
			want: want{"Progressing": "True MachineSetUpdated"}, again: time.Second,
		},
		"TheTimeBeforeAFreezeDoes": {
			d: deployment(3, deadline(600), progressed(700*time.Second, 2, 1, 4, 3), was("Progressing", "Frozen"), frozenSince(100*time.Second)), sets: middle(available(0)),
			want: want{"Progressing": "False ProgressDeadlineExceeded"}, event: "ProgressDeadlineExceeded",
		},
		"NorDoesThatOfBadInput": {
			d: deployment(3, deadline(600), progressed(700*time.Second, 2, 1, 4, 3), was("Progressing", "ClassNotFound")), sets: middle(available(0)),
			want: want{"Progressing": "True MachineSetUpdated"},
		},
		"ANewTemplateStartsAnew": {
			d: deployment(3, deadline(600), progressed(700*time.Second, 1, 1, 4, 3)), sets: middle(available(0)),
			want: want{"Progressing": "True MachineSetUpdated"},
		},
		"AnAnnotationThatMeansNothing": {
			d: deployment(3, completed(1), recorded("v2", 3), annotated("crossplane.io/paused", "True")), sets: []Set{machineSet("v2", 1, 3)},
			want: want{"AnnotationsValid": "False AnnotationInvalid", "Stalled": "False NotStalled"},
		},
		"NoAnnotationOfItIsWrong": {
			d: deployment(3, completed(1), recorded("v2", 3)), sets: []Set{machineSet("v2", 1, 3)},
			want: want{"AnnotationsValid": ""},
		},
		"PausedIsNeitherReconcilingNorStalled": {
			d: deployment(3, deadline(600), paused, progressed(700*time.Second, 2, 1, 4, 3)), sets: middle(available(0)),
			want:  want{"Progressing": "Unknown MachineDeploymentPaused", "Reconciling": "False MachineDeploymentPaused", "Stalled": "False NotStalled"},
			event: "MachineDeploymentPaused",
		},
		"ThePauseDoesNotCount": {
			d: deployment(3, deadline(600), progressed(700*time.Second, 2, 1, 4, 3), was("Progressing", "MachineDeploymentPaused")), sets: middle(available(0)),
			want:  want{"Progressing": "True MachineSetUpdated"},
			event: "MachineDeploymentResumed",
		},
		"AFailureOfASetIsTheDeployments": {
			d: deployment(3), sets: middle(available(0), failing),
			want: want{"ReplicaFailure": "True QuotaExceeded"},
		},
		"AFailureOfTheOldestSetToo": {
			d: deployment(3), sets: []Set{machineSet("v1", 1, 3, failing), machineSet("v2", 2, 1, available(0))},
			want: want{"ReplicaFailure": "True QuotaExceeded"},
		},
		"AFailureOfASetThatIsAboutToBeDeletedIsNot": {
			d:    deployment(3),
			sets: []Set{machineSet("v1", 1, 1, available(0), starting(1), refusing("VersionSkew")), machineSet("v2", 2, 3, available(2), starting(1))},
			want: want{"ReplicaFailure": "False NoFailure", "Stalled": "False NotStalled", "Reconciling": "True MachineSetUpdated"},
		},
		"AFailureOfASupersededTemplateStallsNothing": {
			d: deployment(3), sets: []Set{machineSet("v1", 1, 3, refusing("VersionSkew")), machineSet("v2", 2, 1, available(0))},
			want: want{"ReplicaFailure": "True VersionSkew", "Stalled": "False NotStalled"},
		},
		"InAPauseItDoes": {
			d: deployment(3, paused, was("Progressing", "MachineDeploymentPaused")), sets: []Set{machineSet("v1", 1, 3, refusing("VersionSkew")), machineSet("v2", 2, 1, available(0))},
			want: want{"ReplicaFailure": "True VersionSkew", "Stalled": "True VersionSkew"},
		},
		"OfTwoThatOfTheNewest": {
			d: deployment(3), sets: []Set{machineSet("v1", 1, 3, failing), machineSet("v2", 2, 1, available(0), refusing("Throttled"))},
			want: want{"ReplicaFailure": "True Throttled"},
		},
		"ARolloutThatReplacesMachinesNeedsNoBudgetForIt": {
			d: deployment(3, remediates(0, 5)), sets: []Set{machineSet("v1", 1, 3, sick(1, 1)), machineSet("v2", 2, 1, available(0))},
			want: want{"RemediationAllowed": "False NoBudget", "Stalled": "False NotStalled"},
		},
		"WhatNeedsSomebodyIsStalled": {
			d: deployment(3), sets: middle(available(0), refusing("PermissionDenied")),
			want: want{"ReplicaFailure": "True PermissionDenied", "Stalled": "True PermissionDenied"},
		},
		"WhatAUserHasToFixIsStalled": {
			d: deployment(3), sets: middle(available(0), refusing("VersionSkew")),
			want: want{"ReplicaFailure": "True VersionSkew", "Stalled": "True VersionSkew"},
		},
		"ASecretWithUserDataThatIsMissingIsStalled": {
			d: deployment(3), sets: middle(available(0), refusing("UserDataNotFound")),
			want: want{"ReplicaFailure": "True UserDataNotFound", "Stalled": "True UserDataNotFound"},
		},
		"AnInvalidMachineOfTheNewSetIsTheDeployments": {
			d: deployment(3), sets: middle(available(0), invalid("UserDataNotFound")),
			want: want{"Valid": "False UserDataNotFound", "Stalled": "True UserDataNotFound"}, event: "UserDataNotFound",
		},
		"AnInvalidMachineOfAnOldSetIsNot": {
			d: deployment(3), sets: []Set{machineSet("v1", 1, 3, invalid("UserDataNotFound")), machineSet("v2", 2, 1, available(0))},
			want: want{"Valid": "True Valid", "Stalled": "False NotStalled"},
		},
		"AFunctionThatIsNotInstalledIsStalled": {
			d: deployment(3), sets: middle(available(0), refusing("ReconcileError")),
			want: want{"Valid": "True Valid", "ReplicaFailure": "True ReconcileError", "Stalled": "True ReconcileError"},
		},
		"ASecretWithUserDataThatIsNotAllowedIsStalled": {
			d: deployment(3), sets: middle(available(0), refusing("UserDataNotAllowed")),
			want: want{"ReplicaFailure": "True UserDataNotAllowed", "Stalled": "True UserDataNotAllowed"},
		},
		"WhatPassesIsNot": {
			d: deployment(3), sets: middle(available(0), refusing("Throttled")),
			want: want{"ReplicaFailure": "True Throttled", "Stalled": "False NotStalled"},
		},
		"AnExhaustedFailureDomainIsReported": {
			d: deployment(3), sets: middle(exhaustedIn("b", 0)),
			want: want{"CapacityExhausted": "True QuotaExceeded"},
		},
		"BeforeTheConditionOfTheSetIsThereToo": {
			d: deployment(3), sets: middle(exhaustedIn("b", 0), func(s *Set) { s.Status.Conditions = nil }),
			want: want{"CapacityExhausted": "True QuotaExceeded"},
		},
		"ButNotByTheConditionAlone": {
			d: deployment(3), sets: middle(exhaustedIn("b", 0), func(s *Set) { s.Status.Exhausted = nil }),
			want: want{"CapacityExhausted": ""},
		},
		"AndThatItIsNoLonger": {
			d: deployment(3, was("CapacityExhausted", "QuotaExceeded")), sets: middle(),
			want: want{"CapacityExhausted": "False RoomAvailable"},
		},
		"AsManyAreAvailableAsMustBe": {
			d: deployment(3, ints(1, 1), completed(1), recorded("v2", 3)), sets: []Set{machineSet("v2", 1, 3, available(2))},
			want: want{"Available": "True MinimumReplicasAvailable"},
		},
		"OneFewerIsTooFew": {
			d: deployment(3, ints(1, 1), completed(1), recorded("v2", 3)), sets: []Set{machineSet("v2", 1, 3, available(1))},
			want: want{"Available": "False MinimumReplicasUnavailable"},
		},
		"APauseIsReportedOnce": {
			d: deployment(3, paused, was("Progressing", "MachineDeploymentPaused")), sets: middle(available(0)),
			want: want{"Progressing": "Unknown MachineDeploymentPaused"},
		},
		"APauseThatFollowsARolloutIsReported": {
			d: deployment(3, paused, was("Progressing", "MachineSetUpdated")), sets: middle(available(0)),
			want:  want{"Progressing": "Unknown MachineDeploymentPaused"},
			event: "MachineDeploymentPaused",
		},
		"TooManyUnhealthyMachinesAreReported": {
			d: deployment(3, completed(1), recorded("v2", 3), remediates(1, 1)), sets: []Set{machineSet("v2", 1, 3, available(1), sick(2, 2))},
			want:  want{"RemediationAllowed": "False TooManyUnhealthy"},
			event: "TooManyUnhealthy",
		},
		"APreservedMachineIsNotMissed": {
			d: deployment(3, completed(1), recorded("v2", 3)), sets: []Set{machineSet("v2", 1, 3, available(2), func(s *Set) { s.Status.PreservedFailedReplicas = 1 })},
			want: want{"Available": "True MinimumReplicasAvailable"},
		},
		"AClassThatCannotBeUsedIsBadInput": {
			d: deployment(3, rolledOut("v1"), completed(1), recorded("v1", 3)), sets: []Set{machineSet("v1", 1, 3)},
			problem: &shared.Problem{Reason: "ForProviderInvalid", Message: "size: must be small"},
			want:    want{"Valid": "False ForProviderInvalid", "Stalled": "True ForProviderInvalid"},
			event:   "ForProviderInvalid",
		},
		"BadInputIsStalled": {
			d: deployment(3, backTo(9), rolledOut("v1"), completed(1), recorded("v1", 3)), sets: []Set{machineSet("v1", 1, 3)},
			want:  want{"Valid": "False RevisionNotFound", "Progressing": "True NewMachineSetAvailable", "Stalled": "True RevisionNotFound"},
			event: "RevisionNotFound",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := Plan(now, Observed{Deployment: tc.d, Sets: tc.sets, ClassFound: true, ClassProblem: tc.problem})
			if progressing := condition(p, "Progressing"); p.Ready && progressing != "True NewMachineSetAvailable" {
				t.Errorf("the deployment is Ready, and Progressing is %s", progressing)
			}
			got := want{}
			for typ := range tc.want {
				got[typ] = condition(p, typ)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			var reported string
			for _, e := range p.Events {
				if e.Reason != "ScalingMachineSet" && e.Reason != "NewMachineSet" {
					reported = e.Reason
				}
			}
			if reported != tc.event {
				t.Errorf("reported %q, want %q", reported, tc.event)
			}
			if tc.again > 0 && p.CallAgain != tc.again {
				t.Errorf("called again after %s, want %s", p.CallAgain, tc.again)
			}
		})
	}
}

// TestMessagesSayHowFarARolloutIs in numbers, and of which set.
func TestMessagesSayHowFarARolloutIs(t *testing.T) {
	current := nameOf("v2")
	middle := []Set{machineSet("v1", 1, 3), machineSet("v2", 2, 1, available(0), starting(1))}
	for name, tc := range map[string]struct {
		d    *machinev1alpha1.MachineDeployment
		sets []Set
		want map[string]string
	}{
		"ItIsOver": {
			deployment(3, completed(1), recorded("v2", 3)), []Set{machineSet("v2", 1, 3)},
			map[string]string{"Progressing": "All Machines are of revision 1, MachineSet " + current, "Available": "3 of 3 Machines are available, at least 3 must be", "Reconciling": ""},
		},
		"ItBegins": {
			deployment(3), []Set{machineSet("v1", 1, 3)},
			map[string]string{
				"Progressing": "Created MachineSet " + current + " for revision 2",
				"Reconciling": "Created MachineSet " + current + " for revision 2: 0 of 3 Machines are updated; 3 of 3 Machines are available",
			},
		},
		"ItGoesOn": {
			deployment(3), middle,
			map[string]string{
				"Progressing": "Rolling out revision 2, MachineSet " + current,
				"Reconciling": "Rolling out revision 2, MachineSet " + current + ": 1 of 3 Machines are updated; 3 of 3 Machines are available, 1 starting",
			},
		},
		"ItMakesNoProgress": {
			deployment(3, deadline(600), progressed(601*time.Second, 2, 1, 4, 3), recorded("v1", 3), recorded("v2", 1)), middle,
			map[string]string{
				"Progressing": "The rollout of revision 2, MachineSet " + current + ", made no progress for 600 seconds; it goes on all the same",
				"Stalled": "The rollout of revision 2, MachineSet " + current + ", made no progress for 600 seconds; it goes on all the same; " +
					"3 of 3 Machines are available; 1 starting, none failed so far; read the conditions of the starting Machines",
			},
		},
		"TheCloudIsFull": {
			deployment(3), []Set{machineSet("v1", 1, 3), machineSet("v2", 2, 1, failing, exhaustedIn("b", 0))},
			map[string]string{"CapacityExhausted": "MachineSet " + current + ": no more than 3"},
		},
		"TheCloudRefusesAMachine": {
			deployment(3), []Set{machineSet("v1", 1, 3), machineSet("v2", 2, 1, failing)},
			map[string]string{"ReplicaFailure": "MachineSet " + current + ": no more than 3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			for _, c := range Plan(now, Observed{Deployment: tc.d, Sets: tc.sets, ClassFound: true}).Conditions {
				if _, ok := tc.want[c.Type]; ok {
					got[c.Type] = c.Message
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestWhenADeploymentIsPlannedAgain(t *testing.T) {
	byHand := shared.Safety{Frozen: true, Reason: "ManualFreeze"}
	frozen := func(d time.Duration) *machinev1alpha1.MachineDeployment {
		return deployment(5, completed(1), recorded("v2", 5), deadline(600), frozenFor(d))
	}
	missing := []Set{machineSet("v2", 1, 5, available(4))}
	for name, tc := range map[string]struct {
		d      *machinev1alpha1.MachineDeployment
		sets   []Set
		safety shared.Safety
		want   time.Duration
	}{
		"AtOnceToSeeASetThatIsCreatedEmpty":  {d: deployment(0, remediate("0", "100%")), want: shared.Soonest},
		"WhenAFreezeByHandIsTooLong":         {d: frozen(595 * time.Second), sets: missing, safety: byHand, want: 5 * time.Second},
		"NotForAFreezeThatIsTooLong":         {d: frozen(600 * time.Second), sets: missing, safety: byHand, want: shared.InFlight},
		"NorForOneThatHasBeenForLong":        {d: frozen(time.Hour), sets: missing, safety: byHand, want: shared.InFlight},
		"NorForOneThatHoldsNothing":          {d: frozen(595 * time.Second), sets: []Set{machineSet("v2", 1, 5)}, safety: byHand, want: shared.AtRest},
		"SoonWhileASetHasNotActedOnItsShare": {d: deployment(5, completed(1), recorded("v2", 5)), sets: []Set{machineSet("v2", 1, 5, unsettled)}, want: shared.InFlight},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Plan(now, Observed{Deployment: tc.d, Sets: tc.sets, ClassFound: true, Safety: tc.safety}).CallAgain; got != tc.want {
				t.Errorf("after %s, want %s", got, tc.want)
			}
		})
	}
}

func TestALostMachineIsNoProgress(t *testing.T) {
	d := deployment(3, progressed(time.Minute, 2, 1, 4, 3))
	p := Plan(now, Observed{Deployment: d, Sets: []Set{machineSet("v1", 1, 3), machineSet("v2", 2, 1, has(0), available(0))}, ClassFound: true})
	if got := p.Status.LastProgressTime; !got.Time.Equal(now.Add(-time.Minute)) {
		t.Errorf("a Machine of the new template is gone, and the time of progress is %s", got)
	}
}

func TestTheTimeOfProgressIsWrittenWithIt(t *testing.T) {
	sets := []Set{machineSet("v1", 1, 3), machineSet("v2", 2, 1)}
	still := Plan(now, Observed{Deployment: deployment(3, progressed(time.Minute, 2, 1, 4, 4)), Sets: sets, ClassFound: true})
	if got := still.Status.LastProgressTime; !got.Time.Equal(now.Add(-time.Minute)) {
		t.Errorf("without progress it is %s", got)
	}
	further := Plan(now, Observed{Deployment: deployment(3, progressed(time.Minute, 2, 1, 4, 3)), Sets: sets, ClassFound: true})
	if got := further.Status.LastProgressTime; !got.Time.Equal(now) {
		t.Errorf("with progress it is %s", got)
	}
}

func TestATimeThatIsAskedForWakes(t *testing.T) {
	d := deployment(3, completed(1), recorded("v2", 3), rollAfter(now.Add(10*time.Minute)))
	p := Plan(now, Observed{Deployment: d, Sets: []Set{machineSet("v2", 1, 3)}, ClassFound: true})
	if p.CallAgain != 10*time.Minute {
		t.Errorf("called again after %s", p.CallAgain)
	}
	d.Spec.Rollout.After.Time = now.Add(48 * time.Hour)
	p = Plan(now, Observed{Deployment: d, Sets: []Set{machineSet("v2", 1, 3)}, ClassFound: true})
	if p.CallAgain != shared.AtRest {
		t.Errorf("called again after %s", p.CallAgain)
	}
}

func TestAProblemThatIsNotOfTheClassSendsNobodyToTheClass(t *testing.T) {
	for reason, want := range map[string]string{
		machinev1alpha1.ReasonForProviderInvalid:   "forProvider.a: no; the Machines that exist stay as they are until spec.template.spec.classRef.name names a class that can be used",
		machinev1alpha1.ReasonBindingInvalid:       "forProvider.a: no; the Machines that exist stay as they are until that is corrected",
		machinev1alpha1.ReasonProviderNotInstalled: "forProvider.a: no; the Machines that exist stay as they are until that is corrected",
		machinev1alpha1.ReasonCompositionNotFound:  "forProvider.a: no; the Machines that exist stay as they are until that is corrected",
	} {
		if got := classUnusable(&shared.Problem{Reason: reason, Message: "forProvider.a: no"}); got.Reason != reason || got.Message != want {
			t.Errorf("%s: %+v, want %q", reason, got, want)
		}
	}
}

func annotated(key, value string) deploymentOption {
	return func(d *machinev1alpha1.MachineDeployment) { d.Annotations = map[string]string{key: value} }
}

func TestAPauseNamesWhatEndsIt(t *testing.T) {
	for name, tc := range map[string]struct {
		pause deploymentOption
		want  string
	}{
		"OfTheSpec":       {paused, "spec.paused is true: no Machine is replaced or updated until it is false"},
		"OfTheAnnotation": {annotated("cluster.x-k8s.io/paused", "false"), "the annotation cluster.x-k8s.io/paused is set: no Machine is replaced or updated until it is removed, whatever its value is"},
	} {
		t.Run(name, func(t *testing.T) {
			d := Plan(now, Observed{Deployment: deployment(3, tc.pause), Sets: []Set{machineSet("v1", 1, 3), machineSet("v2", 2, 1)}, ClassFound: true})
			for _, c := range d.Conditions {
				if c.Type == "Progressing" && c.Message != tc.want {
					t.Errorf("%q, want %q", c.Message, tc.want)
				}
			}
		})
	}
}
