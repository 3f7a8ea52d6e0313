package schemadocs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/internal/schemabounds"
)

func TestADescriptionIsCompleted(t *testing.T) {
	raw := func(s string) *extv1.JSON { return &extv1.JSON{Raw: []byte(s)} }
	for _, tc := range []struct {
		name  string
		field extv1.JSONSchemaProps
		want  string
	}{
		{"WithTheDefault", extv1.JSONSchemaProps{Description: "Size of the pool.", Default: raw("1")}, "Size of the pool. Default: 1."},
		{"WithADefaultThatIsAText", extv1.JSONSchemaProps{Description: "Name.", Default: raw(`"default"`)}, `Name. Default: "default".`},
		{"WithADefaultThatIsAnObject", extv1.JSONSchemaProps{Description: "Bounds.", Default: raw(`{"maxSurge": 1}`)}, `Bounds. Default: {"maxSurge":1}.`},
		{"WithADefaultThatIsTheDefaultsOfItsFields", extv1.JSONSchemaProps{Description: "Drain.", Default: raw("{}")}, "Drain. Default: the defaults of its fields."},
		{"WithADefaultThatIsEmpty", extv1.JSONSchemaProps{Description: "Suffix.", Default: raw(`""`)}, `Suffix. Default: "".`},
		{"UnlessItStatesTheDefault", extv1.JSONSchemaProps{Description: "Order. The default is 0.", Default: raw("0")}, "Order. The default is 0."},
		{"AlsoIfItIsAboutTheDefaultWithoutItsValue", extv1.JSONSchemaProps{Description: "Deadline. The default is long.", Default: raw("1800")}, "Deadline. The default is long. Default: 1800."},
		{"WithTheFormOfADuration", extv1.JSONSchemaProps{Description: "Timeout.", Type: "string", Pattern: schemabounds.Duration, Default: raw(`"20m"`)}, "Timeout. " + duration + ` Default: "20m".`},
		{"WithTheFormOfAQuantity", extv1.JSONSchemaProps{Description: "Memory.", XIntOrString: true, Pattern: schemabounds.QuantityPrefix + "x"}, "Memory. " + quantity},
		{"AfterAList", extv1.JSONSchemaProps{Description: "One of:\n - a\n - b", Default: raw(`"a"`)}, "One of:\n - a\n - b\n\nDefault: \"a\"."},
		{"AlsoIfThereIsNone", extv1.JSONSchemaProps{Default: raw("true")}, "Default: true."},
		{"NotWithoutADefault", extv1.JSONSchemaProps{Description: "Name."}, "Name."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &extv1.JSONSchemaProps{Properties: map[string]extv1.JSONSchemaProps{"list": {
				Items: &extv1.JSONSchemaPropsOrArray{Schema: &extv1.JSONSchemaProps{Properties: map[string]extv1.JSONSchemaProps{"field": tc.field}}},
			}}}
			if err := Apply(s); err != nil {
				t.Fatal(err)
			}
			if got := s.Properties["list"].Items.Schema.Properties["field"].Description; got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	if err := Apply(&extv1.JSONSchemaProps{Properties: map[string]extv1.JSONSchemaProps{"a": {Default: raw("{")}}}); err == nil || !strings.Contains(err.Error(), "a: default: ") {
		t.Errorf("error %v of a default that is no JSON", err)
	}
}

// unit matches a description that states what a number counts or measures.
var unit = regexp.MustCompile(`(?i)\b(number of|how (many|often)|in (an )?(seconds|minutes|hours|bytes|KiB|MiB|GiB|Mbit/s|Nodes|Machines)|IOPS|bits|(largest|smallest) (size|number)|ID|version|VLAN tag|MTU|revision|cores|order|position)\b`)

// TestEachFieldOfASpecStatesItsDefaultAndItsUnit reads the schemas that a user installs.
func TestEachFieldOfASpecStatesItsDefaultAndItsUnit(t *testing.T) {
	const root = "../.."
	defaults, numbers, durations := 0, 0, 0
	for _, pattern := range []string{"package/*/crds/*.yaml", "apis/machine/xrds/*.yaml", "package/*/input/*.yaml", "examples/claims/definition.yaml"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			walk(read(t, file), "", func(path string, p extv1.JSONSchemaProps) {
				if path == ".metadata" || strings.HasPrefix(path, ".status") {
					return
				}
				if p.Default != nil {
					text, err := textOf(p.Default.Raw)
					if err != nil {
						t.Fatal(err)
					}
					if defaults++; !states(strings.Join(strings.Fields(p.Description), " "), text) {
						t.Errorf("%s: %s: the description lacks the default %s: run make generate", file, path, p.Default.Raw)
					}
				}
				if p.Type == "integer" || p.Type == "number" {
					if numbers++; !unit.MatchString(strings.Join(strings.Fields(p.Description), " ")) {
						t.Errorf("%s: %s: the description does not state what the number counts or measures: %q", file, path, p.Description)
					}
				}
				// The bounds have replaced the pattern of controller-gen by a rule.
				if slices.ContainsFunc(p.XValidations, func(r extv1.ValidationRule) bool { return strings.Contains(r.Rule, "duration(self)") }) {
					if durations++; !strings.Contains(p.Description, duration) {
						t.Errorf("%s: %s: the description lacks the form of a duration: run make generate", file, path)
					}
				}
			})
		}
	}
	if defaults < 200 || numbers < 50 || durations < 50 {
		t.Errorf("only %d defaults, %d numbers and %d durations were read", defaults, numbers, durations)
	}
}

// read the schema of the newest version of a CRD, an XRD or an input.
func read(t *testing.T, file string) *extv1.JSONSchemaProps {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	kind := struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema extv1.JSONSchemaProps `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}{}
	if err := yaml.Unmarshal(b, &kind); err != nil || len(kind.Spec.Versions) == 0 {
		t.Fatalf("%s: %d versions, %v", file, len(kind.Spec.Versions), err)
	}
	return &kind.Spec.Versions[len(kind.Spec.Versions)-1].Schema.OpenAPIV3Schema
}

func walk(s *extv1.JSONSchemaProps, path string, visit func(path string, p extv1.JSONSchemaProps)) {
	names := make([]string, 0, len(s.Properties))
	for name := range s.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		p := s.Properties[name]
		visit(path+"."+name, p)
		walk(&p, path+"."+name, visit)
	}
	if s.Items != nil && s.Items.Schema != nil {
		walk(s.Items.Schema, path+"[]", visit)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		walk(s.AdditionalProperties.Schema, path+"{}", visit)
	}
}
