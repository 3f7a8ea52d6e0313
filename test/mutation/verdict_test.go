package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAVerdictOnMutants(t *testing.T) {
	const pkg = "internal/plan/set"
	m := func(text, status string) mutant {
		return mutant{File: pkg + "/create.go", Type: "ARITHMETIC_BASE", Text: text, Line: 7, Status: status}
	}
	killed := func(n int) []mutant {
		var out []mutant
		for range n {
			out = append(out, m("a + b", "KILLED"))
		}
		return out
	}
	for name, tc := range map[string]struct {
		mutants   []mutant
		survivors string
		want      string
	}{
		"passes if all are killed":                            {mutants: killed(3)},
		"passes if a test does not end":                       {mutants: []mutant{m("a", "TIMED OUT")}},
		"does not count mutants that do not compile":          {mutants: []mutant{m("a", "NOT VIABLE")}},
		"fails if one survives without a reason":              {mutants: append(killed(99), m("c - d", "LIVED")), want: pkg + "/create.go:7: ARITHMETIC_BASE survives (LIVED): c - d"},
		"fails if no test reaches one":                        {mutants: append(killed(99), m("c - d", "NOT COVERED")), want: "survives (NOT COVERED)"},
		"passes if the survivor is listed":                    {mutants: append(killed(99), m("c - d", "LIVED")), survivors: pkg + "/create.go | ARITHMETIC_BASE | c - d | both are the same there"},
		"fails if too many survive, be they listed":           {mutants: append(killed(1), m("c - d", "LIVED")), survivors: pkg + "/create.go | ARITHMETIC_BASE | c - d | same", want: "kill 50.0 % of the mutants, and must kill 95 %"},
		"fails if a listed one is killed":                     {mutants: killed(3), survivors: pkg + "/create.go | ARITHMETIC_BASE | a + b | same", want: "survivors.txt: no mutant survives of: " + pkg + "/create.go"},
		"passes if a listed one is of a package below":        {mutants: killed(3), survivors: pkg + "/below/x.go | ARITHMETIC_BASE | a + b | same"},
		"finds a line with the separator in it in the listed": {mutants: append(killed(99), m("a | b", "LIVED")), survivors: pkg + "/create.go | ARITHMETIC_BASE | a | b | same"},
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
		"no reason":    "a.go | ARITHMETIC_BASE | a + b",
		"empty reason": "a.go | ARITHMETIC_BASE | a + b | ",
		"twice":        "a.go | T | a + b | x\na.go | T | a + b | y",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parseSurvivors(text); err == nil || !strings.Contains(err.Error(), "line ") {
				t.Errorf("got %v, want an error that names the line", err)
			}
		})
	}
}

func TestAReportNamesTheTextOfEachLine(t *testing.T) {
	dir := t.TempDir()
	const pkg = "internal/plan/set"
	if err := os.MkdirAll(filepath.Join(dir, pkg), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, pkg, "create.go"), []byte("package set\n\n\treturn a < b\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := parseReport([]byte(`{"files":[{"file_name":"create.go","mutations":[{"type":"CONDITIONALS_BOUNDARY","status":"LIVED","line":3,"column":9}]}]}`), dir, pkg)
	want := mutant{File: pkg + "/create.go", Type: "CONDITIONALS_BOUNDARY", Text: "return a < b", Line: 3, Status: "LIVED"}
	if err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if _, err := parseReport([]byte(`{"files":[{"file_name":"create.go","mutations":[{"line":4}]}]}`), dir, pkg); err == nil {
		t.Error("a line that the file does not have is no error")
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
