package vm

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/cel"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

// A Validator returns the errors that the API server would return for the spec of a resource.
type Validator struct {
	structural *structuralschema.Structural
	openAPI    validation.SchemaValidator
	rules      *schemacel.Validator
	// managed means that the kind is a managed resource of crossplane-runtime.
	managed bool
}

// NewValidator returns the validator for a kind's published OpenAPI schema. It uses only the schema
// of the spec.
func NewValidator(schema map[string]any) (*Validator, error) {
	b, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	published := &extv1.JSONSchemaProps{}
	if err := json.Unmarshal(b, published); err != nil {
		return nil, fmt.Errorf("cannot read the schema: %w", err)
	}
	// The published metadata is not a structural schema, and it is not validated here.
	external := &extv1.JSONSchemaProps{
		Type:       "object",
		Properties: map[string]extv1.JSONSchemaProps{"spec": published.Properties["spec"]},
	}
	internal := &apiextensions.JSONSchemaProps{}
	if err := extv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(external, internal, nil); err != nil {
		return nil, fmt.Errorf("cannot convert the schema: %w", err)
	}
	v := &Validator{}
	if v.structural, err = structuralschema.NewStructural(internal); err != nil {
		return nil, fmt.Errorf("cannot convert the schema: %w", err)
	}
	if v.openAPI, _, err = validation.NewSchemaValidator(internal); err != nil {
		return nil, fmt.Errorf("cannot convert the schema: %w", err)
	}
	_, v.managed = published.Properties["spec"].Properties["managementPolicies"]
	v.rules = schemacel.NewValidator(v.structural, false, cel.PerCallLimit)
	return v, nil
}

// validate follows the order of the API server: unknown fields, defaults, types, and then the
// rules. Unlike the API server, it returns errors for unknown fields.
func (v *Validator) validate(spec map[string]any) field.ErrorList {
	obj := map[string]any{"spec": runtime.DeepCopyJSON(spec)}

	var errs field.ErrorList
	for _, path := range pruning.PruneWithOptions(obj, v.structural, false, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
		errs = append(errs, field.Forbidden(field.NewPath(path), "unknown field"))
	}
	defaulting.Default(obj, v.structural)
	invalid := validation.ValidateCustomResource(nil, obj, v.openAPI)
	if len(invalid) == 0 {
		// For a schema without rules the validator is nil, and returns no errors.
		invalid, _ = v.rules.Validate(context.Background(), nil, v.structural, obj, nil, math.MaxInt64)
	}
	return append(errs, invalid...)
}

// finalize adds the finalizer to a managed resource, which saves its controller a write. If the
// binding sets management policies, the controller may refuse them. It would then neither delete
// the resource nor remove the finalizer. So such a resource gets its finalizer from the controller,
// once that accepts the policies.
func (v *Validator) finalize(made *unstructured.Unstructured) {
	_, probes, _ := unstructured.NestedFieldNoCopy(made.Object, "spec", "managementPolicies")
	if v != nil && v.managed && !probes {
		made.SetFinalizers([]string{plan.FinalizerManaged})
	}
}

// placed returns the binding's field that set the path of an error. It is false if the error is one
// of the class.
func (t Template) placed(set map[string]bool, path string) (string, bool) {
	for i, f := range t.fields {
		if !set[f.path] {
			continue
		}
		if path == f.path || strings.HasPrefix(path, f.path+".") || strings.HasPrefix(path, f.path+"[") {
			return fmt.Sprintf("%s.fields[%d] (of %s)", t.place, i, f.path), true
		}
	}
	return "", false
}

// explain separates errors by the party that must fix them. Errors of fields that the binding sets
// omit the values, because one of them is the user data. Errors of the class name their path in it,
// with the given prefix.
func (t Template) explain(set map[string]bool, inClass string, errs field.ErrorList) (ofBinding, ofClass []string) {
	binding, class := map[string]bool{}, map[string]bool{}
	for _, e := range errs {
		if place, ok := t.placed(set, e.Field); ok {
			e := *e
			e.BadValue = field.OmitValueType{}
			binding[place+": "+body(&e)] = true
			continue
		}
		if e.Field == "spec" {
			// The message of a rule for the whole spec names the fields.
			whole := e.Detail
			if inClass != "" {
				whole = strings.TrimSuffix(inClass, ".") + ": " + whole
			}
			class[whole] = true
			continue
		}
		class[inClass+strings.TrimPrefix(e.Field, "spec.")+": "+body(e)] = true
	}
	return slices.Sorted(maps.Keys(binding)), slices.Sorted(maps.Keys(class))
}

func body(e *field.Error) string {
	if e.Type == field.ErrorTypeForbidden {
		return e.Detail
	}
	return e.ErrorBody()
}

// NotInstalled is the problem of a kind that the API server does not have.
func (t Template) NotInstalled() *plan.Problem {
	apiVersion, kind := t.GVK.ToAPIVersionAndKind()
	install := "install its provider"
	if t.pkg != "" {
		install += fmt.Sprintf(" by \"crossplane xpkg install provider %s\"", t.pkg)
	}
	return &plan.Problem{
		Reason: machinev1alpha1.ReasonProviderNotInstalled,
		Message: fmt.Sprintf("%s: the API server has no kind %s of %s: %s, or if it is Healthy, activate the kind by a ManagedResourceActivationPolicy",
			t.place, kind, apiVersion, install),
	}
}
