package contract

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/packages"
)

// A kind of string in the contract.
type kind int

const (
	conditionType kind = 1 << iota
	conditionReason
	eventReason
)

// A use of a constant string as a condition type or a reason.
type use struct {
	kind  kind
	pkg   *packages.Package
	expr  ast.Expr
	value string
	con   *types.Const
}

// typed strings are condition types and reasons wherever they are.
var typed = map[string]kind{
	"github.com/crossplane/crossplane-runtime/v2/pkg/event.Reason":     eventReason,
	"github.com/crossplane/crossplane/apis/v2/core/v2.ConditionType":   conditionType,
	"github.com/crossplane/crossplane/apis/v2/core/v2.ConditionReason": conditionReason,
}

// fields of structs that are condition types and reasons.
var fields = map[string]map[string]kind{
	"github.com/drover-dev/drover/internal/plan.Condition": {"Type": conditionType, "Reason": conditionReason},
	"github.com/drover-dev/drover/internal/plan.Event":     {"Reason": eventReason},
	"k8s.io/apimachinery/pkg/apis/meta/v1.Condition":       {"Type": conditionType, "Reason": conditionReason},
	"k8s.io/api/core/v1.Event":                             {"Reason": eventReason},
	"k8s.io/api/events/v1.Event":                           {"Reason": eventReason},
}

// params of functions of libraries, by package and name.
var params = map[string]map[string]kind{
	"k8s.io/apimachinery/pkg/api/meta": {"conditionType": conditionType},
	"k8s.io/client-go/tools/record":    {"reason": eventReason},
	"k8s.io/client-go/tools/events":    {"reason": eventReason},
}

// An analysis finds each constant that flows into a condition type or a reason: through fields, variables,
// parameters and results. It ignores the order of statements, so that it may find too many constants, but never
// too few.
type analysis struct {
	pkgs  []*packages.Package
	sinks map[types.Object]kind
	uses  map[ast.Expr]*use
	grew  bool
}

// mark a variable as one that holds strings of a kind.
func (a *analysis) mark(o types.Object, k kind) {
	if v, ok := o.(*types.Var); ok {
		o = v.Origin()
	}
	if a.sinks[o]|k != a.sinks[o] {
		a.sinks[o] |= k
		a.grew = true
	}
}

func isString(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsString != 0
}

// objOf returns the object that an expression names, nil if it is no name.
func objOf(p *packages.Package, e ast.Expr) types.Object {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return p.TypesInfo.ObjectOf(e)
	case *ast.SelectorExpr:
		return p.TypesInfo.ObjectOf(e.Sel)
	case *ast.StarExpr:
		return objOf(p, e.X)
	}
	return nil
}

func (a *analysis) kindOfVar(o types.Object) kind {
	v, ok := o.(*types.Var)
	if !ok {
		return 0
	}
	v = v.Origin()
	k := a.sinks[v]
	return k
}

// kindOf strings that an expression holds.
func (a *analysis) kindOf(p *packages.Package, e ast.Expr) kind {
	e = ast.Unparen(e)
	if c, ok := e.(*ast.CallExpr); ok {
		if tv := p.TypesInfo.Types[c.Fun]; tv.IsType() && len(c.Args) == 1 {
			return a.kindOf(p, c.Args[0])
		}
	}
	t := p.TypesInfo.TypeOf(e)
	if t != nil {
		if k := typed[types.TypeString(types.Unalias(t), nil)]; k != 0 {
			return k
		}
	}
	if o := objOf(p, e); o != nil {
		return a.kindOfVar(o)
	}
	return 0
}

