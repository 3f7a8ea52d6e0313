package awsmodel

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// An element is an element of a response.
type element struct {
	name     string
	text     string
	children []*element
}

// Answer returns an error that names the element if a response to an operation violates the model.
func (m *Model) Answer(action string, body []byte) error {
	operation, ok := m.Operations[action]
	if !ok {
		return fmt.Errorf("the model has no operation %q", action)
	}
	root, err := parse(body)
	if err != nil {
		return fmt.Errorf("%s: the response is no XML: %w", action, err)
	}
	if root.name != action+"Response" {
		return fmt.Errorf("%s: the response is %s, want %sResponse", action, root.name, action)
	}
	content := root.without("requestId", "ResponseMetadata")
	if operation.Output == nil {
		// EC2 answers with <return>true</return>.
		if rest := content.without("return"); len(rest.children) > 0 {
			return fmt.Errorf("%s: the model has no %s", action, rest.children[0].name)
		}
		return nil
	}
	if wrapper := operation.Output.ResultWrapper; wrapper != "" {
		if len(content.children) != 1 || content.children[0].name != wrapper {
			return fmt.Errorf("%s: the result must be in %s", action, wrapper)
		}
		content = content.children[0]
	}
	return m.answer(m.Shapes[operation.Output.Shape], content, action)
}

// Failure returns an error if an error response has another form than that of the protocol, or a code that is empty. Its
// second result is the code.
func (m *Model) Failure(body []byte) (string, error) {
	root, err := parse(body)
	if err != nil {
		return "", fmt.Errorf("the error response is no XML: %w", err)
	}
	path := []string{"Response", "Errors", "Error"}
	if m.Metadata.Protocol == "query" {
		path = []string{"ErrorResponse", "Error"}
	}
	if root.name != path[0] {
		return "", fmt.Errorf("the error response is %s, want %s", root.name, path[0])
	}
	at := root
	for _, name := range append(path[1:], "Code") {
		if at = at.child(name); at == nil {
			return "", fmt.Errorf("the error response has no %s", name)
		}
	}
	if at.text == "" {
		return "", errors.New("the error response has an empty code")
	}
	return at.text, nil
}

func (e *element) child(name string) *element {
	for _, c := range e.children {
		if c.name == name {
			return c
		}
	}
	return nil
}

func (e *element) without(names ...string) *element {
	out := &element{name: e.name, text: e.text}
	for _, c := range e.children {
		found := false
		for _, n := range names {
			found = found || c.name == n
		}
		if !found {
			out.children = append(out.children, c)
		}
	}
	return out
}

func parse(body []byte) (*element, error) {
	d := xml.NewDecoder(bytes.NewReader(body))
	var root *element
	var open []*element
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		switch x := token.(type) {
		case xml.StartElement:
			e := &element{name: x.Name.Local}
			if len(open) == 0 {
				root = e
			} else {
				parent := open[len(open)-1]
				parent.children = append(parent.children, e)
			}
			open = append(open, e)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			if len(open) > 0 {
				open[len(open)-1].text += string(x)
			}
		}
	}
	if root == nil {
		return nil, errors.New("there is no element")
	}
	return root, nil
}

func (m *Model) answer(s *shape, e *element, at string) error {
	switch s.Type {
	case "structure":
		if strings.TrimSpace(e.text) != "" {
			return fmt.Errorf("%s: must have members, and has the text %q", at, e.text)
		}
		known := map[string]*reference{}
		for name, r := range s.Members {
			if r.LocationName != "" {
				name = r.LocationName
			}
			known[name] = r
		}
		seen := map[string]bool{}
		for _, c := range e.children {
			r := known[c.name]
			switch {
			case r == nil:
				return fmt.Errorf("%s: the model has no element %s", at, c.name)
			case seen[c.name]:
				return fmt.Errorf("%s: %s is there twice", at, c.name)
			}
			seen[c.name] = true
			if err := m.answer(m.Shapes[r.Shape], c, at+"."+c.name); err != nil {
				return err
			}
		}
		return nil
	case "list":
		item := s.Member.LocationName
		if item == "" {
			item = "member"
		}
		for n, c := range e.children {
			if c.name != item {
				return fmt.Errorf("%s: an item of the list is %s, want %s", at, c.name, item)
			}
			if err := m.answer(m.Shapes[s.Member.Shape], c, fmt.Sprintf("%s[%d]", at, n)); err != nil {
				return err
			}
		}
		return nil
	}
	if len(e.children) > 0 {
		return fmt.Errorf("%s: must be a %s, and has the element %s", at, s.Type, e.children[0].name)
	}
	return scalar(s, e.text, at)
}
