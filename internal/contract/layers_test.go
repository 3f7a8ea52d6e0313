package contract

import (
	"go/ast"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

const circular = module + "internal/contract/testdata/circle"

// layered are the packages whose files have an order, so that a reader can begin with the facts and end with the plan.
var layered = []string{module + "internal/plan", module + "internal/controller/machine", circular}

// circles are the numbers of files that use each other, of the packages that have such files. They only get lower.
var circles = map[string]int{
	module + "internal/plan/simulator": 10,
	circular:                           2,
}

// TestFilesUseEachOtherInOneDirection holds planners to an order of their files: each uses only those below it.
func TestFilesUseEachOtherInOneDirection(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the module")
	}
	seen := 0
	for _, p := range load(t) {
		if !slices.ContainsFunc(layered, func(l string) bool { return p.PkgPath == l || strings.HasPrefix(p.PkgPath, l+"/") }) {
			continue
		}
		seen++
		all := usersOf(p).inCircles()
		if len(all) > circles[p.PkgPath] {
			t.Errorf("%s: these files use each other in a circle: %s. Move what the lower one uses to a file below both", p.PkgPath, strings.Join(all, ", "))
		}
		if len(all) < circles[p.PkgPath] {
			t.Errorf("%s: only %d files use each other in a circle: lower the number in this test", p.PkgPath, len(all))
		}
	}
	if seen < len(circles)+5 {
		t.Errorf("only %d packages were read", seen)
	}
}

// A graph has the files of a package, and the files that each uses.
type graph map[string]map[string]bool

// usersOf returns the files of a package with those whose declarations they name. Fields count with their type.
func usersOf(p *packages.Package) graph {
	g := graph{}
	for _, f := range p.Syntax {
		from := fileOf(p, f)
		if strings.HasPrefix(from, "zz_") {
			continue
		}
		g[from] = map[string]bool{}
		ast.Inspect(f, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			o := p.TypesInfo.Uses[id]
			if v, isVar := o.(*types.Var); o == nil || o.Pkg() != p.Types || isVar && v.IsField() {
				return true
			}
			if to := filepath.Base(p.Fset.Position(o.Pos()).Filename); to != from {
				g[from][to] = true
			}
			return true
		})
	}
	return g
}

func fileOf(p *packages.Package, f *ast.File) string {
	return filepath.Base(p.Fset.Position(f.Pos()).Filename)
}

// inCircles returns the files that use themselves by way of further files, sorted.
func (g graph) inCircles() []string {
	var out []string
	for file := range g {
		reached := map[string]bool{}
		g.reach(file, reached)
		if reached[file] {
			out = append(out, file)
		}
	}
	slices.Sort(out)
	return out
}

// reach adds all files that a file uses, directly or indirectly.
func (g graph) reach(file string, reached map[string]bool) {
	for to := range g[file] {
		if !reached[to] {
			reached[to] = true
			g.reach(to, reached)
		}
	}
}
