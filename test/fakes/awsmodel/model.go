// Package awsmodel judges requests to AWS, and responses of its fake, by Amazon's own models of its APIs, which the SDKs are
// generated from. A request with a parameter that the model does not have, without a required one, or with a value of
// another type or outside of an enumeration is refused, and so is a response.
//
// The models are those of EC2 (protocol ec2) and of the Security Token Service (protocol query) in the folder models/apis of
// github.com/aws/aws-sdk-go: each has its shapes in api-2.json, its documentation in docs-2.json, and the codes of errors that
// the SDKs wait for in waiters-2.json.
package awsmodel

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Models are the models of the APIs that Drover calls.
type Models struct{ EC2, STS *Model }

// Of returns the model with the version of a request, or nil if there is none.
func (m Models) Of(version string) *Model {
	for _, model := range []*Model{m.EC2, m.STS} {
		if model.Metadata.APIVersion == version {
			return model
		}
	}
	return nil
}

// A Model is the model of an API.
type Model struct {
	Metadata struct {
		APIVersion string `json:"apiVersion"`
		Protocol   string `json:"protocol"`
	} `json:"metadata"`
	Operations map[string]struct {
		Input  *reference `json:"input"`
		Output *reference `json:"output"`
	} `json:"operations"`
	Shapes map[string]*shape `json:"shapes"`

	docs string
}

type shape struct {
	Type     string                `json:"type"`
	Required []string              `json:"required"`
	Members  map[string]*reference `json:"members"`
	Member   *reference            `json:"member"`
	Enum     []string              `json:"enum"`
	Pattern  string                `json:"pattern"`
	Min      *float64              `json:"min"`
	Max      *float64              `json:"max"`
}

type reference struct {
	Shape         string `json:"shape"`
	LocationName  string `json:"locationName"`
	QueryName     string `json:"queryName"`
	ResultWrapper string `json:"resultWrapper"`
}

// parameter returns the name of a member in a request.
func (m *Model) parameter(name string, r *reference) string {
	switch {
	case m.Metadata.Protocol == "ec2" && r.QueryName != "":
		return r.QueryName
	case r.LocationName != "" && m.Metadata.Protocol == "ec2":
		return strings.ToUpper(r.LocationName[:1]) + r.LocationName[1:]
	case r.LocationName != "":
		return r.LocationName
	}
	return name
}

// Request returns an error that names the parameter if a request violates the model.
func (m *Model) Request(form url.Values) error {
	name := form.Get("Action")
	operation, ok := m.Operations[name]
	if !ok {
		return fmt.Errorf("Action: the model has no operation %q", name)
	}
	root := &parameters{}
	for k, values := range form {
		switch {
		case k == "Action" || k == "Version":
			continue
		case len(values) != 1:
			return fmt.Errorf("%s: %s is there %d times", name, k, len(values))
		}
		if err := root.add(strings.Split(k, "."), values[0]); err != nil {
			return fmt.Errorf("%s: %s: %w", name, k, err)
		}
	}
	if operation.Input == nil {
		if len(root.children) > 0 {
			return fmt.Errorf("%s: the operation has no parameters", name)
		}
		return nil
	}
	return m.structure(m.Shapes[operation.Input.Shape], root, name)
}

// parameters are the parameters of a request, as a tree.
type parameters struct {
	value    *string
	children map[string]*parameters
}

func (p *parameters) add(path []string, value string) error {
	if len(path) == 0 {
		if p.children != nil {
			return fmt.Errorf("has a value and members")
		}
		p.value = &value
		return nil
	}
	if p.value != nil {
		return fmt.Errorf("has a value and members")
	}
	if p.children == nil {
		p.children = map[string]*parameters{}
	}
	if p.children[path[0]] == nil {
		p.children[path[0]] = &parameters{}
	}
	return p.children[path[0]].add(path[1:], value)
}

