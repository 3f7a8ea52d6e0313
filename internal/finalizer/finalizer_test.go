package finalizer

import (
	"testing"
)

func TestNextStepOfAnObject(t *testing.T) {
	cases := map[string]struct {
		State
		left bool
		want Step
	}{
		"OneThatLivesIsHeld":                           {State: State{}, left: true, want: Add},
		"OneThatIsHeldIsLeftAlone":                     {State: State{Held: true}, left: true, want: Nothing},
		"ADeletionInTheBackgroundIsMadeAForegroundOne": {State: State{Deleting: true, Held: true}, left: true, want: DeleteAgain},
		"ADeletionInTheForegroundRuns":                 {State: State{Deleting: true, Held: true, Foreground: true}, left: true, want: Nothing},
		"WithNothingLeftItMayGo":                       {State: State{Deleting: true, Held: true, Foreground: true}, want: Remove},
		"WithNothingLeftItIsNotDeletedAgain":           {State: State{Deleting: true, Held: true}, want: Remove},
		"WhatIsDyingUnheldCannotBeHeldAnyMore":         {State: State{Deleting: true}, left: true, want: Nothing},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.Next(tc.left); got != tc.want {
				t.Errorf("step %s, want %s", got, tc.want)
			}
		})
	}
}

