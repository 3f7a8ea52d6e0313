package vm

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
	kjson "sigs.k8s.io/json"
)

// costLimit of one expression, in CEL's units. A typical expression costs some tens.
const costLimit = 1_000_000

// language returns the CEL environment that the input's documentation promises.
func language(variables ...cel.EnvOption) (*cel.Env, error) {
	return cel.NewEnv(append(variables,
		cel.OptionalTypes(),
		ext.Strings(),
		ext.Lists(),
		ext.Encoders(),
		ext.Math(),
		ext.Regex(),
		ext.Bindings(),
		ext.TwoVarComprehensions(),
		fit,
		terraformLiteral,
	)...)
}

// fieldEnv is for expressions that set fields of a VM or of a companion that is created before it.
// Further variables may be added.
func fieldEnv(also ...cel.EnvOption) (*cel.Env, error) {
	return language(append(also,
		cel.Variable("machine", cel.DynType),
		cel.Variable("class", cel.DynType),
		cel.Variable("name", cel.StringType),
		cel.Variable("userData", cel.MapType(cel.StringType, cel.StringType)),
		cel.Variable("tags", cel.MapType(cel.StringType, cel.StringType)),
		cel.Variable("failureDomain", cel.StringType),
		cel.Variable("companions", cel.MapType(cel.StringType, cel.DynType)),
	)...)
}

// dependentEnv is for expressions that set fields of a companion that is created after the VM.
func dependentEnv() (*cel.Env, error) { return fieldEnv(cel.Variable("vm", cel.DynType)) }

// classEnv is for expressions that read a class.
func classEnv() (*cel.Env, error) {
	return language(cel.Variable("class", cel.DynType))
}

// companionEnv is for expressions that read a companion.
func companionEnv() (*cel.Env, error) {
	return language(
		cel.Variable("machine", cel.DynType),
		cel.Variable("companion", cel.DynType),
	)
}

// statusEnv is for expressions that read a VM.
func statusEnv() (*cel.Env, error) {
	return language(
		cel.Variable("machine", cel.DynType),
		cel.Variable("vm", cel.DynType),
		cel.Variable("companions", cel.MapType(cel.StringType, cel.DynType)),
	)
}

// An expression is a compiled CEL expression. Its errors name its place in the input, its text and
// the position.
type expression struct {
	place, text string
	ast         *cel.Ast
	program     cel.Program
}

// compile an expression that must be of one of the given types, or of any type if none is given.
func compile(env *cel.Env, place, text string, of ...*cel.Type) (*expression, error) {
	e := &expression{place: place, text: text}
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		first := issues.Errors()[0]
		return nil, e.error(first.Location.Line(), first.Location.Column(), first.Message)
	}
	if t := ast.OutputType(); len(of) > 0 && t.Kind() != types.DynKind && !slices.ContainsFunc(of, t.IsExactType) {
		return nil, e.error(1, 0, fmt.Sprintf("must be of type %s, is of type %s", typeNames(of), t))
	}
	program, err := env.Program(ast, cel.CostLimit(costLimit))
	if err != nil {
		return nil, e.error(1, 0, err.Error())
	}
	e.ast, e.program = ast, program
	return e, nil
}

// eval returns the value of the expression, in the types of encoding/json. It returns nil for null
// and for an absent optional value.
func (e *expression) eval(variables map[string]any) (any, error) {
	val, _, err := e.program.Eval(variables)
	if err != nil {
		return nil, e.evalError(err)
	}
	if o, ok := val.(*types.Optional); ok && !o.HasValue() {
		return nil, nil
	}
	out, err := native(val)
	if err != nil {
		return nil, e.error(1, 0, err.Error())
	}
	return out, nil
}

// evalAs is eval for a value of type T. A nil value becomes T's zero value.
func evalAs[T any](e *expression, variables map[string]any) (T, error) {
	var zero T
	v, err := e.eval(variables)
	if err != nil || v == nil {
		return zero, err
	}
	t, ok := v.(T)
	if !ok {
		return zero, e.error(1, 0, fmt.Sprintf("must give a %T, gives a %T", zero, v))
	}
	return t, nil
}

func (e *expression) evalError(err error) error {
	line, column := 1, 0
	var at *types.Err
	if errors.As(err, &at) {
		if l := e.ast.NativeRep().SourceInfo().GetStartLocation(at.NodeID()); l.Line() > 0 {
			line, column = l.Line(), l.Column()
		}
	}
	return e.error(line, column, err.Error())
}

// error counts columns from 1, as editors do.
func (e *expression) error(line, column int, message string) error {
	return fmt.Errorf("%s: %q: line %d, column %d: %s", e.place, e.text, line, column+1, message)
}

// native converts a CEL value to the types of the API machinery: whole numbers are int64.
func native(val ref.Val) (any, error) {
	v, err := val.ConvertToNative(types.JSONValueType)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(v.(interface{ AsInterface() any }).AsInterface()) //nolint:forcetypeassert // JSONValueType is a *structpb.Value.
	if err != nil {
		return nil, err
	}
	var out any
	return out, kjson.UnmarshalCaseSensitivePreserveInts(b, &out)
}

func typeNames(ts []*cel.Type) string {
	names := make([]string, 0, len(ts))
	for _, t := range ts {
		names = append(names, t.String())
	}
	return strings.Join(names, " or ")
}
