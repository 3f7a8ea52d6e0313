package freeze

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// a fleet as a deployment of one Machine more than replicas has it: what is scaled down
// drains for as long as the test likes.
type fleet struct {
	expected, existing, terminating int32
	remembered                      *machinev1alpha1.SafetyStatus
	frozen                          bool
}

func (f *fleet) plan(m Margins) {
	o := Machines{Expected: f.expected, Existing: f.existing, Terminating: f.terminating, Remembered: f.remembered}
	s := o.remember()
	f.remembered = &s
	f.frozen = o.overshoot(s, m, f.frozen) != ""
}

func TestOvershoot(t *testing.T) {
	standard := Margins{Up: 2, Down: 1}
	spec := func(n int32) func(*fleet) { return func(f *fleet) { f.expected = n } }
	// drop what the spec does not want, and go when it is gone.
	drop := func(n int32) func(*fleet) {
		return func(f *fleet) { f.existing, f.terminating = f.existing-n, f.terminating+n }
	}
	gone := func(n int32) func(*fleet) { return func(f *fleet) { f.terminating -= n } }
	come := func(n int32) func(*fleet) { return func(f *fleet) { f.existing += n } }

	for name, tc := range map[string]struct {
		margins Margins
		steps   []func(*fleet)
		want    bool
	}{
		"AScaleDownThatDrainsIsNone":                        {standard, []func(*fleet){come(10), spec(5), drop(5)}, false},
		"NorIsAScaleToNothing":                              {standard, []func(*fleet){come(10), spec(0), drop(10)}, false},
		"NorTheScaleUpThatFollows":                          {standard, []func(*fleet){come(10), spec(0), drop(10), spec(10), come(10)}, false},
		"NorOneAfterAnother":                                {standard, []func(*fleet){come(10), spec(0), drop(10), spec(10), come(10), spec(0), drop(10), spec(10), come(10)}, false},
		"ReplacementsThatPileUpAre":                         {standard, []func(*fleet){come(10), drop(3), come(3)}, true},
		"WhatIsLeftOfAScaleDownIsNoExcuseOnceItIsGone":      {standard, []func(*fleet){come(10), spec(5), drop(5), gone(5), come(3)}, true},
		"NorIsAScaleDownForMoreThanItGaveUp":                {standard, []func(*fleet){come(10), spec(5), drop(5), come(3)}, true},
		"WhatSomebodyAddsIs":                                {standard, []func(*fleet){come(13)}, true},
		"ItThawsWhenTheyAreGone":                            {standard, []func(*fleet){come(13), drop(3), gone(2)}, false},
		"NotBefore":                                         {standard, []func(*fleet){come(13), drop(3), gone(1)}, true},
		"NoMarginIsOne":                                     {Margins{}, []func(*fleet){come(11)}, true},
		"WithNoMarginWhatIsWantedIsNotTooMuch":              {Margins{}, []func(*fleet){come(11), drop(1), gone(1)}, false},
		"AMarginDownThatIsLargerThanUpThawsAtWhatIsWanted":  {Margins{Up: 1, Down: 9}, []func(*fleet){come(12), drop(2), gone(2)}, false},
		"NothingOverflows":                                  {Margins{Up: math.MaxInt32}, []func(*fleet){spec(math.MaxInt32), come(math.MaxInt32), drop(math.MaxInt32 / 2)}, false},
		"AStatusThatNobodyCouldHaveWrittenIsNoLicence":      {standard, []func(*fleet){func(f *fleet) { f.remembered.Leaving = -7 }, come(13)}, true},
		"AStatusThatRemembersTooMuchIsCutToWhatThereIsLeft": {standard, []func(*fleet){func(f *fleet) { f.remembered.Leaving = 100 }, come(10), come(4)}, true},
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

// TestOnlyWhatComesInAdditionIsAnOvershoot plays any history of scaling, with what is
// given up going as it likes, and then lets Machines come that nobody asked for.
func TestOnlyWhatComesInAdditionIsAnOvershoot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := Margins{Up: int32(rapid.IntRange(0, 5).Draw(t, "up")), Down: int32(rapid.IntRange(0, 5).Draw(t, "down"))}
		f := &fleet{}
		f.plan(m)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"scale", "act", "gone"}).Draw(t, "step") {
			case "scale":
				f.expected = int32(rapid.IntRange(0, 40).Draw(t, "replicas"))
			case "act":
				d := f.expected - f.existing
				f.existing += d
				f.terminating += max(0, -d)
			case "gone":
				f.terminating -= int32(rapid.IntRange(0, int(f.terminating)).Draw(t, "gone"))
			}
			f.plan(m)
			if f.frozen {
				t.Fatalf("frozen by scaling alone: %+v remembered %+v", *f, *f.remembered)
			}
			if r := *f.remembered; r.Leaving < 0 || r.Leaving > f.terminating+max(0, f.existing-f.expected) {
				t.Fatalf("remembered %+v of %+v", r, *f)
			}
		}
		f.existing = f.expected + f.remembered.Leaving + m.Up + 1
		f.plan(m)
		if !f.frozen {
			t.Fatalf("not frozen: %+v remembered %+v", *f, *f.remembered)
		}
	})
}
