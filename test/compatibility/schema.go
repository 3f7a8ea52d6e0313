// Package compatibility checks that a release can read the data of the previous release: objects
// of its kinds, inputs of its Compositions, and digests of its groups. testdata has this data, in
// a folder per version.
package compatibility

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// A field of a kind, with the properties that a stored object can depend on.
type field struct {
	// Type of the value, with its format: string, integer, object.
	Type string `json:"type"`
	// Required is true if an object without the field is refused.
	Required bool `json:"required,omitempty"`
	// Default is the JSON of the default, empty if there is none.
	Default string `json:"default,omitempty"`
	// Enum has the allowed values. It is empty if every value is allowed.
	Enum []string `json:"enum,omitempty"`
	// List is how lists and maps are merged: their type and keys.
	List string `json:"list,omitempty"`
}

// A version of a kind.
type version struct {
	Served  bool             `json:"served"`
	Storage bool             `json:"storage"`
	Fields  map[string]field `json:"fields"`
}

// kinds by group, kind and version: "machine.drover.dev Machine v1alpha1".
type kinds map[string]version

// schemaFiles below the root of the repository that have CRDs, XRDs or inputs.
var schemaFiles = []string{"package/*/crds/*.yaml", "package/*/input/*.yaml", "apis/machine/xrds/*.yaml"}

// definition has the fields that CRDs and XRDs have in common.
type definition struct {
	Kind string `json:"kind"`
	Spec struct {
		Group string                `json:"group"`
		Names struct{ Kind string } `json:"names"`
		Scope string                `json:"scope"`
		// Versions of an XRD are referenceable instead of stored.
		Versions []struct {
			Name                           string `json:"name"`
			Served, Storage, Referenceable bool
			Schema                         struct {
				OpenAPIV3Schema schema `json:"openAPIV3Schema"`
			} `json:"schema"`
		} `json:"versions"`
	} `json:"spec"`
}

type schema struct {
	Type       string            `json:"type"`
	Format     string            `json:"format"`
	Required   []string          `json:"required"`
	Default    json.RawMessage   `json:"default"`
	Enum       []json.RawMessage `json:"enum"`
	Properties map[string]schema `json:"properties"`
	Items      *schema           `json:"items"`
	// AdditionalProperties is the schema of the values of a map.
	AdditionalProperties *schema  `json:"additionalProperties"`
	IntOrString          bool     `json:"x-kubernetes-int-or-string"`
	Preserve             bool     `json:"x-kubernetes-preserve-unknown-fields"`
	ListType             string   `json:"x-kubernetes-list-type"`
	ListMapKeys          []string `json:"x-kubernetes-list-map-keys"`
	MapType              string   `json:"x-kubernetes-map-type"`
}

// schemasIn reads the schemas of all kinds below a root.
func schemasIn(root string) (kinds, error) {
	out := kinds{}
	for _, pattern := range schemaFiles {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, fmt.Errorf("%s in %s: %w", pattern, root, err)
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("no file of %s in %s", pattern, root)
		}
		for _, f := range files {
			if err := out.read(f); err != nil {
				return nil, fmt.Errorf("%s: %w", f, err)
			}
		}
	}
	return out, nil
}

func (k kinds) read(file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for _, doc := range strings.Split(string(b), "\n---\n") {
		var d definition
		if err := yaml.Unmarshal([]byte(doc), &d); err != nil {
			return err
		}
		for _, v := range d.Spec.Versions {
			out := version{Served: v.Served, Storage: v.Storage || v.Referenceable, Fields: map[string]field{"": {Type: "scope " + d.Spec.Scope}}}
			out.walk("", v.Schema.OpenAPIV3Schema, false)
			k[d.Spec.Group+" "+d.Spec.Names.Kind+" "+v.Name] = out
		}
	}
	return nil
}

func (v *version) walk(path string, s schema, required bool) {
	if path != "" {
		f := field{Type: s.Type, Required: required, Default: string(s.Default)}
		switch {
		case s.IntOrString:
			f.Type = "int-or-string"
		case s.Preserve:
			f.Type += " of any fields"
		}
		if s.Format != "" {
			f.Type += " " + s.Format
		}
		for _, e := range s.Enum {
			f.Enum = append(f.Enum, string(e))
		}
		f.List = strings.TrimSpace(strings.Join(append([]string{s.ListType, s.MapType}, s.ListMapKeys...), " "))
		v.Fields[path] = f
	}
	for name, p := range s.Properties {
		v.walk(strings.TrimPrefix(path+"."+name, "."), p, slices.Contains(s.Required, name))
	}
	if s.Items != nil {
		v.walk(path+"[]", *s.Items, false)
	}
	if s.AdditionalProperties != nil {
		v.walk(path+"{}", *s.AdditionalProperties, false)
	}
}

// breaks returns the changes by which the kinds of now cannot read or keep the objects stored by
// before.
func (k kinds) breaks(before kinds) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(before)) {
		now, there := k[name]
		was := before[name]
		switch {
		case !there:
			out = append(out, name+": the version is gone: objects of it cannot be read")
			continue
		case was.Storage && !now.Storage:
			out = append(out, name+": is not the storage version any more: stored objects need a migration before")
		case was.Served && !now.Served:
			out = append(out, name+": is not served any more")
		}
		out = append(out, breaks(name, was.Fields, now.Fields)...)
	}
	return out
}

// isNotObserved reports whether a new default only means that no spec was observed. A stored
// object without the field reads the same: all releases compare the field with the generation,
// which is at least 1.
func isNotObserved(path string, was, is field) bool {
	return was.Default == "" && (path == "status.observedGeneration" && is.Default == "-1" ||
		path == "status" && is.Default == `{"observedGeneration":-1}`)
}

func breaks(name string, before, now map[string]field) []string {
	var out []string
	note := func(path, format string, args ...any) {
		out = append(out, fmt.Sprintf("%s: %s: %s", name, path, fmt.Sprintf(format, args...)))
	}
	for _, path := range slices.Sorted(maps.Keys(before)) {
		was := before[path]
		is, there := now[path]
		if !there {
			note(path, "is removed: its value is lost")
			continue
		}
		if is.Type != was.Type && !hasLostItsFormat(was.Type, is.Type) {
			note(path, "was %s, and is %s", was.Type, is.Type)
		}
		if is.Required && !was.Required {
			note(path, "is required now: objects without it are refused")
		}
		if is.Default != was.Default && !isNotObserved(path, was, is) {
			note(path, "had the default %q, and has %q: stored objects change", was.Default, is.Default)
		}
		if is.List != was.List {
			note(path, "was merged by %q, and is by %q", was.List, is.List)
		}
		for _, e := range was.Enum {
			if len(is.Enum) > 0 && !slices.Contains(is.Enum, e) {
				note(path, "%s is not allowed any more", e)
			}
		}
		if len(was.Enum) == 0 && len(is.Enum) > 0 {
			note(path, "only %v are allowed now", is.Enum)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(now)) {
		// A new required field below a new object does not invalidate stored objects.
		if _, was := before[path]; !was && now[path].Required {
			if _, hadParent := before[parentOf(path)]; hadParent || parentOf(path) == "" {
				note(path, "is new and required: objects without it are refused")
			}
		}
	}
	return out
}

func parentOf(path string) string {
	if i := strings.LastIndex(path, "."); i >= 0 {
		return path[:i]
	}
	return ""
}

// hasLostItsFormat reports whether a text lost its format. A format restricts what is accepted, not how it is stored: a rule
// takes its place.
func hasLostItsFormat(was, is string) bool {
	return is == "string" && strings.HasPrefix(was, "string ")
}
