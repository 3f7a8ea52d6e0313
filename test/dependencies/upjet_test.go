package dependencies

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// aliases is the module that declares, for upjet, what crossplane-runtime no longer has.
const aliases = "github.com/crossplane/crossplane-runtime/v2/apis/common"

// TestTheAliasesAreForUpjet finds code of Drover that depends on them, and the version of upjet from
// which on nothing does.
func TestTheAliasesAreForUpjet(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-test", "-f", `{{.ImportPath}}{{range .Imports}} {{.}}{{end}}`, "./...")
	stderr := &bytes.Buffer{}
	cmd.Dir, cmd.Stderr = filepath.Clean(root), stderr
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v: %s", err, stderr)
	}
	needed := false
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		importer, imports, _ := strings.Cut(line, " ")
		for _, i := range strings.Fields(imports) {
			if i != aliases && !strings.HasPrefix(i, aliases+"/") {
				continue
			}
			switch {
			case strings.HasPrefix(importer, "github.com/crossplane/upjet/"):
				needed = true
			case !strings.HasPrefix(importer, aliases):
				t.Errorf("%s imports %s: import github.com/crossplane/crossplane/apis/v2/core/v2", importer, i)
			}
		}
	}
	if !needed {
		t.Errorf("upjet does not import %s any more: remove it, as compat/crossplane-common/README.md has it", aliases)
	}
}
