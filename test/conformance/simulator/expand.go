package simulator

import (
	"fmt"
	"strings"
	"text/template"
)

// expand expands all templates in a value.
func expand(value any, data map[string]any) (any, error) {
	switch v := value.(type) {
	case string:
		return text(v, data)
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, child := range v {
			expanded, err := expand(child, data)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
			out[key] = expanded
		}
		return out, nil
	case []any:
		out := make([]any, 0, len(v))
		for i, child := range v {
			expanded, err := expand(child, data)
			if err != nil {
				return nil, fmt.Errorf("[%d]: %w", i, err)
			}
			out = append(out, expanded)
		}
		return out, nil
	}
	return value, nil
}

// text expands a template. Each name in it must have a value.
func text(t string, data map[string]any) (string, error) {
	if !strings.Contains(t, "{{") {
		return t, nil
	}
	parsed, err := template.New("").Option("missingkey=error").Parse(t)
	if err != nil {
		return "", err
	}
	out := &strings.Builder{}
	if err := parsed.Execute(out, data); err != nil {
		return "", err
	}
	return out.String(), nil
}
