package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/tools/go/ast/astutil"
)

// coreAPI is the package that crossplane-runtime v2.3.0 moved its API types to.
const coreAPI = "github.com/crossplane/crossplane/apis/v2/core/v2"

// moved are the packages that upjet's templates import, with the types that have another name
// in coreAPI.
var moved = map[string]map[string]string{
	"github.com/crossplane/crossplane-runtime/v2/apis/common/v1": {"ResourceStatus": "ManagedResourceStatus"},
	"github.com/crossplane/crossplane-runtime/v2/apis/common/v2": nil,
}

// useCoreAPI has the Go files of a folder import coreAPI instead of the packages that were moved to
// it, so that Drover's API has Crossplane's own types, and not the aliases that upjet needs.
func useCoreAPI(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.go"))
	if err != nil {
		return err
	}
	for _, f := range files {
		src, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		out, err := withCoreAPI(f, src)
		if err != nil {
			return err
		}
		if err := os.WriteFile(f, out, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func withCoreAPI(name string, src []byte) ([]byte, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, src, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	// By the name in the file. upjet names each import.
	renames := map[string]map[string]string{}
	for _, s := range slices.Clone(f.Imports) { // A deletion shifts them.
		path, err := strconv.Unquote(s.Path.Value)
		if err != nil {
			return nil, err
		}
		names, ok := moved[path]
		if !ok {
			continue
		}
		if s.Name == nil {
			return nil, fmt.Errorf("%s: the import of %s must have a name", name, path)
		}
		renames[s.Name.Name] = names
		astutil.DeleteNamedImport(fset, f, s.Name.Name, path)
	}
	if len(renames) == 0 {
		return src, nil
	}
	astutil.AddNamedImport(fset, f, "xpv2", coreAPI)
	ast.Inspect(f, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		pkg, ok := sel.X.(*ast.Ident)
		if !ok {
			return true
		}
		names, ok := renames[pkg.Name]
		if !ok {
			return true
		}
		pkg.Name = "xpv2"
		if renamed, ok := names[sel.Sel.Name]; ok {
			sel.Sel.Name = renamed
		}
		return true
	})
	var out bytes.Buffer
	if err := format.Node(&out, fset, f); err != nil {
		return nil, err
	}
	return format.Source(out.Bytes())
}
