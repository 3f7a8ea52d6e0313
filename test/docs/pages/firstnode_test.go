package pages

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheFirstNodeTakesTenCommands counts the commands of each cloud, and looks for the files that they name.
func TestTheFirstNodeTakesTenCommands(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root, "docs/first-node.md"))
	if err != nil {
		t.Fatal(err)
	}
	clouds := 0
	for _, block := range regexp.MustCompile(`(?m)(^    .+\n)+`).FindAllString(string(b), -1) {
		clouds++
		if n := strings.Count(block, "\n"); n > 10 {
			t.Errorf("%d commands:\n%s", n, block)
		}
		for _, file := range regexp.MustCompile(`examples/[a-z/.-]+`).FindAllString(block, -1) {
			if _, err := os.Stat(filepath.Join(root, file)); err != nil {
				t.Error(err)
			}
		}
		if !strings.Contains(block, "--part=example") || !strings.Contains(block, "apply -f workers.yaml") {
			t.Errorf("no Machine is made:\n%s", block)
		}
	}
	if clouds != 4 {
		t.Errorf("%d clouds", clouds)
	}
}
