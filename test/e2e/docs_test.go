package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/drover-dev/drover/test/kit"
)

// TestCommandsOfTheDocsRun runs the commands of pages for administrators that only read, as
// they stand there, and applies the objects of production.md to the API server without effect.
func TestCommandsOfTheDocsRun(t *testing.T) {
	t.Parallel()
	f := plane.NewFleet(t)
	f.Create(t, f.Deployment("pool", 1, 1, 0))
	f.AwaitDeployment(t, "pool")
	for page, least := range map[string]int{"runbook.md": 15, "production.md": 4} {
		b, err := os.ReadFile(filepath.Join(kit.Root(), "docs", page))
		must(t, err)
		ran := 0
		for _, m := range regexp.MustCompile(`(?m)^ {4,7}kubectl (.*)$`).FindAllStringSubmatch(string(b), -1) {
			line := strings.ReplaceAll(m[1], "NAMESPACE", f.Namespace)
			line, _, _ = strings.Cut(line, " >")
			args := words(line)
			if args[0] == "apply" {
				args = []string{"apply", "--dry-run=server", "-f", filepath.Join(kit.Root(), args[2])}
			}
			out, err := f.Kubectl(t, args...)
			if err != nil {
				t.Errorf("docs/%s: kubectl %s: %v\n%s", page, line, err, out)
			}
			ran++
		}
		if ran < least {
			t.Errorf("docs/%s: %d commands were run, at least %d expected", page, ran, least)
		}
	}
	f.DeleteDeployment(t, "pool")
}

// words of a command line. A single quote begins or ends a text with spaces.
func words(line string) []string {
	var out []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			if n := len(out); n > 0 && strings.HasSuffix(out[n-1], "=") {
				out[n-1] += part
				continue
			}
			out = append(out, part)
			continue
		}
		out = append(out, strings.Fields(part)...)
	}
	return out
}
