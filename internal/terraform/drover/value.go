package drover

import (
	"context"
	"fmt"
	"math/big"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// toAny converts a value of Terraform to JSON: integers are int64, as in API machinery. Attributes that are
// null are absent. It fails for a value that is not known yet.
func toAny(v attr.Value) (any, error) {
	if v == nil || v.IsNull() {
		return nil, nil
	}
	if v.IsUnknown() {
		return nil, errUnknown
	}
	switch v := v.(type) {
	case types.Dynamic:
		return toAny(v.UnderlyingValue())
	case types.String:
		return v.ValueString(), nil
	case types.Bool:
		return v.ValueBool(), nil
	case types.Number:
		return number(v.ValueBigFloat()), nil
	case types.Object:
		return mapOf(v.Attributes())
	case types.Map:
		return mapOf(v.Elements())
	case types.List:
		return sliceOf(v.Elements())
	case types.Tuple:
		return sliceOf(v.Elements())
	case types.Set:
		return sliceOf(v.Elements())
	}
	return nil, fmt.Errorf("cannot use a value of the type %T", v)
}

// errUnknown is for a value that Terraform knows only after it has applied another change.
var errUnknown = fmt.Errorf("the value is not known yet")

func number(f *big.Float) any {
	if i, accuracy := f.Int64(); accuracy == big.Exact {
		return i
	}
	out, _ := f.Float64()
	return out
}

func mapOf(in map[string]attr.Value) (any, error) {
	out := map[string]any{}
	for name, v := range in {
		a, err := toAny(v)
		if err != nil {
			return nil, err
		}
		if a != nil {
			out[name] = a
		}
	}
	return out, nil
}

func sliceOf(in []attr.Value) (any, error) {
	out := []any{}
	for _, v := range in {
		a, err := toAny(v)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// fromAny converts a value in JSON to one of Terraform: an object for a map, and a tuple for a list, as
// Terraform reads them in a configuration.
func fromAny(a any) (attr.Value, error) {
	switch a := a.(type) {
	case nil:
		return types.DynamicNull(), nil
	case string:
		return types.StringValue(a), nil
	case bool:
		return types.BoolValue(a), nil
	case int64:
		return types.NumberValue(new(big.Float).SetInt64(a)), nil
	case float64:
		return types.NumberValue(big.NewFloat(a)), nil
	case map[string]any:
		values, kinds := map[string]attr.Value{}, map[string]attr.Type{}
		for name, item := range a {
			v, err := fromAny(item)
			if err != nil {
				return nil, err
			}
			values[name], kinds[name] = v, v.Type(context.Background())
		}
		o, diags := types.ObjectValue(kinds, values)
		return o, errorOf(diags)
	case []any:
		var values []attr.Value
		var kinds []attr.Type
		for _, item := range a {
			v, err := fromAny(item)
			if err != nil {
				return nil, err
			}
			values, kinds = append(values, v), append(kinds, v.Type(context.Background()))
		}
		t, diags := types.TupleValue(kinds, values)
		return t, errorOf(diags)
	}
	return nil, fmt.Errorf("cannot use a value of the type %T", a)
}

// project returns the fields of an object that wanted names: any other field is left out, and so are missing
// ones. Items of a list are compared by their index.
func project(wanted, is any) any {
	switch wanted := wanted.(type) {
	case map[string]any:
		is, ok := is.(map[string]any)
		if !ok {
			return nil
		}
		out := map[string]any{}
		for name, w := range wanted {
			if v, there := is[name]; there {
				out[name] = project(w, v)
			}
		}
		return out
	case []any:
		is, ok := is.([]any)
		if !ok {
			return nil
		}
		out := make([]any, len(is))
		for i := range is {
			out[i] = is[i]
			if i < len(wanted) {
				out[i] = project(wanted[i], is[i])
			}
		}
		return out
	}
	return is
}
