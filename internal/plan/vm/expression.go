package vm

import "github.com/google/cel-go/cel"

// An Expression is a CEL expression in the language of the input Infrastructure, for other packages
// than this planner.
type Expression struct{ e *expression }

// NewExpression compiles the text. Errors name the place. The variables may have values of any
// type.
func NewExpression(place, text string, variables ...string) (*Expression, error) {
	options := make([]cel.EnvOption, 0, len(variables))
	for _, v := range variables {
		options = append(options, cel.Variable(v, cel.DynType))
	}
	env, err := language(options...)
	if err != nil {
		return nil, err
	}
	e, err := compile(env, place, text)
	if err != nil {
		return nil, err
	}
	return &Expression{e}, nil
}

// Eval returns the value in the types of encoding/json, nil for null and for an absent optional
// value.
func (x *Expression) Eval(variables map[string]any) (any, error) { return x.e.eval(variables) }
