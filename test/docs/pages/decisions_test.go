package pages

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A reader follows the evidence of a decision to the test that holds it, and the table to the decision that counts now.
func TestDecisionsNameTheirEvidenceAndTheirStatus(t *testing.T) {
	pages := read(t)
	paths := regexp.MustCompile("`((?:apis|cluster|cmd|config|internal|karpenter|package|test|tools)/[^` *]+)`")
	status := regexp.MustCompile(`\*\*Status:\*\* (Accepted|Superseded by \[?(\d{4})[^.]*)\.`)
	n := 0
	for name, text := range pages {
		if !regexp.MustCompile(`^docs/decisions/\d{4}-`).MatchString(name) {
			continue
		}
		n++
		m := status.FindStringSubmatch(text)
		if m == nil {
			t.Errorf("%s has no status: it must be Accepted, or Superseded by another one", name)
			continue
		}
		row := regexp.MustCompile(`(?m)^\| \[\d{4}\]\(` + regexp.QuoteMeta(path.Base(name)) + `\) \| .* \| (Accepted|Superseded by .*) \|$`).FindStringSubmatch(pages["docs/decisions/README.md"])
		if row == nil || strings.HasPrefix(row[1], "Superseded") != (m[2] != "") || m[2] != "" && !strings.Contains(row[1], m[2]) {
			t.Errorf("%s is %q, and the table of decisions has %q", name, m[1], row)
		}
		_, evidence, _ := strings.Cut(text, "**Evidence.**")
		for _, p := range paths.FindAllStringSubmatch(evidence, -1) {
			file := strings.TrimSuffix(p[1], "/...")
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(file))); err != nil {
				t.Errorf("%s: the evidence names %s, which does not exist", name, p[1])
			}
		}
	}
	if n < 30 {
		t.Errorf("only %d decisions", n)
	}
}
