// Package stored decodes objects that an API server stores, with any values of their fields.
//
// An informer decodes a list of objects as a whole, and ends a watch at the first object that it cannot decode. So
// a single field of a single object would keep a controller from all objects of a kind. The schemas refuse such
// fields (package schemabounds), but an object may be older than its schema.
//
// The root types of the API embed [Undecoded], and have an UnmarshalJSON method that calls [Unmarshal]. A field
// that does not fit its Go type is dropped, and is recorded in the object in memory. The reader decides about
// it: a controller reports the object and changes nothing, until the object is deleted. The stored field stays,
// as long as the object is written by patches of its changes.
package stored

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"

	"github.com/drover-dev/drover/internal/text"
)

const (
	// maxFaults is how many fields are recorded, and maxValue and maxError how many bytes of a value and of an error.
	maxFaults = 5
	maxValue  = 64
	maxError  = 128
)

// Undecoded describes the fields of an object that were dropped, with their values and the errors. It is empty if
// there are none. It is not a part of the encoded object.
type Undecoded string

// UndecodedFields returns the description.
func (u Undecoded) UndecodedFields() string { return string(u) }

// Faults returns the description of the fields of an object that were dropped when it was decoded. It is empty if
// there are none.
func Faults(obj any) string {
	if o, ok := obj.(interface{ UndecodedFields() string }); ok {
		return o.UndecodedFields()
	}
	return ""
}

// Unmarshal decodes JSON into the object that a pointer points to. Fields that do not fit are dropped and recorded
// in dropped, which may be a field of the object. It fails only if the JSON is malformed, or is no object.
func Unmarshal(data []byte, into any, dropped *Undecoded) error {
	*dropped = ""
	strict := kjson.UnmarshalCaseSensitivePreserveInts(data, into)
	if strict == nil {
		return nil
	}
	var raw any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &raw); err != nil {
		return err
	}
	if _, ok := raw.(map[string]any); !ok {
		return strict
	}
	object := reflect.ValueOf(into).Elem()
	s := &salvage{}
	kept, err := json.Marshal(s.fields(raw, object.Type(), ""))
	if err != nil {
		return err
	}
	object.SetZero()
	if err := kjson.UnmarshalCaseSensitivePreserveInts(kept, into); err != nil {
		return fmt.Errorf("%w, and without the fields that do not fit: %w", strict, err)
	}
	*dropped = s.text()
	return nil
}

// A salvage collects the fields that are dropped.
type salvage struct {
	faults []string
	count  int
}

// value returns the part of a value that a type can decode, and false if there is none.
func (s *salvage) value(v any, t reflect.Type, path string) (any, bool) {
	err := decode(v, t)
	if err == nil {
		return v, true
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if !reflect.PointerTo(t).Implements(unmarshaler) {
		switch m := v.(type) {
		case map[string]any:
			if t.Kind() == reflect.Struct || t.Kind() == reflect.Map {
				return s.fields(m, t, path), true
			}
		case []any:
			if t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
				return s.elements(m, t, path), true
			}
		}
	}
	s.drop(v, path, err)
	return nil, false
}

// fields returns the fields of an object, or the entries of a map, that the type can decode.
func (s *salvage) fields(v any, t reflect.Type, path string) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := make(map[string]any, len(m))
	for _, name := range sortedKeys(m) {
		of, ok := typeOf(t, name)
		if !ok {
			continue // No reader has the field.
		}
		if kept, ok := s.value(m[name], of, join(path, name)); ok {
			out[name] = kept
		}
	}
	return out
}

func (s *salvage) elements(l []any, t reflect.Type, path string) any {
	out := make([]any, 0, len(l))
	for i, v := range l {
		if kept, ok := s.value(v, t.Elem(), fmt.Sprintf("%s[%d]", path, i)); ok {
			out = append(out, kept)
		}
	}
	return out
}

func (s *salvage) drop(v any, path string, err error) {
	if s.count++; s.count > maxFaults {
		return
	}
	b, merr := json.Marshal(v)
	if merr != nil {
		b = []byte("?")
	}
	s.faults = append(s.faults, fmt.Sprintf("%s: %s: %s", path, text.Shorten(string(b), maxValue), text.Shorten(err.Error(), maxError)))
}

func (s *salvage) text() Undecoded {
	out := strings.Join(s.faults, "; ")
	if more := s.count - len(s.faults); more > 0 {
		out += fmt.Sprintf("; and %d more", more)
	}
	return Undecoded(out)
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// decode returns the error of decoding a value into a type.
func decode(v any, t reflect.Type) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(b, reflect.New(t).Interface())
}

// typeOf returns the type of the field of a name, or of the entries of a map.
func typeOf(t reflect.Type, name string) (reflect.Type, bool) {
	if t.Kind() == reflect.Map {
		return t.Elem(), true
	}
	var inline []reflect.Type
	for f := range fieldsOf(t) {
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case tag == "-" || !f.IsExported():
		case tag == name, tag == "" && !f.Anonymous && f.Name == name:
			return f.Type, true
		case tag == "" && f.Anonymous, strings.Contains(options, "inline"):
			inline = append(inline, f.Type)
		}
	}
	for _, i := range inline {
		if i.Kind() == reflect.Pointer {
			i = i.Elem()
		}
		if found, ok := typeOf(i, name); ok {
			return found, true
		}
	}
	return nil, false
}

func fieldsOf(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if !yield(t.Field(i)) {
				return
			}
		}
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func sortedKeys(m map[string]any) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
