package gcpmodel

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
)

// decode decodes a body. Numbers are kept as they are written.
func decode(body []byte) (any, error) {
	var out any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&out); err != nil {
		return nil, fmt.Errorf("the body is no JSON: %w", err)
	}
	return out, nil
}

// A check compares a value with the schemas of a model.
type check struct {
	model   *Model
	method  string
	request bool
}

// value returns an error that names the path if a value does not match a schema.
func (c check) value(path string, s *schema, value any) error {
	if s.Ref != "" {
		named := c.model.Schemas[s.Ref]
		if named == nil {
			return fmt.Errorf("%s: the document has no schema %s", path, s.Ref)
		}
		return c.value(path, named, value)
	}
	switch s.Type {
	case "object":
		return c.object(path, s, value)
	case "array":
		list, ok := value.([]any)
		if !ok {
			return fmt.Errorf("%s: must be a list, and is %T", path, value)
		}
		for n, item := range list {
			if err := c.value(fmt.Sprintf("%s[%d]", path, n), s.Items, item); err != nil {
				return err
			}
		}
		return nil
	case "boolean":
		if _, ok := value.(bool); !ok {
			return fmt.Errorf("%s: must be true or false, and is %v", path, value)
		}
		return nil
	case "integer", "number":
		n, ok := value.(json.Number)
		if !ok {
			return fmt.Errorf("%s: must be a number, and is %v", path, value)
		}
		return s.text(path, n.String())
	case "string":
		text, ok := value.(string)
		if !ok {
			return fmt.Errorf("%s: must be a text, and is %v", path, value)
		}
		return s.text(path, text)
	}
	return nil // Any value.
}

func (c check) object(path string, s *schema, value any) error {
	object, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("%s: must be an object, and is %T", path, value)
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		of := s.Properties[key]
		if of == nil {
			of = s.AdditionalProperties
		}
		switch {
		case of == nil:
			return fmt.Errorf("%s: there is no property %s", path, key)
		case c.request && of.ReadOnly:
			return fmt.Errorf("%s.%s: only Google sets it", path, key)
		}
		if err := c.value(path+"."+key, of, object[key]); err != nil {
			return err
		}
	}
	if !c.request {
		return nil
	}
	for key, of := range s.Properties {
		if _, ok := object[key]; !ok && slices.Contains(of.Annotations.Required, c.method) {
			return fmt.Errorf("%s.%s: %s requires it", path, key, c.method)
		}
	}
	return nil
}

// sizes of integers by their formats, in bits.
var sizes = map[string]int{"int32": 32, "int64": 64, "uint32": 32, "uint64": 64}

// text returns an error if a text is no value of the schema. Numbers in a query are texts, and so are large numbers in a
// body.
func (s schema) text(path, text string) error {
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, text) {
		return fmt.Errorf("%s: invalid value %q: must be one of %q", path, text, s.Enum)
	}
	if s.Pattern != "" && text != "" {
		if p, err := regexp.Compile(`^(?:` + s.Pattern + `)$`); err == nil && !p.MatchString(text) {
			return fmt.Errorf("%s: invalid value %q: must match %s", path, text, s.Pattern)
		}
	}
	if s.Type == "boolean" && text != "true" && text != "false" {
		return fmt.Errorf("%s: invalid value %q: must be true or false", path, text)
	}
	var err error
	switch s.Format {
	case "int32", "int64":
		_, err = strconv.ParseInt(text, 10, sizes[s.Format])
	case "uint32", "uint64":
		_, err = strconv.ParseUint(text, 10, sizes[s.Format])
	case "byte":
		_, err = base64.StdEncoding.DecodeString(text)
	default:
		if s.Type == "integer" || s.Type == "number" {
			_, err = strconv.ParseFloat(text, 64)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: invalid value %q: must be %s", path, text, s.Format+" "+s.Type)
	}
	return s.between(path, text)
}

// between checks the bounds of a number.
func (s schema) between(path, text string) error {
	if s.Type != "integer" || s.Minimum == "" && s.Maximum == "" {
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil //nolint:nilerr // An unsigned number that is larger than each bound of the document.
	}
	if low, err := strconv.ParseInt(s.Minimum, 10, 64); err == nil && n < low {
		return fmt.Errorf("%s: invalid value %s: must be at least %s", path, text, s.Minimum)
	}
	if high, err := strconv.ParseInt(s.Maximum, 10, 64); err == nil && n > high {
		return fmt.Errorf("%s: invalid value %s: must be at most %s", path, text, s.Maximum)
	}
	return nil
}
