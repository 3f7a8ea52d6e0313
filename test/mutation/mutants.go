package main

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// wing is the folder of the planners.
const wing = "internal/plan"

// furtherPlanners are packages outside of the wing that decide, as planners do.
var furtherPlanners = []string{"internal/schedule"}

// simulator runs planners against each other. It is not a planner.
const simulator = wing + "/simulator"

// A change of a file that makes a mutant.
type change struct {
	// File is relative to the root of the module.
	File string
	// Type of the change, for example "< to <=".
	Type string
	// Text of the line without leading and trailing white space. It identifies the line after
	// lines above it have changed.
	Text string
	Line int
	// Number that switches the mutant on. It is unique in a package.
	Number int
	// Killed reports whether a test failed, or did not end in time.
	Killed bool
}

// plannersIn returns the packages of the wing in a module that have code, and the further ones.
func plannersIn(root string) ([]string, error) {
	found := map[string]bool{}
	err := filepath.WalkDir(filepath.Join(root, wing), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && isCode(filepath.Base(path)) {
			if rel, err := filepath.Rel(root, filepath.Dir(path)); err == nil && rel != simulator {
				found[filepath.ToSlash(rel)] = true
			}
		}
		return err
	})
	out := slices.Clone(furtherPlanners)
	for p := range found {
		out = append(out, p)
	}
	slices.Sort(out)
	return out, err
}

func isCode(file string) bool {
	return strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go") && file != "doc.go"
}

// A source is a file with all its mutants.
type source struct {
	file string
	// code of the file in which each mutant can be switched on.
	code []byte
}

// mutate the code of a package.
func mutate(pkg string) ([]*change, []source, error) {
	entries, err := os.ReadDir(pkg)
	if err != nil {
		return nil, nil, err
	}
	fset := token.NewFileSet()
	var (
		texts [][]byte
		files []*ast.File
	)
	for _, e := range entries {
		if !isCode(e.Name()) {
			continue
		}
		file := pkg + "/" + e.Name()
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, nil, err
		}
		root, err := parser.ParseFile(fset, file, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, nil, err
		}
		texts, files = append(texts, text), append(files, root)
	}
	info, err := typesOf(pkg, fset, files)
	if err != nil {
		return nil, nil, err
	}
	var (
		mutants []*change
		sources []source
	)
	for i, file := range files {
		m := newMutator(fset, info, file, texts[i], len(mutants)+1)
		m.walk()
		mutants = append(mutants, m.mutants...)
		sources = append(sources, source{file: fset.Position(file.Pos()).Filename, code: m.code()})
	}
	return mutants, sources, nil
}

// typesOf the expressions of a package. The types of other packages come from their export data.
func typesOf(pkg string, fset *token.FileSet, files []*ast.File) (*types.Info, error) {
	out, err := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "./"+pkg).Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", pkg, err)
	}
	compiled := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		compiled[path] = file
	}
	open := func(path string) (io.ReadCloser, error) { return os.Open(compiled[path]) }
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	_, err = (&types.Config{Importer: importer.ForCompiler(fset, "gc", open)}).Check(pkg, fset, files, info)
	return info, err
}
