package schemabounds_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/internal/schemabounds"
	"github.com/drover-dev/drover/internal/schematest"
)

// TestEachFormDescribesItsPattern: the example of a message must be accepted, or the message sends a user in a circle.
func TestEachFormDescribesItsPattern(t *testing.T) {
	for pattern, form := range schemabounds.Forms {
		r, err := regexp.Compile(pattern)
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
			continue
		}
		if !r.MatchString(form.Example) {
			t.Errorf("%s: the example %q does not match", pattern, form.Example)
		}
		if strings.HasPrefix(form.Text, "must") || strings.HasSuffix(form.Text, ".") || strings.ContainsAny(form.Text, "^\n") {
			t.Errorf("%s: the text %q must complete \"must be\", without a pattern", pattern, form.Text)
		}
	}
}

// TestNoFieldThatUsersWriteAnswersWithAPattern reads the schemas of all kinds. A new pattern needs a form.
func TestNoFieldThatUsersWriteAnswersWithAPattern(t *testing.T) {
	fields := 0
	for _, glob := range []string{"package/*/crds/*.yaml", "apis/machine/xrds/*.yaml"} {
		files, err := filepath.Glob(filepath.Join("..", "..", glob))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, error %v", glob, len(files), err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			kind := struct {
				Spec struct {
					Versions []struct {
						Schema extv1.CustomResourceValidation `json:"schema"`
					} `json:"versions"`
				} `json:"spec"`
			}{}
			if err := yaml.Unmarshal(b, &kind); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			for _, v := range kind.Spec.Versions {
				spec := v.Schema.OpenAPIV3Schema.Properties["spec"]
				fields += described(t, filepath.Base(file)+" spec", &spec)
			}
		}
	}
	if fields < 1000 {
		t.Errorf("only %d fields were looked at", fields)
	}
}

// described looks at a schema and all schemas in it, and returns their number.
func described(t *testing.T, path string, s *extv1.JSONSchemaProps) int {
	t.Helper()
	// A rule for each quantity in a list would cost more than an API server allows.
	isListedQuantity := strings.HasSuffix(path, "[].nodeCapacity.capacity{}")
	if s.Pattern != "" && !isListedQuantity || s.Format != "" && s.Format != "int32" && s.Format != "int64" {
		t.Errorf("%s: an API server answers with the pattern %q or the format %q: add a form to schemabounds.Forms", path, s.Pattern, s.Format)
	}
	n := 1
	for name, p := range s.Properties {
		n += described(t, path+"."+name, &p)
	}
	if s.Items != nil && s.Items.Schema != nil {
		n += described(t, path+"[]", s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		n += described(t, path+"{}", s.AdditionalProperties.Schema)
	}
	return n
}

// TestAnAPIServerAcceptsEachSchema: the rules that take the place of patterns count towards a limit of costs.
func TestAnAPIServerAcceptsEachSchema(t *testing.T) {
	for _, glob := range []string{"package/*/crds/*.yaml", "apis/machine/xrds/*.yaml"} {
		files, err := filepath.Glob(filepath.Join("..", "..", glob))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, error %v", glob, len(files), err)
		}
		for _, file := range files {
			schematest.Load(t, file)
		}
	}
}
