package gitops

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/drover-dev/drover/test/kit"
)

// commands of docs/gitops.md that begin with a word, in their order.
func commands(t *testing.T, word string) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(kit.Root(), "docs", "gitops.md"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range regexp.MustCompile(`(?m)^ {4,8}`+word+` (.*)$`).FindAllStringSubmatch(string(b), -1) {
		out = append(out, m[1])
	}
	return out
}

// command of docs/gitops.md that begins with some words of the Crossplane CLI.
func command(t *testing.T, words string) []string {
	t.Helper()
	for _, c := range commands(t, "crossplane") {
		if strings.HasPrefix(c, words+" ") {
			return strings.Fields(c)
		}
	}
	t.Fatalf("docs/gitops.md has no command crossplane %s", words)
	return nil
}

// crossplane runs the Crossplane CLI in the folder of the repository. The kubeconfig may be empty.
func crossplane(t *testing.T, kubeconfig string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary("crossplane-cli"), args...)
	cmd.Dir, cmd.Env = kit.Root(), append(os.Environ(), "KUBECONFIG="+kubeconfig)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
