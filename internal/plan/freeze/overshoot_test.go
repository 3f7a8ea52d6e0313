package freeze

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// fleet has the counts of a deployment of one Machine more than replicas. Machines of a scale-down
// drain as long as the test decides.
type fleet struct {
	expected, existing, terminating int32
	remembered                      *machinev1alpha1.SafetyStatus
	frozen                          bool
	now                             time.Time
}

func (f *fleet) plan(m Margins) {
	o := Machines{Expected: f.expected, Existing: f.existing, Terminating: f.terminating, Remembered: f.remembered}
	s := o.remember()
	message, _ := o.overshoot(f.now, &s, m, f.frozen)
	f.remembered, f.frozen = &s, message != ""
}

func TestOvershoot(t *testing.T) {
	standard := Margins{Up: 2, Down: 1}
	spec := func(n int32) func(*fleet) { return func(f *fleet) { f.expected = n } }
	// drop begins the deletion of n excess Machines, and gone ends it.
	drop := func(n int32) func(*fleet) {
		return func(f *fleet) { f.existing, f.terminating = f.existing-n, f.terminating+n }
	}
	gone := func(n int32) func(*fleet) { return func(f *fleet) { f.terminating -= n } }
	come := func(n int32) func(*fleet) { return func(f *fleet) { f.existing += n } }
	// replaced are draining Machines that a user or remediation deleted. Their replacements exist
	// already.
	replaced := func(n int32) func(*fleet) { return func(f *fleet) { f.terminating += n } }
	after := func(d time.Duration) func(*fleet) { return func(f *fleet) { f.now = f.now.Add(d) } }

	for name, tc := range map[string]struct {
		margins Margins
		steps   []func(*fleet)
		want    bool
	}{
		"AScaleDownThatDrainsIsNone":                        {standard, []func(*fleet){come(10), spec(5), drop(5)}, false},
		"NorIsAScaleToNothing":                              {standard, []func(*fleet){come(10), spec(0), drop(10)}, false},
		"NorTheScaleUpThatFollows":                          {standard, []func(*fleet){come(10), spec(0), drop(10), spec(10), come(10)}, false},
		"NorOneAfterAnother":                                {standard, []func(*fleet){come(10), spec(0), drop(10), spec(10), come(10), spec(0), drop(10), spec(10), come(10)}, false},
		"NorAreReplacementsWhileOthersDrain":                {standard, []func(*fleet){come(10), replaced(3)}, false},
		"NorAScaleDownWhileOthersDrain":                     {standard, []func(*fleet){come(10), replaced(4), spec(5), drop(5)}, false},
		"NorOneThatIsNotCarriedOutYet":                      {standard, []func(*fleet){come(10), replaced(4), spec(5)}, false},
		"HalfOfTheFleetAndTheMarginMayDrain":                {standard, []func(*fleet){come(10), replaced(7)}, false},
		"MoreThanThatPileUp":                                {standard, []func(*fleet){come(10), replaced(8)}, true},
		"APileUpThawsWhenSomeAreGone":                       {standard, []func(*fleet){come(10), replaced(8), gone(2)}, false},
		"AndNotWhenOneIs":                                   {standard, []func(*fleet){come(10), replaced(8), gone(1)}, true},
		"APileUpFreezesForLessThanFiveMinutes":              {standard, []func(*fleet){come(10), replaced(8), after(5*time.Minute - time.Second)}, true},
		"AndThenTheyDoNotCount":                             {standard, []func(*fleet){come(10), replaced(8), after(5 * time.Minute)}, false},
		"NorLater":                                          {standard, []func(*fleet){come(10), replaced(8), after(5 * time.Minute), after(time.Hour)}, false},
		"NorDoAsManyAsTheMarginMore":                        {standard, []func(*fleet){come(10), replaced(8), after(5 * time.Minute), replaced(2)}, false},
		"MoreFreezeAgain":                                   {standard, []func(*fleet){come(10), replaced(8), after(5 * time.Minute), replaced(3)}, true},
		"ForFiveMinutesAgain":                               {standard, []func(*fleet){come(10), replaced(8), after(5 * time.Minute), replaced(3), after(5 * time.Minute)}, false},
		"WhatDrainsIsNoExcuseForMoreThatExist":              {standard, []func(*fleet){come(10), replaced(4), come(3)}, true},
		"TimeIsNoExcuseForMoreThatExist":                    {standard, []func(*fleet){come(13), after(time.Hour)}, true},
		"WhatIsLeftOfAScaleDownIsNoExcuseOnceItIsGone":      {standard, []func(*fleet){come(10), spec(5), drop(5), gone(5), come(3)}, true},
		"NorIsAScaleDownForMoreThanItGaveUp":                {standard, []func(*fleet){come(10), spec(5), drop(5), come(3)}, true},
		"WhatSomebodyAddsIs":                                {standard, []func(*fleet){come(13)}, true},
		"ItThawsWhenTheyAreBeingDeleted":                    {standard, []func(*fleet){come(13), drop(2)}, false},
		"NotWhenTooFewAre":                                  {standard, []func(*fleet){come(13), drop(1)}, true},
		"NoMarginIsOne":                                     {Margins{}, []func(*fleet){come(11)}, true},
		"WithNoMarginWhatIsWantedIsNotTooMuch":              {Margins{}, []func(*fleet){come(11), drop(1), gone(1)}, false},
		"AMarginDownThatIsLargerThanUpThawsAtWhatIsWanted":  {Margins{Up: 1, Down: 9}, []func(*fleet){come(12), drop(2), gone(2)}, false},
		"NothingOverflows":                                  {Margins{Up: math.MaxInt32}, []func(*fleet){spec(math.MaxInt32), come(math.MaxInt32), drop(math.MaxInt32 / 2)}, false},
		"ANegativeStatusIsNoLicence":                        {standard, []func(*fleet){func(f *fleet) { f.remembered.Leaving, f.remembered.Surplus = -7, -7 }, come(13)}, true},
		"AStatusThatRemembersTooMuchIsCutToWhatThereIsLeft": {standard, []func(*fleet){func(f *fleet) { f.remembered.Surplus = 100 }, come(10), come(4)}, true},
		"AStatusThatRemembersTheLargestNumbers": {standard, []func(*fleet){func(f *fleet) {
			f.remembered.Leaving, f.remembered.Surplus, f.remembered.Expected = math.MaxInt32, math.MaxInt32, math.MaxInt32
		}, come(10), come(4)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fleet{expected: 10}
			f.plan(tc.margins)
			for _, s := range tc.steps {
				s(f)
				f.plan(tc.margins)
				f.plan(tc.margins) // The same view again changes nothing.
			}
			if f.frozen != tc.want {
				t.Errorf("frozen %t, want %t: %+v remembered %+v", f.frozen, tc.want, *f, *f.remembered)
			}
		})
	}
}

