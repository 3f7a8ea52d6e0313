// Package gcpmodel holds requests to the Compute API, and the answers of a fake of it, against Google's own description of the
// API: the discovery document compute/v1/compute-api.json of the module google.golang.org/api.
//
// A request must be one of a method of the document, with parameters that the method has, of their types and
// patterns, and with all that are required. A body must have only properties of its schema, of their types, formats and
// enumerations, with all that the method requires and none that only Google sets. An answer must match the schema of the
// method in the same way; it may lack properties, because a partial response has only some.
package gcpmodel

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// module has the document.
const module = "google.golang.org/api"

// A Model is the description of an API.
type Model struct {
	ServicePath string               `json:"servicePath"`
	Parameters  map[string]parameter `json:"parameters"`
	Schemas     map[string]*schema   `json:"schemas"`
	Resources   map[string]resource  `json:"resources"`

	methods []*method
}

type resource struct {
	Methods   map[string]*method  `json:"methods"`
	Resources map[string]resource `json:"resources"`
}

// A method is a call of the API.
type method struct {
	ID         string               `json:"id"`
	Path       string               `json:"path"`
	HTTPMethod string               `json:"httpMethod"`
	Parameters map[string]parameter `json:"parameters"`
	Request    *reference           `json:"request"`
	Response   *reference           `json:"response"`

	path  *regexp.Regexp
	names []string
}

type reference struct {
	Ref string `json:"$ref"`
}

type parameter struct {
	Location string `json:"location"`
	Required bool   `json:"required"`
	Repeated bool   `json:"repeated"`
	schema
}

// A schema is a type of the API.
type schema struct {
	Ref                  string             `json:"$ref"`
	Type                 string             `json:"type"`
	Format               string             `json:"format"`
	Pattern              string             `json:"pattern"`
	Enum                 []string           `json:"enum"`
	Minimum              string             `json:"minimum"`
	Maximum              string             `json:"maximum"`
	ReadOnly             bool               `json:"readOnly"`
	Properties           map[string]*schema `json:"properties"`
	AdditionalProperties *schema            `json:"additionalProperties"`
	Items                *schema            `json:"items"`
	Annotations          struct {
		Required []string `json:"required"`
	} `json:"annotations"`
}

// Compute returns the model of the Compute API. It is read once.
var Compute = sync.OnceValues(func() (*Model, error) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return nil, fmt.Errorf("cannot find module %s: %w", module, err)
	}
	b, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "compute", "v1", "compute-api.json"))
	if err != nil {
		return nil, err
	}
	return read(b)
})

// read reads a discovery document.
func read(document []byte) (*Model, error) {
	m := &Model{}
	if err := json.Unmarshal(document, m); err != nil {
		return nil, err
	}
	m.collect(m.Resources)
	if len(m.methods) == 0 {
		return nil, errors.New("the document has no methods")
	}
	return m, nil
}

var variable = regexp.MustCompile(`\{\+?([A-Za-z]+)\}`)

func (m *Model) collect(resources map[string]resource) {
	for _, r := range resources {
		for _, x := range r.Methods {
			for _, found := range variable.FindAllStringSubmatch(x.Path, -1) {
				x.names = append(x.names, found[1])
			}
			x.path = regexp.MustCompile(`^/` + regexp.QuoteMeta(m.ServicePath) + variable.ReplaceAllString(x.Path, `([^/]+)`) + `$`)
			m.methods = append(m.methods, x)
		}
		m.collect(r.Resources)
	}
}

// A Call is a request that the model has.
type Call struct {
	// ID of the method, such as compute.instances.insert.
	ID string
	// Parameters in the path, by their names.
	Parameters map[string]string

	model  *Model
	method *method
}

// Request returns the call of a request, or an error if Google would not accept the request.
func (m *Model) Request(httpMethod string, u *url.URL, body []byte) (*Call, error) {
	x, values := m.find(httpMethod, u.Path)
	if x == nil {
		return nil, fmt.Errorf("%s %s: the API has no such method", httpMethod, u.Path)
	}
	c := &Call{ID: x.ID, Parameters: values, model: m, method: x}
	if err := c.checkParameters(u.Query()); err != nil {
		return nil, fmt.Errorf("%s: %w", x.ID, err)
	}
	if x.Request == nil {
		if len(body) > 0 {
			return nil, fmt.Errorf("%s: it has a body, and the method has none", x.ID)
		}
		return c, nil
	}
	value, err := decode(body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", x.ID, err)
	}
	if err := (check{model: m, method: x.ID, request: true}).value(x.Request.Ref, &schema{Ref: x.Request.Ref}, value); err != nil {
		return nil, fmt.Errorf("%s: %w", x.ID, err)
	}
	return c, nil
}

// find returns the method of a path, and its parameters. A path with a fixed part is preferred: images/family/x is no
// image.
func (m *Model) find(httpMethod, path string) (*method, map[string]string) {
	var best *method
	var values map[string]string
	for _, x := range m.methods {
		if x.HTTPMethod != httpMethod || best != nil && len(x.names) >= len(best.names) {
			continue
		}
		if found := x.path.FindStringSubmatch(path); found != nil {
			best, values = x, map[string]string{}
			for n, name := range x.names {
				values[name] = found[n+1]
			}
		}
	}
	return best, values
}

func (c *Call) checkParameters(query url.Values) error {
	for name, p := range c.method.Parameters {
		switch {
		case p.Location == "path":
			if err := p.text(name, c.Parameters[name]); err != nil {
				return err
			}
		case p.Required && !query.Has(name):
			return fmt.Errorf("the parameter %s is missing", name)
		}
	}
	for name, values := range query {
		p, ok := c.method.Parameters[name]
		if !ok {
			if p, ok = c.model.Parameters[name]; !ok {
				return fmt.Errorf("there is no parameter %s", name)
			}
		}
		if p.Location != "query" {
			return fmt.Errorf("the parameter %s is not one of the query", name)
		}
		if len(values) > 1 && !p.Repeated {
			return fmt.Errorf("the parameter %s is given %d times", name, len(values))
		}
		for _, v := range values {
			if err := p.text(name, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// Answer returns an error if Google would not give the answer to the call.
func (c *Call) Answer(status int, body []byte) error {
	value, err := decode(body)
	if err == nil && status >= http.StatusBadRequest {
		err = checkFailure(status, value)
	} else if err == nil && c.method.Response != nil {
		err = (check{model: c.model, method: c.ID}).value(c.method.Response.Ref, &schema{Ref: c.method.Response.Ref}, value)
	}
	if err != nil {
		return fmt.Errorf("the answer to %s: %w", c.ID, err)
	}
	return nil
}

// checkFailure checks an error response: https://cloud.google.com/compute/docs/api/how-tos/errors.
func checkFailure(status int, value any) error {
	e, _ := value.(map[string]any)["error"].(map[string]any)
	if e == nil {
		return errors.New("an error response has no error")
	}
	if code, ok := e["code"].(json.Number); !ok || code.String() != fmt.Sprint(status) {
		return fmt.Errorf("error.code is %v, and the status is %d", e["code"], status)
	}
	if text, ok := e["message"].(string); !ok || text == "" {
		return errors.New("an error response has no message")
	}
	items, _ := e["errors"].([]any)
	if len(items) == 0 {
		return errors.New("an error response has no errors")
	}
	for _, item := range items {
		x, _ := item.(map[string]any)
		for _, key := range []string{"domain", "reason", "message"} {
			if text, ok := x[key].(string); !ok || text == "" {
				return fmt.Errorf("an item of error.errors has no %s", key)
			}
		}
	}
	return nil
}