func (m *Model) structure(s *shape, p *parameters, at string) error {
	if p.value != nil {
		return fmt.Errorf("%s: must have members, and has the value %q", at, *p.value)
	}
	known := map[string]*reference{}
	for name, r := range s.Members {
		known[m.parameter(name, r)] = r
	}
	for name, child := range p.children {
		r := known[name]
		if r == nil {
			return fmt.Errorf("%s: the model has no parameter %s", at, name)
		}
		if err := m.request(m.Shapes[r.Shape], child, at+"."+name); err != nil {
			return err
		}
	}
	for _, name := range s.Required {
		if required := m.parameter(name, s.Members[name]); p.children[required] == nil {
			return fmt.Errorf("%s: the required parameter %s is missing", at, required)
		}
	}
	return nil
}

func (m *Model) request(s *shape, p *parameters, at string) error {
	switch s.Type {
	case "structure":
		return m.structure(s, p, at)
	case "list":
		items := p.children
		if m.Metadata.Protocol == "query" {
			if len(p.children) > 0 && p.children["member"] == nil {
				return fmt.Errorf("%s: the items must be below member", at)
			}
			if p.children["member"] != nil {
				items = p.children["member"].children
			}
		}
		if p.value != nil && *p.value != "" {
			return fmt.Errorf("%s: must be a list, and has the value %q", at, *p.value)
		}
		for n := range len(items) {
			item := items[strconv.Itoa(n+1)]
			if item == nil {
				return fmt.Errorf("%s: the items must have the numbers 1 to %d", at, len(items))
			}
			if err := m.request(m.Shapes[s.Member.Shape], item, at+"."+strconv.Itoa(n+1)); err != nil {
				return err
			}
		}
		return bounds(s, float64(len(items)), at)
	}
	if p.value == nil {
		return fmt.Errorf("%s: must be a %s, and has members", at, s.Type)
	}
	return scalar(s, *p.value, at)
}

// scalar validates a value that is no structure and no list.
func scalar(s *shape, value, at string) error {
	var err error
	switch s.Type {
	case "string", "character":
		if len(s.Enum) > 0 && !slices.Contains(s.Enum, value) {
			return fmt.Errorf("%s: %q is none of %d values of the enumeration, such as %q", at, value, len(s.Enum), s.Enum[0])
		}
		if s.Pattern != "" {
			if pattern, perr := regexp.Compile(`^(?:` + s.Pattern + `)$`); perr == nil && !pattern.MatchString(value) {
				return fmt.Errorf("%s: %q does not match %s", at, value, s.Pattern)
			}
		}
		return bounds(s, float64(len([]rune(value))), at)
	case "boolean":
		if value != "true" && value != "false" {
			err = fmt.Errorf("must be true or false")
		}
	case "integer", "long":
		var n int64
		if n, err = strconv.ParseInt(value, 10, map[string]int{"integer": 32, "long": 64}[s.Type]); err == nil {
			return bounds(s, float64(n), at)
		}
	case "float", "double":
		var f float64
		if f, err = strconv.ParseFloat(value, 64); err == nil {
			return bounds(s, f, at)
		}
	case "timestamp":
		_, err = time.Parse(time.RFC3339, value)
	case "blob":
		_, err = base64.StdEncoding.DecodeString(value)
	default:
		err = fmt.Errorf("the type %s is unknown", s.Type)
	}
	if err != nil {
		return fmt.Errorf("%s: %q is no %s: %w", at, value, s.Type, err)
	}
	return nil
}

func bounds(s *shape, n float64, at string) error {
	switch {
	case s.Min != nil && n < *s.Min:
		return fmt.Errorf("%s: %v is less than %v", at, n, *s.Min)
	case s.Max != nil && n > *s.Max:
		return fmt.Errorf("%s: %v is more than %v", at, n, *s.Max)
	}
	return nil
}

// Documents reports whether the documentation of the API, or a waiter of the SDKs, names a code.
func (m *Model) Documents(code string) bool {
	return regexp.MustCompile(`\b` + regexp.QuoteMeta(code) + `\b`).MatchString(m.docs)
}
