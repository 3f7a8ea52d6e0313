// Package schematest validates objects in tests as an API server would: defaults,
// pruning, OpenAPI validation and CEL rules, from an XRD's or CRD's file.
package schematest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// maxLengthOfComposite is how many characters Crossplane allows in the name of a composite resource.
const maxLengthOfComposite = 63

// A Schema validates objects of one kind.
type Schema struct {
	structural *schema.Structural
	openapi    validation.SchemaValidator
	rules      *cel.Validator
}

// loaded are the schemas of the files that tests of the process have loaded: to validate one and to compile its rules
// takes up to a second.
var loaded sync.Map

// Load reads a CRD, or an XRD, whose schema Crossplane takes over into a CRD. It
// fails the test if no API server would accept it.
func Load(t *testing.T, file string) *Schema {
	t.Helper()
	if s, ok := loaded.Load(file); ok {
		if s, ok := s.(*Schema); ok {
			return s
		}
	}
	s := load(t, file)
	loaded.Store(file, s)
	return s
}

func load(t *testing.T, file string) *Schema {
	t.Helper()
	crd := &apiextensions.CustomResourceDefinition{}
	v1crd := read(t, file)
	if err := extv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(v1crd, crd, nil); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if errs := crdvalidation.ValidateCustomResourceDefinition(context.Background(), crd); len(errs) > 0 {
		t.Fatalf("%s: no API server accepts it: %v", file, errs.ToAggregate())
	}
	s, err := schemaOf(crd.Spec.Validation.OpenAPIV3Schema, true)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return s
}

func schemaOf(props *apiextensions.JSONSchemaProps, isRoot bool) (*Schema, error) {
	structural, err := schema.NewStructural(props)
	if err != nil {
		return nil, err
	}
	openapi, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		return nil, err
	}
	return &Schema{structural: structural, openapi: openapi, rules: cel.NewValidator(structural, isRoot, celconfig.PerCallLimit)}, nil
}

// Check validates an object in YAML by the schema in a file, and fails the test unless an error contains want, or
// there is none if want is empty.
func Check(t *testing.T, file, object, want string) {
	t.Helper()
	b, err := yaml.YAMLToJSON([]byte(object))
	if err != nil {
		t.Fatal(err)
	}
	o := map[string]any{}
	// Numbers are integers, as in the API server.
	if err := json.Unmarshal(b, &o); err != nil {
		t.Fatal(err)
	}
	errs := Load(t, file).Validate(o, nil)
	switch {
	case want == "" && len(errs) > 0:
		t.Fatal(errs.ToAggregate())
	case want != "" && (len(errs) == 0 || !strings.Contains(errs.ToAggregate().Error(), want)):
		t.Fatalf("errors %v, want one with %q", errs, want)
	}
}

// Validate defaults and prunes obj in place, and validates it; as an update of old
// if that is not nil.
func (s *Schema) Validate(obj, old map[string]any) field.ErrorList {
	pruning.Prune(obj, s.structural, true)
	defaulting.Default(obj, s.structural)
	errs := validation.ValidateCustomResource(nil, obj, s.openapi)
	var before any
	if old != nil {
		before = old
	}
	if s.rules != nil && len(errs) == 0 {
		rules, _ := s.rules.Validate(context.Background(), nil, s.structural, obj, before, celconfig.RuntimeCELCostBudget)
		errs = append(errs, rules...)
	}
	return errs
}

func read(t *testing.T, file string) *extv1.CustomResourceDefinition {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	crd := &extv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(b, crd); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if crd.Kind != "CompositeResourceDefinition" {
		return defaulted(crd)
	}

	// The conversion of an XRD by Crossplane, as far as it matters to validation.
	xrd := struct {
		Spec struct {
			Versions []struct {
				Name          string                                 `json:"name"`
				Referenceable bool                                   `json:"referenceable"`
				Schema        extv1.CustomResourceValidation         `json:"schema"`
				Subresources  *extv1.CustomResourceSubresources      `json:"subresources"`
				Columns       []extv1.CustomResourceColumnDefinition `json:"additionalPrinterColumns"`
			} `json:"versions"`
		} `json:"spec"`
	}{}
	if err := yaml.Unmarshal(b, &xrd); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	crd.Spec.Versions = nil
	for _, v := range xrd.Spec.Versions {
		props := v.Schema.OpenAPIV3Schema
		props.Type = "object"
		for name, typ := range map[string]string{"apiVersion": "string", "kind": "string", "metadata": "object"} {
			props.Properties[name] = extv1.JSONSchemaProps{Type: typ}
		}
		// Crossplane makes the name of a composite resource a label value of what it composes.
		props.Properties["metadata"] = extv1.JSONSchemaProps{Type: "object", Properties: map[string]extv1.JSONSchemaProps{
			"name": {Type: "string", MaxLength: ptr.To(int64(maxLengthOfComposite))},
		}}
		if v.Subresources == nil {
			v.Subresources = &extv1.CustomResourceSubresources{}
		}
		v.Subresources.Status = &extv1.CustomResourceSubresourceStatus{}
		crd.Spec.Versions = append(crd.Spec.Versions, extv1.CustomResourceDefinitionVersion{
			Name: v.Name, Served: true, Storage: v.Referenceable,
			Schema: &v.Schema, Subresources: v.Subresources, AdditionalPrinterColumns: v.Columns,
		})
	}
	return defaulted(crd)
}

// defaulted sets the defaults that a server would set, for the validation of the CRD itself.
func defaulted(crd *extv1.CustomResourceDefinition) *extv1.CustomResourceDefinition {
	extv1.SetDefaults_CustomResourceDefinition(crd)
	extv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
	crd.ObjectMeta = metav1.ObjectMeta{Name: fmt.Sprintf("%s.%s", crd.Spec.Names.Plural, crd.Spec.Group)}
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			crd.Status.StoredVersions = []string{v.Name}
		}
	}
	return crd
}
