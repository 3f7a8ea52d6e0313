package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// wing is where the planners are.
const wing = "internal/plan"

// simulator plays planners against each other, and is none.
const simulator = wing + "/simulator"

// A status is what became of a mutant.
type status string

const (
	// killed means that a test failed, or did not end.
	killed status = "killed"
	lived  status = "lived"
	// notViable means that the mutant does not compile.
	notViable status = "not viable"
)

// A mutant is one change of a file.
type mutant struct {
	// File is relative to the root of the module.
	File string
	// Type of the change, for example "< to <=".
	Type string
	// Text of the line without the white space around it. It finds the line again when
	// others above it have changed.
	Text   string
	Line   int
	Status status

	// The bytes from..to of the file are replaced by these.
	from, to int
	by       string
}

// plannersIn a module are the packages of the wing that have code.
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
	var out []string
	for p := range found {
		out = append(out, p)
	}
	slices.Sort(out)
	return out, err
}

func isCode(file string) bool {
	return strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go") && file != "doc.go"
}

func mutantsOf(pkg string) ([]*mutant, error) {
	entries, err := os.ReadDir(pkg)
	if err != nil {
		return nil, err
	}
	var out []*mutant
	for _, e := range entries {
		if !isCode(e.Name()) {
			continue
		}
		file := pkg + "/" + e.Name()
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		of, err := mutantsIn(file, source)
		if err != nil {
			return nil, err
		}
		out = append(out, of...)
	}
	return out, nil
}

// operators that take the place of each other.
var operators = map[token.Token][]token.Token{
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL},
	token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR},
	token.GTR: {token.GEQ, token.LEQ}, token.GEQ: {token.GTR, token.LSS},
	token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL},
	token.SHL: {token.SHR}, token.SHR: {token.SHL},
	token.ADD_ASSIGN: {token.SUB_ASSIGN}, token.SUB_ASSIGN: {token.ADD_ASSIGN},
	token.INC: {token.DEC}, token.DEC: {token.INC},
}

// mutantsIn a file. Concatenations with a literal are left out: they do not compile otherwise.
func mutantsIn(file string, source []byte) ([]*mutant, error) {
	fset := token.NewFileSet()
	root, err := parser.ParseFile(fset, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	lines := bytes.Split(source, []byte("\n"))
	var out []*mutant
	add := func(from, to token.Pos, kind, by string) {
		at := fset.Position(from)
		out = append(out, &mutant{
			File: file, Type: kind, Line: at.Line, Text: string(bytes.TrimSpace(lines[at.Line-1])),
			from: at.Offset, to: fset.Position(to).Offset, by: by,
		})
	}
	swap := func(at token.Pos, is token.Token) {
		for _, by := range operators[is] {
			add(at, at+token.Pos(len(is.String())), fmt.Sprintf("%s to %s", is, by), by.String())
		}
	}
	ast.Inspect(root, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op != token.ADD || !hasText(n) {
				swap(n.OpPos, n.Op)
			}
		case *ast.UnaryExpr:
			if n.Op == token.NOT {
				add(n.OpPos, n.OpPos+1, "! removed", "")
			}
		case *ast.IncDecStmt:
			swap(n.TokPos, n.Tok)
		case *ast.AssignStmt:
			swap(n.TokPos, n.Tok)
			if n.Tok == token.ASSIGN {
				// The right side stays: what nothing uses does not compile.
				add(n.Pos(), n.Rhs[0].Pos(), "assignment removed", strings.Repeat("_, ", len(n.Lhs)-1)+"_ = ")
			}
		case *ast.ExprStmt:
			add(n.Pos(), n.End(), "call removed", "")
		}
		return true
	})
	return out, nil
}

// hasText reports whether an operand of a sum is a literal text.
func hasText(n *ast.BinaryExpr) bool {
	isText := func(e ast.Expr) bool {
		l, ok := e.(*ast.BasicLit)
		return ok && l.Kind == token.STRING
	}
	left, isSum := n.X.(*ast.BinaryExpr)
	return isText(n.X) || isText(n.Y) || isSum && hasText(left)
}
