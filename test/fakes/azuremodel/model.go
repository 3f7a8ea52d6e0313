// Package azuremodel judges the requests of a provider by Microsoft's model of Azure, which is in the modules of the SDK:
// a property that the model does not have, one that only Azure sets, one that is missing although it is required, and a
// value that an enumeration does not have are errors. Azure ignores or refuses each of them.
//
// The types of the SDK decode a request, and the comments and constants in its source have the rest.
package azuremodel

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A Model is that of one module.
type Model struct {
	// marks are the words READ-ONLY and REQUIRED before the description of a field, by TYPE.FIELD.
	marks map[string]string
	// values are those of the enumerations, by type.
	values map[string][]string
}

// Compute is the model of the module armcompute, and Network that of armnetwork.
var (
	Compute = sync.OnceValues(func() (*Model, error) {
		return read("github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7")
	})
	Network = sync.OnceValues(func() (*Model, error) {
		return read("github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v7")
	})
)

const readOnly, required = "READ-ONLY", "REQUIRED"

var (
	typeLine  = regexp.MustCompile(`^type (\w+) struct \{$`)
	fieldLine = regexp.MustCompile(`^\t(\w+) +\S`)
	constLine = regexp.MustCompile(`^\t\w+ +(\w+) = "(.*)"$`)
)

// read reads the source of a module.
func read(module string) (*Model, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return nil, fmt.Errorf("cannot find the module %s: %w", module, err)
	}
	dir := strings.TrimSpace(string(out))
	models, err := os.ReadFile(filepath.Join(dir, "models.go"))
	if err != nil {
		return nil, err
	}
	constants, err := os.ReadFile(filepath.Join(dir, "constants.go"))
	if err != nil {
		return nil, err
	}
	m := &Model{marks: map[string]string{}, values: map[string][]string{}}
	m.readModels(string(models))
	for line := range strings.Lines(string(constants)) {
		if found := constLine.FindStringSubmatch(strings.TrimRight(line, "\n")); found != nil {
			m.values[found[1]] = append(m.values[found[1]], found[2])
		}
	}
	if len(m.marks) == 0 || len(m.values) == 0 {
		return nil, fmt.Errorf("the source of the module %s has another form than before", module)
	}
	return m, nil
}

// readModels reads the marks of all fields.
func (m *Model) readModels(source string) {
	of, mark := "", ""
	for line := range strings.Lines(source) {
		line = strings.TrimRight(line, "\n")
		if found := typeLine.FindStringSubmatch(line); found != nil {
			of, mark = found[1], ""
			continue
		}
		comment, isComment := strings.CutPrefix(line, "\t// ")
		switch found := fieldLine.FindStringSubmatch(line); {
		case isComment:
			for _, known := range []string{readOnly, required} {
				if strings.HasPrefix(comment, known+";") {
					mark = known
				}
			}
		case line == "":
			mark = ""
		case found != nil && of != "" && mark != "":
			m.marks[of+"."+found[1]], mark = mark, ""
		}
	}
}

// Check decodes the body of a request into a value of the SDK, and returns the first difference from the model.
func (m *Model) Check(body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("the body does not have the types of the model: %w", err)
	}
	again, err := json.Marshal(into)
	if err != nil {
		return err
	}
	var sent, known any
	if err := json.Unmarshal(body, &sent); err != nil {
		return err
	}
	if err := json.Unmarshal(again, &known); err != nil {
		return err
	}
	path := reflect.TypeOf(into).Elem().Name()
	if err := unknown(path, sent, known); err != nil {
		return err
	}
	return m.value(path, reflect.ValueOf(into).Elem())
}

// unknown returns an error for the first property that was sent and that the model does not know.
func unknown(path string, sent, known any) error {
	switch s := sent.(type) {
	case map[string]any:
		k, ok := known.(map[string]any)
		if !ok {
			return fmt.Errorf("%s: the model has no object here", path)
		}
		for key, value := range s {
			if _, ok := k[key]; !ok {
				return fmt.Errorf("%s: there is no property %s", path, key)
			}
			if err := unknown(path+"."+key, value, k[key]); err != nil {
				return err
			}
		}
	case []any:
		k, ok := known.([]any)
		if !ok || len(k) != len(s) {
			return fmt.Errorf("%s: the model has another list here", path)
		}
		for n := range s {
			if err := unknown(fmt.Sprintf("%s[%d]", path, n), s[n], k[n]); err != nil {
				return err
			}
		}
	}
	return nil
}

// value checks a value of the SDK.
func (m *Model) value(path string, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return m.value(path, v.Elem())
	case reflect.Slice:
		for n := range v.Len() {
			if err := m.value(fmt.Sprintf("%s[%d]", path, n), v.Index(n)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			if err := m.value(path+"."+k.String(), v.MapIndex(k)); err != nil {
				return err
			}
		}
	case reflect.String:
		if allowed := m.values[v.Type().Name()]; len(allowed) > 0 && !slices.Contains(allowed, v.String()) && !m.isOpen(v.Type().Name()) {
			return fmt.Errorf("%s: invalid value %q: must be one of %q", path, v.String(), allowed)
		}
	case reflect.Struct:
		return m.fields(path, v)
	}
	return nil
}

// open are the enumerations that the module does not keep complete.
var open = []string{"VirtualMachineSizeTypes"}

func (m *Model) isOpen(name string) bool { return slices.Contains(open, name) }

func (m *Model) fields(path string, v reflect.Value) error {
	for n := range v.NumField() {
		f := v.Type().Field(n)
		if !f.IsExported() {
			continue
		}
		isSet := !v.Field(n).IsZero()
		switch mark := m.marks[v.Type().Name()+"."+f.Name]; {
		case mark == readOnly && isSet:
			return fmt.Errorf("%s.%s: only Azure sets it", path, f.Name)
		case mark == required && !isSet:
			return fmt.Errorf("%s.%s: it is required", path, f.Name)
		}
		if err := m.value(path+"."+f.Name, v.Field(n)); err != nil {
			return err
		}
	}
	return nil
}
