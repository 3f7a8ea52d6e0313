package plan

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module = "github.com/drover-dev/drover"
	root   = "../.."
)

// forbidden are the packages of the protocol and of clients, which a planner must not import.
var forbidden = []string{
	"github.com/crossplane/function-sdk-go",
	"google.golang.org/protobuf",
	"k8s.io/client-go",
	"sigs.k8s.io/controller-runtime",
}

// TestPlannersArePure reads the imports of all planners, and of Drover's own packages that they
// import. Imports of third-party libraries are not checked: cel-go imports protobuf.
func TestPlannersArePure(t *testing.T) {
	// via has the import path by which each package was found.
	via := map[string][]string{}
	var queue []string
	add := func(pkg string, by []string) {
		if via[pkg] == nil {
			via[pkg] = append(slices.Clone(by), strings.TrimPrefix(pkg, module+"/"))
			queue = append(queue, pkg)
		}
	}
	err := filepath.WalkDir(".", func(dir string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "testdata" {
			return fs.SkipDir
		}
		if err == nil && d.IsDir() {
			add(path.Join(module, "internal/plan", filepath.ToSlash(dir)), nil)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for len(queue) > 0 {
		pkg := queue[0]
		queue = queue[1:]
		isPlanner := strings.HasPrefix(pkg, module+"/internal/plan")
		dir := filepath.Join(root, strings.TrimPrefix(pkg, module))
		p, err := build.ImportDir(dir, 0)
		if err != nil {
			t.Fatalf("%s: %v", strings.Join(via[pkg], " -> "), err)
		}
		for _, imported := range p.Imports {
			if slices.ContainsFunc(forbidden, func(f string) bool { return imported == f || strings.HasPrefix(imported, f+"/") }) {
				t.Errorf("%s imports %s", strings.Join(via[pkg], " -> "), imported)
			}
			if strings.HasPrefix(imported, module+"/") {
				add(imported, via[pkg])
			}
		}
		if !isPlanner {
			continue
		}
		for _, name := range p.GoFiles {
			for _, position := range clockReads(t, filepath.Join(dir, name)) {
				t.Errorf("%s reads the clock", position)
			}
		}
	}
	if len(via) < 10 {
		t.Errorf("read only %d packages", len(via))
	}
}

// clockReads returns the positions in a file that use time.Now or time.Since.
func clockReads(t *testing.T, file string) []string {
	t.Helper()
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	clock := ""
	for _, i := range f.Imports {
		if imported, _ := strconv.Unquote(i.Path.Value); imported == "time" {
			if clock = "time"; i.Name != nil {
				clock = i.Name.Name
			}
		}
	}
	var out []string
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := s.X.(*ast.Ident); ok && x.Name == clock && slices.Contains([]string{"Now", "Since", "Until"}, s.Sel.Name) {
			out = append(out, files.Position(s.Pos()).String())
		}
		return true
	})
	return out
}
