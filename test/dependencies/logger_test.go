package dependencies

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	clientPackage   = "sigs.k8s.io/controller-runtime/pkg/client"
	operatorPackage = "github.com/drover-dev/drover/internal/operator"
)

// withoutClient are the programs that link the client and create none, with the reason.
var withoutClient = map[string]string{
	"function-drover": "it answers calls of Crossplane, and calls nothing",
	"release":         "it writes files and pushes to a registry",
}

// TestEachProgramWithAClientHasALogger: controller-runtime prints a stack trace to a program that creates a client more than 30
// seconds after its start and has set no logger, as on a busy computer. The package operator sets one.
func TestEachProgramWithAClientHasALogger(t *testing.T) {
	found := 0
	for _, module := range []string{".", "cluster"} {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.Dir}} {{join .Deps " "}}`, "./cmd/...")
		cmd.Dir = filepath.Join(root, module)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			fields := strings.Fields(line)
			dir, imported := fields[0], fields[1:]
			name := filepath.Base(dir)
			if !slices.Contains(imported, clientPackage) || slices.Contains(imported, operatorPackage) || withoutClient[name] != "" {
				continue
			}
			found++
			if !setsLogger(t, dir) {
				t.Errorf("cmd/%s of the module %s creates a client and sets no logger: call SetLogger of %s in main", name, module, "sigs.k8s.io/controller-runtime/pkg/log")
			}
		}
	}
	if found < 4 {
		t.Errorf("found only %d programs with a client", found)
	}
}

func setsLogger(t *testing.T, dir string) bool {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(b), "log.SetLogger(")
}
