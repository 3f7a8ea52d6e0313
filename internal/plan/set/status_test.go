package set

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// backingOffFor makes the set one whose template has failed, and that creates no Machines for this time.
func backingOffFor(d time.Duration) setOption {
	return func(s *machinev1alpha1.MachineSet) {
		s.Status.Backoff = &machinev1alpha1.Backoff{
			Template: (&fleet{Observed: Observed{Set: s}}).templateHash(), Failures: 1,
			Until: metav1.NewTime(now.Add(d)), Reason: machinev1alpha1.FailureCreateFailed, ErrorCode: "Throttled",
		}
	}
}

func TestWhenASetIsPlannedAgain(t *testing.T) {
	expired := preservedFor(preserveNow, -time.Minute)
	over := preservedFor(preserveNow, 0)
	cases := map[string]struct {
		set      *machinev1alpha1.MachineSet
		machines []Machine
		orphans  []Machine
		safety   shared.Safety
		want     time.Duration
	}{
		"AtOnceToAdoptWhatIsRecordedByThen":       {set: set(1), orphans: []Machine{machine("x", running)}, want: shared.Soonest},
		"WhenAMachineOnTrialHangs":                {set: set(9), machines: several(1, provisioning, age(4*time.Second)), want: 6 * time.Second},
		"WhenOneHangsThatWasRefused":              {set: set(9), machines: several(1, provisioning, refusedUntil(now.Add(-20*time.Second))), want: 40 * time.Second},
		"NotForAMachineOnTrialThatHoldsNoOther":   {set: set(1), machines: several(1, provisioning, age(4*time.Second)), want: shared.InFlight},
		"NotForOneThatHangsAlready":               {set: set(9), machines: several(1, provisioning, age(90*time.Second)), want: shared.InFlight},
		"NotForOneThatIsNotOnTrial":               {set: set(9), machines: several(1, joining, age(20*time.Second)), want: shared.InFlight},
		"WhenTheBackoffEnds":                      {set: set(2, backingOffFor(10*time.Minute)), machines: several(1, running), want: 10 * time.Minute},
		"WhenAFreezeByHandIsTooLong":              {set: set(2, frozenSince(29*time.Minute+30*time.Second)), machines: several(1, running), safety: byHand, want: 30 * time.Second},
		"WhenAnErrorHasLastedLongEnough":          {set: set(1), machines: several(1, pending, failsToReconcile(50*time.Second)), want: 10 * time.Second},
		"NotForAnErrorThatIsReported":             {set: set(1), machines: several(1, pending, failsToReconcile(time.Minute)), want: shared.InFlight},
		"NotForAFreezeThatIsTooLong":              {set: set(2, frozenSince(30*time.Minute)), machines: several(1, running), safety: byHand, want: shared.InFlight},
		"NorForOneThatHasBeenForLong":             {set: set(2, frozenSince(31*time.Minute)), machines: several(1, running), safety: byHand, want: shared.InFlight},
		"NorForAFreezeThatHoldsNothing":           {set: set(1, frozenSince(29*time.Minute+30*time.Second)), machines: several(1, running), safety: byHand, want: shared.AtRest},
		"NotForARunningMachineThatIsPreserved":    {set: set(1), machines: several(1, running, preservedFor(preserveNow, 10*time.Minute)), want: shared.AtRest},
		"NotForAFailedMachineNoLongerPreserved":   {set: set(1), machines: several(1, failed, worked, expired), safety: frozen, want: shared.InFlight},
		"NotForOneWhosePreservationEndsNow":       {set: set(1), machines: several(1, failed, worked, over), safety: frozen, want: shared.InFlight},
		"WhenAPreservationEnds":                   {set: set(1), machines: several(1, failed, preservedFor(preserveNow, 10*time.Minute)), want: 10 * time.Minute},
		"WhenThatOfOneThatWasSetAsideDoes":        {set: set(1, setAside("a")), machines: []Machine{machine("a", failed, marked, preservedFor(preserveNow, 10*time.Minute)), machine("b", running)}, want: 10 * time.Minute},
		"SoonWhileAMachineTerminatesAndOneIsToGo": {set: set(1, dropping("b")), machines: []Machine{machine("a", running), machine("b", running), machine("c", running, terminating)}, want: shared.InFlight},
		"SoonWhileAMachineIsUnknown":              {set: set(1), machines: several(1, unknown), want: shared.InFlight},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Plan(now, Observed{Set: tc.set, Machines: tc.machines, Orphans: tc.orphans, Safety: tc.safety})
			if d.CallAgain != tc.want {
				t.Errorf("after %s, want %s; status %+v", d.CallAgain, tc.want, d.Status)
			}
		})
	}
}

func TestASetIsReadyWithAllMachinesReadyAndUpdated(t *testing.T) {
	for name, tc := range map[string]struct {
		set      *machinev1alpha1.MachineSet
		machines []Machine
		want     bool
	}{
		"AllAre":                              {set(1), several(1, running), true},
		"OneIsMissing":                        {set(2), several(1, running), false},
		"OneIsNotReady":                       {set(1), several(1, joining), false},
		"OneOfAnEarlierTemplateIsAsGood":      {set(1), several(1, running, outdated), true},
		"UnlessMachinesAreUpdatedInPlace":     {set(1, inPlace(0)), several(1, running, old), false},
		"AndOneOfTheTemplateIsGoodInAnyCase":  {set(1, inPlace(0)), several(1, running, withNode, updatedTo("new")), true},
		"OneThatIsNotAvailableYetIsGoodToo":   {set(1, minReady(3600)), several(1, running), true},
		"OneThatIsReadyWhileOthersAreDeleted": {set(1), append(several(1, running), machine("x", running, terminating)), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Plan(now, Observed{Set: tc.set, Machines: tc.machines, Safety: frozen}).Ready; got != tc.want {
				t.Errorf("ready %t, want %t", got, tc.want)
			}
		})
	}
}

func TestAStatusCountsMachinesByTheTemplate(t *testing.T) {
	type want struct{ Replicas, Updated, Available, UpdatedAvailable, Terminating int32 }
	cases := map[string]struct {
		set      *machinev1alpha1.MachineSet
		machines []Machine
		want     want
	}{
		"OutdatedMachinesThatAreAvailableAreNoUpdatedOnes": {
			set(2), []Machine{machine("a", running, outdated), machine("b", joining)}, want{Replicas: 2, Updated: 1, Available: 1},
		},
		"UpdatedMachinesThatAreAvailableAreBoth": {
			set(2), []Machine{machine("a", running), machine("b", running, outdated)}, want{Replicas: 2, Updated: 1, Available: 2, UpdatedAvailable: 1},
		},
		"MachinesThatAreToBeDeletedAreTerminatingWithThoseThatAre": {
			set(1, dropping("b")), []Machine{machine("a", running), machine("b", running), machine("c", running, terminating)},
			want{Replicas: 1, Updated: 1, Available: 1, UpdatedAvailable: 1, Terminating: 2},
		},
		"SoAreThoseWhoseDeletionIsDecidedNow": {
			set(0, dropping("b")), []Machine{machine("a", running), machine("b", running), machine("c", running, terminating)}, want{Terminating: 3},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := Plan(now, Observed{Set: tc.set, Machines: tc.machines, Safety: frozen}).Status
			got := want{s.Replicas, s.UpdatedReplicas, s.AvailableReplicas, s.UpdatedAvailableReplicas, s.TerminatingReplicas}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
