package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Config returns a configuration from arguments in JSON. A missing argument is null. Errors name all invalid
// arguments by their paths.
func (b *Block) Config(arguments map[string]any) (cty.Value, error) { return b.config("", arguments) }

func (b *Block) config(path string, arguments map[string]any) (cty.Value, error) {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(arguments)) {
		if b.Attributes[name] == nil && b.Blocks[name] == nil {
			errs = append(errs, wrong(join(path, name), "unknown argument%s", b.similar(name)))
		}
	}
	values := map[string]cty.Value{}
	for _, name := range slices.Sorted(maps.Keys(b.Attributes)) {
		v, err := b.Attributes[name].config(join(path, name), arguments[name])
		errs, values[name] = append(errs, err), v
	}
	for _, name := range slices.Sorted(maps.Keys(b.Blocks)) {
		v, err := b.Blocks[name].config(join(path, name), arguments[name])
		errs, values[name] = append(errs, err), v
	}
	if err := errors.Join(errs...); err != nil {
		return cty.NilVal, err
	}
	return cty.ObjectVal(values), nil
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func wrong(path, format string, args ...any) error {
	return &Diagnostic{Path: path, Summary: fmt.Sprintf(format, args...)}
}

// similar names an argument that differs only in its case or in its underscores, as in the
// kinds of Crossplane's providers.
func (b *Block) similar(name string) string {
	plain := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }
	for _, known := range append(slices.Sorted(maps.Keys(b.Attributes)), slices.Sorted(maps.Keys(b.Blocks))...) {
		if plain(known) == plain(name) {
			return fmt.Sprintf(": did you mean %q?", known)
		}
	}
	return ""
}

func (a *Attribute) config(path string, v any) (cty.Value, error) {
	t := a.impliedType()
	switch {
	case v == nil && a.Required:
		return cty.NullVal(t), wrong(path, "required argument is missing")
	case v == nil:
		return cty.NullVal(t), nil
	case !a.Required && !a.Optional:
		return cty.NullVal(t), wrong(path, "must not be set: the provider computes it")
	case a.Nested != nil:
		return nestedConfig(path, v, a.Nesting, a.Nested, false)
	}
	got, err := fromJSON(v, t)
	if err != nil {
		return cty.NullVal(t), wrong(path+pathOf(err), "%v", err)
	}
	return got, nil
}

// fromJSON converts as Terraform does: a number may be given as text, a set as a list.
func fromJSON(v any, t cty.Type) (cty.Value, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return cty.NilVal, err
	}
	implied, err := ctyjson.ImpliedType(b)
	if err != nil {
		return cty.NilVal, err
	}
	got, err := ctyjson.Unmarshal(b, implied)
	if err != nil {
		return cty.NilVal, err
	}
	return convert.Convert(got, t)
}

// pathOf returns the path of an error below its argument.
func pathOf(err error) string {
	var at cty.PathError
	if !errors.As(err, &at) {
		return ""
	}
	out := ""
	for _, step := range at.Path {
		switch s := step.(type) {
		case cty.GetAttrStep:
			out += "." + s.Name
		case cty.IndexStep:
			switch {
			case !s.Key.IsKnown() || s.Key.IsNull():
			case s.Key.Type() == cty.String:
				out += "[" + strconv.Quote(s.Key.AsString()) + "]"
			case s.Key.Type() == cty.Number:
				out += "[" + s.Key.AsBigFloat().Text('f', 0) + "]"
			}
		}
	}
	return out
}

// config returns a block: a list of objects, or one object for a block that may occur once.
func (n *NestedBlock) config(path string, v any) (cty.Value, error) {
	if v == nil {
		if n.Min > 0 {
			return cty.NilVal, wrong(path, "at least %d required, 0 given", n.Min)
		}
		return n.empty()
	}
	if _, isOne := v.(map[string]any); isOne && (n.Nesting == NestingList || n.Nesting == NestingSet) {
		v = []any{v}
	}
	if list, ok := v.([]any); ok {
		if int64(len(list)) < n.Min || n.Max > 0 && int64(len(list)) > n.Max {
			return cty.NilVal, wrong(path, "%d given, allowed are %s", len(list), n.bounds())
		}
	}
	return nestedConfig(path, v, n.Nesting, n.Block, n.ImpliedType().HasDynamicTypes())
}

func (n *NestedBlock) bounds() string {
	if n.Max == 0 {
		return fmt.Sprintf("%d or more", n.Min)
	}
	return fmt.Sprintf("%d to %d", n.Min, n.Max)
}

