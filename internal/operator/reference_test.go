package operator

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestTheReferenceHasEachFlag compares the page, which is made from the source, with the flags that
// kong parses.
func TestTheReferenceHasEachFlag(t *testing.T) {
	b, err := os.ReadFile("../../docs/reference/flags.md")
	if err != nil {
		t.Fatal(err)
	}
	page, _, _ := strings.Cut(string(b), "\n## provider-drover")
	_, p, err := Operator{Name: "provider"}.parser()
	if err != nil {
		t.Fatal(err)
	}
	flags := 0
	for _, f := range p.Model.Flags {
		if f.Name == "help" {
			continue
		}
		flags++
		name := "--" + f.Name
		if f.Tag.Negatable != "" {
			name = "--[no-]" + f.Name
		}
		initial := strings.Replace(f.Default, "m0s", "m", 1)
		if initial != "" {
			initial = "`" + initial + "`"
		}
		if row := fmt.Sprintf("| `%s` | ", name); !strings.Contains(page, row) {
			t.Errorf("docs/reference/flags.md has no row %s", row)
		} else if row := fmt.Sprintf(" | %s | `%s` | %s |\n", initial, strings.Join(f.Envs, "`, `"), f.Help); !strings.Contains(page, row) {
			t.Errorf("docs/reference/flags.md: --%s: there is no %s", f.Name, row)
		}
	}
	if rows := strings.Count(page, "\n| `--"); rows != flags {
		t.Errorf("docs/reference/flags.md has %d flags, there are %d", rows, flags)
	}
}
