package set

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// readyAt sets Crossplane's condition Ready, as it was written for a generation.
func readyAt(generation int64) setOption {
	return func(s *machinev1alpha1.MachineSet) {
		meta.RemoveStatusCondition(&s.Status.Conditions, "Ready")
		s.Status.Conditions = append(s.Status.Conditions, metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, ObservedGeneration: generation})
	}
}

func observed(generation int64) setOption {
	return func(s *machinev1alpha1.MachineSet) { s.Status.ObservedGeneration = generation }
}

func TestAGenerationIsObservedOnceItsConditionsAreWritten(t *testing.T) {
	cases := map[string]struct {
		set  *machinev1alpha1.MachineSet
		want int64
		// within is the time within which the set is composed again.
		within time.Duration
	}{
		"NothingWasWrittenYet":                  {set: set(1, observed(0), readyAt(0)), want: 0, within: shared.Soonest},
		"TheConditionsAreOfTheGenerationBefore": {set: set(1, observed(6), readyAt(6)), want: 6, within: shared.Soonest},
		"TheConditionsAreOfThisGeneration":      {set: set(1, observed(6), readyAt(7)), want: 7, within: shared.AtRest},
		"ItWasObserved":                         {set: set(1, observed(7), readyAt(7)), want: 7, within: shared.AtRest},
		"OfASetOfAMachineDeployment":            {set: set(1, ofDeployment, observed(6), readyAt(6)), want: 6, within: 5 * time.Second},
		"TheStatusIsThatOfABackup":              {set: set(1, observed(9), readyAt(9)), want: 6, within: shared.Soonest},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Plan(now, Observed{Set: tc.set, Machines: []Machine{machine("a", running)}})
			if d.Status.ObservedGeneration != tc.want || d.Status.DecidedGeneration != 7 {
				t.Errorf("observed %d and decided %d, want %d and 7", d.Status.ObservedGeneration, d.Status.DecidedGeneration, tc.want)
			}
			if d.CallAgain != tc.within {
				t.Errorf("called again after %s, want %s", d.CallAgain, tc.within)
			}
		})
	}
}
