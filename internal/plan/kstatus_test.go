package plan

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ready returns Crossplane's condition Ready for a generation.
func ready(status metav1.ConditionStatus, generation int64) []metav1.Condition {
	return []metav1.Condition{{Type: "Ready", Status: status, ObservedGeneration: generation}}
}

func TestAGenerationIsObservedAfterItsConditions(t *testing.T) {
	for name, tc := range map[string]struct {
		generation, before int64
		conditions         []metav1.Condition
		want               int64
	}{
		"a new object": {1, 0, nil, 0},
		"a new object with the default of the field": {1, -1, nil, 0},
		"the default, and the conditions":            {1, -1, ready("False", 1), 1},
		"the conditions are of the generation":       {2, 1, ready("False", 2), 2},
		"the conditions are of the one before":       {2, 1, ready("True", 1), 1},
		"nothing was observed for a generation":      {4, 1, ready("True", 1), 1},
		"the conditions are lost":                    {3, 3, nil, 2},
		"a status of a backup, of a generation yet":  {3, 9, ready("True", 9), 2},
		"a status of a backup is not below none":     {0, 9, ready("True", 9), 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ObservedGeneration(tc.generation, tc.before, tc.conditions); got != tc.want {
				t.Errorf("%d, want %d", got, tc.want)
			}
		})
	}
}

func TestAnXRIsReadyForOneGeneration(t *testing.T) {
	for name, tc := range map[string]struct {
		conditions []metav1.Condition
		want       bool
	}{
		"no condition":         {nil, false},
		"ready":                {ready("True", 2), true},
		"not ready":            {ready("False", 2), false},
		"ready for the former": {ready("True", 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsReadyFor(2, tc.conditions); got != tc.want {
				t.Errorf("%t, want %t", got, tc.want)
			}
		})
	}
}

func TestStalledNamesItsCause(t *testing.T) {
	want := Condition{Type: "Stalled", Status: "True", Reason: "NoBudget", Message: "raise it"}
	if got := Stalled(&Condition{Type: "Available", Status: "False", Reason: "NoBudget", Message: "raise it"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	want = Condition{Type: "Stalled", Status: "False", Reason: "NotStalled"}
	if got := Stalled(nil); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestNumbersReadAsAClause(t *testing.T) {
	for want, n := range map[string]Numbers{
		"3 of 5 Machines are available":                                                      {Desired: 5, Available: 3},
		"5 of 5 Machines are available":                                                      {Desired: 5, Available: 5},
		"6 Machines are available, 5 are desired":                                            {Desired: 5, Available: 6},
		"3 of 5 Machines are available, 1 starting, 2 terminating, 4 waiting to be replaced": {Desired: 5, Available: 3, Starting: 1, Terminating: 2, Waiting: 4},
	} {
		if got := n.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
