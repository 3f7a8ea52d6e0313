package deployment

import (
	"testing"
	"time"
)

// TestAStepKeepsTheOldMachines has a step of one Machine, and one of two.
func TestAStepKeepsTheOldMachines(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		step   int32
		// first, given and new are the Machines of the first set, of a canary that was given up, and of the template.
		first, given, new             int32
		wantFirst, wantGiven, wantNew int32
	}{
		"AMissingMachine":        {"the step allows no more of the new template, so the old set has it", 1, 2, 0, 1, 3, 0, 1},
		"TwoMissingMachines":     {"the same", 1, 1, 0, 1, 3, 0, 1},
		"AMissingOneOfTwoSets":   {"the larger one has more Machines that were good", 1, 2, 1, 0, 2, 1, 1},
		"ACanaryThatWasGivenUp":  {"it is the first to go, because the first template was good", 2, 3, 1, 1, 3, 0, 1},
		"NoneIsMissing":          {"the step is full", 1, 3, 0, 1, 3, 0, 1},
		"NoOldMachinesAreNeeded": {"all Machines are of the template", 1, 0, 0, 4, 0, 0, 4},
	} {
		t.Run(name, func(t *testing.T) {
			d := deployment(4, inRollout(3), steps(time.Hour, ""), atStep(tc.step))
			d.Status.MachineSets = nil
			var sets []Set
			for _, s := range []struct {
				version  string
				revision int64
				n        int32
			}{{"v1", 1, tc.first}, {"v0", 2, tc.given}, {"v2", 3, tc.new}} {
				recorded(s.version, s.n)(d)
				sets = append(sets, machineSet(s.version, s.revision, s.n))
			}
			got := decided(Plan(now, Observed{Deployment: d, Sets: sets, ClassFound: true}))
			if got["v1"] != tc.wantFirst || got["v0"] != tc.wantGiven || got["v2"] != tc.wantNew {
				t.Errorf("%s: %v, want %d of v1, %d of v0 and %d of v2", tc.reason, got, tc.wantFirst, tc.wantGiven, tc.wantNew)
			}
		})
	}
}
