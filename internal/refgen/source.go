package main

import (
	"errors"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const module = "github.com/drover-dev/drover"

// A source reads packages of the repository. It evaluates their constant expressions. It needs
// neither a build nor the dependencies: of imports, it knows only those below apis and the units
// of the package time.
type source struct {
	root   string
	files  *token.FileSet
	units  *types.Package
	loaded map[string]*pkg
}

// A pkg is a package with the constants that its expressions have.
type pkg struct {
	*types.Package
	syntax []*ast.File
	info   *types.Info
}

func newSource(root string) *source {
	return &source{root: root, files: token.NewFileSet(), units: timeUnits(), loaded: map[string]*pkg{}}
}

// timeUnits is a package time that has nothing but Duration and its units.
func timeUnits() *types.Package {
	p := types.NewPackage("time", "time")
	name := types.NewTypeName(token.NoPos, p, "Duration", nil)
	duration := types.NewNamed(name, types.Typ[types.Int64], nil)
	p.Scope().Insert(name)
	for unit, d := range map[string]time.Duration{
		"Nanosecond": time.Nanosecond, "Microsecond": time.Microsecond, "Millisecond": time.Millisecond,
		"Second": time.Second, "Minute": time.Minute, "Hour": time.Hour,
	} {
		p.Scope().Insert(types.NewConst(token.NoPos, p, unit, duration, constant.MakeInt64(int64(d))))
	}
	p.MarkComplete()
	return p
}

// load the package in a folder of the repository.
func (s *source) load(folder string) (*pkg, error) {
	if p, ok := s.loaded[folder]; ok {
		return p, nil
	}
	entries, err := os.ReadDir(filepath.Join(s.root, folder))
	if err != nil {
		return nil, err
	}
	p := &pkg{info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}}
	for _, e := range entries {
		if e.IsDir() || !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(s.files, filepath.Join(s.root, folder, e.Name()), nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		p.syntax = append(p.syntax, f)
	}
	if len(p.syntax) == 0 {
		return nil, errors.New(folder + ": there is no Go file")
	}
	// An expression that needs another import is an error, and has no constant.
	config := types.Config{Importer: s, Error: func(error) {}}
	p.Package, _ = config.Check(module+"/"+folder, s.files, p.syntax, p.info)
	s.loaded[folder] = p
	return p, nil
}

// folders returns the folders of a pattern, from the root and in order.
func (s *source) folders(pattern string) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(s.root, filepath.FromSlash(pattern)))
	if err != nil {
		return nil, err
	}
	for i, folder := range found {
		if found[i], err = filepath.Rel(s.root, folder); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// Import a package for the type checker.
func (s *source) Import(path string) (*types.Package, error) {
	if folder, ok := strings.CutPrefix(path, module+"/"); ok && strings.HasPrefix(folder, "apis/") {
		p, err := s.load(folder)
		if err != nil {
			return nil, err
		}
		return p.Package, nil
	}
	if path == "time" {
		return s.units, nil
	}
	return nil, errors.New("not read")
}

// value of a constant expression, nil if it is none.
func (p *pkg) value(e ast.Expr) constant.Value { return p.info.Types[e].Value }

// text of a constant expression, "" if it is no string.
func (p *pkg) text(e ast.Expr) string {
	if v := p.value(e); v != nil && v.Kind() == constant.String {
		return constant.StringVal(v)
	}
	return ""
}

// A declaration of a constant.
type declaration struct {
	name, comment string
	value         constant.Value
}

// declarations of constants at the top of the package, in their order in the files. One without
// a comment shares that of the one above it, if no empty line is between them.
func (s *source) declarations(p *pkg) []declaration {
	var out []declaration
	for _, f := range p.syntax {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			comment, end := g.Doc.Text(), 0
			if g.Lparen.IsValid() {
				comment = ""
			}
			for _, spec := range g.Specs {
				v := spec.(*ast.ValueSpec) //nolint:forcetypeassert // A const declaration has nothing else.
				if v.Doc != nil {
					comment = v.Doc.Text()
				} else if end > 0 && s.files.Position(v.Pos()).Line > end+1 {
					comment = ""
				}
				end = s.files.Position(v.End()).Line
				for _, n := range v.Names {
					if c, ok := p.info.Defs[n].(*types.Const); ok {
						out = append(out, declaration{name: n.Name, comment: comment, value: c.Val()})
					}
				}
			}
		}
	}
	return out
}
