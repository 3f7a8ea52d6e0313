package native

import "testing"

func TestPlan(t *testing.T) {
	cases := map[string]struct {
		f    facts
		want step
	}{
		"AVMThatTheCloudDoesNotHaveIsCreated":                    {facts{}, stepCreate},
		"ACreationOfUnknownResultIsNotRepeatedAtOnce":            {facts{settling: true}, stepWait},
		"ARepeatableCreationOfUnknownResultIsRepeatedAtOnce":     {facts{settling: true, repeatable: true}, stepCreate},
		"AVMThatIsBeingCreatedIsWaitedFor":                       {facts{state: StateCreating}, stepWait},
		"AVMThatIsFoundWhileItsResultIsUnknownIsNotCreatedAgain": {facts{settling: true, state: StateCreating}, stepWait},
		"AnIncompleteVMIsContinued":                              {facts{state: StateIncomplete}, stepContinue},
		"AnIncompleteVMOfUnknownResultIsContinued":               {facts{settling: true, state: StateIncomplete}, stepContinue},
		"AVMThatRunsIsAtRest":                                    {facts{state: StateRunning}, stepNone},
		"AVMThatRanIsAtRest":                                     {facts{state: StateRunning, finished: true}, stepNone},
		"AVMThatIsStoppedIsNotStarted":                           {facts{state: StateStopped, finished: true}, stepNone},
		"AVMThatFailedIsNotCreatedAgain":                         {facts{state: StateFailed}, stepNone},
		"AVMThatRanIsNeverChanged":                               {facts{state: StateIncomplete, finished: true}, stepNone},
		"AVMThatRanAndDoesNotExistIsLost":                        {facts{finished: true}, stepLost},
		"AVMThatRanIsLostWhateverItsCreation":                    {facts{finished: true, settling: true}, stepLost},
		"AVMThatTheCloudDeletesIsWaitedFor":                      {facts{state: StateDeleting, finished: true}, stepWait},

		"ADeletedVMThatDoesNotExistIsGone":                 {facts{deleting: true}, stepGone},
		"ADeletedVMThatRanAndDoesNotExistIsGone":           {facts{deleting: true, finished: true}, stepGone},
		"ADeletedVMOfUnknownResultIsWaitedFor":             {facts{deleting: true, settling: true}, stepWait},
		"ADeletedVMOfARepeatableCreationIsWaitedForToo":    {facts{deleting: true, settling: true, repeatable: true}, stepWait},
		"ADeletedVMThatIsBeingDeletedIsWaitedFor":          {facts{deleting: true, state: StateDeleting}, stepWait},
		"ADeletedVMThatRunsIsDeleted":                      {facts{deleting: true, finished: true, state: StateRunning}, stepDelete},
		"ADeletedVMThatIsStoppedIsDeleted":                 {facts{deleting: true, finished: true, state: StateStopped}, stepDelete},
		"ADeletedVMThatFailedIsDeleted":                    {facts{deleting: true, state: StateFailed}, stepDelete},
		"ADeletedVMThatIsIncompleteIsDeleted":              {facts{deleting: true, state: StateIncomplete}, stepDelete},
		"TheCloudCancelsTheCreationOfADeletedVM":           {facts{deleting: true, state: StateCreating}, stepDelete},
		"ADeletedVMThatIsFoundOfUnknownResultIsDeletedToo": {facts{deleting: true, settling: true, state: StateRunning}, stepDelete},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := plan(tc.f); got != tc.want {
				t.Errorf("plan(%+v) is %s, want %s", tc.f, got, tc.want)
			}
		})
	}
}

// TestNoHistoryCreatesASecondVM plans all combinations of facts.
func TestNoHistoryCreatesASecondVM(t *testing.T) {
	states := []State{StateNone, StateCreating, StateIncomplete, StateStopped, StateRunning, StateFailed, StateDeleting}
	for _, s := range states {
		for bits := range 16 {
			f := facts{deleting: bits&1 > 0, finished: bits&2 > 0, settling: bits&4 > 0, repeatable: bits&8 > 0, state: s}
			got := plan(f)
			if got == stepCreate && (f.deleting || f.finished || f.settling && !f.repeatable || s != StateNone) {
				t.Errorf("%+v: a VM is created", f)
			}
			if (got == stepDelete) && !f.deleting {
				t.Errorf("%+v: a VM is deleted that is to exist", f)
			}
			if got == stepGone && (s != StateNone || f.settling) {
				t.Errorf("%+v: a VM that may exist counts as gone", f)
			}
			if got == stepContinue && f.finished {
				t.Errorf("%+v: a VM that ran is changed", f)
			}
		}
	}
}
