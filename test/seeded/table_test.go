package main

import (
	"strings"
	"testing"
)

func resultOf(name, survives string, o outcome, by string) result {
	return result{fault: fault{Name: name, Promise: "It works.", Survives: survives, Tests: []tests{{"./x", "^TestA$"}}}, outcome: o, by: by}
}

func TestARowHasTheFaultItsPromiseAndItsVerdict(t *testing.T) {
	for name, tc := range map[string]struct {
		result
		want, err string
	}{
		"a fault is caught":                      {resultOf("a", "", caught, "./x TestA"), "a   | It works. | caught by ./x TestA", ""},
		"a fault survives":                       {resultOf("a", "", survived, ""), "a   | It works. | SURVIVED", "a: no test of ./x ^TestA$ catches it"},
		"a fault survives with a reason":         {resultOf("a", "why", survived, ""), "a   | It works. | survives: why", ""},
		"a fault with a reason is caught":        {resultOf("a", "why", caught, "./x TestA"), "a   | It works. | OUTDATED REASON: caught by ./x TestA", "a: ./x TestA catches it: delete its line Survives"},
		"a patch does not apply":                 {resultOf("a", "", doesNotApply, "error: x"), "a   | It works. | DOES NOT APPLY error: x", "a: the patch does not apply any more, renew it: error: x"},
		"a patch with a reason must apply":       {resultOf("a", "why", doesNotApply, "error: x"), "a   | It works. | DOES NOT APPLY error: x", "does not apply any more"},
		"a patch does not compile":               {resultOf("a", "", doesNotCompile, "x.go:1:2: y"), "a   | It works. | DOES NOT COMPILE x.go:1:2: y", "a: does not compile: x.go:1:2: y"},
		"a fault without its control plane":      {resultOf("a", "", skipped, ""), "a   | It works. | skipped: needs a control plane", ""},
		"a long name moves the other columns":    {resultOf("abcd", "", survived, ""), "abcd | It works. | SURVIVED", "abcd: "},
		"a patch with a reason must compile too": {resultOf("a", "why", doesNotCompile, "e"), "a   | It works. | DOES NOT COMPILE e", "does not compile"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.row(3); got != tc.want {
				t.Errorf("row %q, want %q", got, tc.want)
			}
			got := ""
			if err := judge([]result{tc.result}); err != nil {
				got = err.Error()
			}
			if tc.err == "" && got != "" || !strings.Contains(got, tc.err) {
				t.Errorf("error %q, want %q", got, tc.err)
			}
		})
	}
}

func TestTheShareIsOfAllFaultsThatWereTried(t *testing.T) {
	of := func(caughtOnes, others int) []result {
		out := []result{resultOf("plane", "", skipped, "")}
		for range caughtOnes {
			out = append(out, resultOf("a", "", caught, "x"))
		}
		for range others {
			out = append(out, resultOf("b", "why", survived, ""))
		}
		return out
	}
	if got := summary(of(19, 1)); got != "19 of 20 caught" {
		t.Errorf("summary %q", got)
	}
	if err := judgeShare(of(19, 1)); err != nil {
		t.Errorf("95 %% are enough: %v", err)
	}
	if err := judgeShare(of(18, 1)); err == nil || !strings.Contains(err.Error(), "94.7 %") {
		t.Errorf("error %v", err)
	}
	if err := judgeShare(of(0, 0)); err != nil {
		t.Errorf("nothing was tried: %v", err)
	}
}
