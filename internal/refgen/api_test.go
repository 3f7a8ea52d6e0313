package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// A schema of a CRD or an XRD.
type schema struct {
	Properties           map[string]schema `json:"properties"`
	Items                *schema           `json:"items"`
	AdditionalProperties *schema           `json:"additionalProperties"`
	Required             []string          `json:"required"`
	Default              any               `json:"default"`
	Rules                []struct {
		Message string `json:"message"`
	} `json:"x-kubernetes-validations"`
}

// TestTheAPIPageHasTheSchemas compares the page, which crd-ref-docs makes from the Go types, with
// the schemas that a user installs: each field with its default, each field that is required, and each rule.
func TestTheAPIPageHasTheSchemas(t *testing.T) {
	page := read(t, "docs/reference/api.md")
	rows := map[string][]string{}
	for line := range strings.Lines(page) {
		if name, rest, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "` "); ok && strings.HasPrefix(line, "| `") {
			rows[name] = append(rows[name], rest)
		}
	}
	kinds := 0
	for _, pattern := range []string{"package/provider-drover/crds/*.yaml", "apis/machine/xrds/*.yaml", "package/function-drover/input/*.yaml"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, error %v", pattern, len(files), err)
		}
		for _, file := range files {
			path, err := filepath.Rel(root, file)
			if err != nil {
				t.Fatal(err)
			}
			kind, top := schemaIn(t, path)
			if kinds++; !strings.Contains(page, "\n### "+kind+"\n") {
				t.Errorf("%s: the page has no section %s", path, kind)
			}
			compare(t, page, rows, kind, top)
		}
	}
	if kinds < 20 {
		t.Errorf("only %d kinds were compared", kinds)
	}
}

func compare(t *testing.T, page string, rows map[string][]string, path string, s schema) {
	t.Helper()
	for _, r := range s.Rules {
		if !strings.Contains(page, cell(strings.ReplaceAll(strings.Join(strings.Fields(r.Message), " "), "*", `\*`))) {
			t.Errorf("%s: the page lacks the rule %q", path, r.Message)
		}
	}
	for name, field := range s.Properties {
		if strings.Count(path, ".") == 0 && slices.Contains([]string{"apiVersion", "kind", "metadata"}, name) {
			continue
		}
		is := func(what string) bool {
			return slices.ContainsFunc(rows[name], func(row string) bool { return strings.Contains(row, what) })
		}
		switch {
		case !is(""):
			t.Errorf("%s.%s: the page lacks the field", path, name)
		case field.Default != nil:
			text, err := json.Marshal(field.Default)
			if err != nil {
				t.Fatal(err)
			}
			if !is("| `" + string(text) + "` |") {
				t.Errorf("%s.%s: the page lacks the default %s", path, name, text)
			}
		case slices.Contains(s.Required, name) && !is("| required |"):
			t.Errorf("%s.%s: the page does not report that the field is required", path, name)
		case !slices.Contains(s.Required, name) && !is("|  |"):
			t.Errorf("%s.%s: the page reports that the field is required, or has a default", path, name)
		}
		compare(t, page, rows, path+"."+name, field)
	}
	if strings.HasSuffix(path, ".conditions") && s.Items != nil && slices.Contains(s.Items.Required, "lastTransitionTime") {
		return // They are those of Kubernetes.
	}
	for _, inner := range []*schema{s.Items, s.AdditionalProperties} {
		if inner != nil {
			compare(t, page, rows, path+"[]", *inner)
		}
	}
}

// schemaIn a file of a CRD or an XRD.
func schemaIn(t *testing.T, path string) (string, schema) {
	t.Helper()
	var o struct {
		Spec struct {
			Names    struct{ Kind string }
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema schema `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal([]byte(read(t, path)), &o); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return o.Spec.Names.Kind, o.Spec.Versions[0].Schema.OpenAPIV3Schema
}
