// Package schemabounds narrows generated schemas to the values that the Go types of their fields can decode, and
// that they encode to a value that the schema accepts again.
//
// An informer decodes a list of objects as a whole. So a value that an API server stores and that Go cannot decode
// would stop every reader of its kind. OpenAPI formats and the patterns of controller-gen are wider than Go:
// "9999999h" matches a pattern of durations, and does not fit into a [time.Duration].
//
// The bounds depend on the schema alone, and are applied by the generators of all schemas. The test of this
// package finds a field without them.
package schemabounds

import (
	"fmt"
	"math"
	"regexp"
	"strings"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// Patterns that fields of the Go types have as a marker, or that controller-gen gives to a type.
const (
	// Duration is the pattern of the marker of each field of the type metav1.Duration.
	Duration = `^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$`

	// Labels is the format of the marker of each map of labels that users write.
	Labels = "labels"

	// Annotations is the format of the marker of each map of annotations that users write.
	Annotations = "annotations"

	// QuantityPrefix starts the pattern that controller-gen gives to each resource.Quantity.
	QuantityPrefix = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))`
)

const (
	// MaxDuration is ten years. The sum of two durations, and a time after them, fit into their types.
	MaxDuration = "87600h"
	// maxDurationLength is longer than any text of a duration up to MaxDuration that Go encodes.
	maxDurationLength = 32

	// decodableDuration matches texts up to maxDurationLength that time.ParseDuration accepts. It bounds the digits of
	// each number, so that the sum of all of them fits into a time.Duration.
	decodableDuration = `^([0-9]{1,5}([.][0-9]{1,9})?h)?([0-9]{1,6}([.][0-9]{1,9})?m)?([0-9]{1,9}([.][0-9]{1,9})?s)?([0-9]{1,12}([.][0-9]{1,9})?ms)?([0-9]{1,12}([.][0-9]{1,9})?(us|µs))?([0-9]{1,15}ns)?$`

	// time matches texts that RFC 3339 and time.Parse both accept. The years are those that stay within four digits in each time
	// zone, and after which no zero time is encoded, which JSON has as null.
	time = `^[12][0-9]{3}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`

	// quantity has one sign, a number and one suffix, as resource.ParseQuantity requires.
	quantity       = `^[+-]?[0-9]{1,19}([.][0-9]{1,9})?([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$`
	quantityLength = 32
	// maxQuantities is more than the resources that a Node reports. With 16, the estimated cost would exceed the limit.
	maxQuantities = 15

	// base64 may have line breaks, which Go skips.
	base64 = `^([A-Za-z0-9+/][\r\n]*[A-Za-z0-9+/][\r\n]*[A-Za-z0-9+/][\r\n]*[A-Za-z0-9+/][\r\n]*)*([A-Za-z0-9+/][\r\n]*[A-Za-z0-9+/][\r\n]*([A-Za-z0-9+/][\r\n]*=|=[\r\n]*=)[\r\n]*)?$`

	// labelKey matches the keys of labels up to labelKeyLength that an API server accepts: a name, and a domain before it.
	labelKey       = `^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`
	labelKeyLength = 253 + 1 + labelValueLength
	// labelValue matches the values of labels up to labelValueLength that an API server accepts.
	labelValue       = `^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`
	labelValueLength = 63
	maxLabelText     = 1024

	// maxInteger is the largest integer that every reader of JSON has exactly.
	maxInteger = 1<<53 - 1
)

// Apply narrows the schema of a kind. Users do not write its status, which keeps patterns: a rule for each entry of a long
// list would cost more than an API server allows.
func Apply(kind *extv1.JSONSchemaProps) {
	for name, p := range kind.Properties {
		apply(&p, name != "status", false)
		kind.Properties[name] = p
	}
}

// apply narrows a schema and all schemas in it. If users write them, wrong texts get messages instead of patterns. Quantities
// in the items of a list keep their pattern: a rule for each would cost more than an API server allows.
func apply(s *extv1.JSONSchemaProps, written, listed bool) {
	switch {
	case s.XIntOrString:
		boundIntOrString(s)
	case s.Type == "integer":
		boundInteger(s)
	case s.Type == "string":
		boundString(s)
	case s.Type == "object" && s.Format == Labels:
		boundLabels(s)
	case s.Type == "object" && s.Format == Annotations:
		boundAnnotations(s)
	}
	guardDurations(s)
	if written {
		describe(s)
	}
	for name, p := range s.Properties {
		apply(&p, written, listed)
		s.Properties[name] = p
	}
	if s.Items != nil && s.Items.Schema != nil {
		apply(s.Items.Schema, written, true)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		isQuantity := strings.HasPrefix(s.AdditionalProperties.Schema.Pattern, QuantityPrefix)
		if written && s.MaxProperties == nil && isQuantity {
			// It bounds the estimated cost of the rule for each quantity.
			s.MaxProperties = ptr.To(int64(maxQuantities))
		}
		apply(s.AdditionalProperties.Schema, written && (!listed || !isQuantity), listed)
	}
}

func boundInteger(s *extv1.JSONSchemaProps) {
	if len(s.Enum) > 0 {
		return
	}
	lowest, highest := float64(-maxInteger), float64(maxInteger)
	if s.Format == "int32" {
		lowest, highest = math.MinInt32, math.MaxInt32
	}
	within(s, lowest, highest)
}

// within adds the bounds that the schema lacks.
func within(s *extv1.JSONSchemaProps, lowest, highest float64) {
	if s.Minimum == nil {
		s.Minimum = ptr.To(lowest)
	}
	if s.Maximum == nil {
		s.Maximum = ptr.To(highest)
	}
}

func boundString(s *extv1.JSONSchemaProps) {
	switch {
	case s.Format == "date-time":
		s.Pattern = time
	case s.Format == "byte":
		s.Pattern = base64
	case s.Pattern == Duration:
		boundDuration(s)
	}
}

func boundDuration(s *extv1.JSONSchemaProps) {
	// An API server evaluates no rule if the pattern does not match, and then shows the pattern instead of the message.
	s.Pattern, s.MaxLength = "", ptr.To(int64(maxDurationLength))
	decodable := fmt.Sprintf("self != '' && self.matches('%s')", decodableDuration)
	for i, r := range s.XValidations {
		// The other rules are about durations only.
		s.XValidations[i].Rule = fmt.Sprintf("!(%s) || %s", decodable, r.Rule)
	}
	s.XValidations = append(extv1.ValidationRules{{
		Rule:    fmt.Sprintf("%s && duration(self) <= duration('%s')", decodable, MaxDuration),
		Message: fmt.Sprintf("must be a duration of at most %s, with the largest unit first, such as 90s, 10m or 1h30m", MaxDuration),
	}}, s.XValidations...)
}

// boundLabels refuses labels that no object can have. The message has the key.
func boundLabels(s *extv1.JSONSchemaProps) {
	key := fmt.Sprintf("k.size() <= %d && k.matches('%s')", labelKeyLength, labelKey)
	value := fmt.Sprintf("self[k].size() <= %d && self[k].matches('%s')", labelValueLength, labelValue)
	s.Format = ""
	// The limit only bounds the estimated cost of the rules: a longer value gets the message of a rule.
	s.AdditionalProperties.Schema.MaxLength = ptr.To(int64(maxLabelText))
	s.XValidations = append(extv1.ValidationRules{
		{
			Rule:              fmt.Sprintf("self.all(k, %s)", key),
			MessageExpression: fmt.Sprintf("'the key \"' + self.filter(k, !(%s))[0] + '\" must be a name of at most 63 letters, digits, -, _ and ., that begins and ends with a letter or a digit, and may follow a domain and a slash'", key),
			Message:           "the keys must be names of at most 63 letters, digits, -, _ and ., that begin and end with a letter or a digit, and may follow a domain and a slash",
		},
		{
			Rule:              fmt.Sprintf("self.all(k, %s)", value),
			MessageExpression: fmt.Sprintf("'the value of ' + self.filter(k, !(%s))[0] + ' must have at most 63 letters, digits, -, _ and ., and begin and end with a letter or a digit'", value),
			Message:           "the values must have at most 63 letters, digits, -, _ and ., and begin and end with a letter or a digit",
		},
	}, s.XValidations...)
}

// boundAnnotations refuses keys of annotations that no object can have. The message has the key.
func boundAnnotations(s *extv1.JSONSchemaProps) {
	// In contrast to those of labels, a domain may have capitals.
	key := fmt.Sprintf("k.size() <= %d && k.matches('(?i)%s')", labelKeyLength, labelKey)
	s.Format = ""
	s.XValidations = append(extv1.ValidationRules{{
		Rule:              fmt.Sprintf("self.all(k, %s)", key),
		MessageExpression: fmt.Sprintf("'the key \"' + self.filter(k, !(%s))[0] + '\" must be a name of at most 63 letters, digits, -, _ and ., that begins and ends with a letter or a digit, and may follow a domain and a slash'", key),
		Message:           "the keys must be names of at most 63 letters, digits, -, _ and ., that begin and end with a letter or a digit, and may follow a domain and a slash",
	}}, s.XValidations...)
}

// ofDuration is a duration in a rule of an object.
var ofDuration = regexp.MustCompile(`duration\((self\.[A-Za-z]+)\)`)

// guardDurations keeps the rules of an object from a text that is no duration: its field has the message for it.
func guardDurations(s *extv1.JSONSchemaProps) {
	if s.Type != "object" {
		return
	}
	for i, r := range s.XValidations {
		for _, found := range ofDuration.FindAllStringSubmatch(r.Rule, -1) {
			s.XValidations[i].Rule = fmt.Sprintf("!(%[1]s.matches('%[2]s')) || %[3]s", found[1], decodableDuration, s.XValidations[i].Rule)
		}
	}
}

func boundIntOrString(s *extv1.JSONSchemaProps) {
	within(s, math.MinInt32, math.MaxInt32)
	if strings.HasPrefix(s.Pattern, QuantityPrefix) {
		s.Pattern, s.MaxLength = quantity, ptr.To(int64(quantityLength))
		s.Minimum, s.Maximum = ptr.To(float64(-maxInteger)), ptr.To(float64(maxInteger))
	}
}
