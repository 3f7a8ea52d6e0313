package deployment

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// ready is Crossplane's condition Ready, written for a generation.
func ready(status metav1.ConditionStatus, generation int64) deploymentOption {
	return func(d *machinev1alpha1.MachineDeployment) {
		meta.RemoveStatusCondition(&d.Status.Conditions, "Ready")
		d.Status.Conditions = append(d.Status.Conditions, metav1.Condition{Type: "Ready", Status: status, ObservedGeneration: generation})
	}
}

// crossplane writes a decision as Crossplane does: first the status with the old conditions, then
// the new conditions. It shows each version of the object to the watcher.
func crossplane(d *machinev1alpha1.MachineDeployment, p Decision, watch func()) {
	conditions := d.Status.Conditions
	d.Status = p.Status
	d.Status.Conditions = conditions
	watch()
	d.Status.Conditions = nil
	for _, c := range p.Conditions {
		d.Status.Conditions = append(d.Status.Conditions, metav1.Condition{Type: c.Type, Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message})
	}
	status := metav1.ConditionFalse
	if p.Ready {
		status = metav1.ConditionTrue
	}
	ready(status, d.Generation)(d)
	watch()
}

func TestNoReaderSeesANewGenerationWithConditionsOfBefore(t *testing.T) {
	d := deployment(5, completed(1), recorded("v2", 3), ready(metav1.ConditionTrue, 8))
	d.Status.ObservedGeneration = 8
	d.Status.Conditions = append(d.Status.Conditions, metav1.Condition{Type: "Reconciling", Status: metav1.ConditionFalse, Reason: "NewMachineSetAvailable"})
	versions := 0
	for range 3 {
		p := Plan(now, Observed{Deployment: d.DeepCopy(), Sets: []Set{machineSet("v2", 1, 3)}, ClassFound: true})
		crossplane(d, p, func() {
			versions++
			for _, c := range d.Status.Conditions {
				if d.Status.ObservedGeneration == d.Generation && c.Type == "Reconciling" && c.Status != metav1.ConditionTrue {
					t.Errorf("version %d: generation %d is observed, 3 of 5 Machines are there, and Reconciling is %s (%s)", versions, d.Generation, c.Status, c.Reason)
				}
			}
		})
	}
	if d.Status.ObservedGeneration != 9 {
		t.Errorf("generation 9 was never observed: %d", d.Status.ObservedGeneration)
	}
}

func TestMachinesThatAreUpdatedInPlaceCountOnceTheirSetKnowsTheTemplate(t *testing.T) {
	auto := inPlaceBounds(0, 1, machinev1alpha1.OrchestrationAuto)
	paused := func(s *Set) { s.Spec.InPlaceUpdate.Paused = true }
	for name, tc := range map[string]struct {
		set  Set
		want int32
	}{
		"ItKnows":                        {machineSet("v2", 1, 3, updated(2)), 2},
		"ItHasNotActedOnItYet":           {machineSet("v2", 1, 3, updated(2), unsettled), 0},
		"ItWasGivenAnotherOne":           {machineSet("v2", 1, 3, updated(2), updatedFor("v1")), 0},
		"ItUpdatesNone":                  {machineSet("v2", 1, 3), 3},
		"ItIsPausedWithAnotherOne":       {machineSet("v2", 1, 3, updated(2), updatedFor("v1"), paused), 2},
		"ItHasNotActedOnItsPauseYet":     {machineSet("v2", 1, 3, updated(2), updatedFor("v1"), paused, unsettled), 0},
		"ItIsPausedWithTheTemplateOfNow": {machineSet("v2", 1, 3, updated(2), paused), 2},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Plan(now, Observed{Deployment: deployment(3, auto), Sets: []Set{tc.set}, ClassFound: true}).Status.UpdatedReplicas; got != tc.want {
				t.Errorf("%d are updated, want %d", got, tc.want)
			}
		})
	}
}

func TestReadyAtTheEndOfARollout(t *testing.T) {
	cases := map[string]struct {
		d    *machinev1alpha1.MachineDeployment
		sets []Set
		want bool
	}{
		"ItStaysWhileTheSetActsOnWhatDroverItselfChanged": {
			d:    deployment(3, completed(1), recorded("v2", 3), ready(metav1.ConditionTrue, 9)),
			sets: []Set{machineSet("v2", 1, 3, unsettled)}, want: true,
		},
		"ItEndsWhenTheUserChangesTheSpec": {
			d:    deployment(3, completed(1), recorded("v2", 3), ready(metav1.ConditionTrue, 8)),
			sets: []Set{machineSet("v2", 1, 3, unsettled)},
		},
		"ItDoesNotBeginBeforeTheSetHasActed": {
			d:    deployment(3, completed(1), recorded("v2", 3), ready(metav1.ConditionFalse, 9)),
			sets: []Set{machineSet("v2", 1, 3, unsettled)},
		},
		"ItStaysWhileASetThatUpdatesInPlaceActsOnSuchAChange": {
			d:    deployment(3, inPlaceBounds(0, 1, machinev1alpha1.OrchestrationAuto), completed(1), recorded("v2", 3), ready(metav1.ConditionTrue, 9)),
			sets: []Set{machineSet("v2", 1, 3, updated(3), unsettled)}, want: true,
		},
		"ItEndsWhenOneOfItsMachinesIsOutdated": {
			d:    deployment(3, inPlaceBounds(0, 1, machinev1alpha1.OrchestrationAuto), completed(1), recorded("v2", 3), ready(metav1.ConditionTrue, 9)),
			sets: []Set{machineSet("v2", 1, 3, updated(2), unsettled)},
		},
		"ItEndsWhileItHasTheUpdateBefore": {
			d:    deployment(3, inPlaceBounds(0, 1, machinev1alpha1.OrchestrationAuto), completed(1), recorded("v2", 3), ready(metav1.ConditionTrue, 9)),
			sets: []Set{machineSet("v2", 1, 3, updated(3), updatedFor("v1"), unsettled)},
		},
		"ItEndsWhenAMachineIsNotAvailable": {
			d:    deployment(3, completed(1), recorded("v2", 3), ready(metav1.ConditionTrue, 9)),
			sets: []Set{machineSet("v2", 1, 3, unsettled, available(2))},
		},
		"ItEndsWhenAnotherRevisionRollsOut": {
			d:    deployment(3, completed(1), recorded("v1", 3), ready(metav1.ConditionTrue, 9)),
			sets: []Set{machineSet("v1", 1, 3, unsettled)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Plan(now, Observed{Deployment: tc.d, Sets: tc.sets, ClassFound: true}); got.Ready != tc.want {
				t.Errorf("Ready is %v, want %v; Reconciling is %q", got.Ready, tc.want, condition(got, "Reconciling"))
			}
		})
	}
}
