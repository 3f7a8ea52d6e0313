package pages

import (
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/clouds"
)

var update = flag.Bool("update", false, "write the picture of the folders into docs/architecture.md")

const (
	// picturePage has the picture between these marks.
	picturePage              = "docs/architecture.md"
	pictureBegin, pictureEnd = "<!-- The picture of the folders, by \"go test ./test/docs/pages -run Folders -update\" -->\n", "<!-- end -->"
)

// A room of the picture is a group of folders.
type room struct {
	// name in the picture, and its label: the folders.
	name, label string
	// folders below the root. A folder stands for all that are below it, unless another room has a longer one.
	folders []string
}

// rooms are the rooms of the picture, from the programs to the foundations.
var rooms = []room{
	{"cmd", "cmd", []string{"cmd"}},
	{"kubectl", "internal/kubectl, handover, move, localplane<br/>kubectl drover, the demo", []string{"internal/kubectl", "internal/handover", "internal/move", "internal/localplane"}},
	{"machine", "internal/controller/machine<br/>the life of a Machine", []string{"internal/controller/machine"}},
	{"controllers", "internal/controller, metrics<br/>Drover's other kinds", []string{"internal/controller", "internal/metrics"}},
	{"clouds", "internal/controller/CLOUD<br/>VMs of each cloud", append(cloudFolders(), "internal/controller/inventories", "internal/controller/terraform")},
	{"native", "internal/native<br/>the frame on SDKs", []string{"internal/native"}},
	{"lift", "internal/lift, config<br/>the frame on Terraform providers", []string{"internal/lift", "config"}},
	{"inventory", "internal/inventory, cloud<br/>lists of VMs", []string{"internal/inventory", "internal/cloud"}},
	{"managed", "internal/controller/mr, providerconfig<br/>managed resources", []string{"internal/controller/mr", "internal/controller/providerconfig", "internal/operator", "internal/creation", "internal/reboot", "internal/undecoded"}},
	{"function", "internal/function<br/>the steps", []string{"internal/function"}},
	{"pipeline", "internal/pipeline", []string{"internal/pipeline"}},
	{"plan", "internal/plan<br/>the planners", []string{"internal/plan"}},
	{"jointoken", "internal/jointoken", []string{"internal/jointoken"}},
	{"userdata", "internal/userdata", []string{"internal/userdata"}},
	{"target", "internal/target, workernode, nodekeys, identity<br/>target clusters", []string{"internal/target", "internal/workernode", "internal/nodekeys", "internal/identity"}},
	{"terraform", "internal/terraform, localcloud", []string{"internal/terraform", "internal/localcloud"}},
	{"small", "small packages<br/>names, text, stored, schedule, ...", []string{"internal"}},
}

// outside are folders of generators and tests, which no program imports.
var outside = []string{
	"config/generate", "internal/cloudgen", "internal/clouds", "internal/conditionsgen", "internal/contract", "internal/refgen", "internal/rightstest",
	"internal/schemabounds", "internal/schemadocs", "internal/schematest", "internal/storedgen", "internal/xrdgen",
	"internal/controller/machine/nodekeeper/nodetest", "internal/function/machinetest", "internal/lift/lifttest", "internal/native/nativetest",
	"internal/plan/simulator", "internal/terraform/plugin/plugintest",
}

func cloudFolders() []string {
	var out []string
	for _, c := range clouds.All() {
		if c.Frame != clouds.Published {
			out = append(out, "internal/controller/"+c.Name)
		}
	}
	return out
}

// roomOf returns the room of a folder, "" if it is in none.
func roomOf(folder string) string {
	if slices.ContainsFunc(outside, func(f string) bool { return isBelow(folder, f) }) {
		return ""
	}
	name, longest := "", 0
	for _, r := range rooms {
		for _, f := range r.folders {
			if isBelow(folder, f) && len(f) > longest {
				name, longest = r.name, len(f)
			}
		}
	}
	return name
}

func isBelow(folder, of string) bool { return folder == of || strings.HasPrefix(folder, of+"/") }

