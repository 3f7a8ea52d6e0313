package main

import (
	"slices"
	"strings"
	"testing"
)

const budgetText = `
# A comment.
stage   unit            100  # with what follows
package internal/plan/* 10
package *               2
`

func budgetOf(t *testing.T, text string) Budget {
	t.Helper()
	b, err := parseBudget(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTheFirstLineThatMatchesIsTheBudget(t *testing.T) {
	b := budgetOf(t, budgetText)
	for name, tc := range map[string]struct {
		kind, name string
		want       float64
	}{
		"AStage":                       {kindStage, "unit", 100},
		"AStageWithoutALine":           {kindStage, "lint", 0},
		"AFolderByAPattern":            {kindPackage, "internal/plan/set", 10},
		"APackageOfNoOtherLine":        {kindPackage, "test/e2e", 2},
		"APackageDeeperThanItsPattern": {kindPackage, "internal/plan/set/x", 2},
	} {
		t.Run(name, func(t *testing.T) {
			if got := b.of(tc.kind, tc.name); got != tc.want {
				t.Errorf("its budget is %v, want %v", got, tc.want)
			}
		})
	}
}

func TestALineThatIsNoBudgetIsRefused(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"NoSeconds":   {"stage unit", `line 1: "stage unit": want`},
		"AnotherKind": {"\ntest unit 3", `line 2: "test unit 3": want`},
		"NoNumber":    {"stage unit many", `"many": SECONDS must be a number above 0`},
		"Zero":        {"stage unit 0", `"0": SECONDS must be a number above 0`},
		"ABadPattern": {"package [ 3", `"[": syntax error in pattern`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parseBudget(strings.NewReader(tc.text)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestTheReportNamesThePackagesThatSpentMoreThanTwiceTheirBudget(t *testing.T) {
	b := budgetOf(t, budgetText)
	records := []Spent{
		{Kind: kindPackage, Name: "internal/plan/set", CPU: 15, Wall: 9, MemoryMB: 100},
		{Kind: kindPackage, Name: "test/e2e", CPU: 5, Wall: 60},
		{Kind: kindPackage, Name: "internal/text", CPU: 1},
		{Kind: kindStage, Name: "unit", CPU: 230, Wall: 80},
		// The second run of the same package.
		{Kind: kindPackage, Name: "internal/plan/set", CPU: 6, Wall: 4, MemoryMB: 50, Failed: true},
	}
	out := &strings.Builder{}
	over, err := report(out, b, records)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"internal/plan/set spent 21 CPU seconds, its budget is 10",
		"test/e2e spent 5 CPU seconds, its budget is 2",
	}
	if !slices.Equal(over, want) {
		t.Errorf("over the budget: %q, want %q", over, want)
	}
	for _, want := range []string{"unit", "OVER failed", "1 others below 10 s"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, out)
		}
	}
}
