package vsphere

import (
	"testing"

	"github.com/vmware/govmomi/vim25/types"
)

func TestPlan(t *testing.T) {
	const on, off, suspended = types.VirtualMachinePowerStatePoweredOn, types.VirtualMachinePowerStatePoweredOff, types.VirtualMachinePowerStateSuspended
	cases := map[string]struct {
		s    sight
		want step
	}{
		"WhatIsNotThereIsCloned":                       {sight{wantOn: true}, stepClone},
		"ACloneThatRunsIsWaitedFor":                    {sight{wantOn: true, task: cloneTask}, stepWait},
		"AVMIsMarkedBeforeItRuns":                      {sight{wantOn: true, vm: &found{power: off}}, stepMark},
		"AMarkedVMIsPoweredOn":                         {sight{wantOn: true, vm: &found{power: off, marked: true, isInRule: true}}, stepPowerOn},
		"AMarkedVMJoinsItsRuleBeforeItRuns":            {sight{wantOn: true, vm: &found{power: off, marked: true}}, stepJoin},
		"AVMLeavesItsRuleWhenItHasOnlyItsOwnDisks":     {sight{deleting: true, vm: &found{power: off, mustLeave: true}}, stepLeave},
		"ForeignDisksAreDetachedBeforeAVMLeaves":       {sight{deleting: true, vm: &found{power: off, mustLeave: true, foreign: 1}}, stepDetach},
		"ASuspendedVMIsPoweredOn":                      {sight{wantOn: true, vm: &found{power: suspended, marked: true, isInRule: true}}, stepPowerOn},
		"AVMThatShallBeOffIsPoweredOff":                {sight{vm: &found{power: on, marked: true, isInRule: true}}, stepPowerOff},
		"AVMThatShallBeOffMayBeSuspended":              {sight{vm: &found{power: suspended, marked: true, isInRule: true}}, stepNone},
		"AVMAsItShallBeIsLeftAlone":                    {sight{wantOn: true, vm: &found{power: on, marked: true, isInRule: true}}, stepNone},
		"ForeignDisksAreNoMatterWhileAVMLives":         {sight{wantOn: true, vm: &found{power: on, marked: true, isInRule: true, foreign: 2}}, stepNone},
		"AVMThatWasThereIsNotMadeAgain":                {sight{wantOn: true, finished: true}, stepLost},
		"WhatWasNeverThereIsGone":                      {sight{deleting: true}, stepGone},
		"AVMThatWasThereIsGone":                        {sight{deleting: true, finished: true}, stepGone},
		"ACloneThatNobodyWantsIsCanceled":              {sight{deleting: true, task: cloneTask}, stepCancel},
		"ACloneThatNobodyRemembersIsWaitedFor":         {sight{deleting: true, cloneMayRun: true}, stepWait},
		"ACloneThatIsFoundIsDeletedWhateverMayRun":     {sight{deleting: true, cloneMayRun: true, vm: &found{power: off}}, stepDestroy},
		"ARunningVMIsPoweredOffFirst":                  {sight{deleting: true, vm: &found{power: on, foreign: 1}}, stepPowerOff},
		"ASuspendedVMIsPoweredOffFirst":                {sight{deleting: true, vm: &found{power: suspended}}, stepPowerOff},
		"APowerOffIsWaitedFor":                         {sight{deleting: true, task: otherTask, vm: &found{power: on}}, stepWait},
		"ForeignDisksAreDetachedBeforeTheVMGoes":       {sight{deleting: true, vm: &found{power: off, foreign: 1}}, stepDetach},
		"AVMThatIsOffAndHasOnlyItsOwnDisksIsDestroyed": {sight{deleting: true, vm: &found{power: off}}, stepDestroy},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := plan(tc.s); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}