// flow of an expression into a place for strings of a kind.
func (a *analysis) flow(p *packages.Package, e ast.Expr, k kind) {
	if k == 0 {
		return
	}
	e = ast.Unparen(e)
	tv := p.TypesInfo.Types[e]
	if tv.Type != nil && !isString(tv.Type) {
		return
	}
	if c, ok := e.(*ast.CallExpr); ok {
		if p.TypesInfo.Types[c.Fun].IsType() {
			a.flow(p, c.Args[0], k)
			return
		}
		if o := objOf(p, c.Fun); o != nil && o.Pkg() != nil && o.Pkg().Path() == "cmp" && o.Name() == "Or" {
			for _, arg := range c.Args {
				a.flow(p, arg, k)
			}
			return
		}
		if sig, ok := p.TypesInfo.TypeOf(c.Fun).(*types.Signature); ok && sig.Results().Len() > 0 {
			if f, ok := objOf(p, c.Fun).(*types.Func); ok {
				sig = f.Origin().Type().(*types.Signature)
			}
			a.mark(sig.Results().At(0), k)
		}
		return
	}
	if b, ok := e.(*ast.BinaryExpr); ok && b.Op == token.ADD {
		a.flow(p, b.X, k)
		a.flow(p, b.Y, k)
		return
	}
	if tv.Value != nil && tv.Value.Kind() == constant.String {
		v := constant.StringVal(tv.Value)
		if v == "" {
			return
		}
		u := a.uses[e]
		if u == nil {
			u = &use{pkg: p, expr: e, value: v}
			u.con, _ = objOf(p, e).(*types.Const)
			a.uses[e] = u
		}
		if u.kind|k != u.kind {
			u.kind |= k
			a.grew = true
		}
		return
	}
	if o, ok := objOf(p, e).(*types.Var); ok {
		a.mark(o, k)
	}
}

// run until nothing new is found.
func (a *analysis) run() {
	for _, p := range a.pkgs {
		for _, f := range p.Syntax {
			ast.Inspect(f, func(n ast.Node) bool { a.seed(p, n); return true })
		}
	}
	for a.grew = true; a.grew; {
		a.grew = false
		for _, p := range a.pkgs {
			for _, f := range p.Syntax {
				a.file(p, f)
			}
		}
	}
}

// seed marks the fields that the analysis begins with.
func (a *analysis) seed(p *packages.Package, n ast.Node) {
	var x ast.Expr
	switch n := n.(type) {
	case *ast.SelectorExpr:
		x = n.X
	case *ast.CompositeLit:
		x = n
	default:
		return
	}
	t := p.TypesInfo.TypeOf(x)
	if t == nil {
		return
	}
	t = types.Unalias(t)
	if ptr, ok := t.(*types.Pointer); ok {
		t = types.Unalias(ptr.Elem())
	}
	st, ok := t.Underlying().(*types.Struct)
	if !ok {
		return
	}
	for i := range st.NumFields() {
		if k := fields[types.TypeString(t, nil)][st.Field(i).Name()]; k != 0 {
			a.mark(st.Field(i), k)
		}
	}
}

func (a *analysis) file(p *packages.Package, f *ast.File) {
	var stack []ast.Node
	ast.Inspect(f, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		stack = append(stack, n)
		a.node(p, n, stack)
		return true
	})
}

