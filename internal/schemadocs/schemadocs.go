// Package schemadocs completes the descriptions of generated schemas, which are what kubectl explain shows: a default is part
// of a schema, and kubectl explain does not show it, nor the form of a duration or a quantity.
//
// The additions depend on the schema alone, and are applied by the generators of all schemas, before the bounds of the package
// schemabounds. The test of this package finds a field without its default or its unit.
package schemadocs

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/drover-dev/drover/internal/schemabounds"
)

// Sentences that are added to the descriptions of fields of these types.
const (
	duration = "A duration with units, such as 90s, 20m or 1h30m."
	quantity = "A quantity, such as 500m, 4 or 16Gi."
)

// hasDefault matches a description about the default.
var hasDefault = regexp.MustCompile(`(?i)\bdefaults?\b`)

// Apply completes the descriptions of a schema and of all schemas in it. It fails if a default is no JSON.
func Apply(s *extv1.JSONSchemaProps) error {
	for name, p := range s.Properties {
		if err := complete(&p); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := Apply(&p); err != nil {
			return fmt.Errorf("%s.%w", name, err)
		}
		s.Properties[name] = p
	}
	if s.Items != nil && s.Items.Schema != nil {
		if err := Apply(s.Items.Schema); err != nil {
			return fmt.Errorf("[]%w", err)
		}
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		return Apply(s.AdditionalProperties.Schema)
	}
	return nil
}

func complete(p *extv1.JSONSchemaProps) error {
	var added []string
	switch {
	case p.Type == "string" && p.Pattern == schemabounds.Duration:
		added = append(added, duration)
	case p.XIntOrString && strings.HasPrefix(p.Pattern, schemabounds.QuantityPrefix):
		added = append(added, quantity)
	}
	if p.Default != nil {
		text, err := textOf(p.Default.Raw)
		if err != nil {
			return err
		}
		if !states(p.Description, text) {
			added = append(added, "Default: "+text+".")
		}
	}
	if len(added) > 0 {
		p.Description = strings.TrimSpace(strings.TrimSpace(p.Description) + separator(p.Description) + strings.Join(added, " "))
	}
	return nil
}

// states reports whether a description states a default: its value, in a text about the default.
func states(description, value string) bool {
	return hasDefault.MatchString(description) && strings.Contains(description, strings.Trim(value, `"`))
}

// separator keeps an addition out of the last item of a list.
func separator(description string) string {
	lines := strings.Split(strings.TrimSpace(description), "\n")
	if strings.HasPrefix(strings.TrimSpace(lines[len(lines)-1]), "- ") {
		return "\n\n"
	}
	return " "
}

// textOf a default.
func textOf(raw []byte) (string, error) {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return "", fmt.Errorf("default: %w", err)
	}
	if v, ok := value.(map[string]any); ok && len(v) == 0 {
		return "the defaults of its fields", nil
	}
	b, err := json.Marshal(value)
	return string(b), err
}
