package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// library is the package that mutated code calls.
const library = "github.com/drover-dev/drover/test/mutation/mutant"

// operators with the function of the library that replaces each, and the operators that its
// mutants use instead.
var operators = map[token.Token]struct {
	function string
	mutants  []token.Token
}{
	token.LSS: {"Less", []token.Token{token.LEQ, token.GEQ}},
	token.LEQ: {"AtMost", []token.Token{token.LSS, token.GTR}},
	token.GTR: {"More", []token.Token{token.GEQ, token.LEQ}},
	token.GEQ: {"AtLeast", []token.Token{token.GTR, token.LSS}},
	token.ADD: {"Sum", []token.Token{token.SUB}},
	token.SUB: {"Difference", []token.Token{token.ADD}},
	token.MUL: {"Product", []token.Token{token.QUO}},
	token.QUO: {"Quotient", []token.Token{token.MUL}},
	token.SHL: {"Left", []token.Token{token.SHR}},
	token.SHR: {"Right", []token.Token{token.SHL}},
}

// assignments by operator: x++ is x = x + 1.
var assignments = map[token.Token]token.Token{
	token.ADD_ASSIGN: token.ADD, token.SUB_ASSIGN: token.SUB, token.INC: token.ADD, token.DEC: token.SUB,
}

// A mutator writes the mutants of a file into its code. Line numbers stay the same.
type mutator struct {
	fset *token.FileSet
	info *types.Info
	root *ast.File
	text []byte

	mutants []*change
	// next is the number of the next mutant.
	next  int
	edits []edit
}

// An edit replaces the bytes from..to.
type edit struct {
	from, to int
	by       string
}

func newMutator(fset *token.FileSet, info *types.Info, root *ast.File, text []byte, first int) *mutator {
	return &mutator{fset: fset, info: info, root: root, text: text, next: first}
}

// walk the file. If two edits are at one place, the edit of the outer node is first if they open
// an expression, and last if they close one.
func (m *mutator) walk() {
	ast.Inspect(m.root, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			if n.Tok == token.CONST {
				m.constants(n)
			}
		case *ast.BlockStmt:
			m.statements(n.List)
		case *ast.CaseClause:
			m.statements(n.Body)
		case *ast.IncDecStmt:
			m.assignment(n.TokPos, n.X, n.Tok, nil)
		case *ast.AssignStmt:
			m.assignment(n.TokPos, n.Lhs[0], n.Tok, n.Rhs[0])
		case *ast.UnaryExpr:
			if n.Op == token.NOT {
				m.negated(n, m.add(n.OpPos, "! removed"))
			}
		case *ast.BinaryExpr:
			m.binary(n)
		}
		return true
	})
	if len(m.mutants) > 0 {
		m.insert(m.root.Name.End(), fmt.Sprintf("; import %q", library))
	}
}

// code of the file with its mutants.
func (m *mutator) code() []byte {
	slices.SortStableFunc(m.edits, func(a, b edit) int { return cmp.Compare(a.from, b.from) })
	var out bytes.Buffer
	at := 0
	for _, e := range m.edits {
		out.Write(m.text[at:e.from])
		out.WriteString(e.by)
		at = e.to
	}
	out.Write(m.text[at:])
	return out.Bytes()
}

// add a mutant and return its number.
func (m *mutator) add(at token.Pos, kind string) int {
	position := m.fset.Position(at)
	line := bytes.Split(m.text, []byte("\n"))[position.Line-1]
	number := m.next
	m.next++
	m.mutants = append(m.mutants, &change{
		File: position.Filename, Type: kind, Line: position.Line, Text: string(bytes.TrimSpace(line)), Number: number,
	})
	return number
}

func (m *mutator) offset(at token.Pos) int { return m.fset.Position(at).Offset }

func (m *mutator) insert(at token.Pos, by string) { m.replace(at, at, by) }

func (m *mutator) replace(from, to token.Pos, by string) {
	m.edits = append(m.edits, edit{m.offset(from), m.offset(to), by})
}

// enclose a node. The text that closes the outer node follows the texts that close the inner
// ones.
func (m *mutator) enclose(n ast.Node, before, after string) {
	m.insert(n.Pos(), before)
	m.edits = slices.Insert(m.edits, 0, edit{m.offset(n.End()), m.offset(n.End()), after})
}

// negated makes a mutant negate an expression.
func (m *mutator) negated(n ast.Expr, number int) {
	m.enclose(n, "((", fmt.Sprintf(") != mutant.Is(%d))", number))
}