// TestOnlyWhatComesInAdditionIsAnOvershoot plays random histories of scaling and replacements with
// drains of any length. No creation may be held for more than five minutes, and none by scaling
// alone. In the end, unwanted Machines appear, which must freeze.
func TestOnlyWhatComesInAdditionIsAnOvershoot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := Margins{Up: int32(rapid.IntRange(0, 5).Draw(t, "up")), Down: int32(rapid.IntRange(0, 5).Draw(t, "down"))}
		replaces := rapid.Bool().Draw(t, "machines are replaced")
		f := &fleet{now: since}
		f.plan(m)
		quiet := f.now
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"scale", "act", "gone", "replace", "wait"}).Draw(t, "step") {
			case "scale":
				f.expected = int32(rapid.IntRange(0, 40).Draw(t, "replicas"))
			case "act":
				d := f.expected - f.existing
				f.existing += d
				f.terminating += max(0, -d)
			case "gone":
				f.terminating -= int32(rapid.IntRange(0, int(f.terminating)).Draw(t, "gone"))
			case "replace":
				if replaces {
					f.terminating += int32(rapid.IntRange(0, int(f.existing)).Draw(t, "deleted"))
				}
			case "wait":
				f.now = f.now.Add(time.Minute)
			}
			f.plan(m)
			switch {
			case f.frozen && !replaces:
				t.Fatalf("frozen by scaling alone: %+v remembered %+v", *f, *f.remembered)
			case !f.frozen:
				quiet = f.now
			case f.now.Sub(quiet) >= 5*time.Minute:
				t.Fatalf("frozen for %s by drains: %+v remembered %+v", f.now.Sub(quiet), *f, *f.remembered)
			}
			if r := *f.remembered; r.Leaving < 0 || r.Leaving > f.terminating+max(0, f.existing-f.expected) || r.Surplus < 0 || r.Surplus > max(0, f.existing-f.expected) {
				t.Fatalf("remembered %+v of %+v", r, *f)
			}
		}
		f.existing = f.expected + f.remembered.Surplus + m.Up + 1
		f.plan(m)
		if !f.frozen {
			t.Fatalf("not frozen: %+v remembered %+v", *f, *f.remembered)
		}
	})
}
