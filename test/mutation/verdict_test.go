package main

import (
	"strings"
	"testing"
)

func TestAVerdictOnMutants(t *testing.T) {
	const pkg = "internal/plan/set"
	const killed, lived = true, false
	m := func(text string, killed bool) *change {
		return &change{File: pkg + "/create.go", Type: "+ to -", Text: text, Line: 7, Killed: killed}
	}
	dead := func(n int) []*change {
		var out []*change
		for range n {
			out = append(out, m("a + b", killed))
		}
		return out
	}
	for name, tc := range map[string]struct {
		mutants   []*change
		survivors string
		want      string
	}{
		"passes if all are killed":                            {mutants: dead(3)},
		"fails if one survives without a reason":              {mutants: append(dead(99), m("c - d", lived)), want: pkg + "/create.go:7: a mutant survives (+ to -): c - d"},
		"passes if the survivor is listed":                    {mutants: append(dead(99), m("c - d", lived)), survivors: pkg + "/create.go | + to - | c - d | both are the same there"},
		"fails if too many survive, be they listed":           {mutants: append(dead(1), m("c - d", lived)), survivors: pkg + "/create.go | + to - | c - d | same", want: "kill 50.0 % of the mutants, and must kill 95 %"},
		"fails if a listed one is killed":                     {mutants: dead(3), survivors: pkg + "/create.go | + to - | a + b | same", want: "survivors.txt: no mutant survives of: " + pkg + "/create.go"},
		"passes if a listed one is of a package below":        {mutants: dead(3), survivors: pkg + "/below/x.go | + to - | a + b | same"},
		"finds a line with the separator in it in the listed": {mutants: append(dead(99), m("a | b", lived)), survivors: pkg + "/create.go | + to - | a | b | same"},
	} {
		t.Run(name, func(t *testing.T) {
			survivors, err := parseSurvivors(tc.survivors)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := judge(pkg, tc.mutants, survivors).err(); err != nil {
				got = err.Error()
			}
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestSurvivorsNeedAReason(t *testing.T) {
	for name, text := range map[string]string{
		"no reason":    "a.go | + to - | a + b",
		"empty reason": "a.go | + to - | a + b | ",
		"twice":        "a.go | T | a + b | x\na.go | T | a + b | y",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parseSurvivors(text); err == nil || !strings.Contains(err.Error(), "line ") {
				t.Errorf("got %v, want an error that names the line", err)
			}
		})
	}
}

func TestTheSimulatorIsNoPlanner(t *testing.T) {
	got, err := plannersIn("../..")
	if err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(got, " "); !strings.Contains(all, "internal/plan/set ") || strings.Contains(all, "simulator") {
		t.Errorf("planners: %s", all)
	}
}