func (m *mutator) binary(n *ast.BinaryExpr) {
	after := n.OpPos + token.Pos(len(n.Op.String()))
	switch n.Op {
	case token.EQL:
		m.negated(n, m.add(n.OpPos, "== to !="))
	case token.NEQ:
		m.negated(n, m.add(n.OpPos, "!= to =="))
	case token.LAND, token.LOR:
		// By De Morgan's law: a || b is !(!a && !b).
		other := map[token.Token]token.Token{token.LAND: token.LOR, token.LOR: token.LAND}[n.Op]
		number := m.add(n.OpPos, fmt.Sprintf("%s to %s", n.Op, other))
		m.negated(n, number)
		m.negated(n.X, number)
		m.negated(n.Y, number)
	default:
		if call, ok := m.call(n.OpPos, n.Op, n); ok {
			m.enclose(n, call, ")")
			m.replace(n.OpPos, after, ",")
		}
	}
}

// call returns the library call that replaces an operator whose result has the type of an
// expression.
func (m *mutator) call(at token.Pos, operator token.Token, of ast.Expr) (string, bool) {
	o, ok := operators[operator]
	if !ok || isA(m.info.TypeOf(of), types.IsString) {
		return "", false
	}
	// A shifted constant that is used as a fraction, as in x / (1 << 53), has no function of the library.
	if isShift := operator == token.SHL || operator == token.SHR; isShift && isA(m.info.TypeOf(of), types.IsFloat) {
		return "", false
	}
	numbers := ""
	for _, by := range o.mutants {
		numbers += fmt.Sprintf("%d, ", m.add(at, fmt.Sprintf("%s to %s", operator, by)))
	}
	return fmt.Sprintf("mutant.%s%s(%s", o.function, m.constantType(of), numbers), true
}

// constantType is the type argument of a call that replaces a constant: without it the call would
// have the default type of the constant.
func (m *mutator) constantType(of ast.Expr) string {
	known := m.info.Types[of]
	if basic, ok := known.Type.(*types.Basic); ok && known.Value != nil && basic.Info()&types.IsUntyped == 0 {
		return "[" + basic.Name() + "]"
	}
	return ""
}

func isA(t types.Type, info types.BasicInfo) bool {
	if t == nil {
		return false
	}
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&info != 0
}

// assignment replaces an assignment by an operator. x++ has no right side.
func (m *mutator) assignment(at token.Pos, left ast.Expr, operator token.Token, right ast.Expr) {
	call, ok := m.call(at, assignments[operator], left)
	if !ok {
		return
	}
	text := string(m.text[m.offset(left.Pos()):m.offset(left.End())])
	call = "= " + call + text + ", "
	after := at + token.Pos(len(operator.String()))
	if right == nil {
		m.replace(at, after, call+"1)")
		return
	}
	m.replace(at, after, call)
	m.enclose(right, "", ")")
}

// statements adds mutants that remove a statement.
func (m *mutator) statements(list []ast.Stmt) {
	for _, s := range list {
		kind := ""
		switch s := s.(type) {
		case *ast.AssignStmt:
			if s.Tok == token.ASSIGN {
				kind = "assignment removed"
			}
		case *ast.ExprStmt:
			// A panic may end a function that returns a value.
			if call, ok := s.X.(*ast.CallExpr); ok && types.ExprString(call.Fun) != "panic" {
				kind = "call removed"
			}
		}
		if kind != "" {
			m.enclose(s, fmt.Sprintf("if !mutant.Is(%d) { ", m.add(s.Pos(), kind)), " }")
		}
	}
}

// constants turns calculated constants into variables.
func (m *mutator) constants(d *ast.GenDecl) {
	for _, s := range d.Specs {
		if !m.isCalculated(s.(*ast.ValueSpec)) {
			continue
		}
		if d.Lparen == token.NoPos {
			m.replace(d.Pos(), d.Pos()+token.Pos(len("const")), "var")
			return
		}
		m.enclose(s, "); var ", "; const (")
	}
}

func (m *mutator) isCalculated(s *ast.ValueSpec) bool {
	return slices.ContainsFunc(s.Values, func(e ast.Expr) bool {
		n, ok := e.(*ast.BinaryExpr)
		return ok && operators[n.Op].function != "" && !isA(m.info.TypeOf(n), types.IsString)
	})
}
