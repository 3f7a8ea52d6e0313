package docs

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/kubectl/installation"
	"github.com/drover-dev/drover/test/kit"
)

// installPage is the page whose blocks TestTheInstallationOfTheDocs runs, except those of the
// section about deleted packages.
const (
	installPage     = "docs/install.md"
	sectionOfRepair = "If a package is gone and Machines are there"
)

// inStory reports whether TestTheInstallationOfTheDocs runs a block.
func inStory(b Block) bool { return b.Page == installPage && b.Section != sectionOfRepair }

func TestCommandsOfTheDocs(t *testing.T) {
	t.Parallel()
	blocks, err := Read(kit.Root())
	must(t, err)
	w := newWorld(t, up(t, kit.Options{Target: true}))
	w.furnish(t)
	w.serveFunction(t)
	renderInput(t, w)
	placeholdersAreRefused(t, w)
	ran := 0
	for _, b := range blocks {
		if b.RunBy+b.NotRun != "" || inStory(b) {
			continue
		}
		ran++
		if _, err := w.run(t.Context(), b); err != nil {
			t.Error(err)
		}
	}
	rows := commandsOfTables(t)
	for _, b := range rows {
		if _, err := w.run(t.Context(), b); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d commands of tables", len(rows))
	if t.Logf("%d of %d blocks", ran, len(blocks)); ran < 50 {
		t.Errorf("only %d blocks were run", ran)
	}
}

// placeholdersAreRefused applies the classes of all examples, as they are and as a reader has filled them in. A kind of a
// class is there for each cloud.
func placeholdersAreRefused(t *testing.T, w *world) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(kit.Root(), "examples", "*", "machineclass*.yaml"))
	must(t, err)
	refused := 0
	for _, file := range files {
		of := filepath.Join(filepath.Base(filepath.Dir(file)), filepath.Base(file))
		b, err := os.ReadFile(file)
		must(t, err)
		if installation.Placeholder.Match(b) {
			refused++
			out, err := w.plane.Kubectl(t, "apply", "--dry-run=server", "-f", file)
			if message := fmt.Sprint(out, err); err == nil || !strings.Contains(message, "drover-placeholders") || !strings.Contains(message, "spec.forProvider.") {
				t.Errorf("%s is applied as it is: %s", of, message)
			}
		}
		if out, err := w.plane.Kubectl(t, "apply", "--dry-run=server", "-f", filepath.Join(w.dir, "examples", of)); err != nil {
			t.Errorf("%s is refused with values: %s %v", of, out, err)
		}
	}
	if refused < 14 {
		t.Errorf("only %d classes have placeholders", refused)
	}
}

// commandsOfTables returns the commands in the tables of the page for people on call.
func commandsOfTables(t *testing.T) []Block {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(kit.Root(), runbookPage))
	must(t, err)
	rows := tableCommands(runbookPage, string(b))
	if len(rows) < 30 {
		t.Errorf("%s: only %d commands are in tables", runbookPage, len(rows))
	}
	return rows
}

// renderInput writes the files that docs/pipelines.md and docs/gitops.md describe.
func renderInput(t *testing.T, w *world) {
	t.Helper()
	read := func(path string) string {
		b, err := os.ReadFile(filepath.Join(kit.Root(), path))
		must(t, err)
		return string(b)
	}
	machine, err := w.plane.Kubectl(t, "create", "--dry-run=server", "-o", "yaml", "-f", filepath.Join(kit.Root(), "examples/local/machine.yaml"))
	must(t, err)
	composition := read("apis/machine/compositions/machine-local.yaml")
	schema, err := w.plane.Kubectl(t, "get", "--raw", "/openapi/v3/apis/local.drover.dev/v1alpha1")
	must(t, err)
	crd, err := w.plane.Kubectl(t, "get", "crd", "orphancollectors.machine.drover.dev", "-o", "yaml")
	must(t, err)
	for file, text := range map[string]string{
		"key.json": `{"type": "service_account"}`, "machine.yaml": machine, "composition.yaml": composition, "functions.yaml": read("examples/render/functions.yaml"), "schemas/machine.json": schema,
		"required.yaml": strings.Join([]string{read("examples/local/machineclass.yaml"), composition, crd}, "\n---\n"),
	} {
		must(t, os.WriteFile(filepath.Join(w.dir, file), []byte(text), 0o600))
	}
}

func TestATestThatAMarkNamesExists(t *testing.T) {
	blocks, err := Read(kit.Root())
	must(t, err)
	var tests strings.Builder
	must(t, filepath.WalkDir(filepath.Join(kit.Root(), "test"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			b, _ := os.ReadFile(path)
			tests.Write(b)
		}
		return err
	}))
	for _, b := range blocks {
		switch {
		case b.NotRun != "":
			t.Logf("%s is not run: %s", b, b.NotRun)
		case b.RunBy != "" && !regexp.MustCompile(`(?m)^func `+b.RunBy+`\(`).MatchString(tests.String()):
			t.Errorf("%s: there is no %s", b, b.RunBy)
		}
	}
}

// A block that the shell cannot parse fails before any tool runs, so blocks that no test runs are
// checked too.
func TestBlocksAreScriptsOfAShell(t *testing.T) {
	blocks, err := Read(kit.Root())
	must(t, err)
	for _, b := range append(blocks, commandsOfTables(t)...) {
		cmd := exec.CommandContext(t.Context(), "bash", "-n")
		cmd.Stdin = strings.NewReader(b.Script)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s%s", b, err, out, b.Script)
		}
	}
}
