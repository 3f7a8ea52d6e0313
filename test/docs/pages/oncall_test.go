package pages

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ofOnCall matches a command in the pages for the duty.
var ofOnCall = regexp.MustCompile("(?m)(?:^ {4}|`)(kubectl [^`\\n]+)")

// notInTheDemo matches the parts of commands that need things that the demo lacks: a second cluster, pods of Drover, and Leases.
var notInTheDemo = regexp.MustCompile(`--context \S+|-n crossplane-system (logs|get pods|get leases|exec|rollout)\b`)

// TestOnCallNamesWhatToUseInTheDemo: a user who is new to the duty tries the commands in the demo.
func TestOnCallNamesWhatToUseInTheDemo(t *testing.T) {
	pages := read(t)
	_, section, ok := strings.Cut(pages["docs/on-call.md"], "\n## In the demo\n")
	if !ok {
		t.Fatal("docs/on-call.md has no section about the demo")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var named []string
	for line := range strings.Lines(section) {
		if m := ofOnCall.FindStringSubmatch(line); m != nil && strings.HasPrefix(line, "- ") {
			named = append(named, m[1])
		}
	}
	pages["docs/on-call.md"] = strings.Replace(pages["docs/on-call.md"], section, "", 1)
	commands, other := 0, map[string]bool{}
	for _, page := range []string{"docs/on-call.md", "docs/runbook.md"} {
		for _, m := range ofOnCall.FindAllStringSubmatch(pages[page], -1) {
			commands++
			if !notInTheDemo.MatchString(m[1]) {
				continue
			}
			i := slices.IndexFunc(named, func(prefix string) bool { return strings.HasPrefix(m[1], prefix) })
			if i < 0 {
				t.Errorf("%s: %s does not work in the demo, and docs/on-call.md does not name what to use there", page, m[1])
				continue
			}
			other[named[i]] = true
		}
	}
	if commands < 60 || len(named) == 0 || len(other) != len(named) {
		t.Errorf("of %d commands, %d kinds do not work in the demo, and %d are named: %q", commands, len(other), len(named), named)
	}
}