// TestThePictureOfTheFoldersIsThatOfTheImports compares the picture with the imports, and fails for a circle.
func TestThePictureOfTheFoldersIsThatOfTheImports(t *testing.T) {
	arrows := map[string]map[string]bool{}
	for folder, imports := range importsOf(t) {
		from := roomOf(folder)
		for _, imported := range imports {
			if to := roomOf(imported); from != "" && to != "" && from != to {
				if arrows[from] == nil {
					arrows[from] = map[string]bool{}
				}
				arrows[from][to] = true
			}
		}
	}
	for _, r := range rooms {
		if reaches(arrows, r.name, r.name, nil) {
			t.Errorf("%s imports itself by way of others: %v", r.name, arrows[r.name])
		}
	}
	want := pictureBegin + draw(arrows) + pictureEnd
	file := filepath.Join(root, picturePage)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(b), "\n"); lines >= 500 {
		t.Errorf("%s has %d lines: it is read in one piece, so it must stay below 500", picturePage, lines)
	}
	before, rest, ok := strings.Cut(string(b), pictureBegin)
	_, after, closed := strings.Cut(rest, pictureEnd)
	if !ok || !closed {
		t.Fatalf("%s has no %q", picturePage, pictureBegin)
	}
	if got := string(b); got != before+want+after {
		if *update {
			if err := os.WriteFile(file, []byte(before+want+after), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		t.Errorf("the picture of %s is not that of the imports; -update writes:\n%s", picturePage, want)
	}
}

// TestEachFolderOfTheTestsHasALine finds a folder of which no reader knows the purpose.
func TestEachFolderOfTheTestsHasALine(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root, "test/README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(b), "\n## The folders\n")
	table, _, _ = strings.Cut(table, "\n## ")
	folders, err := os.ReadDir(filepath.Join(root, "test"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if f.IsDir() && !strings.Contains(table, "["+f.Name()+"]("+f.Name()) {
			t.Errorf("test/README.md has no line for test/%s", f.Name())
		}
	}
}

// draw returns the picture, without the arrows that follow from others.
func draw(arrows map[string]map[string]bool) string {
	b := &strings.Builder{}
	b.WriteString("\n```mermaid\nflowchart TD\n")
	for _, r := range rooms {
		fmt.Fprintf(b, "    %s[%q]\n", r.name, r.label)
	}
	for _, from := range rooms {
		for _, to := range rooms {
			if !arrows[from.name][to.name] {
				continue
			}
			if byWay := reaches(arrows, from.name, to.name, func(next string) bool { return next != to.name }); !byWay {
				fmt.Fprintf(b, "    %s --> %s\n", from.name, to.name)
			}
		}
	}
	b.WriteString("```\n\n")
	return b.String()
}

// reaches reports whether arrows lead from one room to another, if the first arrow may lead to a room.
func reaches(arrows map[string]map[string]bool, from, to string, may func(string) bool) bool {
	seen := map[string]bool{}
	var walk func(string) bool
	walk = func(r string) bool {
		for next := range arrows[r] {
			if next == to {
				return true
			}
			if !seen[next] {
				seen[next] = true
				if walk(next) {
					return true
				}
			}
		}
		return false
	}
	for next := range arrows[from] {
		if (may == nil || may(next)) && (next == to || !seen[next] && walk(next)) {
			return true
		}
	}
	return false
}

// importsOf returns what the packages of the module import of it outside of tests, by folder.
func importsOf(t *testing.T) map[string][]string {
	t.Helper()
	const module = "github.com/drover-dev/drover/"
	out := map[string][]string{}
	for _, top := range []string{"cmd", "config", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") || strings.Contains(file, "testdata") {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(root, file)
			if err != nil {
				return err
			}
			folder := path.Dir(filepath.ToSlash(rel))
			for _, i := range f.Imports {
				name, err := strconv.Unquote(i.Path.Value)
				if err != nil {
					return err
				}
				if imported, ok := strings.CutPrefix(name, module); ok {
					out[folder] = append(out[folder], imported)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(out) < 80 {
		t.Fatalf("only %d packages", len(out))
	}
	return out
}
