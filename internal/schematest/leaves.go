package schematest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// Names of the steps of a path into a list and into a map.
const (
	element = "[]"
	entry   = "{}"
)

// A Leaf is a field of a kind that has no fields of its own.
type Leaf struct {
	// Kind that has the field.
	Kind schema.GroupVersionKind
	// Type of the field's schema. It is empty for a number or a text.
	Type string
	// Free is whether the schema has neither a format, a pattern, rules nor a list of values.
	Free bool

	path   []string
	schema *Schema
}

// Leaves returns all fields of the kind in a CRD's or XRD's file, sorted by their paths.
func Leaves(t *testing.T, file string) []Leaf {
	t.Helper()
	crd := read(t, file)
	var out []Leaf
	for _, v := range crd.Spec.Versions {
		props := &apiextensions.JSONSchemaProps{}
		if err := extv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, props, nil); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		kind := schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}
		walk(nil, props, func(path []string, p *apiextensions.JSONSchemaProps) {
			s, err := schemaOf(p, false)
			if err != nil {
				t.Fatalf("%s: %s: %v", file, strings.Join(path, "."), err)
			}
			out = append(out, Leaf{Kind: kind, Type: p.Type, Free: p.Format == "" && p.Pattern == "" && len(p.XValidations) == 0 && len(p.Enum) == 0, path: path, schema: s})
		})
	}
	return out
}

func walk(path []string, s *apiextensions.JSONSchemaProps, visit func([]string, *apiextensions.JSONSchemaProps)) {
	step := func(name string) []string { return append(slices.Clone(path), name) }
	switch {
	case s.Items != nil && s.Items.Schema != nil:
		walk(step(element), s.Items.Schema, visit)
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		walk(step(entry), s.AdditionalProperties.Schema, visit)
	case s.Type == "object" || s.Type == "":
		if s.XIntOrString {
			visit(path, s)
		}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			p := s.Properties[name]
			walk(step(name), &p, visit)
		}
	default:
		visit(path, s)
	}
}

// String returns the path of the field.
func (l Leaf) String() string {
	return l.Kind.Kind + "." + l.Kind.Group + " " + strings.ReplaceAll(strings.Join(l.path, "."), "."+element, element)
}

// Validate validates a value of the field by the field's own schema.
func (l Leaf) Validate(value any) field.ErrorList {
	errs := validation.ValidateCustomResource(nil, value, l.schema.openapi)
	if l.schema.rules != nil && len(errs) == 0 {
		rules, _ := l.schema.rules.Validate(context.Background(), nil, l.schema.structural, value, nil, celconfig.RuntimeCELCostBudget)
		errs = append(errs, rules...)
	}
	return errs
}

// Object returns an object that has only the field.
func (l Leaf) Object(value any) map[string]any {
	for _, name := range slices.Backward(l.path) {
		switch name {
		case element:
			value = []any{value}
		case entry:
			value = map[string]any{"key": value}
		default:
			value = map[string]any{name: value}
		}
	}
	apiVersion, kind := l.Kind.ToAPIVersionAndKind()
	obj, ok := value.(map[string]any)
	if !ok {
		obj = map[string]any{}
	}
	obj["apiVersion"], obj["kind"] = apiVersion, kind
	return obj
}

// Value returns the value of the field in an object, and false if the object does not have it.
func (l Leaf) Value(obj map[string]any) (any, bool) {
	var value any = obj
	for _, name := range l.path {
		switch v := value.(type) {
		case []any:
			if len(v) == 0 {
				return nil, false
			}
			value = v[0]
		case map[string]any:
			if name == entry {
				name = "key"
			}
			var ok bool
			if value, ok = v[name]; !ok {
				return nil, false
			}
		}
	}
	return value, value != nil
}
