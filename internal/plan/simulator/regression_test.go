package simulator

import (
	"flag"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// regressions are seeds whose histories once violated a promise. Each run replays their first
// histories, besides those of its own seed.
var regressions = map[string]struct {
	property func(*rapid.T)
	seeds    []int
}{
	"rollouts":     {rollouts, []int{1, 7}},
	"scaling":      {scalesInTheMiddle, []int{1, 7}},
	"taken back":   {takesBack, []int{1, 1522350146}},
	"replacements": {func(t *rapid.T) { replacesMachines(t) }, []int{1, 7, 61450, 145003, 382257, 2028686, 1696164585}},
	"restores":     {restores, []int{1}},
	"reboots":      {func(t *rapid.T) { rebootsMachines(t) }, []int{788407450}},
	// The template that was complete last was forgotten when the way back to it was superseded.
	"gates": {gatesHold, []int{1867286946}},
}

// TestRegressions replays histories that are the same in each run.
func TestRegressions(t *testing.T) {
	set := func(t *testing.T, name, value string) {
		t.Helper()
		was := flag.Lookup(name).Value.String()
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = flag.Set(name, was) })
	}
	set(t, "rapid.checks", "12")
	for name, r := range regressions {
		for _, seed := range r.seeds {
			t.Run(fmt.Sprintf("%s by %d", name, seed), func(t *testing.T) {
				set(t, "rapid.seed", fmt.Sprint(seed))
				rapid.Check(t, r.property)
			})
		}
	}
}