func (a *analysis) node(p *packages.Package, n ast.Node, stack []ast.Node) {
	info := p.TypesInfo
	switch n := n.(type) {
	case ast.Expr:
		if tv := info.Types[n]; tv.Value != nil && tv.Type != nil {
			if k := typed[types.TypeString(types.Unalias(tv.Type), nil)]; k != 0 {
				a.flow(p, n, k)
			}
		}
	}
	switch n := n.(type) {
	case *ast.AssignStmt:
		if len(n.Lhs) == len(n.Rhs) {
			for i := range n.Lhs {
				a.flow(p, n.Rhs[i], a.kindOf(p, n.Lhs[i]))
			}
		} else if c, ok := n.Rhs[0].(*ast.CallExpr); ok {
			for i, l := range n.Lhs {
				if k := a.kindOf(p, l); k != 0 {
					sig, ok := info.TypeOf(c.Fun).(*types.Signature)
					if f, isF := objOf(p, c.Fun).(*types.Func); isF {
						sig = f.Origin().Type().(*types.Signature)
					}
					if ok {
						a.mark(sig.Results().At(i), k)
					}
				}
			}
		}
	case *ast.ValueSpec:
		for i, v := range n.Values {
			if i < len(n.Names) {
				a.flow(p, v, a.kindOf(p, n.Names[i]))
			}
		}
	case *ast.CompositeLit:
		t := info.TypeOf(n)
		if t == nil {
			return
		}
		if ptr, ok := t.Underlying().(*types.Pointer); ok {
			t = ptr.Elem()
		}
		st, ok := t.Underlying().(*types.Struct)
		if !ok {
			return
		}
		for i, el := range n.Elts {
			if kv, ok := el.(*ast.KeyValueExpr); ok {
				if id, ok := kv.Key.(*ast.Ident); ok {
					a.flow(p, kv.Value, a.kindOfVar(info.ObjectOf(id)))
				}
			} else {
				a.flow(p, el, a.kindOfVar(st.Field(i)))
			}
		}
	case *ast.CallExpr:
		if info.Types[n.Fun].IsType() {
			return
		}
		sig, ok := info.TypeOf(n.Fun).(*types.Signature)
		if !ok {
			return
		}
		callee, _ := objOf(p, n.Fun).(*types.Func)
		if callee != nil {
			sig = callee.Origin().Type().(*types.Signature)
		}
		if len(n.Args) == 1 && sig.Params().Len() > 1 {
			a.forward(p, n.Args[0], sig.Params())
		}
		for i, arg := range n.Args {
			j := min(i, sig.Params().Len()-1)
			if j < 0 {
				return
			}
			v := sig.Params().At(j)
			k := a.kindOfVar(v)
			if callee != nil && callee.Pkg() != nil {
				k |= params[callee.Pkg().Path()][v.Name()]
			}
			a.flow(p, arg, k)
		}
	case *ast.ReturnStmt:
		var sig *types.Signature
		for i := len(stack) - 1; i >= 0 && sig == nil; i-- {
			switch f := stack[i].(type) {
			case *ast.FuncLit:
				sig = info.TypeOf(f).(*types.Signature)
			case *ast.FuncDecl:
				sig = info.Defs[f.Name].Type().(*types.Signature)
			}
		}
		if len(n.Results) == sig.Results().Len() {
			for i, r := range n.Results {
				a.flow(p, r, a.kindOfVar(sig.Results().At(i)))
			}
		} else if len(n.Results) == 1 {
			a.forward(p, n.Results[0], sig.Results())
		}
	case *ast.BinaryExpr:
		if n.Op == token.EQL || n.Op == token.NEQ {
			a.flow(p, n.X, a.constOnly(p, n.X, n.Y))
			a.flow(p, n.Y, a.constOnly(p, n.Y, n.X))
		}
	case *ast.SwitchStmt:
		if n.Tag != nil {
			for _, c := range n.Body.List {
				for _, e := range c.(*ast.CaseClause).List {
					a.flow(p, e, a.constOnly(p, e, n.Tag))
				}
			}
		}
	case *ast.RangeStmt:
		if n.Value != nil {
			if k := a.kindOf(p, n.Value); k != 0 {
				if lit, ok := n.X.(*ast.CompositeLit); ok {
					for _, e := range lit.Elts {
						a.flow(p, e, k)
					}
				}
			}
		}
	}
}

// forward the results of a call to the parameters of another one, or to its results.
func (a *analysis) forward(p *packages.Package, call ast.Expr, to *types.Tuple) {
	c, ok := call.(*ast.CallExpr)
	if !ok {
		return
	}
	f, ok := objOf(p, c.Fun).(*types.Func)
	if !ok {
		return
	}
	from := f.Origin().Type().(*types.Signature).Results()
	for i := range min(from.Len(), to.Len()) {
		if k := a.kindOfVar(to.At(i)); k != 0 {
			a.mark(from.At(i), k)
		}
	}
}

// constOnly is the kind that a constant must have when it is compared with an expression: a
// comparison binds constants, not variables.
func (a *analysis) constOnly(p *packages.Package, e, with ast.Expr) kind {
	if p.TypesInfo.Types[ast.Unparen(e)].Value == nil {
		return 0
	}
	return a.kindOf(p, with)
}