// empty returns the value of an absent block.
func (n *NestedBlock) empty() (cty.Value, error) {
	t := n.ImpliedType()
	switch n.Nesting {
	case NestingList:
		if t.HasDynamicTypes() {
			return cty.EmptyTupleVal, nil
		}
		return cty.ListValEmpty(t), nil
	case NestingSet:
		return cty.SetValEmpty(t), nil
	case NestingMap:
		if t.HasDynamicTypes() {
			return cty.EmptyObjectVal, nil
		}
		return cty.MapValEmpty(t), nil
	case NestingGroup:
		return n.Config(nil)
	default:
		return cty.NullVal(t), nil
	}
}

func nestedConfig(path string, v any, nesting Nesting, b *Block, dynamic bool) (cty.Value, error) {
	switch nesting {
	case NestingList, NestingSet:
		return listConfig(path, v, nesting, b, dynamic)
	case NestingMap:
		return mapConfig(path, v, b, dynamic)
	}
	object, ok := v.(map[string]any)
	if !ok {
		return cty.NilVal, wrong(path, "must be an object")
	}
	return b.config(path, object)
}

func listConfig(path string, v any, nesting Nesting, b *Block, dynamic bool) (cty.Value, error) {
	list, ok := v.([]any)
	if !ok {
		return cty.NilVal, wrong(path, "must be a list of objects")
	}
	var values []cty.Value
	var errs []error
	for i, e := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		object, ok := e.(map[string]any)
		if !ok {
			errs = append(errs, wrong(at, "must be an object"))
			continue
		}
		v, err := b.config(at, object)
		values, errs = append(values, v), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return cty.NilVal, err
	}
	switch t := b.ImpliedType(); {
	case nesting == NestingList && dynamic:
		return cty.TupleVal(values), nil
	case nesting == NestingList && len(values) == 0:
		return cty.ListValEmpty(t), nil
	case nesting == NestingList:
		return cty.ListVal(values), nil
	case len(values) == 0:
		return cty.SetValEmpty(t), nil
	default:
		return cty.SetVal(values), nil
	}
}

func mapConfig(path string, v any, b *Block, dynamic bool) (cty.Value, error) {
	objects, ok := v.(map[string]any)
	if !ok {
		return cty.NilVal, wrong(path, "must be an object of objects")
	}
	values := map[string]cty.Value{}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		at := fmt.Sprintf("%s[%q]", path, key)
		object, ok := objects[key].(map[string]any)
		if !ok {
			errs = append(errs, wrong(at, "must be an object"))
			continue
		}
		v, err := b.config(at, object)
		values[key], errs = v, append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return cty.NilVal, err
	}
	switch {
	case dynamic:
		return cty.ObjectVal(values), nil
	case len(values) == 0:
		return cty.MapValEmpty(b.ImpliedType()), nil
	default:
		return cty.MapVal(values), nil
	}
}

// proposed returns the state that Terraform proposes to a provider for a resource that does not exist: computed
// arguments are unknown unless they are configured, and write-only arguments are in no state.
func (b *Block) proposed(config cty.Value) cty.Value {
	if config.IsNull() || !config.IsKnown() {
		return config
	}
	values := config.AsValueMap()
	out := make(map[string]cty.Value, len(values))
	for name, a := range b.Attributes {
		out[name] = a.proposed(values[name])
	}
	for name, n := range b.Blocks {
		out[name] = eachElement(values[name], n.Nesting, n.proposed)
	}
	return cty.ObjectVal(out)
}

func (a *Attribute) proposed(v cty.Value) cty.Value {
	switch {
	case a.WriteOnly:
		return cty.NullVal(v.Type())
	case v.IsNull() && a.Computed:
		return cty.UnknownVal(a.impliedType())
	case a.Nested != nil:
		return eachElement(v, a.Nesting, a.Nested.proposed)
	default:
		return v
	}
}

// eachElement applies f to the objects of a nested value, which keeps its type.
func eachElement(v cty.Value, n Nesting, f func(cty.Value) cty.Value) cty.Value {
	if v.IsNull() || !v.IsKnown() {
		return v
	}
	if n == NestingSingle || n == NestingGroup {
		return f(v)
	}
	if v.LengthInt() == 0 {
		return v
	}
	if n == NestingMap {
		values := v.AsValueMap()
		for key, e := range values {
			values[key] = f(e)
		}
		if v.Type().IsObjectType() {
			return cty.ObjectVal(values)
		}
		return cty.MapVal(values)
	}
	values := v.AsValueSlice()
	for i, e := range values {
		values[i] = f(e)
	}
	switch {
	case v.Type().IsTupleType():
		return cty.TupleVal(values)
	case v.Type().IsSetType():
		return cty.SetVal(values)
	default:
		return cty.ListVal(values)
	}
}
