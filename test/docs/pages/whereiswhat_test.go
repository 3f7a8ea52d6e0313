package pages

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// row of the table of docs/where-is-what.md: question, declaration and the first file.
var row = regexp.MustCompile("^\\| .+\\? \\| `(\\w+)` \\| \\[([\\w/.]+)\\]\\(([\\w/.]+)\\)")

// TestEachQuestionLeadsToItsDeclaration finds rows whose file was changed, but not the table.
func TestEachQuestionLeadsToItsDeclaration(t *testing.T) {
	const page = "docs/where-is-what.md"
	rows := 0
	for i, line := range strings.Split(read(t)[page], "\n") {
		if !strings.Contains(line, "? |") {
			continue
		}
		m := row.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("%s:%d: must have a question, a declaration and a link to a file", page, i+1)
			continue
		}
		rows++
		declaration, file := m[1], path.Join("docs", m[3])
		switch found, err := declarations(filepath.Join(root, filepath.FromSlash(file))); {
		case err != nil:
			t.Errorf("%s:%d: %v", page, i+1, err)
		case m[2] != file:
			t.Errorf("%s:%d: the link of %s leads to %s", page, i+1, m[2], file)
		case !found[declaration]:
			t.Errorf("%s:%d: %s has no declaration %s", page, i+1, file, declaration)
		}
	}
	if rows != 30 {
		t.Errorf("%d questions were read, want 30", rows)
	}
}

// declarations returns the functions, methods and types of a Go file.
func declarations(file string) (map[string]bool, error) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			out[d.Name.Name] = true
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if s, ok := s.(*ast.TypeSpec); ok {
					out[s.Name.Name] = true
				}
			}
		}
	}
	return out, nil
}
