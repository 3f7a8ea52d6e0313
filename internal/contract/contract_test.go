// Package contract tests rules of the whole code: condition types and reasons are declared in the API packages only, and the
// files of a planner use each other in one direction.
package contract

import (
	"go/ast"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/go/packages"
)

const (
	module  = "github.com/drover-dev/drover/"
	planted = module + "internal/contract/testdata/planted"
)

// allowed are the packages whose constants may be condition types and reasons: Drover's API, and
// libraries that declare those of Crossplane and Kubernetes.
var allowed = []string{
	module + "apis/",
	"github.com/crossplane/crossplane-runtime/",
	"github.com/crossplane/crossplane/",
	"k8s.io/api/",
	"k8s.io/apimachinery/",
}

// TestConditionTypesAndReasonsAreDeclaredInTheAPI reads all code but tests, and a package with
// faults that it must find.
func TestConditionTypesAndReasonsAreDeclaredInTheAPI(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the module")
	}
	uses, pkgs := usesOf(t)
	want := map[string]bool{}
	for _, p := range pkgs {
		if p.PkgPath != planted {
			continue
		}
		for _, f := range p.Syntax {
			for _, group := range f.Comments {
				if strings.HasPrefix(group.Text(), "Fault") {
					want[line(p, group)] = true
				}
			}
		}
	}
	if len(want) < 5 {
		t.Fatalf("found %d planted faults", len(want))
	}
	found := map[string]bool{}
	for _, u := range uses {
		if isDeclaredInAPI(u) {
			continue
		}
		at := line(u.pkg, u.expr)
		if u.pkg.PkgPath == planted {
			found[at] = true
			continue
		}
		t.Errorf("%s: %q is a condition type or a reason: declare it in conditions.go or reasons.go of the API package", at, u.value)
	}
	if !maps.Equal(found, want) {
		t.Errorf("of the planted faults %v, found %v", slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(found)))
	}
}

// loaded are all packages that the tests read. They are compiled once.
var loaded = sync.OnceValues(func() ([]*packages.Package, error) {
	return packages.Load(&packages.Config{
		Dir: "../..",
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo |
			packages.NeedImports | packages.NeedExportFile | packages.NeedModule,
	}, "./internal/...", "./cmd/...", "./apis/machine/...", "./apis/cluster/...", planted, circular)
})

func load(t *testing.T) []*packages.Package {
	t.Helper()
	pkgs, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pkgs {
		for _, e := range p.Errors {
			t.Fatal(e)
		}
	}
	return pkgs
}

func usesOf(t *testing.T) ([]*use, []*packages.Package) {
	t.Helper()
	pkgs := load(t)
	a := &analysis{pkgs: pkgs, sinks: map[types.Object]kind{}, uses: map[ast.Expr]*use{}}
	a.run()
	return slices.Collect(maps.Values(a.uses)), pkgs
}

// isDeclaredInAPI reports whether a use names a constant of an allowed package, or is the
// declaration of one.
func isDeclaredInAPI(u *use) bool {
	pkg := u.pkg.PkgPath
	if u.con != nil {
		pkg = u.con.Pkg().Path()
	}
	return slices.ContainsFunc(allowed, func(a string) bool { return strings.HasPrefix(pkg, a) })
}

// line is the file and the line of a node.
func line(p *packages.Package, n ast.Node) string {
	at := p.Fset.Position(n.Pos())
	return filepath.Join(strings.TrimPrefix(p.PkgPath, module), filepath.Base(at.Filename)) + ":" + strconv.Itoa(at.Line)
}
