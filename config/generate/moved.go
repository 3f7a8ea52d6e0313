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
	"regexp"
	"slices"
	"strconv"

	"golang.org/x/tools/go/ast/astutil"

	"github.com/drover-dev/drover/internal/lift"
)

// coreAPI is the package that crossplane-runtime v2.3.0 moved its API types to.
const coreAPI = "github.com/crossplane/crossplane/apis/v2/core/v2"

// moved are the packages that upjet's templates import, with the types that have another name
// in coreAPI.
var moved = map[string]map[string]string{
	"github.com/crossplane/crossplane-runtime/v2/apis/common/v1": {"ResourceStatus": "ManagedResourceStatus"},
	"github.com/crossplane/crossplane-runtime/v2/apis/common/v2": nil,
}

// rewrite has the Go files of a folder import coreAPI instead of the packages that were moved to
// it, so that Drover's API has Crossplane's own types, and not the aliases that upjet needs. It moves the rules of
// kinds to their specs. It has each kind embed stored.Undecoded.
func rewrite(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.go"))
	if err != nil {
		return err
	}
	for _, f := range files {
		src, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		out, err := withCoreAPI(f, withRules(src))
		if err == nil {
			out, err = withUndecoded(f, out)
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(f, out, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// specField is the field of a managed resource's type that has its spec.
var specField = regexp.MustCompile(`(?m)^\tSpec\s`)

// withRules moves the rules in the comment of a type to its spec, where upjet writes the rules of required fields: the
// functions validate only the spec.
func withRules(src []byte) []byte {
	var rest, rules [][]byte
	for line := range bytes.Lines(src) {
		if bytes.HasPrefix(line, []byte(lift.RuleMarker)) {
			rules = append(rules, append([]byte("\t"), line...))
			continue
		}
		rest = append(rest, line)
	}
	out := bytes.Join(rest, nil)
	if at := specField.FindIndex(out); at != nil {
		return slices.Concat(out[:at[0]], bytes.Join(rules, nil), out[at[0]:])
	}
	return src
}

// objectMeta is the field of a kind that has its metadata.
var objectMeta = regexp.MustCompile("(?m)^\tmetav1\\.ObjectMeta\\s.*\n")

// withUndecoded has the kinds of a file embed stored.Undecoded.
func withUndecoded(name string, src []byte) ([]byte, error) {
	if !objectMeta.Match(src) {
		return src, nil
	}
	src = objectMeta.ReplaceAll(src, []byte("${0}\tstored.Undecoded `json:\"-\"`\n"))
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, src, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	astutil.AddImport(fset, f, lift.Module+"/internal/stored")
	var out bytes.Buffer
	if err := format.Node(&out, fset, f); err != nil {
		return nil, err
	}
	return format.Source(out.Bytes())
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
