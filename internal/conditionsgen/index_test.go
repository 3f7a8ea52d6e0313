package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestTheIndexLeadsToEachPlaceOfAReason(t *testing.T) {
	all := []constant{
		{name: "ReasonB", value: "B", notes: map[string]string{"Kinds": "Machine, MachineSet"}},
		{name: "EventA", value: "A", notes: map[string]string{"Kinds": "Machine"}},
		{name: "EventB", value: "B", notes: map[string]string{"Kinds": "MachineSet"}},
	}
	codes := []section{{title: "Errors of clouds", rows: []constant{{value: "a"}}}}
	const want = "| `A` | [Events](../conditions.md#events-a) |\n" +
		"| `a` | [Errors of clouds](../conditions.md#errors-of-clouds-a) |\n" +
		"| `B` | [Machine](../conditions.md#machine-b), [MachineSet](../conditions.md#machineset-b), [Events](../conditions.md#events-b) |\n"
	if got := renderIndex(all, codes); !strings.HasSuffix(got, "|---|---|\n"+want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// printed matches a reason that a screen of kubectl drover has: of a finding, or the last word of a branch of a tree.
var printed = regexp.MustCompile("(?m)^  ([A-Z][A-Za-z]+)  [A-Za-z]+/|^[ |`-]*[A-Za-z]+/.*, ([A-Z][A-Za-z]+)$")

// TestThePageHasEachReasonThatStatusPrints reads the golden screens of the package diagnosis: reasons that no constant of reasons.go has
// are on them, too.
func TestThePageHasEachReasonThatStatusPrints(t *testing.T) {
	b, err := os.ReadFile("../../docs/conditions.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	var files []string
	for _, pattern := range []string{"*.txt", "states/*.txt"} {
		found, err := filepath.Glob(filepath.Join("../kubectl/diagnosis/testdata", pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	seen := map[string]bool{}
	for _, file := range files {
		screen, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, reason := range reasonsOn(string(screen)) {
			seen[reason] = true
			if !strings.Contains(page, "</a>`"+reason+"` |") {
				t.Errorf("%s prints %s, which docs/conditions.md does not explain", file, reason)
			}
		}
	}
	if len(seen) < 25 {
		t.Errorf("only %d reasons were found", len(seen))
	}
}

// reasonsOn returns the reasons on a screen: of findings, of trees, and in the column of what a Machine waits for.
func reasonsOn(screen string) []string {
	var out []string
	for _, m := range printed.FindAllStringSubmatch(screen, -1) {
		out = append(out, m[1]+m[2])
	}
	from := -1
	for line := range strings.Lines(screen) {
		if i := strings.Index(line, "WAITS FOR"); i >= 0 {
			from = i
			continue
		}
		if from < 0 || len(line) <= from || strings.TrimSpace(line[:from]) == "" || line[from-1] != ' ' {
			from = -1
			continue
		}
		if word := strings.Fields(line[from:]); len(word) > 0 && word[0] != "-" {
			out = append(out, word[0])
		}
	}
	return out
}
